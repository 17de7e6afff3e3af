//! What the published tools sampled of the machine beside the load, as running totals or levels:
//! interrupts and tasks, memory and paging, this process, the network.
//!
//! Which published counter each of them stands for, and how near it comes, is data of the Python
//! side (`data/counters.toml`).

/// Processor time of the whole machine since it was started, in the kernel's ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTicks {
    /// All time of all processors.
    pub total: u64,
    /// Neither idle nor waiting for I/O.
    pub busy: u64,
    /// Taken by the hypervisor while somebody here wanted to run.
    pub stolen: u64,
    /// Of the busy time, that of programs.
    pub user: u64,
    /// Of the busy time, that of the kernel, interrupts included.
    pub kernel: u64,
    /// Idle while some task waited for I/O.
    pub waiting: u64,
}

/// Of the whole machine since it was started; the tasks are those of the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SystemTotals {
    /// Interrupts served.
    pub interrupts: u64,
    /// Changes from one task to another.
    pub context_switches: u64,
    /// Tasks that run or could.
    pub tasks_running: u64,
    /// Tasks that wait for I/O and nothing else.
    pub tasks_blocked: u64,
}

/// Memory at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryState {
    /// What could be given to programs.
    pub available_bytes: u64,
    /// The rest of it.
    pub used_bytes: u64,
    /// Content of files.
    pub cached_bytes: u64,
    /// What programs were promised.
    pub committed_bytes: u64,
    /// The kernel's own objects that must stay.
    pub kernel_fixed_bytes: u64,
    /// The kernel's own objects that can be given up.
    pub kernel_reclaimable_bytes: u64,
    /// Address space of the kernel that is not mapped.
    pub mappings_free_bytes: u64,
}

/// Pages since the machine was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PagingTotals {
    /// Faults of every kind.
    pub page_faults: u64,
    /// Of these, faults that had to read.
    pub major_page_faults: u64,
    /// Pages that held something and were taken for something else.
    pub repurposed: u64,
    /// Pages read from and written to swap.
    pub swapped: u64,
}

/// This process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessTotals {
    /// Processor time of all its threads, in the kernel's coarse ticks.
    pub cpu_ns: u64,
    /// Threads now.
    pub threads: u64,
    /// Memory it holds now.
    pub resident_bytes: u64,
}

/// All network adapters but the loopback, since they came up. A bridge counts what its ports count
/// once more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetworkTotals {
    /// Bytes received.
    pub received_bytes: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
}

/// What a number of the kernel's is measured in: ticks of processor time, pages of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Units {
    pub(super) ticks_per_s: u64,
    pub(super) page_bytes: u64,
}

impl Units {
    pub(super) fn of_this_machine() -> Units {
        // SAFETY: sysconf reads no memory of ours.
        let ask = |name| u64::try_from(unsafe { libc::sysconf(name) }).unwrap_or_default();
        Units { ticks_per_s: ask(libc::_SC_CLK_TCK), page_bytes: ask(libc::_SC_PAGESIZE) }
    }
}
