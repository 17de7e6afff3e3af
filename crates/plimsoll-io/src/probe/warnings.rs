//! What a user should know before trusting figures or data to a place.

use super::found::Probe;

/// Below this the registered memory of one instance does not fit.
const LOCKABLE_BYTES_WANTED: u64 = 64 << 20;

pub(super) fn of(found: &Probe) -> Vec<String> {
    let mut warnings = Vec::new();
    file_system_warnings(found, &mut warnings);
    device_warnings(found, &mut warnings);
    machine_warnings(found, &mut warnings);
    warnings
}

fn file_system_warnings(found: &Probe, warnings: &mut Vec<String>) {
    if !found.writable {
        warnings.push(format!("{} cannot be written by this user", found.looked_at.display()));
    }
    let Some(file_system) = &found.file_system else {
        return;
    };
    let kind = &file_system.kind;
    if file_system.is_memory {
        warnings.push(format!("{kind} is memory, not storage: nothing here survives a restart"));
    }
    if file_system.is_network {
        warnings.push(format!(
            "{kind} is a network file system: figures include the network and the server, whose \
             memory may answer reads; only data larger than it show the storage below"
        ));
    } else if kind == "fuse" || kind.starts_with("fuse.") {
        warnings.push(format!(
            "{kind} is served by a program: figures include it, and whatever it keeps in memory"
        ));
    }
    if file_system.is_copy_on_write {
        warnings.push(format!(
            "{kind} writes every block to a new place: databases fragment and checksums are done \
             twice"
        ));
    }
    if kind == "overlay" {
        warnings.push("overlay is a container's own layer: use a volume for databases".to_owned());
    }
    if file_system.options.iter().any(|option| option == "ro") {
        warnings.push(format!("{} is mounted read-only", file_system.mount_point.display()));
    }
    let unsafe_options = ["nobarrier", "barrier=0", "data=writeback", "sync"];
    for option in
        file_system.options.iter().filter(|option| unsafe_options.contains(&option.as_str()))
    {
        warnings.push(format!("the mount option {option} changes durability or its cost"));
    }
}

fn device_warnings(found: &Probe, warnings: &mut Vec<String>) {
    let Some(device) = &found.device else { return };
    if device.shares_system_disk == Some(true) {
        warnings.push(format!(
            "{} also holds the operating system: its work disturbs the figures, and a full load \
             disturbs it",
            device.kernel_name
        ));
    }
    if let (Some(logical), Some(physical)) =
        (device.logical_block_bytes, device.physical_block_bytes)
        && logical < physical
    {
        warnings.push(format!(
            "{} writes {physical} byte blocks but is addressed in {logical} bytes (512e): \
             a torn block can lose an acknowledged commit",
            device.kernel_name
        ));
    }
    warnings.extend(
        device.obstacles.iter().map(|obstacle| format!("not usable as a whole device: {obstacle}")),
    );
}

fn machine_warnings(found: &Probe, warnings: &mut Vec<String>) {
    match found.direct_io.reads_work {
        Some(true) => {}
        Some(false) => warnings.push(format!(
            "direct I/O is refused (errno {}): figures would include the page cache",
            found.direct_io.errno.unwrap_or_default()
        )),
        None => warnings.push(
            "whether direct I/O works is not known: there is no file to try it on".to_owned(),
        ),
    }
    for method in &found.methods {
        if let Some(refusal) = &method.refusal {
            warnings.push(format!("{} cannot be used: {refusal}", method.name));
        }
    }
    if found.lockable_memory_bytes.is_some_and(|bytes| bytes < LOCKABLE_BYTES_WANTED) {
        warnings.push(
            "little memory may be locked (ulimit -l): io_uring will register little or none"
                .to_owned(),
        );
    }
}
