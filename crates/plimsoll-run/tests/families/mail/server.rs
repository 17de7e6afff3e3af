//! A small mail server in virtual time: IMAP and LMTP on the simulated network, with all mail in
//! memory, and with faults on demand. It knows the commands that a run uses and no more.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use plimsoll_io::{
    Handle, NANOS_PER_MILLISECOND, Nanos, Network, Stream, either, read, within, write_all,
};

pub const IMAP: &str = "server:143";
pub const LMTP: &str = "server:24";
/// The same server, by another door.
pub const SECOND_IMAP: &str = "server:144";
pub const SECOND_LMTP: &str = "server:25";
const CAPABILITIES: &str = "IMAP4rev1 LITERAL+ UIDPLUS MOVE";

/// One message.
#[derive(Clone)]
struct Message {
    uid: u32,
    seen: bool,
    deleted: bool,
    bytes: Rc<[u8]>,
}

#[derive(Clone, Default)]
struct Folder {
    next_uid: u32,
    messages: Vec<Message>,
}

impl Folder {
    fn add(&mut self, bytes: &[u8], seen: bool) {
        self.next_uid += 1;
        self.messages.push(Message {
            uid: self.next_uid,
            seen,
            deleted: false,
            bytes: bytes.into(),
        });
    }
}

/// What goes wrong.
#[derive(Default)]
pub struct Faults {
    /// Of so many accepted messages each, one is lost.
    pub loses_one_of: Cell<u64>,
    /// Of so many accepted messages each, one is delivered twice.
    pub doubles_one_of: Cell<u64>,
    /// One bit of each of so many contents is flipped.
    pub flips_one_of: Cell<u64>,
    /// Nothing is answered from the first time until the second.
    pub stall: Cell<(Nanos, Nanos)>,
    /// From then on the second endpoint takes nobody and breaks off with whom it has; 0 for never.
    pub second_dies: Cell<Nanos>,
    /// The same, of its port for mail that is handed in alone.
    pub second_delivery_dies: Cell<Nanos>,
    /// Connections for delivery that wait for so long are ended; 0 for never.
    pub delivery_waits_max: Cell<Nanos>,
    /// What is handed in at the second endpoint is accepted and lost.
    pub second_loses: Cell<bool>,
}

/// See the module text.
pub struct MailHost {
    accounts: RefCell<BTreeMap<String, BTreeMap<String, Folder>>>,
    pub faults: Faults,
    delivered: Cell<u64>,
    shown: Cell<u64>,
    handle: Handle,
}

impl MailHost {
    /// Listens until the simulation ends.
    pub fn start(handle: &Handle, network: Rc<dyn Network>, faults: Faults) -> Rc<MailHost> {
        let host = Rc::new(MailHost {
            accounts: RefCell::default(),
            faults,
            delivered: Cell::new(0),
            shown: Cell::new(0),
            handle: handle.clone(),
        });
        for address in [IMAP, LMTP, SECOND_IMAP, SECOND_LMTP] {
            let (host, network, handle) = (host.clone(), network.clone(), handle.clone());
            drop(handle.clone().spawn(async move {
                let listener = network.listen(address).await.expect("the port is free");
                while let Ok(stream) = listener.accept().await {
                    let loses = address == SECOND_LMTP && host.faults.second_loses.get();
                    let peer = Peer { stream, host: host.clone(), buffer: Vec::new(), loses };
                    let dies = match address {
                        SECOND_IMAP => host.faults.second_dies.get(),
                        SECOND_LMTP => {
                            let alone = host.faults.second_delivery_dies.get();
                            alone.max(host.faults.second_dies.get())
                        }
                        _ => 0,
                    };
                    let reads = address == IMAP || address == SECOND_IMAP;
                    if dies > 0 && handle.now() >= dies {
                        continue;
                    }
                    let until = handle.clone();
                    drop(handle.spawn(async move {
                        let dead = async {
                            match dies {
                                0 => std::future::pending().await,
                                dies => until.sleep_until(dies).await,
                            }
                        };
                        match reads {
                            true => either(async { peer.imap().await.unwrap_or(()) }, dead).await,
                            false => either(async { peer.lmtp().await.unwrap_or(()) }, dead).await,
                        }
                    }));
                }
            }));
        }
        host
    }

    fn every(count: &Cell<u64>, one_of: &Cell<u64>) -> bool {
        count.set(count.get() + 1);
        one_of.get() > 0 && count.get().is_multiple_of(one_of.get())
    }

