//! A witness and the machine under test on a simulated network: what is answered lies on the disk,
//! whatever the network does.
//!
//! The log here is a list whose appends take time and can fail, so that an answer before its time
//! shows.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;

use plimsoll_io::{
    Clock, Executor, Handle, Latency, MemoryDisk, MemoryOptions, NANOS_PER_MILLISECOND,
    NANOS_PER_SECOND, Nanos, Network, Random, SimulatedNetwork, Stream, WireOptions, close, read,
    write_all,
};
use plimsoll_powercut::{Heard, LogFuture, Refused, Teller, WitnessLog, hear};

const GREETING: &str = "plimsoll-witness 1 {}\n";
const SILENCE_NS: Nanos = 15 * NANOS_PER_SECOND;
const PATIENCE_NS: Nanos = 30 * NANOS_PER_SECOND;
const ADDRESS: &str = "witness:1";

/// A log in memory.
struct ListLog {
    handle: Handle,
    text: RefCell<String>,
    append_ns: Cell<Nanos>,
    bytes_max: usize,
}

impl ListLog {
    fn acknowledgements(&self) -> Vec<String> {
        let text = self.text.borrow();
        let lines = text.lines().filter(|line| !line.starts_with('t'));
        lines.map(str::to_owned).collect()
    }
}

impl WitnessLog for ListLog {
    fn begin(&self, _: &str, greeting: Vec<u8>) -> LogFuture<'_, bool> {
        Box::pin(async move { Ok(greeting.starts_with(b"plimsoll-witness 1 ")) })
    }

    fn append(&self, lines: Vec<u8>) -> LogFuture<'_, ()> {
        Box::pin(async move {
            self.handle.sleep(self.append_ns.get()).await;
            if self.text.borrow().len() + lines.len() > self.bytes_max {
                return Err("the log is full".to_owned());
            }
            self.text.borrow_mut().push_str(&String::from_utf8(lines).unwrap());
            Ok(())
        })
    }
}

/// Two hosts, one of which listens as a witness does, one connection after the other.
struct World {
    executor: Executor,
    network: Rc<SimulatedNetwork>,
    log: Rc<ListLog>,
    endings: Rc<RefCell<Vec<Heard>>>,
}

impl World {
    fn new(seed: u64, wire: WireOptions, bytes_max: usize) -> Self {
        let clock = Rc::new(Clock::simulated());
        let disk = MemoryDisk::new(clock.clone(), Random::from_seed(0), MemoryOptions::default());
        let executor = Executor::new(clock, disk);
        let handle = executor.handle();
        let network = Rc::new(SimulatedNetwork::new(handle.clone(), Random::from_seed(seed), wire));
        let log = Rc::new(ListLog {
            handle: handle.clone(),
            text: RefCell::default(),
            append_ns: Cell::new(5 * NANOS_PER_MILLISECOND),
            bytes_max,
        });
        let endings: Rc<RefCell<Vec<Heard>>> = Rc::default();
        let (host, kept, noted) = (network.host("witness"), log.clone(), endings.clone());
        handle.clone().spawn(async move {
            let listener = host.listen(ADDRESS).await.unwrap();
            loop {
                let stream = listener.accept().await.unwrap();
                let heard = hear(stream, &handle, &*kept, SILENCE_NS).await;
                noted.borrow_mut().push(heard);
            }
        });
        Self { executor, network, log, endings }
    }

    fn quiet() -> Self {
        Self::new(1, WireOptions::default(), 1 << 20)
    }

    fn handle(&self) -> Handle {
        self.executor.handle()
    }

    fn run<T: 'static>(&self, story: impl Future<Output = T> + 'static) -> T {
        self.executor.run(story).expect("something always happens next")
    }

    /// A raw connection to the witness.
    fn stranger(&self) -> impl Future<Output = Box<dyn Stream>> + 'static {
        let host = self.network.host("stranger");
        async move { host.connect(ADDRESS).await.unwrap() }
    }

    /// How the last connection ended, once one more than `before` has.
    fn ending_after(&self, before: usize) -> Heard {
        let (endings, handle) = (self.endings.clone(), self.handle());
        self.run(async move {
            while endings.borrow().len() <= before {
                handle.sleep(NANOS_PER_MILLISECOND).await;
            }
            endings.borrow()[before].clone()
        })
    }
}

fn line(number: u64) -> String {
    format!("c 0 {number} {number} {}\n", number - 1)
}

