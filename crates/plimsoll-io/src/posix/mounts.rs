//! Which file system a path is on, from /proc/self/mountinfo (proc(5)).

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// One mounted file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    /// Device number, of the file system's own if it has no single device.
    pub number: (u32, u32),
    /// Where it is mounted.
    pub point: PathBuf,
    /// "ext4", "nfs4", ...
    pub kind: String,
    /// What is mounted: a device, a share, or just a word.
    pub source: PathBuf,
    /// Options of the mount and of the file system.
    pub options: Vec<String>,
}

impl Mount {
    /// The mount with this device number.
    pub(crate) fn with_number(major: u32, minor: u32) -> Option<Self> {
        all_mounts().into_iter().find(|mount| mount.number == (major, minor))
    }

    /// The mount an absolute path without symbolic links lies on: the last one with the longest
    /// mount point.
    pub(crate) fn of_path(path: &Path) -> Option<Self> {
        all_mounts()
            .into_iter()
            .filter(|mount| path.starts_with(&mount.point))
            .max_by_key(|mount| mount.point.as_os_str().len())
    }

    /// The block device that is mounted, if it is one.
    pub(crate) fn source_device(&self) -> Option<PathBuf> {
        self.source.starts_with("/dev").then(|| self.source.clone())
    }
}

fn all_mounts() -> Vec<Mount> {
    fs::read_to_string("/proc/self/mountinfo")
        .unwrap_or_default()
        .lines()
        .filter_map(parse_line)
        .collect()
}

/// `36 35 98:0 /root /mnt rw,noatime master:1 - ext3 /dev/sda1 rw,errors=continue`
pub(super) fn parse_line(line: &str) -> Option<Mount> {
    let (before, after) = line.split_once(" - ")?;
    let mut before = before.split(' ').skip(2);
    let (major, minor) = before.next()?.split_once(':')?;
    let point = before.nth(1)?;
    let mount_options = before.next()?;
    let mut after = after.split(' ');
    let (kind, source) = (after.next()?, after.next()?);
    let mut options: Vec<String> = Vec::new();
    for option in mount_options.split(',').chain(after.next().unwrap_or_default().split(',')) {
        if !option.is_empty() && !options.iter().any(|seen| seen == option) {
            options.push(option.to_owned());
        }
    }
    Some(Mount {
        number: (major.parse().ok()?, minor.parse().ok()?),
        point: unescape(point),
        kind: kind.to_owned(),
        source: unescape(source),
        options,
    })
}

/// Blanks, tabs, line ends and backslashes are written as three octal digits.
fn unescape(text: &str) -> PathBuf {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let octal = after.get(..3).and_then(|digits| {
            let digits = std::str::from_utf8(digits).ok()?;
            u8::from_str_radix(digits, 8).ok()
        });
        match octal {
            Some(byte) if *first == b'\\' => {
                bytes.push(byte);
                rest = &after[3..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}