    fn deliver(&self, account: &str, bytes: &[u8]) {
        let mut accounts = self.accounts.borrow_mut();
        let inbox =
            accounts.entry(account.to_owned()).or_default().entry("INBOX".into()).or_default();
        self.delivered.set(self.delivered.get() + 1);
        let nth = |one_of: &Cell<u64>| {
            one_of.get() > 0 && self.delivered.get().is_multiple_of(one_of.get())
        };
        if !nth(&self.faults.loses_one_of) {
            inbox.add(bytes, false);
        }
        if nth(&self.faults.doubles_one_of) {
            inbox.add(bytes, false);
        }
    }

    fn content(&self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        if Self::every(&self.shown, &self.faults.flips_one_of)
            && let Some(last) = bytes.len().checked_sub(3)
        {
            bytes[last] ^= 1;
        }
        bytes
    }
}

struct Peer {
    stream: Box<dyn Stream>,
    host: Rc<MailHost>,
    buffer: Vec<u8>,
    loses: bool,
}

impl Peer {
    async fn fill(&mut self) -> Option<()> {
        let mut bytes = [0; 8192];
        match read(&mut self.stream, &mut bytes).await {
            Ok(0) | Err(_) => None,
            Ok(count) => {
                self.buffer.extend_from_slice(&bytes[..count]);
                Some(())
            }
        }
    }

    async fn line(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                let (now, (from, until)) = (self.host.handle.now(), self.host.faults.stall.get());
                if (from..until).contains(&now) {
                    self.host.handle.sleep_until(until).await;
                }
                self.host.handle.sleep(NANOS_PER_MILLISECOND).await;
                return Some(String::from_utf8_lossy(&line).trim_end().to_owned());
            }
            self.fill().await?;
        }
    }

    /// A line, unless it is waited for too long.
    async fn line_in_time(&mut self) -> Option<String> {
        let (handle, longest) =
            (self.host.handle.clone(), self.host.faults.delivery_waits_max.get());
        match longest {
            0 => self.line().await,
            longest => within(&handle, longest, self.line()).await.flatten(),
        }
    }

    async fn take(&mut self, count: usize) -> Option<Vec<u8>> {
        while self.buffer.len() < count {
            self.fill().await?;
        }
        Some(self.buffer.drain(..count).collect())
    }

    async fn say(&mut self, bytes: impl AsRef<[u8]>) -> Option<()> {
        write_all(&mut self.stream, bytes.as_ref()).await.ok()
    }

    async fn lmtp(mut self) -> Option<()> {
        self.say("220 here\r\n").await?;
        let mut to = Vec::new();
        loop {
            let line = self.line_in_time().await?;
            let command = line.split([' ', ':']).next().unwrap_or_default().to_owned();
            match command.as_str() {
                "LHLO" => self.say("250-here\r\n250 PIPELINING\r\n").await?,
                "RCPT" => {
                    let address = line.trim_start_matches("RCPT TO:<");
                    to.push(address.split('@').next().unwrap_or_default().to_owned());
                    self.say("250 ok\r\n").await?;
                }
                "DATA" => {
                    self.say("354 go on\r\n").await?;
                    let mut message = Vec::new();
                    loop {
                        let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') else {
                            self.fill().await?;
                            continue;
                        };
                        let line: Vec<u8> = self.buffer.drain(..=end).collect();
                        if line == b".\r\n" {
                            break;
                        }
                        message.extend_from_slice(&line);
                    }
                    for account in to.drain(..) {
                        if !self.loses {
                            self.host.deliver(&account, &message);
                        }
                        self.say("250 stored\r\n").await?;
                    }
                }
                _ => self.say("250 ok\r\n").await?,
            }
        }
    }

    async fn imap(mut self) -> Option<()> {
        self.say(format!("* OK [CAPABILITY {CAPABILITIES}] small\r\n")).await?;
        let (mut account, mut open) = (String::new(), "INBOX".to_owned());
        loop {
            let line = self.line().await?;
            let (tag, command) = line.split_once(' ')?;
            let words: Vec<&str> = command.split(' ').collect();
            let named = quoted(command);
            let mut out = Vec::new();
            match words[0] {
                "LOGIN" => named.first()?.clone_into(&mut account),
                "SELECT" => named.first()?.clone_into(&mut open),
                "APPEND" => {
                    let count = command.rsplit_once('{')?.1.trim_end_matches("+}").parse().ok()?;
                    let bytes = self.take(count + 2).await?;
                    self.with(&account, |folders| {
                        let folder = folders.entry(named[0].clone()).or_default();
                        folder.add(&bytes[..count], command.contains("\\Seen"));
                    });
                }
                _ => {}
            }
            let host = self.host.clone();
            self.with(&account, |folders| {
                answer(&host, folders, &open, command, &named, &mut out);
            });
            out.extend_from_slice(format!("{tag} OK done\r\n").as_bytes());
            self.say(out).await?;
        }
    }

    fn with(&self, account: &str, work: impl FnOnce(&mut BTreeMap<String, Folder>)) {
        let mut accounts = self.host.accounts.borrow_mut();
        let folders = accounts.entry(account.to_owned()).or_default();
        folders.entry("INBOX".into()).or_default();
        work(folders);
    }
}

