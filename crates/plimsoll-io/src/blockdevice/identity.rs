//! Which device this is: its stable name, its serial, what is built on it. Read from sysfs,
//! /dev/disk/by-id and, where the kernel itself does not know the serial, from udev's database.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::posix::Mount;

/// A block device as the machine knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// The kernel's name, such as "sda" or "sda1"; may change with every boot.
    pub kernel_name: String,
    /// Which partition of its disk this is.
    pub partition: Option<u32>,
    /// Its number, major and minor.
    number: (u32, u32),
    /// Its own folder in sysfs.
    folder: PathBuf,
    /// The folder of its disk; the same unless it is a partition.
    disk_folder: PathBuf,
}

impl Identity {
    /// The device a path leads to.
    pub(crate) fn at(path: &Path) -> Option<Self> {
        let number = fs::metadata(path).ok()?.rdev();
        Self::of(libc::major(number), libc::minor(number))
    }

    /// The device with this number.
    pub(crate) fn of(major: u32, minor: u32) -> Option<Self> {
        let folder = fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")).ok()?;
        let partition = text_in(&folder.join("partition")).and_then(|text| text.parse().ok());
        let disk_folder = match partition {
            Some(_) => folder.parent()?.to_owned(),
            None => folder.clone(),
        };
        let kernel_name = folder.file_name()?.to_string_lossy().into_owned();
        Some(Self { kernel_name, partition, number: (major, minor), folder, disk_folder })
    }

    /// Whether an open descriptor is of this device.
    pub(crate) fn is_of(&self, opened: &OwnedFd) -> bool {
        let metadata = opened.try_clone().and_then(|fd| fs::File::from(fd).metadata());
        metadata.is_ok_and(|metadata| {
            let number = metadata.rdev();
            metadata.file_type().is_block_device()
                && (libc::major(number), libc::minor(number)) == self.number
        })
    }

    /// The device below a file system: the one its device number names, or, for file systems with
    /// numbers of their own (btrfs), the one its mount names.
    pub(crate) fn below_file_system(major: u32, minor: u32) -> Option<Self> {
        Self::of(major, minor)
            .or_else(|| Self::at(&Mount::with_number(major, minor)?.source_device()?))
    }

    /// The first name below /dev/disk/by-id; does not change.
    pub(crate) fn by_id(&self) -> Option<PathBuf> {
        let device = Path::new("/dev").join(&self.kernel_name);
        let folder = Path::new("/dev/disk/by-id");
        names_in(folder)
            .into_iter()
            .map(|name| folder.join(name))
            .find(|link| fs::canonicalize(link).is_ok_and(|target| target == device))
    }

    /// The disk's serial.
    pub(crate) fn serial(&self) -> Option<String> {
        serial_of(&self.disk_folder)
    }

    /// The name that stays, or else the kernel's.
    pub(crate) fn best_path(&self) -> PathBuf {
        self.by_id().unwrap_or_else(|| Path::new("/dev").join(&self.kernel_name))
    }

    /// What the user types to allow writing: the serial; of a partition with its number; where
    /// there is no serial, the path.
    pub(crate) fn consent_token(&self) -> String {
        match (self.serial(), self.partition) {
            (Some(serial), None) => serial,
            (Some(serial), Some(partition)) => format!("{serial}-part{partition}"),
            (None, _) => format!("/dev/{}", self.kernel_name),
        }
    }

    /// Where sysfs speaks of the disk.
    pub(crate) fn disk_folder(&self) -> &Path {
        &self.disk_folder
    }

    /// What sysfs says of the disk under a name such as "queue/rotational".
    pub(crate) fn attribute(&self, name: &str) -> Option<String> {
        text_in(&self.disk_folder.join(name))
    }

    /// A numeric attribute.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.attribute(name)?.parse().ok()
    }

    /// The disks that in the end hold the data: through partitions, device mapper and RAID, by
    /// kernel name.
    pub(crate) fn bottom_disks(&self) -> Vec<String> {
        let below = names_in(&self.disk_folder.join("slaves"));
        if below.is_empty() {
            let name = self.disk_folder.file_name();
            return name.map(|name| name.to_string_lossy().into_owned()).into_iter().collect();
        }
        below
            .iter()
            .filter_map(|name| Self::at(&Path::new("/dev").join(name)))
            .flat_map(|disk| disk.bottom_disks())
            .collect()
    }

    /// The device's own capacity; sysfs counts in 512 bytes whatever the block size.
    pub(crate) fn size_bytes(&self) -> Option<u64> {
        let sectors: u64 = text_in(&self.folder.join("size"))?.parse().ok()?;
        Some(sectors * 512)
    }

    /// Partitions the kernel has found on it.
    pub(crate) fn partitions(&self) -> Vec<String> {
        names_in(&self.folder)
            .into_iter()
            .filter(|name| self.folder.join(name).join("partition").exists())
            .collect()
    }

    /// Devices built on it.
    pub(crate) fn holders(&self) -> Vec<String> {
        names_in(&self.folder.join("holders"))
    }

    /// Other disks with the same serial: further paths to the same storage.
    pub(crate) fn other_paths(&self) -> Vec<String> {
        let Some(serial) = self.serial() else {
            return Vec::new();
        };
        let own_name = self.disk_folder.file_name();
        names_in(Path::new("/sys/block"))
            .into_iter()
            .filter(|name| Some(name.as_ref()) != own_name)
            .filter(|name| {
                let folder = fs::canonicalize(Path::new("/sys/block").join(name));
                folder.ok().and_then(|folder| serial_of(&folder)).as_ref() == Some(&serial)
            })
            .collect()
    }
}

fn serial_of(disk_folder: &Path) -> Option<String> {
    ["serial", "device/serial"]
        .iter()
        .find_map(|name| text_in(&disk_folder.join(name)))
        .or_else(|| serial_from_vital_product_data(&disk_folder.join("device/vpd_pg80")))
        .or_else(|| serial_from_udev(disk_folder))
}

/// SCSI vital product data page 0x80: four bytes of header, then the serial.
fn serial_from_vital_product_data(path: &Path) -> Option<String> {
    let page = fs::read(path).ok()?;
    non_empty(&String::from_utf8_lossy(page.get(4..)?))
}

fn serial_from_udev(disk_folder: &Path) -> Option<String> {
    let number = text_in(&disk_folder.join("dev"))?;
    let facts = fs::read_to_string(format!("/run/udev/data/b{number}")).ok()?;
    let serial = |key| facts.lines().find_map(|line| line.strip_prefix(key));
    non_empty(serial("E:ID_SERIAL_SHORT=").or_else(|| serial("E:ID_SERIAL="))?)
}

fn non_empty(text: &str) -> Option<String> {
    let text = text.trim_matches(|letter: char| letter.is_whitespace() || letter == '\0');
    (!text.is_empty()).then(|| text.to_owned())
}

fn text_in(path: &Path) -> Option<String> {
    non_empty(&fs::read_to_string(path).ok()?)
}

fn names_in(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}
