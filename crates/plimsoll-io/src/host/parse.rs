//! The numbers in the kernel's texts.

use super::CpuTicks;
use super::device::DeviceTotals;

const SECTOR_BYTES: u64 = 512;

fn numbers(line: &str) -> Vec<u64> {
    line.split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect()
}

/// The first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal. Guest time is inside user time.
pub(super) fn cpu_ticks(text: &str) -> Option<CpuTicks> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let fields = numbers(line);
    let [user, nice, system, idle, waiting, irq, softirq, stolen] = *fields.first_chunk::<8>()?;
    let busy = user + nice + system + irq + softirq;
    Some(CpuTicks {
        total: busy + idle + waiting + stolen,
        busy,
        stolen,
    })
}

/// The second number of schedstat: nanoseconds on a run queue.
pub(super) fn thread_waited_ns(text: &str) -> Option<u64> {
    numbers(text).get(1).copied()
}

/// The `total=` of one line of a pressure file.
pub(super) fn pressure_us(text: &str, which: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.split(' ').next() == Some(which))?;
    line.rsplit_once("total=")?.1.trim().parse().ok()
}

/// Time without processors in cpu.stat: nanoseconds in version 1, microseconds in version 2.
pub(super) fn throttled_ns(text: &str) -> Option<u64> {
    text.lines().find_map(|line| match line.split_once(' ')? {
        ("throttled_time", value) => value.trim().parse().ok(),
        ("throttled_usec", value) => value.trim().parse::<u64>().ok().map(|us| us * 1000),
        _ => None,
    })
}

/// MemAvailable of /proc/meminfo, which is in KiB.
pub(super) fn memory_available_bytes(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(numbers(line).first()? * 1024)
}

/// The stat file of a block device; times are in milliseconds, sectors are 512 bytes whatever the device's own are.
/// Kernels before 5.5 have no flush fields.
pub(super) fn device_totals(text: &str) -> Option<DeviceTotals> {
    let fields = numbers(text);
    let at = |position: usize| fields.get(position).copied();
    Some(DeviceTotals {
        reads: at(0)?,
        read_bytes: at(2)? * SECTOR_BYTES,
        read_ms: at(3)?,
        writes: at(4)?,
        write_bytes: at(6)? * SECTOR_BYTES,
        write_ms: at(7)?,
        busy_ms: at(9)?,
        queued_ms: at(10)?,
        flushes: at(15),
        flush_ms: at(16),
    })
}
