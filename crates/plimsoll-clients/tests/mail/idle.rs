//! Thousands of sessions that wait, as most users of a mail server do at any time.

use std::rc::Rc;

use plimsoll_clients::mail::{Imap, ImapOptions, Security};
use plimsoll_io::{
    Clock, Executor, Handle, MemoryDisk, MemoryOptions, Network, Random, SimulatedNetwork, Stream,
    WireOptions, read, write_all,
};

use crate::rig::{ADDRESS, Party, SERVER_PEM, TIMEOUT_NS};

/// Both ends of a session and the wire between them take at most so much of memory while it is
/// idle. The bar for our end alone is 40 KiB.
const BYTES_PER_SESSION_MAX: u64 = 20 << 10;
/// Names how many sessions the process of its own opens.
const SESSIONS_WANTED: &str = "PLIMSOLL_IDLE_SESSIONS";
/// Sessions that are there before memory is looked at, so that what all share is not counted.
const FIRST: usize = 200;
/// Rows of the page that each user has seen.
const ROWS: usize = 30;

/// Memory of this process.
#[expect(clippy::disallowed_methods, reason = "only the system knows how much memory is in use")]
fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").expect("Linux says so");
    let line = text.lines().find(|line| line.starts_with("VmRSS:")).expect("there is one");
    let kib = line.split_whitespace().nth(1).expect("a number").parse::<u64>();
    kib.expect("a number") << 10
}

/// A server of one client that knows some commands and keeps nothing between them.
async fn serve(mut stream: Box<dyn Stream>) {
    let greeting = "* OK [CAPABILITY IMAP4rev1 IDLE] at your service\r\n";
    let _ = write_all(&mut stream, greeting.as_bytes()).await;
    let mut line = Vec::new();
    loop {
        let mut byte = [0; 64];
        match read(&mut stream, &mut byte).await {
            Ok(0) | Err(_) => return,
            Ok(count) => line.extend_from_slice(&byte[..count]),
        }
        while let Some(end) = line.iter().position(|byte| *byte == b'\n') {
            let text: Vec<u8> = line.drain(..=end).collect();
            let text = String::from_utf8_lossy(&text).trim_end().to_owned();
            let answer = answer_to(&text);
            if write_all(&mut stream, answer.as_bytes()).await.is_err() {
                return;
            }
        }
        line.shrink_to_fit();
    }
}

fn answer_to(line: &str) -> String {
    let (tag, command) = line.split_once(' ').unwrap_or(("", line));
    match command.split(' ').next().unwrap_or_default() {
        "SELECT" => format!("* {ROWS} EXISTS\r\n{tag} OK [READ-WRITE] done\r\n"),
        "FETCH" => {
            let row = |number| format!("* {number} FETCH (UID {number} FLAGS (\\Seen))\r\n");
            format!("{}{tag} OK done\r\n", (1..=ROWS).map(row).collect::<String>())
        }
        "IDLE" => "+ idling\r\n* 31 EXISTS\r\n".to_owned(),
        // The tag of IDLE: each session has sent so many commands before.
        "DONE" => "p4 OK idled\r\n".to_owned(),
        _ => format!("{tag} OK [CAPABILITY IMAP4rev1 IDLE] done\r\n"),
    }
}

/// A user who has looked at the inbox and waits for news.
async fn idle_session(party: &Party) -> Imap {
    let options = ImapOptions {
        connect_timeout_ns: TIMEOUT_NS,
        command_timeout_ns: TIMEOUT_NS,
        literal_bytes_max: 1 << 20,
    };
    let endpoint = party.endpoint(Security::None, SERVER_PEM);
    let imap = Imap::connect(&*party.network, &endpoint, &party.handle, options).await;
    let mut imap = imap.expect("it greets");
    imap.login("u", "secret").await.expect("it lets us in");
    imap.select("INBOX").await.expect("it opens");
    let page = imap.page(1..=ROWS as u32).await.expect("it shows");
    assert_eq!(page.rows.len(), ROWS);
    imap.begin_idle().await.expect("it idles");
    imap.rest();
    imap
}

/// Bytes of memory of each of so many idle sessions; all of them are awake afterwards.
fn bytes_of_idle(sessions: usize) -> u64 {
    let clock = Rc::new(Clock::simulated());
    let disk = MemoryDisk::new(clock.clone(), Random::from_seed(0), MemoryOptions::default());
    let executor = Executor::new(clock, disk);
    let handle = executor.handle();
    let network =
        SimulatedNetwork::new(handle.clone(), Random::from_seed(1), WireOptions::default());
    let (near, far) = (network.host("client"), network.host("server"));
    let work = async move {
        let listener = far.listen(ADDRESS).await.expect("the port is free");
        let accepting: Handle = handle.clone();
        let serving = handle.spawn(async move {
            for _ in 0..FIRST + sessions {
                let stream = listener.accept().await.expect("a client comes");
                drop(accepting.spawn(serve(stream)));
            }
        });
        let party = Party { network: Rc::new(near), handle };
        let mut open = Vec::with_capacity(FIRST + sessions);
        let mut before = 0;
        for number in 0..FIRST + sessions {
            if number == FIRST {
                before = resident_bytes();
            }
            open.push(idle_session(&party).await);
        }
        let after = resident_bytes();
        serving.await;
        for imap in &mut open {
            imap.end_idle().await.expect("it wakes");
            assert_eq!(imap.mailbox().map(|mailbox| mailbox.exists), Some(31), "it was told");
        }
        after.saturating_sub(before) / sessions as u64
    };
    executor.run(work).expect("something always happens next")
}

/// Other tests of this program take memory and give it back meanwhile, so this is measured in a
/// process of its own.
#[expect(clippy::disallowed_types, reason = "the program that is started is this one")]
fn check(sessions: usize) {
    let program = std::env::current_exe().expect("this program");
    let mut alone = std::process::Command::new(program);
    alone.args(["--ignored", "--nocapture", "--exact", "idle::sessions_in_a_process_of_their_own"]);
    let ended = alone.env(SESSIONS_WANTED, sessions.to_string()).output().expect("it runs");
    let said = String::from_utf8_lossy(&ended.stdout);
    print!("{said}");
    assert!(ended.status.success() && said.contains("bytes of memory each"), "{said}");
}

#[test]
#[ignore = "by itself: the tests of this file start it"]
#[expect(clippy::disallowed_methods, reason = "how many is said by the test that starts this one")]
fn sessions_in_a_process_of_their_own() {
    let wanted = std::env::var(SESSIONS_WANTED).unwrap_or("1000".into());
    let sessions = wanted.parse().expect("a number");
    let bytes = bytes_of_idle(sessions);
    println!("{sessions} idle sessions: {bytes} bytes of memory each, both ends together");
    assert!(bytes > 0 && bytes <= BYTES_PER_SESSION_MAX, "{bytes} bytes each");
}

/// A machine of ordinary size has to hold the users of a large server.
#[test]
fn a_thousand_idle_sessions_take_little_memory() {
    check(1_000);
}

#[test]
#[ignore = "slow: `make slow`"]
fn ten_thousand_idle_sessions_take_little_memory() {
    check(10_000);
}
