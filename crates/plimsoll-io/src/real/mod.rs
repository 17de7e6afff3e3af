//! The real disk: files and block devices of this machine, by io_uring, libaio or threads.
//!
//! Which method is used is found out when the disk is opened, can be chosen, and is part of
//! [`crate::DiskFacts`] together with everything that had to be done differently from what was
//! wanted.

mod choose;
mod disk;
mod durable;
mod finish;
mod start;
mod state;
mod table;

pub(crate) use choose::probe_method;
pub use disk::RealDisk;

use crate::Caching;

/// A way of handing I/O to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// io_uring, in its newest form the kernel knows.
    IoUring,
    /// The kernel's older asynchronous I/O.
    Libaio,
    /// A pool of threads that block.
    Threads,
}

impl Method {
    /// Every method, best first.
    pub const ALL: [Method; 3] = [Method::IoUring, Method::Libaio, Method::Threads];

    /// The name used in plans and reports.
    pub fn name(self) -> &'static str {
        match self {
            Method::IoUring => "io_uring",
            Method::Libaio => "libaio",
            Method::Threads => "threads",
        }
    }
}

/// Which method is wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MethodChoice {
    /// The first that works, in the order of [`Method`]; each one passed over is remarked.
    #[default]
    Auto,
    /// This one or an error.
    Only(Method),
}

impl MethodChoice {
    /// The choice of this name: "auto" or a method.
    ///
    /// # Errors
    /// A sentence that lists the names there are.
    pub fn named(name: &str) -> Result<MethodChoice, String> {
        if name == "auto" {
            return Ok(MethodChoice::Auto);
        }
        let found = Method::ALL.into_iter().find(|method| method.name() == name);
        found.map(MethodChoice::Only).ok_or_else(|| {
            let known = Method::ALL.map(Method::name);
            format!("io_method is {name}; write auto or one of {}", known.join(", "))
        })
    }
}

/// How a durable write is made durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DurableBy {
    /// Whichever of the two turns out to be faster on the device, told in the facts of the disk.
    #[default]
    Faster,
    /// RWF_DSYNC; where the kernel refuses it, a write and then fdatasync, with a remark.
    Flag,
    /// A write and then fdatasync.
    WriteThenSync,
}

/// How to open a [`RealDisk`].
#[derive(Clone, Debug)]
pub struct RealDiskOptions {
    /// Wanted method.
    pub method: MethodChoice,
    /// Whether buffered I/O may replace direct I/O.
    pub caching: Caching,
    /// Serials of the block devices that may be overwritten, as the user has typed them; a device
    /// without a serial is named by its path below /dev.
    pub destroy_serials: Vec<String>,
    /// How durable writes are done.
    pub durable_by: DurableBy,
    /// Transfers the kernel may hold at once; more wait here.
    pub queue_depth_max: u32,
    /// I/O memory to make known to the kernel; beyond it, and where limits forbid it, transfers
    /// cost a little more.
    pub registered_bytes_max: usize,
    /// Threads of the `threads` method.
    pub threads_max: usize,
    /// Methods treated as if the kernel refused them.
    pub refused_methods: Vec<Method>,
}

impl Default for RealDiskOptions {
    fn default() -> Self {
        Self {
            method: MethodChoice::Auto,
            caching: Caching::DirectOnly,
            destroy_serials: Vec::new(),
            durable_by: DurableBy::Faster,
            queue_depth_max: 1024,
            registered_bytes_max: usize::MAX,
            threads_max: 32,
            refused_methods: Vec::new(),
        }
    }
}
