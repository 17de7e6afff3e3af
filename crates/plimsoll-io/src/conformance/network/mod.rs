//! One suite for every implementation of the network seam: what the contract in `net` promises, as
//! cases that any network must pass.
//!
//! A test hands [`check_all`] a function that makes a fresh pair of hosts for each case. Every case
//! runs against a time limit, so that a missed wake-up is a failure with a name and not a test that
//! hangs.

mod connecting;
mod crowd;
mod cut_off;
mod streams;
mod subject;

pub use crowd::a_crowd_talks;
pub use subject::Subject;

/// One promise, checked; panics where it is broken.
pub type Case = fn(&Subject);

/// Every case with its name.
pub const CASES: &[(&str, Case)] = &[
    (
        "bytes arrive in order both ways at once",
        streams::bytes_arrive_in_order_both_ways_at_once as Case,
    ),
    (
        "a closed stream gives its rest, then the end",
        streams::a_closed_stream_gives_its_rest_then_the_end,
    ),
    (
        "a dropped stream gives its rest, then the end",
        streams::a_dropped_stream_gives_its_rest_then_the_end,
    ),
    ("writing to an end that is gone resets", streams::writing_to_an_end_that_is_gone_resets),
    (
        "a writer waits for a peer that does not read",
        streams::a_writer_waits_for_a_peer_that_does_not_read,
    ),
    ("a slow peer gets everything", streams::a_slow_peer_gets_everything),
    ("a very long write arrives whole", streams::a_very_long_write_arrives_whole),
    ("messages keep their borders", streams::messages_keep_their_borders),
    ("dropped reads lose nothing", cut_off::dropped_reads_lose_nothing),
    ("dropped writes send nothing", cut_off::dropped_writes_send_nothing),
    (
        "dropped messages are neither lost nor halved",
        cut_off::dropped_messages_are_neither_lost_nor_halved,
    ),
    ("dropped accepts and connects do no harm", cut_off::dropped_accepts_and_connects_do_no_harm),
    (
        "a peer that vanishes in a message is told",
        cut_off::a_peer_that_vanishes_in_a_message_is_told,
    ),
    (
        "connecting where nobody listens is refused",
        connecting::connecting_where_nobody_listens_is_refused,
    ),
    ("connecting to silence times out", connecting::connecting_to_silence_times_out),
    ("a name without a meaning is said so", connecting::a_name_without_a_meaning_is_said_so),
    ("a text that is no address is said so", connecting::a_text_that_is_no_address_is_said_so),
    ("an address is listened at once", connecting::an_address_is_listened_at_once),
    (
        "ending to listen leaves what was accepted",
        connecting::ending_to_listen_leaves_what_was_accepted,
    ),
    ("hundreds talk at once", crowd::hundreds_talk_at_once),
];

/// Runs every case on a subject of its own. Prints the name of each case, so that a failure says
/// which promise it was.
pub fn check_all(mut open_subject: impl FnMut(&str) -> Subject) {
    for (name, case) in CASES {
        println!("case: {name}");
        case(&open_subject(name));
    }
}
