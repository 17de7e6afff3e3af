//! What the cases of a network work on, and what they do again and again: two hosts, a stream
//! between them, and content that tells where it belongs.

use std::any::Any;
use std::future::Future;
use std::rc::Rc;
use std::task::Poll;

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

impl Subject {
    /// Runs a story within the time limit.
    pub(super) fn run<T: 'static>(&self, story: impl Future<Output = T> + 'static) -> T {
        let handle = self.executor.handle();
        self.executor
            .run(async move { within(&handle, CASE_NS_MAX, story).await })
            .expect("something can always wake the story")
            .expect("the story hangs")
    }

    /// Runs a story on the two ends of a new stream, the connecting one first.
    pub(super) fn run_pair<F: Future<Output = ()> + 'static>(
        &self,
        story: impl FnOnce(Pair) -> F + 'static,
    ) {
        let (client, server) = (self.client.clone(), self.server.clone());
        let (handle, address) = (self.executor.handle(), self.address.clone());
        self.run(
            async move { story(Pair::open(handle, &*client, &*server, &address).await).await },
        );
    }
}

/// The two ends of a stream.
pub(super) struct Pair {
    pub(super) handle: Handle,
    pub(super) near: Box<dyn Stream>,
    pub(super) far: Box<dyn Stream>,
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
pub(super) async fn both<A, B>(
    first: impl Future<Output = A>,
    second: impl Future<Output = B>,
) -> (A, B) {
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
pub(super) const BLOCK_BYTES: usize = 64 << 10;

/// The one content of a stream: block by block, by its seed.
fn content(seed: u64, block: usize) -> Vec<u8> {
    let mut bytes = vec![0; BLOCK_BYTES];
    Random::from_seed(seed ^ (block as u64).rotate_left(32)).fill(&mut bytes);
    bytes
}

/// Bytes of a stream's content from its beginning.
pub(super) fn beginning(seed: u64, length: usize) -> Vec<u8> {
    let blocks = (0..length.div_ceil(BLOCK_BYTES)).flat_map(|block| content(seed, block));
    blocks.take(length).collect()
}

/// Reads to the end, comparing with the content; answers how much it was.
pub(super) async fn read_content(
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
pub(super) struct Expected {
    seed: u64,
    pub(super) seen: usize,
    block: Vec<u8>,
}

impl Expected {
    pub(super) fn of(seed: u64) -> Self {
        Self { seed, seen: 0, block: content(seed, 0) }
    }

    pub(super) fn check(&mut self, mut bytes: &[u8]) {
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
pub(super) async fn greet(near: &mut (impl Stream + ?Sized), far: &mut (impl Stream + ?Sized)) {
    let mut buffer = [0; 16];
    write_all(near, b"ping").await.expect("the stream is open");
    let count = read(far, &mut buffer).await.expect("the stream is open");
    assert_eq!(&buffer[..count], b"ping");
    write_all(far, b"pong").await.expect("the stream is open");
    let count = read(near, &mut buffer).await.expect("the stream is open");
    assert_eq!(&buffer[..count], b"pong");
}

/// Listens where the subject says.
pub(super) async fn listen(server: &dyn Network, address: &str) -> Rc<dyn Listener> {
    server.listen(address).await.expect("the port is free").into()
}

/// An error says what, with whom, and after a semicolon what to do.
pub(super) fn check_error<T>(result: Result<T, StreamError>, names: &str) -> StreamError {
    let Err(error) = result else { panic!("it succeeded, and must not have") };
    let text = error.to_string();
    assert!(text.contains(names), "{text:?} does not name {names}");
    assert!(text.contains("; "), "{text:?} does not say what to do");
    error
}
