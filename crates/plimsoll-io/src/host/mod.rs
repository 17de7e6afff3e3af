//! What the machine itself did: processor time, processor time withheld, pressure, memory, and the
//! counters of the block layer. Everything is a running total read from /proc and /sys; who wants
//! rates takes differences.
//!
//! Needs no privileges. What a kernel does not say is `None`, never zero. The files read cost some
//! tens of microseconds together on a small machine; /proc/stat grows with the number of processors
//! and interrupts. The block layer counts from the moment a request is made to its completion: what
//! a control group's I/O limit holds back before that is not in its times, and what its scheduler
//! holds back after that is.

mod activity;
mod cgroup;
mod device;
mod parse;
#[cfg(test)]
mod tests;

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

pub use activity::{
    CpuTicks, MemoryState, NetworkTotals, PagingTotals, ProcessTotals, SystemTotals,
};
pub use device::{BlockDevice, DeviceTotals};

use crate::{NANOS_PER_SECOND, Nanos};
use activity::Units;
use cgroup::throttle_files;

/// A short text of this machine that a plan only names, such as a file of passwords or
/// certificates. It is read once, when a run begins.
///
/// # Errors
/// When it cannot be read, is longer than `bytes_max`, or is not valid UTF-8; what and what to do.
pub fn read_text(path: &Path, bytes_max: u64) -> Result<String, String> {
    let shown = path.display();
    let opened =
        fs::File::open(path).map_err(|error| format!("{shown} cannot be read: {error}"))?;
    let mut text = String::new();
    let read = opened.take(bytes_max + 1).read_to_string(&mut text);
    read.map_err(|error| format!("{shown} cannot be read: {error}"))?;
    match text.len() as u64 > bytes_max {
        true => Err(format!("{shown} is longer than {bytes_max} bytes; is it the right file?")),
        false => Ok(text),
    }
}

/// Pressure stall totals: time in which tasks could not go on for lack of something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PressureTotals {
    /// At least one task waited for I/O.
    pub io_some_us: u64,
    /// All tasks that were not idle waited for I/O.
    pub io_full_us: u64,
    /// At least one task waited for a processor.
    pub cpu_some_us: u64,
    /// At least one task waited for memory.
    pub memory_some_us: u64,
    /// All tasks that were not idle waited for memory.
    pub memory_full_us: u64,
}

/// Everything that is known of the machine at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostTotals {
    /// Processor time.
    pub cpu: Option<CpuTicks>,
    /// How long the control groups of this process were kept from their processors by a quota.
    pub throttled_ns: Option<u64>,
    /// How long the calling thread was ready to run and had no processor.
    pub thread_waited_ns: Option<u64>,
    /// Pressure stalls of the whole machine.
    pub pressure: Option<PressureTotals>,
    /// Interrupts and tasks.
    pub system: Option<SystemTotals>,
    /// Memory now; levels, not totals.
    pub memory: Option<MemoryState>,
    /// Pages that came and went.
    pub paging: Option<PagingTotals>,
    /// This process.
    pub process: Option<ProcessTotals>,
    /// The network.
    pub network: Option<NetworkTotals>,
}

/// Where the totals are read.
#[derive(Clone, Debug)]
pub struct HostFiles {
    root: PathBuf,
    throttle_files: Vec<PathBuf>,
}

impl HostFiles {
    /// The files of this machine, and of the control groups this process is in now.
    pub fn of_this_machine() -> HostFiles {
        HostFiles::below(Path::new("/"))
    }

    /// The same files below another directory, for tests.
    pub fn below(root: &Path) -> HostFiles {
        HostFiles { throttle_files: throttle_files(root), root: root.to_owned() }
    }

    /// Reads everything now. The thread's own figures are those of the thread that calls.
    pub fn read(&self) -> HostTotals {
        let units = Units::of_this_machine();
        let stat = self.text("proc/stat");
        let read = |path: &str| self.text(path);
        HostTotals {
            cpu: stat.as_deref().and_then(parse::cpu_ticks),
            system: stat.as_deref().and_then(parse::system_totals),
            throttled_ns: self.throttled_ns(),
            thread_waited_ns: self
                .text("proc/thread-self/schedstat")
                .as_deref()
                .and_then(parse::thread_waited_ns),
            pressure: self.pressure(),
            memory: read("proc/meminfo").as_deref().and_then(parse::memory_state),
            paging: read("proc/vmstat").as_deref().and_then(parse::paging_totals),
            process: read("proc/self/stat")
                .as_deref()
                .and_then(|text| parse::process_totals(text, units.ticks_per_s, units.page_bytes)),
            network: read("proc/net/dev").as_deref().and_then(parse::network_totals),
        }
    }

    fn throttled_ns(&self) -> Option<u64> {
        let totals = self.throttle_files.iter().filter_map(|path| {
            let text = fs::read_to_string(path).ok()?;
            parse::throttled_ns(&text)
        });
        totals.reduce(|left, right| left + right)
    }

    fn pressure(&self) -> Option<PressureTotals> {
        let line = |file: &str, which: &str| {
            let text = self.text(&format!("proc/pressure/{file}"))?;
            parse::pressure_us(&text, which)
        };
        Some(PressureTotals {
            io_some_us: line("io", "some")?,
            io_full_us: line("io", "full")?,
            cpu_some_us: line("cpu", "some")?,
            memory_some_us: line("memory", "some")?,
            memory_full_us: line("memory", "full")?,
        })
    }

    fn text(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.root.join(path)).ok()
    }
}

/// What the calling thread has been busy since it was started: on a processor, or waiting for one.
/// Where the kernel does not say how long it waited, the processor time alone.
pub(crate) fn thread_busy_ns() -> Nanos {
    // SAFETY: an all-zero timespec is a valid value of that plain C structure.
    let mut used: libc::timespec = unsafe { std::mem::zeroed() };
    // SAFETY: the structure is writable. The clock of a thread's own processor time is always
    // there.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut used) };
    let used_ns = used.tv_sec as Nanos * NANOS_PER_SECOND + used.tv_nsec as Nanos;
    let waited_ns = fs::read_to_string("/proc/thread-self/schedstat");
    let waited_ns = waited_ns.ok().as_deref().and_then(parse::thread_waited_ns);
    used_ns + waited_ns.unwrap_or(0)
}
