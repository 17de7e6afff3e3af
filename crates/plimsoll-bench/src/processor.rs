//! What the process has used, as Linux tells it.

/// Nanoseconds on a processor, user and system, of all threads of this process.
///
/// # Panics
/// Where Linux does not tell.
pub fn processor_ns() -> u64 {
    let tasks = std::fs::read_dir("/proc/self/task").expect("Linux lists the threads of a process");
    tasks
        .flatten()
        .filter_map(|task| std::fs::read_to_string(task.path().join("schedstat")).ok())
        .filter_map(|line| line.split_whitespace().next()?.parse::<u64>().ok())
        .sum()
}

/// A line of /proc/self/status in bytes: `VmRSS` now, `VmHWM` at its highest.
///
/// # Panics
/// Where Linux does not tell.
pub fn memory_bytes(name: &str) -> u64 {
    let status =
        std::fs::read_to_string("/proc/self/status").expect("Linux tells the memory of a process");
    let line = status.lines().find(|line| line.starts_with(name));
    let kibibytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kibibytes.expect("the second field is a number of KiB") * 1024
}

/// Says so when figures would mean nothing.
pub fn warn_of_debug_build() {
    if cfg!(debug_assertions) {
        eprintln!("warning: this is a debug build; its figures mean nothing");
    }
}
