//! What only real sockets have: peers of other programs, names, and how the executor accounts for
//! them.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::rc::Rc;
use std::time::Duration;

use plimsoll_io::conformance::network::Subject;
use plimsoll_io::{
    Clock, Executor, MemoryDisk, MemoryOptions, MethodChoice, NANOS_PER_MILLISECOND,
    NANOS_PER_SECOND, Random, RealNetwork, RealNetworkOptions, Stalled, StreamError, read, within,
    write_all,
};

use crate::conforming::{real_by, ring};
use crate::support::work_for;

/// TCP as it is watched here, by ring where there is one and by thread.
fn subjects() -> Vec<Subject> {
    let beside = real_by(MethodChoice::Auto, true);
    ring().into_iter().chain([beside]).collect()
}

/// A program that is killed with bytes unread resets: never an orderly end, however often it is
/// asked.
#[test]
fn a_reset_is_never_taken_for_an_end() {
    for subject in subjects() {
        let peer = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = peer.local_addr().unwrap().to_string();
        let (client, handle) = (subject.client.clone(), subject.executor.handle());
        let story = async move {
            let mut near = client.connect(&address).await.unwrap();
            write_all(&mut near, b"never read").await.unwrap();
            let (mut far, _) = peer.accept().unwrap();
            far.write_all(b"half an answ").unwrap();
            far.set_nodelay(true).unwrap();
            handle.sleep(20 * NANOS_PER_MILLISECOND).await;
            drop(far);
            handle.sleep(20 * NANOS_PER_MILLISECOND).await;
            // What had arrived before may be read first.
            if let Ok(count) = read(&mut near, &mut [0; 100]).await {
                assert_eq!(count, 12);
            }
            for _ in 0..3 {
                let broken = read(&mut near, &mut [0; 100]).await;
                assert_eq!(broken, Err(StreamError::Reset(address.clone())));
            }
            assert_eq!(write_all(&mut near, b"x").await, Err(StreamError::Reset(address)));
        };
        subject.executor.run(story).unwrap();
    }
}

/// The last bytes and the end may come as one event; the end must still be seen after the bytes
/// were read.
#[test]
fn the_end_that_comes_with_the_last_bytes_is_seen() {
    for subject in subjects() {
        let peer = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = peer.local_addr().unwrap().to_string();
        let (client, handle) = (subject.client.clone(), subject.executor.handle());
        let story = async move {
            for length in 1..200 {
                let mut near = client.connect(&address).await.unwrap();
                let (mut far, _) = peer.accept().unwrap();
                let late =
                    within(&handle, NANOS_PER_MILLISECOND / 4, read(&mut near, &mut [0; 512]))
                        .await;
                assert_eq!(late, None, "there is nothing yet");
                far.write_all(&vec![7; length]).unwrap();
                drop(far);
                let mut buffer = [0; 512];
                let reading = async {
                    let mut seen = 0;
                    while let Ok(count @ 1..) = read(&mut near, &mut buffer).await {
                        seen += count;
                    }
                    seen
                };
                let seen = within(&handle, 5 * NANOS_PER_SECOND, reading).await;
                assert_eq!(seen, Some(length), "the end was missed");
            }
        };
        subject.executor.run(story).unwrap();
    }
}

/// Whoever is dropped is closed for its peer soon, although the ring still holds the socket.
#[test]
fn a_dropped_stream_is_closed_for_another_program() {
    for subject in subjects() {
        let (server, client) = (subject.server.clone(), subject.client.clone());
        let peer = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = peer.local_addr().unwrap().to_string();
        subject.executor.run(async move { drop(client.connect(&address).await.unwrap()) }).unwrap();
        // The executor does not turn any more.
        let (mut far, _) = peer.accept().unwrap();
        far.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        assert_eq!(far.read(&mut [0; 8]).unwrap(), 0);
        let listener = subject.executor.run(server.listen("127.0.0.1:0")).unwrap().unwrap();
        let address = listener.address().to_owned();
        drop(listener);
        assert!(TcpStream::connect(address).is_err(), "it still listens");
    }
}

/// Descriptors come back: a leak of one each would end a long run.
#[test]
fn thousands_of_connections_leave_no_descriptor() {
    let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    for subject in subjects() {
        let (server, client) = (subject.server.clone(), subject.client.clone());
        let handle = subject.executor.handle();
        let story = async move {
            let listener = server.listen("127.0.0.1:0").await.unwrap();
            let mut counts = Vec::new();
            for number in 0..1500 {
                let mut near = client.connect(listener.address()).await.unwrap();
                let mut far = listener.accept().await.unwrap();
                write_all(&mut near, b"x").await.unwrap();
                assert_eq!(read(&mut far, &mut [0; 8]).await, Ok(1));
                if number % 500 == 499 {
                    drop((near, far));
                    handle.sleep(20 * NANOS_PER_MILLISECOND).await;
                    counts.push(open());
                }
            }
            counts
        };
        let counts = subject.executor.run(story).unwrap();
        // Other tests of this program open and close files meanwhile.
        assert!(counts[2] < counts[0] + 500, "{counts:?}");
    }
}

