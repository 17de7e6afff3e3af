//! The simulated network: what arrives, when, and how it breaks.

use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;

use plimsoll_io::{
    Clock, Executor, Handle, Latency, MESSAGE_BYTES_MAX, MemoryDisk, MemoryOptions, Messages,
    NANOS_PER_MILLISECOND, NANOS_PER_SECOND, Nanos, Network, Random, SimulatedNetwork, Stream,
    StreamError, WireOptions, close, read, write_all,
};

struct Rig {
    executor: Executor,
    network: Rc<SimulatedNetwork>,
}

impl Rig {
    fn new(seed: u64, options: WireOptions) -> Self {
        let clock = Rc::new(Clock::simulated());
        let disk = MemoryDisk::new(clock.clone(), Random::from_seed(0), MemoryOptions::default());
        let executor = Executor::new(clock, disk);
        let network = SimulatedNetwork::new(executor.handle(), Random::from_seed(seed), options);
        Self { executor, network: Rc::new(network) }
    }

    fn run<T: 'static>(&self, work: impl Future<Output = T> + 'static) -> T {
        self.executor.run(work).expect("something always happens next")
    }

    /// The two ends of a link from host `a` to host `b`.
    fn pair(&self) -> (Box<dyn Stream>, Box<dyn Stream>) {
        let network = self.network.clone();
        self.run(async move {
            let listener = network.host("b").listen("b:7000").await.unwrap();
            let near = network.host("a").connect("b:7000").await.unwrap();
            (near, listener.accept().await.unwrap())
        })
    }

    fn now(&self) -> Nanos {
        self.executor.handle().now()
    }
}

fn slow() -> WireOptions {
    WireOptions { delay: Latency::Constant(10 * NANOS_PER_MILLISECOND), ..WireOptions::default() }
}

/// The next bytes; none at the end of the stream.
async fn receive(stream: &mut dyn Stream) -> Result<Vec<u8>, StreamError> {
    let mut buffer = vec![0; 64 << 10];
    let count = read(stream, &mut buffer).await?;
    buffer.truncate(count);
    Ok(buffer)
}

/// Receives until the end of the stream.
async fn receive_all(stream: &mut dyn Stream) -> Result<Vec<u8>, StreamError> {
    let mut received = Vec::new();
    loop {
        let more = receive(stream).await?;
        if more.is_empty() {
            return Ok(received);
        }
        received.extend(more);
    }
}

fn pattern(length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    Random::from_seed(length as u64).fill(&mut bytes);
    bytes
}

/// Connecting takes a round trip and bytes take one way, both directions at once.
#[test]
fn delay_is_as_asked() {
    let rig = Rig::new(1, slow());
    let (mut near, mut far) = rig.pair();
    assert_eq!(rig.now(), 20 * NANOS_PER_MILLISECOND);
    assert_eq!((near.peer(), far.peer()), ("b:7000", "a"));
    rig.run(async move {
        write_all(&mut near, b"question").await.unwrap();
        assert_eq!(receive(&mut far).await.unwrap(), b"question");
        write_all(&mut far, b"answer").await.unwrap();
        assert_eq!(receive(&mut near).await.unwrap(), b"answer");
    });
    assert_eq!(rig.now(), 40 * NANOS_PER_MILLISECOND);
}

/// A megabyte at ten megabytes a second takes a tenth of a second; a full buffer holds the sender
/// back meanwhile.
#[test]
fn bandwidth_and_backpressure_hold() {
    let options = WireOptions {
        bytes_per_second: Some(10e6),
        segment_bytes: 10_000,
        send_buffer_bytes: 100_000,
        ..slow()
    };
    let rig = Rig::new(1, options);
    let (mut near, mut far) = rig.pair();
    let start = rig.now();
    let handle = rig.executor.handle();
    let sent_at = rig.executor.handle().spawn(async move {
        write_all(&mut near, &pattern(1_000_000)).await.unwrap();
        handle.now()
    });
    let received = rig.run(async move { receive_all(&mut far).await.unwrap() });
    assert!(received == pattern(1_000_000));
    assert_eq!(rig.now() - start, 110 * NANOS_PER_MILLISECOND);
    let sent_after_ms = (sent_at.take().unwrap() - start) / NANOS_PER_MILLISECOND;
    assert!(
        (85..=91).contains(&sent_after_ms),
        "all but the buffer was on the wire: {sent_after_ms} ms"
    );
}

