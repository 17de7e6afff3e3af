//! Which processors a thread may run on, and how it is kept on one of them.

use std::io;
use std::mem;

/// The numbers of the processors that the calling thread may run on, lowest first; none where the
/// kernel does not say.
pub fn allowed_processors() -> Vec<usize> {
    // SAFETY: an all-zero set is a valid value of that plain C structure.
    let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
    // SAFETY: the set is writable and of the stated size; 0 is the calling thread.
    let answer = unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) };
    if answer != 0 {
        return Vec::new();
    }
    let all = 0..libc::CPU_SETSIZE as usize;
    // SAFETY: the number is below the size of the set.
    all.filter(|processor| unsafe { libc::CPU_ISSET(*processor, &set) }).collect()
}

/// Keeps the calling thread, and the threads that it starts from here on, on one processor.
///
/// # Errors
/// What the kernel says, such as that there is no such processor or that it is not ours.
pub fn pin_this_thread(processor: usize) -> io::Result<()> {
    if processor >= libc::CPU_SETSIZE as usize {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: an all-zero set is a valid value of that plain C structure.
    let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
    // SAFETY: the number is below the size of the set.
    unsafe { libc::CPU_SET(processor, &mut set) };
    // SAFETY: the set is of the stated size; 0 is the calling thread.
    match unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_may_run_on_its_processor_alone() {
        let pinned = std::thread::spawn(|| {
            let last = *allowed_processors().last().expect("this thread runs somewhere");
            pin_this_thread(last).expect("it may run there");
            (last, allowed_processors())
        });
        let (last, allowed) = pinned.join().expect("it does not panic");
        assert_eq!(allowed, [last]);
        assert!(pin_this_thread(1 << 20).is_err());
    }
}