/// A program opens a network for each of its runs: the thread that watched it ends with it.
#[test]
fn hundreds_of_networks_leave_no_thread() {
    let watching = || {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
        let names = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
        names.filter(|name| name.trim() == "plimsoll-net").count()
    };
    let clock = Rc::new(Clock::real());
    let disk = MemoryDisk::new(clock.clone(), Random::from_seed(0), MemoryOptions::ram());
    let executor = Executor::new(clock, disk);
    for _ in 0..300 {
        let options = RealNetworkOptions::default();
        RealNetwork::open(&executor.handle(), None, options).expect("this is real time");
    }
    // Other tests of this program have networks meanwhile.
    let ended = (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        watching() < 50
    });
    assert!(ended, "{} threads still watch", watching());
}

/// A name of this machine leads to it, by a thread that asks while the executor goes on.
#[test]
fn names_are_resolved_while_the_executor_goes_on() {
    for subject in subjects() {
        let (server, client) = (subject.server.clone(), subject.client.clone());
        let story = async move {
            let listener = server.listen("localhost:0").await.unwrap();
            let port = listener.address().rsplit_once(':').unwrap().1.to_owned();
            let near = client.connect(&format!("localhost:{port}")).await.unwrap();
            let far = listener.accept().await.unwrap();
            assert!(near.is_local() && far.is_local());
            assert_eq!(near.peer(), format!("localhost:{port}"));
        };
        subject.executor.run(story).unwrap();
    }
}

/// What the executor does for sockets counts as its work, and the gaps between its looks too.
#[test]
fn work_for_sockets_is_busy_time_and_gaps() {
    const WORK: Duration = Duration::from_millis(5);
    for subject in subjects() {
        let (server, client) = (subject.server.clone(), subject.client.clone());
        let handle = subject.executor.handle();
        let story = async move {
            let listener = server.listen("127.0.0.1:0").await.unwrap();
            let mut near = client.connect(listener.address()).await.unwrap();
            let mut far = listener.accept().await.unwrap();
            handle.spawn(async move {
                while let Ok(1..) = read(&mut far, &mut [0; 8]).await {
                    work_for(WORK);
                    write_all(&mut far, b"done").await.unwrap();
                }
            });
            handle.take_statistics();
            let started = handle.now();
            for _ in 0..10 {
                write_all(&mut near, b"work").await.unwrap();
                read(&mut near, &mut [0; 8]).await.unwrap();
                handle.sleep(10 * NANOS_PER_MILLISECOND).await;
            }
            (handle.take_statistics(), handle.now() - started)
        };
        let (statistics, elapsed_ns) = subject.executor.run(story).unwrap();
        assert!(statistics.busy_ns >= 50 * NANOS_PER_MILLISECOND, "{statistics:?}");
        assert!(statistics.busy_ns < elapsed_ns - 50 * NANOS_PER_MILLISECOND, "sleep is not work");
        assert!(statistics.reap_gap.quantile_ns(1.0) >= 5 * NANOS_PER_MILLISECOND);
    }
}

/// Waiting for a peer is no stall, however long nothing comes; the clock of a simulation has no
/// sockets.
#[test]
fn waiting_for_a_peer_is_no_stall() {
    for subject in subjects() {
        let peer = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = peer.local_addr().unwrap().to_string();
        let thread = std::thread::spawn(move || {
            let (mut far, _) = peer.accept().unwrap();
            std::thread::sleep(Duration::from_millis(150));
            far.write_all(b"late").unwrap();
        });
        let client = subject.client.clone();
        let story = async move {
            let mut near = client.connect(&address).await.unwrap();
            read(&mut near, &mut [0; 8]).await
        };
        assert_eq!(subject.executor.run(story), Ok(Ok(4)));
        thread.join().unwrap();
        assert_eq!(subject.executor.run(std::future::pending::<()>()), Err(Stalled));
    }
    let clock = Rc::new(Clock::simulated());
    let disk = MemoryDisk::new(clock.clone(), Random::from_seed(0), MemoryOptions::default());
    let executor = Executor::new(clock, disk);
    let refused = RealNetwork::open(&executor.handle(), None, RealNetworkOptions::default());
    assert_eq!(refused.err(), Some(StreamError::VirtualTime));
}
