//! The seams of Plimsoll: disk, network, clock, executor, randomness. The only crate that touches
//! the operating system.
//!
//! The engine is handed a [`Disk`], a [`Clock`] and a [`Random`] and never asks where they come
//! from. The same engine therefore runs on a real disk in real time, on a disk in memory that tears
//! writes and loses power in virtual time, and later on a modelled array.

mod arena;
mod blockdevice;
mod buffer;
mod clock;
mod companion;
#[doc(hidden)]
pub mod conformance;
mod counting;
mod disk;
mod error;
mod executor;
mod file;
mod held;
mod host;
mod kind;
mod libaio;
mod memory;
mod net;
mod pinning;
mod posix;
mod probe;
mod random;
mod real;
mod recorded;
mod sparse;
mod stop;
mod sync;
mod text_file;
mod threads;
mod throttled;
mod transfer;
mod uring;
mod zeros;

pub use buffer::{BUFFER_ALIGNMENT, Buffer, BufferHome, Promise, Vouch};
pub use clock::{Clock, NANOS_PER_MILLISECOND, NANOS_PER_SECOND, Nanos, UtcAnchor};
pub use companion::{Companion, CompanionError};
pub use counting::CountingAllocator;
pub use disk::{
    Action, Answer, Completion, Context, Disk, DiskFacts, Durability, Entry, FileId, InstanceId,
    OpenMode, Opened, Operation, Outcome, Purpose,
};
pub use error::{DiskError, DiskErrorKind};
pub use executor::{
    Executor, ExecutorStatistics, Handle, Inbox, InboxSender, JoinHandle, Stalled, inbox,
};
pub use file::{File, Files};
pub use held::{Held, WriteHold};
pub use host::{
    BlockDevice, CpuTicks, DeviceTotals, HostFiles, HostTotals, MemoryState, NetworkTotals,
    PagingTotals, PressureTotals, ProcessTotals, SystemTotals, read_text,
};
pub use kind::OperationKind;
pub use memory::{
    AfterLook, Coding, Effect, FaultRule, Filter, Latency, LatencyPlan, LatencyRule, Loss,
    MemoryDisk, MemoryOptions, Stage, TraceEntry, Tracking,
};
pub use net::{
    Listener, MESSAGE_BYTES_MAX, Messages, Network, NetworkFuture, RealNetwork, RealNetworkOptions,
    SharedStream, SimulatedHost, SimulatedNetwork, Stream, StreamError, WatchMethod, WireOptions,
    close, flush, is_loopback, read, read_exact, write, write_all,
};
#[cfg(feature = "tls")]
pub use net::{TlsClient, TlsServer};
pub use pinning::{allowed_processors, pin_this_thread};
pub use posix::Caching;
pub use probe::{Probe, ProbedDevice, ProbedDirectIo, ProbedFileSystem, ProbedMethod, probe};
pub use random::Random;
pub use real::{DurableBy, Method, MethodChoice, RealDisk, RealDiskOptions};
pub use recorded::{
    CompletedIo, Interval, Observer, PendingIo, Recorded, Series, SeriesKey, TracedIo,
};
pub use sparse::{Content, Delta, Runs, Sparse, first_difference};
pub use stop::StopSignal;
pub use sync::{Notify, Permit, Permits, either, within};
pub use text_file::read_text_file;
pub use throttled::{ThrottleLimits, Throttled};
pub use zeros::is_zero;
