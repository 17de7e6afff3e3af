//! The numbers in the kernel's texts.

use super::activity::{
    CpuTicks, MemoryState, NetworkTotals, PagingTotals, ProcessTotals, SystemTotals,
};

/// All numbers of a line.
pub(super) fn numbers(line: &str) -> Vec<u64> {
    line.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

/// The first line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal. Guest time
/// is inside user time.
pub(super) fn cpu_ticks(text: &str) -> Option<CpuTicks> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let fields = numbers(line);
    let [user, nice, system, idle, waiting, irq, softirq, stolen] = *fields.first_chunk::<8>()?;
    let busy = user + nice + system + irq + softirq;
    Some(CpuTicks {
        total: busy + idle + waiting + stolen,
        busy,
        stolen,
        user: user + nice,
        kernel: system + irq + softirq,
        waiting,
    })
}

/// The number behind a word at the beginning of a line, colon or not.
fn number_after(text: &str, word: &str) -> Option<u64> {
    let line = text
        .lines()
        .find(|line| line.strip_prefix(word).is_some_and(|rest| rest.starts_with([' ', ':'])))?;
    numbers(line).first().copied()
}

/// Interrupts, context switches and tasks of /proc/stat.
pub(super) fn system_totals(text: &str) -> Option<SystemTotals> {
    Some(SystemTotals {
        interrupts: number_after(text, "intr")?,
        context_switches: number_after(text, "ctxt")?,
        tasks_running: number_after(text, "procs_running")?,
        tasks_blocked: number_after(text, "procs_blocked")?,
    })
}

/// /proc/meminfo, which is in KiB.
pub(super) fn memory_state(text: &str) -> Option<MemoryState> {
    let bytes = |word: &str| number_after(text, word).map(|kib| kib * 1024);
    let available_bytes = bytes("MemAvailable")?;
    Some(MemoryState {
        available_bytes,
        used_bytes: bytes("MemTotal")?.saturating_sub(available_bytes),
        cached_bytes: bytes("Cached")?,
        committed_bytes: bytes("Committed_AS")?,
        kernel_fixed_bytes: bytes("SUnreclaim")?,
        kernel_reclaimable_bytes: bytes("SReclaimable")?,
        mappings_free_bytes: bytes("VmallocTotal")?.saturating_sub(bytes("VmallocUsed")?),
    })
}

/// /proc/vmstat. Pages are taken for something else by the kernel's own task or by whoever wanted
/// memory.
pub(super) fn paging_totals(text: &str) -> Option<PagingTotals> {
    let count = |word: &str| number_after(text, word);
    Some(PagingTotals {
        page_faults: count("pgfault")?,
        major_page_faults: count("pgmajfault")?,
        repurposed: count("pgsteal_kswapd")? + count("pgsteal_direct")?,
        swapped: count("pswpin")? + count("pswpout")?,
    })
}

/// /proc/self/stat: behind the name in brackets, which may hold anything, stand state and numbers;
/// user and kernel time are the 12th and 13th field from there, the number of threads is the 18th,
/// the resident pages are the 22nd.
pub(super) fn process_totals(
    text: &str,
    ticks_per_s: u64,
    page_bytes: u64,
) -> Option<ProcessTotals> {
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let at = |position: usize| fields.get(position)?.parse::<u64>().ok();
    Some(ProcessTotals {
        cpu_ns: (at(11)? + at(12)?) * (1_000_000_000 / ticks_per_s.max(1)),
        threads: at(17)?,
        resident_bytes: at(21)? * page_bytes,
    })
}

/// /proc/net/dev: received bytes are the first number behind the adapter's name, sent bytes the
/// ninth.
pub(super) fn network_totals(text: &str) -> Option<NetworkTotals> {
    let adapters = text.lines().filter_map(|line| line.split_once(':'));
    let mut totals = None;
    for (name, counted) in adapters {
        let counted = numbers(counted);
        let (Some(received), Some(sent)) = (counted.first(), counted.get(8)) else {
            continue;
        };
        let sums: &mut NetworkTotals = totals.get_or_insert_default();
        if name.trim() != "lo" {
            sums.received_bytes += received;
            sums.sent_bytes += sent;
        }
    }
    totals
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