/// Tells lines until the witness is gone or all are told; the highest count it has answered, and
/// why it is gone.
async fn tell_all(
    network: Rc<SimulatedNetwork>,
    handle: Handle,
    count: u64,
) -> (u64, Option<String>) {
    let host = network.host("tested");
    let introduced = Teller::introduce(&host, &handle, ADDRESS, GREETING, PATIENCE_NS).await;
    let (mut teller, mut answers) = introduced.map_err(|refused| refused.to_string()).unwrap();
    let speaker = handle.clone();
    let telling = handle.spawn(async move {
        for number in 1..=count {
            if teller.tell(line(number).as_bytes()).await.is_err() {
                return;
            }
            speaker.sleep(NANOS_PER_MILLISECOND).await;
        }
        teller.end().await;
    });
    let mut confirmed = 0;
    let lost = loop {
        match answers.next().await {
            Ok(told) => confirmed = told.max(confirmed),
            Err(why) => break Some(why).filter(|_| confirmed < count),
        }
    };
    telling.await;
    (confirmed, lost)
}

/// On a quiet network and on a very bad one everything arrives once, in order, and the farewell is
/// heard.
#[test]
fn all_that_is_told_is_written_down() {
    let bad = WireOptions {
        loss: 0.2,
        tries_max: 30,
        segment_bytes: 7,
        delay: Latency::Uniform(1000, 30 * NANOS_PER_MILLISECOND),
        ..WireOptions::default()
    };
    for wire in [WireOptions::default(), bad] {
        for seed in 0..5 {
            let world = World::new(seed, wire.clone(), 1 << 20);
            let (confirmed, lost) = world.run(tell_all(world.network.clone(), world.handle(), 300));
            assert_eq!((confirmed, lost), (300, None));
            let expected: Vec<_> =
                (1..=300).map(|number| line(number).trim_end().to_owned()).collect();
            assert_eq!(world.log.acknowledgements(), expected);
            let ending = world.ending_after(0);
            assert_eq!((ending.lines, ending.why.as_str()), (300, "stopped"));
        }
    }
}

/// An answer before the lines are on the disk would be evidence that is not there: in no moment is
/// more confirmed than written.
#[test]
fn nothing_is_confirmed_before_it_is_written() {
    let world = World::quiet();
    world.log.append_ns.set(2 * NANOS_PER_SECOND);
    let (network, handle, log) = (world.network.clone(), world.handle(), world.log.clone());
    world.run(async move {
        let host = network.host("tested");
        let (mut teller, mut answers) =
            Teller::introduce(&host, &handle, ADDRESS, GREETING, PATIENCE_NS)
                .await
                .unwrap_or_else(|refused| panic!("{refused}"));
        for number in 1..=20 {
            teller.tell(line(number).as_bytes()).await.unwrap();
            let confirmed = answers.next().await.unwrap();
            assert!(confirmed as usize <= log.acknowledgements().len());
        }
    });
}

/// The witness's network goes away: the machine under test notices within its patience, and what
/// was confirmed was written.
#[test]
fn a_witness_that_vanishes_is_noticed() {
    for parted_ms in [1, 50, 120, 333] {
        let world = World::quiet();
        let (network, handle) = (world.network.clone(), world.handle());
        handle.clone().spawn(async move {
            handle.sleep(parted_ms * NANOS_PER_MILLISECOND).await;
            network.part("tested", "witness");
        });
        let (confirmed, lost) = world.run(tell_all(world.network.clone(), world.handle(), 100_000));
        assert!(lost.is_some(), "it went on");
        assert!(confirmed as usize <= world.log.acknowledgements().len());
        assert!(world.handle().now() < 3 * PATIENCE_NS);
        // The witness does not wait for a machine without power, and is free for the next.
        world.network.heal("tested", "witness");
        assert!(["silent", "closed"].contains(&world.ending_after(0).why.as_str()));
        let before = world.endings.borrow().len();
        let (confirmed, lost) = world.run(tell_all(world.network.clone(), world.handle(), 3));
        assert_eq!((confirmed, lost), (3, None));
        assert_eq!(world.ending_after(before).why, "stopped");
    }
}

/// A witness that answers nothing is as good as gone; one that is only slow is not.
#[test]
fn a_slow_witness_is_waited_for_and_a_silent_one_is_not() {
    for (append_ns, expected) in
        [(20 * NANOS_PER_SECOND, None), (40 * NANOS_PER_SECOND, Some("it does not answer"))]
    {
        let world = World::quiet();
        world.log.append_ns.set(append_ns);
        let (_, lost) = world.run(tell_all(world.network.clone(), world.handle(), 30));
        assert_eq!(lost.as_deref(), expected);
    }
}

