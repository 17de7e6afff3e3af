//! What is read out of the texts and numbers of the kernel.

use std::path::PathBuf;

use super::mounts::{Mount, parse_line};
use super::{Geometry, OpenFile, OpenRules};
use crate::blockdevice::Identity;
use crate::{DiskErrorKind, OpenMode};

/// Names with blanks, several options twice, and the tags in the middle that may be there or not.
#[test]
fn mount_lines_are_understood() {
    let line = [
        r"36 35 98:0 /mnt1 /mnt\040two/a\134b rw,noatime master:1 shared:2",
        "- ext3 /dev/root rw,errors=continue",
    ]
    .join(" ");
    let expected = Mount {
        number: (98, 0),
        point: "/mnt two/a\\b".into(),
        kind: "ext3".into(),
        source: "/dev/root".into(),
        options: ["rw", "noatime", "errors=continue"].map(String::from).into(),
    };
    assert_eq!(parse_line(&line), Some(expected));
    let without_tags = "21 1 0:20 / /sys rw - sysfs sysfs rw";
    let mount = parse_line(without_tags).expect("an ordinary line");
    assert_eq!((mount.kind.as_str(), mount.source_device()), ("sysfs", None));
    assert_eq!(parse_line("not a mount"), None);
}

fn geometry(logical: Option<u32>, physical: Option<u32>, direct: Option<u32>) -> (u32, u32, bool) {
    let geometry = Geometry {
        device: 0,
        logical_block_bytes: logical,
        physical_block_bytes: physical,
        direct_alignment_bytes: direct,
    };
    (geometry.alignment_bytes(), geometry.atomic_write_bytes(), geometry.emulates_smaller_blocks())
}

/// Alignment: what the file system says, else the device, else the least there is. 512e is told
/// from 512n and 4Kn.
#[test]
fn sizes_follow_from_what_is_known() {
    assert_eq!(geometry(Some(512), Some(512), Some(512)), (512, 512, false), "512n");
    assert_eq!(geometry(Some(512), Some(4096), Some(512)), (512, 4096, true), "512e");
    assert_eq!(geometry(Some(4096), Some(4096), None), (4096, 4096, false), "4Kn, old kernel");
    assert_eq!(
        geometry(Some(512), Some(512), Some(4096)),
        (4096, 512, false),
        "a stricter file system"
    );
    assert_eq!(geometry(None, None, Some(0)), (512, 512, false), "no direct I/O, no device");
    assert_eq!(geometry(None, None, None), (512, 512, false), "a network file system");
}

/// Why: a link below /dev/disk/by-id may move to another device between the check and the opening;
/// what is overwritten then is a disk that nobody has named.
#[test]
fn a_device_that_is_not_the_one_checked_is_refused() {
    // Others may be using loop devices: those without a size hold nothing.
    let free: Vec<PathBuf> = (0..64)
        .rev()
        .filter(|number| {
            std::fs::read_to_string(format!("/sys/block/loop{number}/size"))
                .is_ok_and(|size| size.trim() == "0")
        })
        .map(|number| PathBuf::from(format!("/dev/loop{number}")))
        .filter(|path| path.exists())
        .collect();
    let [checked, opened, ..] = free.as_slice() else {
        println!("skipped: this machine has no two free loop devices");
        return;
    };
    let identity = Identity::at(checked).expect("the device is there");
    if std::fs::File::open(opened).is_err() {
        println!("skipped: this user may not open loop devices");
        return;
    }
    let rules =
        OpenRules { destroy_serials: vec![identity.consent_token()], ..OpenRules::default() };
    for mode in [OpenMode::Read, OpenMode::Write] {
        let error = OpenFile::open_checked_device(opened, &identity, mode, &rules)
            .expect_err("the device is another one");
        assert_eq!(error.kind, DiskErrorKind::Occupied, "{error}");
        assert!(error.to_string().contains("another device"), "{error}");
    }
}