/// A closed link gives what was sent and then the end, again and again; sending on it is refused on
/// this side.
#[test]
fn closing_lets_the_rest_arrive() {
    let rig = Rig::new(1, slow());
    let (mut near, mut far) = rig.pair();
    rig.run(async move {
        write_all(&mut near, b"last words").await.unwrap();
        close(&mut near).await.unwrap();
        assert_eq!(write_all(&mut near, b"more").await, Err(StreamError::Closed("b:7000".into())));
        assert_eq!(receive_all(&mut far).await.unwrap(), b"last words");
        assert!(receive(&mut far).await.unwrap().is_empty());
        write_all(&mut far, b"still heard").await.unwrap();
        assert_eq!(receive(&mut near).await.unwrap(), b"still heard");
    });
}

/// Sending to an end that is gone breaks the link, but only once the bytes got there.
#[test]
fn sending_to_nobody_resets() {
    let rig = Rig::new(1, slow());
    let (mut near, far) = rig.pair();
    drop(far);
    let handle = rig.executor.handle();
    rig.run(async move {
        assert_eq!(write_all(&mut near, b"hello").await, Ok(()));
        assert!(receive(&mut near).await.unwrap().is_empty(), "the peer has closed");
        handle.sleep(20 * NANOS_PER_MILLISECOND).await;
        assert_eq!(write_all(&mut near, b"hello").await, Err(StreamError::Reset("b:7000".into())));
    });
}

/// Loss delays and never loses, repeats or reorders: the stream is whole on a very bad network.
#[test]
fn loss_delays_and_nothing_else() {
    let options = WireOptions {
        loss: 0.3,
        tries_max: 30,
        segment_bytes: 1000,
        delay: Latency::Exponential { fixed_ns: 1000, mean_ns: 50 * NANOS_PER_MILLISECOND },
        ..WireOptions::default()
    };
    let rig = Rig::new(3, options);
    let (mut near, mut far) = rig.pair();
    rig.executor
        .handle()
        .spawn(async move { write_all(&mut near, &pattern(200_000)).await.unwrap() });
    let received = rig.run(async move { receive_all(&mut far).await.unwrap() });
    assert!(received == pattern(200_000));
    assert!(rig.network.lost() > 40, "the network was not bad at all");
    assert!(rig.now() > NANOS_PER_SECOND, "loss costs time");
}

/// A short partition delays; nothing is lost when it heals before the sender gives up.
#[test]
fn a_short_partition_delays() {
    let rig = Rig::new(1, slow());
    let (mut near, mut far) = rig.pair();
    rig.network.part("b", "a");
    let (network, handle) = (rig.network.clone(), rig.executor.handle());
    rig.executor.handle().spawn(async move {
        handle.sleep(NANOS_PER_SECOND).await;
        network.heal("a", "b");
    });
    let start = rig.now();
    rig.run(async move {
        write_all(&mut near, b"patience").await.unwrap();
        assert_eq!(receive(&mut far).await.unwrap(), b"patience");
    });
    // Tries at 0, 200, 600 and 1400 ms; the last gets through.
    assert_eq!(rig.now() - start, 1410 * NANOS_PER_MILLISECOND);
}

/// In a long partition the sender gives up, and the other side learns of it only by sending: a
/// half-open link.
#[test]
fn a_long_partition_leaves_a_half_open_link() {
    let rig = Rig::new(1, slow());
    let (mut near, mut far) = rig.pair();
    rig.network.part("a", "b");
    rig.run(async move {
        write_all(&mut near, b"into the void").await.unwrap();
        assert_eq!(receive(&mut near).await, Err(StreamError::Reset("b:7000".into())));
    });
    rig.network.heal("a", "b");
    rig.run(async move {
        assert_eq!(
            write_all(&mut far, b"are you there?").await,
            Ok(()),
            "this side suspects nothing yet"
        );
        assert_eq!(receive(&mut far).await, Err(StreamError::Reset("a".into())));
    });
}

/// Connecting fails in three different ways, because the user does something different about each.
#[test]
fn failures_to_connect_are_told_apart() {
    let rig = Rig::new(1, slow());
    let network = rig.network.clone();
    rig.run(async move {
        let (a, b) = (network.host("a"), network.host("b"));
        let refused = a.connect("b:7000").await.err();
        assert_eq!(refused, Some(StreamError::Refused("b:7000".into())));
        let listener = b.listen("b:7000").await.unwrap();
        let in_use = b.listen("b:7000").await.err();
        assert_eq!(in_use, Some(StreamError::InUse("b:7000".into())));
        network.part("a", "b");
        let silent = a.connect("b:7000").await.err();
        assert_eq!(silent, Some(StreamError::TimedOut("b:7000".into())));
        network.heal("a", "b");
        drop(listener);
        assert_eq!(a.connect("b:7000").await.err(), Some(StreamError::Refused("b:7000".into())));
        assert!(b.listen("b:7000").await.is_ok());
    });
}

