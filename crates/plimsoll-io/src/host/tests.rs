//! What is read out of the kernel's texts, on a machine made of files.

use std::fs;
use std::path::{Path, PathBuf};

use super::device::device_totals;
use super::parse::{network_totals, paging_totals, process_totals, system_totals};
use super::{
    BlockDevice, CpuTicks, DeviceTotals, HostFiles, MemoryState, NetworkTotals, PagingTotals,
    PressureTotals, ProcessTotals, SystemTotals,
};

fn machine(name: &str, files: &[(&str, &str)]) -> PathBuf {
    let root = std::env::temp_dir().join(format!("plimsoll-host-{}-{name}", std::process::id()));
    for (path, text) in files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().expect("it has one")).expect("a directory");
        fs::write(path, text).expect("a file");
    }
    root
}

const STAT: &str = "cpu  100 10 30 500 40 1 2 7 5 0\ncpu0 1 1 1 1 1 1 1 1 1 1\nintr 5\n";
const PRESSURE: &str = "some avg10=0.00 avg60=0.53 avg300=1.93 total=739\nfull avg10=0.00 \
 avg60=0.19 avg300=1.07 total=106\n";

const MEMINFO: &str = "MemTotal: 100 kB\nMemAvailable:     10 kB\nSwapCached: 1 kB\nCached: 7 \
 kB\nSReclaimable: 5 kB\n\
    SUnreclaim: 3 kB\nCommitted_AS: 200 kB\nVmallocTotal: 1000 kB\nVmallocUsed: 100 kB\n";

/// Guest time is counted twice by the kernel and must not be here; steal is neither busy nor idle.
#[test]
fn every_total_is_read() {
    let root = machine(
        "whole",
        &[
            ("proc/stat", STAT),
            ("proc/thread-self/schedstat", "5000 777 3\n"),
            ("proc/pressure/io", PRESSURE),
            ("proc/pressure/cpu", PRESSURE),
            ("proc/pressure/memory", PRESSURE),
            ("proc/meminfo", MEMINFO),
            ("proc/self/cgroup", "0::/a/b\n"),
            ("sys/fs/cgroup/a/cpu.stat", "usage_usec 9\nthrottled_usec 5\n"),
            ("sys/fs/cgroup/a/b/cpu.stat", "usage_usec 9\nnr_throttled 3\nthrottled_usec 7\n"),
        ],
    );
    let totals = HostFiles::below(&root).read();
    let cpu = CpuTicks { total: 690, busy: 143, stolen: 7, user: 110, kernel: 33, waiting: 40 };
    assert_eq!(totals.cpu, Some(cpu));
    assert_eq!(totals.thread_waited_ns, Some(777));
    assert_eq!(totals.throttled_ns, Some(12_000), "a quota at any level holds the process back");
    let memory = MemoryState {
        available_bytes: 10_240,
        used_bytes: 90 * 1024,
        cached_bytes: 7 * 1024,
        committed_bytes: 200 * 1024,
        kernel_fixed_bytes: 3 * 1024,
        kernel_reclaimable_bytes: 5 * 1024,
        mappings_free_bytes: 900 * 1024,
    };
    assert_eq!(totals.memory, Some(memory));
    let pressure = PressureTotals {
        io_some_us: 739,
        io_full_us: 106,
        cpu_some_us: 739,
        memory_some_us: 739,
        memory_full_us: 106,
    };
    assert_eq!(totals.pressure, Some(pressure));
    fs::remove_dir_all(root).expect("it can be removed");
}

/// Old hierarchies count nanoseconds, and mount the controller under one of two names.
#[test]
fn a_quota_of_the_first_version_is_found() {
    let root = machine(
        "legacy",
        &[
            ("proc/self/cgroup", "3:cpu,cpuacct:/job\n2:memory:/elsewhere\n"),
            (
                "sys/fs/cgroup/cpu,cpuacct/job/cpu.stat",
                "nr_periods 4\nnr_throttled 2\nthrottled_time 123\n",
            ),
            (
                "sys/fs/cgroup/cpu/job/cpu.stat",
                "nr_periods 4\nnr_throttled 2\nthrottled_time 123\n",
            ),
        ],
    );
    assert_eq!(HostFiles::below(&root).read().throttled_ns, Some(123));
    fs::remove_dir_all(root).expect("it can be removed");
}

/// A kernel that says nothing must not look like one on which nothing happened.
#[test]
fn what_is_not_said_is_not_zero() {
    let totals = HostFiles::below(Path::new("/nonexistent-root")).read();
    assert_eq!(totals, super::HostTotals::default());
    assert!(totals.cpu.is_none() && totals.throttled_ns.is_none() && totals.pressure.is_none());
    assert_eq!(device_totals("1 2 3"), None);
    assert_eq!(BlockDevice::under(Path::new("/proc/self")), None);
}

/// Seventeen fields since kernel 5.5, eleven before 4.18; the place of each decides what is read.
#[test]
fn the_counters_of_a_device_are_read() {
    let expected = DeviceTotals {
        reads: 1,
        read_bytes: 3 * 512,
        read_ms: 4,
        writes: 5,
        write_bytes: 7 * 512,
        write_ms: 8,
        in_flight: 9,
        busy_ms: 10,
        queued_ms: 11,
        flushes: Some(16),
        flush_ms: Some(17),
    };
    let text = "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\n";
    assert_eq!(device_totals(text), Some(expected));
    let old = DeviceTotals { flushes: None, flush_ms: None, ..expected };
    assert_eq!(device_totals("1 2 3 4 5 6 7 8 9 10 11"), Some(old));
}

/// MON-01: the counters of the published tables beside processor and disk. Names that begin alike
/// must not be taken for each other, the loopback is no network, and a process may be called
/// anything.
#[test]
fn the_further_counters_are_read() {
    let stat = "cpu  1 1 1 1 1 1 1 1\nintr 77 1 2 3\nctxt 88\nprocesses 5\nprocs_running \
     3\nprocs_blocked 2\n";
    let system =
        SystemTotals { interrupts: 77, context_switches: 88, tasks_running: 3, tasks_blocked: 2 };
    assert_eq!(system_totals(stat), Some(system));
    let vmstat = "pgfault 100\npgmajfault 9\npgsteal_kswapd 20\npgsteal_direct 3\npgsteal_direct_x \
     5\npswpin 1\npswpout 2\n";
    let paging =
        PagingTotals { page_faults: 100, major_page_faults: 9, repurposed: 23, swapped: 3 };
    assert_eq!(paging_totals(vmstat), Some(paging));
    let own = "42 (a ) b) S 1 2 3 4 5 6 7 8 9 10 250 50 13 14 15 16 6 18 19 20 30 22\n";
    let process = ProcessTotals { cpu_ns: 3_000_000_000, threads: 6, resident_bytes: 30 * 4096 };
    assert_eq!(process_totals(own, 100, 4096), Some(process));
    let network = "Inter-|   Receive |  Transmit\n face |bytes packets\n    lo: 9 9 9 9 9 9 9 9 9 \
     9\n  eth0: 10 1 1 1 1 1 1 1 20 1\n\
        eth1:5 1 1 1 1 1 1 1 6 1\n";
    let both = NetworkTotals { received_bytes: 15, sent_bytes: 26 };
    assert_eq!(network_totals(network), Some(both));
    let live = HostFiles::of_this_machine().read();
    assert!(live.process.is_some_and(|process| process.resident_bytes > 0 && process.threads > 0));
}