/// Who is no witness is told apart from who is none yet: refused, silent, and something else.
#[test]
fn a_wrong_greeting_is_no_witness() {
    let world = World::quiet();
    let (network, handle) = (world.network.clone(), world.handle());
    world.run(async move {
        let (other, host) = (network.host("other"), network.host("tested"));
        let introduce = async |port: u32| {
            let address = format!("other:{port}");
            Teller::introduce(&host, &handle, &address, GREETING, PATIENCE_NS).await.err()
        };
        assert!(matches!(introduce(1).await, Some(Refused::Unreachable(_))));
        for (port, answer) in
            [(2, "220 mail.example ESMTP\r\n"), (3, "no: busy\n"), (4, "\n"), (5, "readyx\n")]
        {
            let listener = other.listen(&format!("other:{port}")).await.unwrap();
            handle.spawn(async move {
                let mut stream = listener.accept().await.unwrap();
                write_all(&mut stream, answer.as_bytes()).await.unwrap();
                let _ = read(&mut stream, &mut [0; 100]).await;
            });
            let refused = introduce(port).await;
            assert_eq!(
                refused,
                Some(Refused::Answered(format!("other:{port}"), answer.trim().to_owned()))
            );
        }
        let silent = other.listen("other:6").await.unwrap();
        assert_eq!(introduce(6).await, Some(Refused::Silent("other:6".to_owned())));
        drop(silent);
    });
}

/// Half a message, and then nothing, the end or a reset: what was whole is kept, the rest never
/// becomes a line.
#[test]
fn half_a_message_is_none() {
    for ends_by in ["silence", "close", "drop"] {
        let world = World::quiet();
        let (stranger, handle) = (world.stranger(), world.handle());
        world.run(async move {
            let mut stream = stranger.await;
            write_all(&mut stream, format!("{GREETING}{}c 0 2 2", line(1)).as_bytes())
                .await
                .unwrap();
            handle.sleep(NANOS_PER_SECOND).await;
            match ends_by {
                "silence" => handle.sleep(2 * SILENCE_NS).await,
                "close" => {
                    close(&mut stream).await.unwrap();
                    handle.sleep(NANOS_PER_SECOND).await;
                }
                _ => {}
            }
        });
        let expected = if ends_by == "silence" { "silent" } else { "closed" };
        assert_eq!(world.ending_after(0), Heard { lines: 1, why: expected.to_owned() });
        assert_eq!(world.log.acknowledgements(), ["c 0 1 1 0"]);
    }
}

/// What is no acknowledgement ends the connection and never reaches the log, nor does a line before
/// it in the same breath.
#[test]
fn what_is_no_acknowledgement_is_never_written() {
    let long = "1".repeat(21);
    let wrong = [
        "GET / HTTP/1.1",
        "c 0 1 1",
        "c 0 1 1 0 9",
        "x 0 1 1 0",
        "c 0 1 1 -1",
        "c  1 1 0",
        "c 123456 1 1 0",
        "",
        "c",
        "m 0 1 1 0 ",
        "ready",
        "t 5",
        &format!("c 0 {long} 1 0"),
        "c 0 \u{661} 1 0",
    ];
    for said in wrong {
        let world = World::quiet();
        let (stranger, text) = (world.stranger(), format!("{GREETING}{}{said}\n", line(1)));
        world.run(async move {
            let mut stream = stranger.await;
            write_all(&mut stream, text.as_bytes()).await.unwrap();
            while let Ok(1..) = read(&mut stream, &mut [0; 100]).await {}
        });
        assert_eq!(world.ending_after(0).why, "something else was said", "{said:?}");
        assert!(world.log.acknowledgements().is_empty(), "{said:?}");
    }
    for (said, why) in [
        ("hello\n".to_owned(), "it was no machine under test"),
        ("x".repeat(3_000_000), "a line without end was sent"),
        (format!("plimsoll-witness 1 {}\n", " ".repeat(9000)), "it was no machine under test"),
    ] {
        let world = World::quiet();
        let stranger = world.stranger();
        world.run(async move {
            let mut stream = stranger.await;
            let _ = write_all(&mut stream, said.as_bytes()).await;
            while let Ok(1..) = read(&mut stream, &mut [0; 100]).await {}
        });
        assert_eq!(world.ending_after(0).why, why);
    }
}

/// A log that takes no more ends the connection with its reason; nothing is confirmed that it did
/// not take.
#[test]
fn a_full_log_confirms_nothing_more() {
    let world = World::new(1, WireOptions::default(), 500);
    let (confirmed, lost) = world.run(tell_all(world.network.clone(), world.handle(), 1000));
    assert!(lost.is_some());
    assert!(confirmed as usize <= world.log.acknowledgements().len());
    assert_eq!(world.ending_after(0).why, "the log is full");
}

/// One seed decides every arrival, so a run that failed can be seen again.
#[test]
fn one_seed_gives_one_log() {
    let log_of = |seed| {
        let wire = WireOptions {
            loss: 0.2,
            tries_max: 30,
            delay: Latency::Uniform(1000, 30 * NANOS_PER_MILLISECOND),
            ..WireOptions::default()
        };
        let world = World::new(seed, wire, 1 << 20);
        world.run(tell_all(world.network.clone(), world.handle(), 2000));
        let text = world.log.text.borrow().clone();
        (text, world.handle().now())
    };
    assert_eq!(log_of(7), log_of(7));
    assert_ne!(log_of(7), log_of(8));
}