/// Chance can break a connection for both ends.
#[test]
fn resets_break_both_ends() {
    let options = WireOptions { reset: 1.0, ..slow() };
    let rig = Rig::new(1, options);
    let (mut near, mut far) = rig.pair();
    rig.run(async move {
        write_all(&mut near, b"x").await.unwrap();
        assert!(matches!(receive(&mut far).await, Err(StreamError::Reset(_))));
        assert!(matches!(receive(&mut near).await, Err(StreamError::Reset(_))));
    });
}

/// Messages keep their borders however the stream is cut, also empty ones.
#[test]
fn messages_keep_their_borders() {
    let options = WireOptions { segment_bytes: 7, ..slow() };
    let rig = Rig::new(1, options);
    let (near, far) = rig.pair();
    let (near, far) = (Messages::new(near), Messages::new(far));
    rig.run(async move {
        for length in [0, 1, 3, 1000, 0] {
            near.send(&pattern(length)).await.unwrap();
        }
        near.close().await.unwrap();
        for length in [0, 1, 3, 1000, 0] {
            assert_eq!(far.receive().await.unwrap(), Some(pattern(length)));
        }
        assert_eq!(far.receive().await.unwrap(), None);
    });
}

/// A stranger's bytes and a stream cut short are errors, not memory and not messages.
#[test]
fn broken_messages_are_errors() {
    let rig = Rig::new(1, slow());
    let (mut near, far) = rig.pair();
    let far = Messages::new(far);
    let error = rig.run(async move {
        write_all(&mut near, b"GET / HTTP").await.unwrap();
        far.receive().await.unwrap_err()
    });
    let expected = u64::from(u32::from_le_bytes(*b"GET "));
    assert!(expected > MESSAGE_BYTES_MAX as u64);
    assert_eq!(error, StreamError::Oversized { peer: "a".into(), length_bytes: expected });

    let rig = Rig::new(1, slow());
    let (mut near, far) = rig.pair();
    let far = Messages::new(far);
    let error = rig.run(async move {
        write_all(&mut near, &[9, 0, 0, 0, 1, 2]).await.unwrap();
        close(&mut near).await.unwrap();
        far.receive().await.unwrap_err()
    });
    assert_eq!(error, StreamError::CutShort("a".into()));
}

/// Several clients talk to one server over a bad network; the log of a run.
fn log_of(seed: u64) -> Vec<(Nanos, String)> {
    let options = WireOptions {
        loss: 0.1,
        delay: Latency::Uniform(NANOS_PER_MILLISECOND, 9 * NANOS_PER_MILLISECOND),
        ..WireOptions::default()
    };
    let rig = Rig::new(seed, options);
    let log: Rc<RefCell<Vec<(Nanos, String)>>> = Rc::default();
    let (network, handle) = (rig.network.clone(), rig.executor.handle());
    handle.spawn(serve(network.clone(), handle.clone(), log.clone()));
    let clients: Vec<_> = (0..4).map(|client| handle.spawn(ask(network.clone(), client))).collect();
    rig.run(async move {
        for client in clients {
            client.await;
        }
    });
    log.take()
}

async fn serve(
    network: Rc<SimulatedNetwork>,
    handle: Handle,
    log: Rc<RefCell<Vec<(Nanos, String)>>>,
) {
    let listener = network.host("server").listen("server:1").await.unwrap();
    loop {
        let link = Messages::new(listener.accept().await.unwrap());
        let (handle, log) = (handle.clone(), log.clone());
        handle.clone().spawn(async move {
            while let Ok(Some(message)) = link.receive().await {
                let text = String::from_utf8(message).unwrap();
                log.borrow_mut().push((handle.now(), text.clone()));
                link.send(text.as_bytes()).await.unwrap();
            }
        });
    }
}

async fn ask(network: Rc<SimulatedNetwork>, client: u32) {
    let link = network.host(&format!("client{client}")).connect("server:1").await.unwrap();
    let link = Messages::new(link);
    for question in 0..20 {
        let text = format!("client {client} question {question}");
        link.send(text.as_bytes()).await.unwrap();
        assert_eq!(link.receive().await.unwrap(), Some(text.into_bytes()));
    }
}

/// One seed decides every arrival; another seed gives another run.
#[test]
fn one_seed_gives_one_run() {
    let log = log_of(5);
    assert_eq!(log.len(), 80);
    assert_eq!(log, log_of(5));
    assert_ne!(log, log_of(6));
}
