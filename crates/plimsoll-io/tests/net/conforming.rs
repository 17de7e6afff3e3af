//! The suite over every network: simulated, TCP watched by the ring, TCP watched by a thread, and
//! TLS over each.

use std::any::Any;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::rc::Rc;
use std::time::Duration;

use plimsoll_io::conformance::network::{Subject, a_crowd_talks, check_all};
use plimsoll_io::{
    Clock, Disk, Executor, MemoryDisk, MemoryOptions, Method, MethodChoice, NANOS_PER_MILLISECOND,
    Network, Random, RealDisk, RealDiskOptions, RealNetwork, RealNetworkOptions, SimulatedNetwork,
    WatchMethod, WireOptions,
};

/// Connecting to silence takes so long.
const CONNECT_TIMEOUT_NS: u64 = 300 * NANOS_PER_MILLISECOND;

pub fn simulated() -> Subject {
    let clock = Rc::new(Clock::simulated());
    let disk = MemoryDisk::new(clock.clone(), Random::from_seed(0), MemoryOptions::default());
    let executor = Executor::new(clock, disk);
    let network =
        SimulatedNetwork::new(executor.handle(), Random::from_seed(1), WireOptions::default());
    let subject = Subject {
        client: Rc::new(network.host("client")),
        impatient: Rc::new(network.host("client")),
        server: Rc::new(network.host("server")),
        address: "server:0".to_owned(),
        closed: "server:9".to_owned(),
        silent: "silence:1".to_owned(),
        unknown: "nowhere:1".to_owned(),
        executor,
        kept: Box::new(()),
    };
    network.host("silence");
    network.part("client", "silence");
    Subject { kept: Box::new(network), ..subject }
}

/// An executor whose network is this machine's, and its options.
fn real(
    disk: Rc<dyn Disk>,
    real_disk: Option<&RealDisk>,
    clock: Rc<Clock>,
    without_ring: bool,
) -> Subject {
    let executor = Executor::new(clock, disk);
    let options = RealNetworkOptions { without_ring, ..RealNetworkOptions::default() };
    let impatient =
        RealNetworkOptions { connect_timeout_ns: CONNECT_TIMEOUT_NS, ..options.clone() };
    let [network, impatient] = [options, impatient].map(|options| {
        let network =
            RealNetwork::open(&executor.handle(), real_disk, options).expect("this is real time");
        Rc::new(network) as Rc<dyn Network>
    });
    let (silent, kept) = silence();
    Subject {
        executor,
        client: network.clone(),
        impatient,
        server: network,
        address: "127.0.0.1:0".to_owned(),
        closed: closed_port(),
        silent,
        // Longer than any name may be, so that no name server is asked.
        unknown: format!("{}:1", "long".repeat(20)),
        kept,
    }
}

pub fn real_by(method: MethodChoice, without_ring: bool) -> Subject {
    let clock = Rc::new(Clock::real());
    let options = RealDiskOptions { method, ..RealDiskOptions::default() };
    let disk = RealDisk::open(options, clock.clone()).expect("this machine has the method");
    real(disk.clone(), Some(&disk), clock, without_ring)
}

/// The ring's own network, where this machine has a ring; says why the test is not run elsewhere.
pub fn ring() -> Option<Subject> {
    let clock = Rc::new(Clock::real());
    let options = RealDiskOptions {
        method: MethodChoice::Only(Method::IoUring),
        ..RealDiskOptions::default()
    };
    let disk = RealDisk::open(options, clock.clone())
        .inspect_err(|error| eprintln!("skipped: {error}"))
        .ok()?;
    let executor = Executor::new(clock.clone(), disk.clone());
    let network = RealNetwork::open(&executor.handle(), Some(&disk), RealNetworkOptions::default());
    if network.expect("this is real time").method() != WatchMethod::Ring {
        eprintln!("skipped: this kernel's ring does not watch sockets (before Linux 5.13)");
        return None;
    }
    Some(real(disk.clone(), Some(&disk), clock, false))
}

fn closed_port() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    listener.local_addr().expect("it is bound").to_string()
}

/// A port whose queue is full: the kernel answers nobody there any more.
fn silence() -> (String, Box<dyn Any>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    // SAFETY: no pointers are passed.
    unsafe { libc::listen(listener.as_raw_fd(), 0) };
    let address = listener.local_addr().expect("it is bound");
    let mut queued = Vec::new();
    loop {
        match TcpStream::connect_timeout(&address, Duration::from_millis(100)) {
            Ok(stream) => queued.push(stream),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => break,
            Err(error) => panic!("the queue does not fill: {error}"),
        }
    }
    (address.to_string(), Box::new((listener, queued)))
}

#[test]
fn the_simulated_network_keeps_its_promises() {
    check_all(|_| simulated());
}

#[test]
fn tcp_on_the_ring_keeps_its_promises() {
    if ring().is_some() {
        check_all(|_| ring().expect("there was one before"));
    }
}

#[test]
fn tcp_beside_threads_keeps_its_promises() {
    check_all(|_| real_by(MethodChoice::Only(Method::Threads), false));
}

/// An executor in a memory disk sleeps in yet another way, and a socket must end that sleep too.
#[test]
fn tcp_beside_a_memory_disk_keeps_its_promises() {
    check_all(|_| {
        let clock = Rc::new(Clock::real());
        let disk = MemoryDisk::new(clock.clone(), Random::from_seed(0), MemoryOptions::ram());
        real(disk, None, clock, false)
    });
}

/// Thousands of edges in one ring: a single one missed and the test hangs.
#[test]
#[ignore = "takes longer than ten seconds"]
fn thousands_of_sockets_talk_on_the_ring_and_beside_it() {
    if let Some(subject) = ring() {
        a_crowd_talks(&subject, 4000);
    }
    a_crowd_talks(&real_by(MethodChoice::Auto, true), 4000);
    a_crowd_talks(&simulated(), 4000);
}
