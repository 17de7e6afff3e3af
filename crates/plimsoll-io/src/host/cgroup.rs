//! Where the quotas of this process's control groups are accounted, in version 1 and version 2 of
//! the hierarchy.
//!
//! A quota anywhere on the way up to the root holds a process back, and is accounted only where it
//! is set, so every level counts. A process that is moved to another group during a run is not
//! followed.

use std::fs;
use std::path::{Path, PathBuf};

/// Where the version 2 hierarchy is mounted: alone, or beside version 1.
const UNIFIED: [&str; 2] = ["sys/fs/cgroup", "sys/fs/cgroup/unified"];
/// Where version 1 mounts the controller.
const LEGACY: [&str; 2] = ["sys/fs/cgroup/cpu,cpuacct", "sys/fs/cgroup/cpu"];

/// Every cpu.stat that counts for this process.
pub(super) fn throttle_files(root: &Path) -> Vec<PathBuf> {
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let mut found = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (fields.next(), fields.next()) else {
            continue;
        };
        let mounts = match controllers {
            "" => UNIFIED,
            list if list.split(',').any(|name| name == "cpu") => LEGACY,
            _ => continue,
        };
        let files = mounts.iter().map(|mount| stat_files(&root.join(mount), group));
        // Both names of a mount may lead to the same place: the first that has the files is it.
        found.extend(files.into_iter().find(|files| !files.is_empty()).unwrap_or_default());
    }
    found
}

/// The cpu.stat of a group and of every group above it, as far as they exist.
fn stat_files(mount: &Path, group: &str) -> Vec<PathBuf> {
    let group = Path::new(group.trim_start_matches('/'));
    let levels = group.ancestors().map(|level| mount.join(level).join("cpu.stat"));
    levels.filter(|file| file.is_file()).collect()
}
