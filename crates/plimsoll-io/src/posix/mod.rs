//! What every real disk shares: opening and locking files, names in directories, free space, and
//! the threads that do all of this so that the executor's thread never waits for the operating
//! system.
//!
//! Source: the Linux manual pages open(2), flock(2), statx(2), fallocate(2), fdatasync(2),
//! eventfd(2). Linux only.

mod chore;
mod crew;
mod geometry;
mod lanes;
mod mounts;
mod names;
mod open;
mod space;
#[cfg(test)]
mod tests;
mod wakeup;

pub(crate) use chore::{Chore, ChoreAnswer, ChoreDone, do_chore};
pub(crate) use crew::{Crew, block_signals};
pub(crate) use geometry::Geometry;
pub(crate) use lanes::Lanes;
pub(crate) use mounts::Mount;
pub use open::Caching;
#[cfg(test)]
pub(crate) use open::Remark;
pub(crate) use open::{DeviceRemark, OpenFile, OpenRules};
pub(crate) use wakeup::{Wakeup, timespec_of};

/// The error number of the system call that has just failed.
pub(crate) fn last_errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}

/// Makes a system call until no signal interrupts it; its answer, or the error number where that is
/// negative.
pub(crate) fn uninterrupted(mut call: impl FnMut() -> i64) -> Result<i64, i32> {
    loop {
        let answer = call();
        if answer >= 0 {
            return Ok(answer);
        }
        match last_errno() {
            libc::EINTR => {}
            errno => return Err(errno),
        }
    }
}

/// RLIMIT_MEMLOCK as `ulimit -l` shows it.
pub(crate) fn lockable_memory() -> String {
    match lockable_bytes() {
        None => "unlimited".to_owned(),
        Some(bytes) => format!("{} KiB", bytes / 1024),
    }
}

/// RLIMIT_MEMLOCK; `None` is unlimited.
pub(crate) fn lockable_bytes() -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is writable. The call cannot fail for a known resource.
    unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &mut limit) };
    (limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

/// The error number inside a standard-library error.
pub(crate) fn errno_of(error: &std::io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}
