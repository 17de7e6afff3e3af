//! What several test programs of this crate share.

use std::time::Duration;

/// Work of this length by the clock of this thread's own processor time, which stands still while a
/// hypervisor or another program has the processor.
pub fn work_for(length: Duration) {
    let until = processor_time() + length;
    while processor_time() < until {
        std::hint::spin_loop();
    }
}

fn processor_time() -> Duration {
    let mut used = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is writable, and the clock of a thread's own processor time is always
    // there.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut used) };
    Duration::new(used.tv_sec as u64, used.tv_nsec as u32)
}
