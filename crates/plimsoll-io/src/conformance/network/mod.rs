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

use std::any::Any;
use std::future::Future;
use std::rc::Rc;
use std::task::Poll;

pub use crowd::a_crowd_talks;

use crate::sync::within;
use crate::{
    Executor, Handle, Listener, NANOS_PER_SECOND, Network, Random, Stream, StreamError, read,
    write_all,
};

/// A case that takes longer hangs.
const CASE_NS_MAX: u64 = 120 * NANOS_PER_SECOND;

/// What one case works on: two hosts on one network, and places on it that do not work.
pub struct Subject {
    /// Runs the tasks of both hosts.
    pub executor: Executor,
    /// The host that connects.
    pub client: Rc<dyn Network>,
    /// The same host with a short time-out for connecting.
    pub impatient: Rc<dyn Network>,
    /// The host that listens.
    pub server: Rc<dyn Network>,
    /// Where the server listens, with port 0.
    pub address: String,
    /// Where no process listens.
    pub closed: String,
    /// What never answers.
    pub silent: String,
    /// A name that means nothing, with a port.
    pub unknown: String,
    /// What has to stay as it is meanwhile.
    pub kept: Box<dyn Any>,
}

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

impl Subject {
    /// Runs a story within the time limit.
    fn run<T: 'static>(&self, story: impl Future<Output = T> + 'static) -> T {
        let handle = self.executor.handle();
        self.executor
            .run(async move { within(&handle, CASE_NS_MAX, story).await })
            .expect("something can always wake the story")
            .expect("the story hangs")
    }

    /// Runs a story on the two ends of a new stream, the connecting one first.
    fn run_pair<F: Future<Output = ()> + 'static>(&self, story: impl FnOnce(Pair) -> F + 'static) {
        let (client, server) = (self.client.clone(), self.server.clone());
        let (handle, address) = (self.executor.handle(), self.address.clone());
        self.run(
            async move { story(Pair::open(handle, &*client, &*server, &address).await).await },
        );
    }
}

/// The two ends of a stream.
struct Pair {
    handle: Handle,
    near: Box<dyn Stream>,
    far: Box<dyn Stream>,
}

impl Pair {
    async fn open(
        handle: Handle,
        client: &dyn Network,
        server: &dyn Network,
        address: &str,
    ) -> Self {
        let listener = server.listen(address).await.expect("the port is free");
        let near = client.connect(listener.address());
        let (near, far) = both(near, listener.accept()).await;
        Self {
            handle,
            near: near.expect("the server listens"),
            far: far.expect("the client has come"),
        }
    }
}

/// Waits for both: with TLS neither end comes about without the other.
async fn both<A, B>(first: impl Future<Output = A>, second: impl Future<Output = B>) -> (A, B) {
    let (mut first, mut second) = (std::pin::pin!(first), std::pin::pin!(second));
    let (mut left, mut right) = (None, None);
    std::future::poll_fn(|context| {
        if left.is_none()
            && let Poll::Ready(value) = first.as_mut().poll(context)
        {
            left = Some(value);
        }
        if right.is_none()
            && let Poll::Ready(value) = second.as_mut().poll(context)
        {
            right = Some(value);
        }
        match (left.take(), right.take()) {
            (Some(left), Some(right)) => Poll::Ready((left, right)),
            (one, other) => {
                (left, right) = (one, other);
                Poll::Pending
            }
        }
    })
    .await
}

/// Bytes of this many belong together in [`content`].
const BLOCK_BYTES: usize = 64 << 10;

/// The one content of a stream: block by block, by its seed.
fn content(seed: u64, block: usize) -> Vec<u8> {
    let mut bytes = vec![0; BLOCK_BYTES];
    Random::from_seed(seed ^ (block as u64).rotate_left(32)).fill(&mut bytes);
    bytes
}

/// Bytes of a stream's content from its beginning.
fn beginning(seed: u64, length: usize) -> Vec<u8> {
    let blocks = (0..length.div_ceil(BLOCK_BYTES)).flat_map(|block| content(seed, block));
    blocks.take(length).collect()
}

/// Reads to the end, comparing with the content; answers how much it was.
async fn read_content(
    stream: &mut (impl Stream + ?Sized),
    seed: u64,
) -> Result<usize, StreamError> {
    let mut expected = Expected::of(seed);
    let mut buffer = vec![0; BLOCK_BYTES];
    loop {
        match read(stream, &mut buffer).await? {
            0 => return Ok(expected.seen),
            count => expected.check(&buffer[..count]),
        }
    }
}

/// Compares a stream with its content.
struct Expected {
    seed: u64,
    seen: usize,
    block: Vec<u8>,
}

impl Expected {
    fn of(seed: u64) -> Self {
        Self { seed, seen: 0, block: content(seed, 0) }
    }

    fn check(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let from = self.seen % BLOCK_BYTES;
            let count = bytes.len().min(BLOCK_BYTES - from);
            let is_right = bytes[..count] == self.block[from..from + count];
            assert!(is_right, "other bytes than were sent, from byte {} on", self.seen);
            self.seen += count;
            bytes = &bytes[count..];
            if self.seen.is_multiple_of(BLOCK_BYTES) {
                self.block = content(self.seed, self.seen / BLOCK_BYTES);
            }
        }
    }
}

/// Writes to and fro once: the stream lives.
async fn greet(near: &mut (impl Stream + ?Sized), far: &mut (impl Stream + ?Sized)) {
    let mut buffer = [0; 16];
    write_all(near, b"ping").await.expect("the stream is open");
    let count = read(far, &mut buffer).await.expect("the stream is open");
    assert_eq!(&buffer[..count], b"ping");
    write_all(far, b"pong").await.expect("the stream is open");
    let count = read(near, &mut buffer).await.expect("the stream is open");
    assert_eq!(&buffer[..count], b"pong");
}

/// Listens where the subject says.
async fn listen(server: &dyn Network, address: &str) -> Rc<dyn Listener> {
    server.listen(address).await.expect("the port is free").into()
}

/// An error says what, with whom, and after a semicolon what to do.
fn check_error<T>(result: Result<T, StreamError>, names: &str) -> StreamError {
    let Err(error) = result else { panic!("it succeeded, and must not have") };
    let text = error.to_string();
    assert!(text.contains(names), "{text:?} does not name {names}");
    assert!(text.contains("; "), "{text:?} does not say what to do");
    error
}
