//! Makes the kernel refuse single system calls to one thread, as container profiles do (seccomp(2),
//! Linux).
//!
//! A filter is part of the thread and of the threads it starts, so a test runs what it wants to see
//! refused in a thread of its own and disturbs no other test.

/// One classic-BPF instruction.
fn instruction(code: u32, jump_true: u8, jump_false: u8, value: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: jump_true, jf: jump_false, k: value }
}

/// Where `seccomp_data` has the number of the system call.
const NUMBER_OFFSET: u32 = 0;

/// From now on each of these system calls answers its error number to this thread.
pub fn refuse(refusals: &[(libc::c_long, i32)]) {
    let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    let jump_if_equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let answer = libc::BPF_RET | libc::BPF_K;
    let mut program = vec![instruction(load, 0, 0, NUMBER_OFFSET)];
    for (number, errno) in refusals {
        program.push(instruction(jump_if_equal, 0, 1, *number as u32));
        program.push(instruction(answer, 0, 0, libc::SECCOMP_RET_ERRNO | *errno as u32));
    }
    program.push(instruction(answer, 0, 0, libc::SECCOMP_RET_ALLOW));
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the program outlives the calls, which copy it.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(
            libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &filter),
            0,
            "this kernel has seccomp filters"
        );
    }
}

/// Runs a story in a thread of its own and hands on its panic.
pub fn in_own_thread(story: impl FnOnce() + Send + 'static) {
    if let Err(panic) = std::thread::spawn(story).join() {
        std::panic::resume_unwind(panic);
    }
}
