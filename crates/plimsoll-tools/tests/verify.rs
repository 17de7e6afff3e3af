//! Files that are verified where somebody works, by their bare names.

#![expect(clippy::disallowed_methods, reason = "the jobs work on the disks of this machine")]

use plimsoll_engine::log::attached::Attached;
use plimsoll_engine::log::framing::Framing;
use plimsoll_engine::log::header::GenerationHeader;
use plimsoll_engine::log::{GENERATION_BYTES, Lsn};
use plimsoll_engine::{DatabaseHeader, DatabaseState, LogTime, PageSize, Signature};
use plimsoll_io::StopSignal;
use plimsoll_tools::{Depth, VerifyRequest, verify_live};

/// Why it matters: the log beside a database that is named without a directory lies in no directory
/// that its name has, and was found nowhere.
#[test]
fn the_log_beside_a_database_is_found_by_a_bare_name() {
    let folder = std::env::temp_dir().join(format!("plimsoll-verify-{}", std::process::id()));
    std::fs::create_dir(&folder).expect("a directory");
    let (size, signature) = (PageSize::KIB_4, Signature::new(1, LogTime::default()));
    let header = DatabaseHeader {
        state: DatabaseState::Dirty,
        generation_min_required: 3,
        generation_max_required: 3,
        ..DatabaseHeader::new(size, signature, signature)
    };
    std::fs::write(folder.join("database.edb"), header.encode().repeat(2)).expect("a file");
    let generation = GenerationHeader {
        generation: 3,
        created: LogTime::default(),
        previous_created: LogTime::default(),
        previous_end: Lsn::ZERO,
        signature,
        framing: Framing::Sectors512,
        page_size: size,
        flush: 0,
        circular: false,
        attached: Attached::nothing(),
    };
    let mut log = generation.encode();
    log.resize(GENERATION_BYTES as usize, 0);
    std::fs::write(folder.join("E00.log"), log).expect("a file");
    std::env::set_current_dir(&folder).expect("it was just made");
    let request = VerifyRequest { paths: vec!["database.edb".into()], depth: Depth::Pages };
    let report = verify_live(&request, &StopSignal::default()).expect("a report");
    let _ = std::fs::remove_dir_all(&folder);
    let remarks = report.files[0].remarks.join("; ");
    assert!(remarks.contains("log generation 3 is needed to recover it"), "{remarks}");
    assert!(remarks.contains("not all of its log was named"), "{remarks}");
}
