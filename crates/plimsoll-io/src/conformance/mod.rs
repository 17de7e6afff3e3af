//! One suite for every implementation of [`Disk`](crate::Disk): what the contract in `disk`
//! promises, as cases that any disk must pass.
//!
//! A test hands [`check_all`] a function that makes a fresh disk and an empty folder for each case.
//! Beyond the contract's text the suite fixes what the engine relies on: an open file survives its
//! own rename, a read beyond the end is `Short`, a file opened for reading cannot be changed, an
//! operation on a closed file is an error.

mod behaviour;
mod names;
pub mod network;
mod subject;
mod transfers;

pub use subject::Subject;

/// One promise, checked; panics where it is broken.
pub type Case = fn(&Subject);

/// Every case with its name.
pub const CASES: &[(&str, Case)] = &[
    ("written bytes come back", transfers::written_bytes_come_back as Case),
    ("durable writes come back", transfers::durable_writes_come_back),
    ("new bytes read as zero", transfers::new_bytes_read_as_zero),
    ("extend never shortens", transfers::extend_never_shortens),
    ("reading beyond the end is short", transfers::reading_beyond_the_end_is_short),
    ("misaligned transfers are refused", transfers::misaligned_transfers_are_refused),
    ("many transfers at once keep apart", transfers::many_transfers_at_once_keep_apart),
    ("a shortened buffer transfers its length", transfers::a_shortened_buffer_transfers_its_length),
    (
        "shared memory is written and stays readable",
        transfers::shared_memory_is_written_and_stays_readable,
    ),
    ("a missing file is not found", names::a_missing_file_is_not_found),
    ("create refuses an existing name", names::create_refuses_an_existing_name),
    ("a second writer is locked out", names::a_second_writer_is_locked_out),
    ("readers share with a writer", names::readers_share_with_a_writer),
    ("rename replaces its target", names::rename_replaces_its_target),
    ("an open file survives its rename", names::an_open_file_survives_its_rename),
    ("delete removes the name", names::delete_removes_the_name),
    ("a list is sorted and complete", names::a_list_is_sorted_and_complete),
    ("any name is a name", names::any_name_is_a_name),
    ("a stat tells what a name stands for", names::a_stat_tells_what_a_name_stands_for),
    ("directories are made and removed", names::directories_are_made_and_removed),
    ("directories are full of their own names", names::directories_are_full_of_their_own_names),
    ("directories can be synced", names::directories_can_be_synced),
    ("completions come from reap only", behaviour::completions_come_from_reap_only),
    ("a dropped future keeps its memory", behaviour::a_dropped_future_keeps_its_memory),
    ("close waits for what is in flight", behaviour::close_waits_for_what_is_in_flight),
    ("an abandoned open leaves no file open", behaviour::an_abandoned_open_leaves_no_file_open),
    ("a closed file is an error", behaviour::a_closed_file_is_an_error),
    ("a reader's file cannot be changed", behaviour::a_readers_file_cannot_be_changed),
    ("times are in order", behaviour::times_are_in_order),
    ("opening tells sizes", behaviour::opening_tells_sizes),
    ("an error names file and range", behaviour::an_error_names_file_and_range),
    ("waiting ends at its deadline", behaviour::waiting_ends_at_its_deadline),
];

/// Runs every case on a subject of its own. Prints the name of each case, so that a failure says
/// which promise it was.
pub fn check_all(mut open_subject: impl FnMut(&str) -> Subject) {
    for (name, case) in CASES {
        println!("case: {name}");
        case(&open_subject(name));
    }
}
