//! Little lockable memory, the default for ordinary users: io_uring works all the same, with what
//! could be registered, and says so. In a program of its own, because the limit is the whole
//! process's.

use std::rc::Rc;

use plimsoll_io::conformance::{CASES, Subject};
use plimsoll_io::{Clock, Disk, RealDisk, RealDiskOptions};

/// Capability and header numbers of linux/capability.h.
const CAP_IPC_LOCK: u32 = 14;
const CAPABILITY_VERSION_3: u32 = 0x2008_0522;

/// Root may lock any amount; without this capability it is like everybody.
fn give_up_locking_memory() {
    let mut header = [CAPABILITY_VERSION_3, 0];
    let mut sets = [0u32; 6];
    // SAFETY: header and data have the layout of version 3: two words, and twice effective,
    // permitted, inheritable.
    unsafe {
        assert_eq!(libc::syscall(libc::SYS_capget, header.as_mut_ptr(), sets.as_mut_ptr()), 0);
        for set in &mut sets[..3] {
            *set &= !(1 << CAP_IPC_LOCK);
        }
        assert_eq!(libc::syscall(libc::SYS_capset, header.as_mut_ptr(), sets.as_ptr()), 0);
    }
}

fn limit_locked_memory(bytes: u64) {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
    // SAFETY: the structure lives through the call.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &limit) }, 0);
}

fn memory_cases_with(name: &str) -> Vec<String> {
    let root = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("{name}-{}", std::process::id()));
    let mut remarks = Vec::new();
    for (case, check) in CASES {
        let clock = Rc::new(Clock::real());
        // The kernel releases the ring of the case before in its own time, so now and then none is
        // to be had.
        let disk = RealDisk::open(RealDiskOptions::default(), clock.clone())
            .expect("there is always a method");
        let folder = root.join(case);
        std::fs::create_dir_all(&folder).expect("the build folder is writable");
        check(&Subject { disk: disk.clone(), clock, folder });
        remarks.extend(disk.facts().remarks);
    }
    std::fs::remove_dir_all(root).expect("it is ours");
    remarks
}

/// Some, then none: the contract holds, and the remark tells how much memory is registered and what
/// the limit is. How much is to be had of the 5 MiB depends on how soon the kernel releases earlier
/// rings, so at most 4 MiB in blocks of 2 MiB.
#[test]
fn little_lockable_memory_is_a_remark() {
    let found = plimsoll_io::probe("/".as_ref()).expect("the root exists");
    if let Some(refusal) = &found.methods[0].refusal {
        eprintln!("skipped: io_uring is refused here ({refusal})");
        return;
    }
    give_up_locking_memory();
    limit_locked_memory(5 << 20);
    let remarks = memory_cases_with("memlock-some");
    let told = |text: &str| remarks.iter().any(|remark| remark.contains(text));
    let kept = ["keeps 0 MiB", "keeps 2 MiB", "keeps 4 MiB"];
    assert!(
        kept.iter().any(|text| told(&format!("{text} of registered memory"))) && told("5120 KiB"),
        "{remarks:?}"
    );
    limit_locked_memory(64 << 10);
    let remarks = memory_cases_with("memlock-none");
    let told = |text: &str| remarks.iter().any(|remark| remark.contains(text));
    assert!(told("keeps 0 MiB of registered memory") && told("64 KiB"), "{remarks:?}");
}