fn quoted(command: &str) -> Vec<String> {
    command.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Positions of the messages that a set names.
fn chosen(folder: &Folder, set: &str, by_uid: bool) -> Vec<usize> {
    let number_of = |place: usize| match by_uid {
        true => folder.messages[place].uid,
        false => place as u32 + 1,
    };
    let is_in = |number: u32| {
        set.split(',').any(|part| {
            let (first, last) = part.split_once(':').unwrap_or((part, part));
            let last = if last == "*" { u32::MAX } else { last.parse().unwrap_or(0) };
            (first.parse().unwrap_or(0)..=last).contains(&number)
        })
    };
    (0..folder.messages.len()).filter(|place| is_in(number_of(*place))).collect()
}

fn answer(
    host: &MailHost,
    folders: &mut BTreeMap<String, Folder>,
    open: &str,
    command: &str,
    named: &[String],
    out: &mut Vec<u8>,
) {
    let mut say = |text: String| out.extend_from_slice(text.as_bytes());
    let (by_uid, plain) = match command.strip_prefix("UID ") {
        Some(plain) => (true, plain),
        None => (false, command),
    };
    let words: Vec<&str> = plain.split(' ').collect();
    match words[0] {
        "CAPABILITY" => say(format!("* CAPABILITY {CAPABILITIES}\r\n")),
        "LIST" => folders.keys().for_each(|name| say(format!("* LIST () \"/\" \"{name}\"\r\n"))),
        "CREATE" => drop(folders.entry(named[0].clone()).or_default()),
        "STATUS" => {
            let count = folders.get(&named[0]).map_or(0, |folder| folder.messages.len());
            say(format!("* STATUS \"{}\" (MESSAGES {count})\r\n", named[0]));
        }
        "SELECT" | "NOOP" => {
            let folder = folders.entry(open.to_owned()).or_default();
            say(format!("* {} EXISTS\r\n", folder.messages.len()));
            if words[0] == "SELECT" {
                let next = folder.next_uid + 1;
                say(format!("* OK [UIDVALIDITY 5] ok\r\n* OK [UIDNEXT {next}] ok\r\n"));
            }
        }
        "SEARCH" => {
            let folder = folders.entry(open.to_owned()).or_default();
            let uids: String =
                folder.messages.iter().map(|message| format!(" {}", message.uid)).collect();
            say(format!("* SEARCH{uids}\r\n"));
        }
        "FETCH" => {
            let folder = folders.entry(open.to_owned()).or_default();
            for place in chosen(folder, words[1], by_uid) {
                let shown = fetched(host, place, &folder.messages[place], plain);
                out.extend_from_slice(&shown);
            }
        }
        "STORE" => {
            let folder = folders.entry(open.to_owned()).or_default();
            for place in chosen(folder, words[1], by_uid) {
                folder.messages[place].seen |= plain.contains("\\Seen");
                folder.messages[place].deleted |= plain.contains("\\Deleted");
            }
        }
        "EXPUNGE" | "MOVE" => {
            let is_move = words[0] == "MOVE";
            let folder = folders.entry(open.to_owned()).or_default();
            let mut places = chosen(folder, words.get(1).copied().unwrap_or("1:*"), by_uid);
            places.retain(|place| is_move || folder.messages[*place].deleted);
            let mut moved = Vec::new();
            for place in places.iter().rev() {
                moved.push(folder.messages.remove(*place));
                say(format!("* {} EXPUNGE\r\n", place + 1));
            }
            if is_move {
                let to = folders.entry(named[0].clone()).or_default();
                moved.iter().for_each(|message| to.add(&message.bytes, message.seen));
            }
        }
        _ => {}
    }
}

fn fetched(host: &MailHost, place: usize, message: &Message, command: &str) -> Vec<u8> {
    let flags = if message.seen { "\\Seen" } else { "" };
    let mut out =
        format!("* {} FETCH (UID {} FLAGS ({flags})", place + 1, message.uid).into_bytes();
    let bytes = &message.bytes;
    let split =
        bytes.windows(4).position(|four| four == b"\r\n\r\n").map_or(bytes.len(), |at| at + 4);
    for section in command.split("BODY.PEEK[").skip(1) {
        let section = section.split(']').next().unwrap_or_default();
        let content = match section {
            "" => host.content(bytes),
            "1" => host.content(&bytes[split..]),
            _ => bytes[..split].to_vec(),
        };
        out.extend_from_slice(format!(" BODY[{section}] {{{}}}\r\n", content.len()).as_bytes());
        out.extend_from_slice(&content);
    }
    out.extend_from_slice(b")\r\n");
    out
}
