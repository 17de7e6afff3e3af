//! A scripted server in virtual time: it says what a test wants it to say, when the test wants it.

use std::future::Future;
use std::rc::Rc;

use plimsoll_clients::mail::{Endpoint, Imap, ImapOptions, MailError, Security};
use plimsoll_io::{
    Clock, Executor, Handle, MemoryDisk, MemoryOptions, NANOS_PER_SECOND, Nanos, Network, Random,
    SimulatedNetwork, Stream, TlsClient, WireOptions, read, write_all,
};

pub const SERVER_PEM: &[u8] = include_bytes!("../../../plimsoll-io/tests/net/tls/server.pem");
pub const SERVER_KEY: &[u8] = include_bytes!("../../../plimsoll-io/tests/net/tls/server.key");
pub const STRANGER_PEM: &[u8] = include_bytes!("../../../plimsoll-io/tests/net/tls/stranger.pem");
pub const ADDRESS: &str = "server:143";
pub const TIMEOUT_NS: Nanos = 10 * NANOS_PER_SECOND;

/// One end of a conversation.
pub struct Peer {
    pub stream: Box<dyn Stream>,
    pub handle: Handle,
    buffer: Vec<u8>,
}

impl Peer {
    pub fn on(stream: Box<dyn Stream>, handle: Handle) -> Peer {
        Peer { stream, handle, buffer: Vec::new() }
    }

    /// The next line without its end; empty when the client is gone.
    pub async fn line(&mut self) -> String {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return String::from_utf8_lossy(&line).trim_end().to_owned();
            }
            let mut bytes = [0; 4096];
            match read(&mut self.stream, &mut bytes).await {
                Ok(0) | Err(_) => return String::new(),
                Ok(count) => self.buffer.extend_from_slice(&bytes[..count]),
            }
        }
    }

    /// So many bytes, as the rest of a command.
    pub async fn bytes(&mut self, count: usize) -> Vec<u8> {
        while self.buffer.len() < count {
            let mut bytes = [0; 4096];
            match read(&mut self.stream, &mut bytes).await {
                Ok(0) | Err(_) => panic!("the client is gone"),
                Ok(count) => self.buffer.extend_from_slice(&bytes[..count]),
            }
        }
        self.buffer.drain(..count).collect()
    }

    pub async fn say(&mut self, text: &str) {
        // A client that has hung up is what some tests want.
        let _ = write_all(&mut self.stream, text.as_bytes()).await;
    }

    /// Waits for a command that begins like this behind its tag, and answers; `{tag}` stands for
    /// its tag.
    pub async fn answer(&mut self, command: &str, text: &str) -> String {
        let line = self.line().await;
        let (tag, rest) = line.split_once(' ').unwrap_or((&line, ""));
        assert!(rest.starts_with(command), "{line:?} in the place of {command}");
        self.say(&text.replace("{tag}", tag)).await;
        line
    }

    /// Greets a client that then knows what it may do.
    pub async fn greet(&mut self, capabilities: &str) {
        let all = format!("IMAP4rev1 {capabilities}");
        let all = all.trim_end();
        self.say(&format!("* OK [CAPABILITY {all}] at your service\r\n")).await;
    }

    /// Opens a folder of five messages.
    pub async fn select(&mut self) {
        self.answer(
            "SELECT",
            "* 5 EXISTS\r\n* OK [UIDVALIDITY 7] ok\r\n* OK [UIDNEXT 50] ok\r\n{tag} OK \
             [READ-WRITE] done\r\n",
        )
        .await;
    }
}

/// Runs a client against a server and returns what the client came to, and when.
pub fn meet<T: 'static, C, S>(
    server: impl FnOnce(Peer) -> S + 'static,
    client: impl FnOnce(Party) -> C + 'static,
) -> (T, Nanos)
where
    C: Future<Output = T> + 'static,
    S: Future<Output = ()> + 'static,
{
    let clock = Rc::new(Clock::simulated());
    let disk = MemoryDisk::new(clock.clone(), Random::from_seed(0), MemoryOptions::default());
    let executor = Executor::new(clock, disk);
    let handle = executor.handle();
    let network =
        SimulatedNetwork::new(handle.clone(), Random::from_seed(1), WireOptions::default());
    let (near, far) = (network.host("client"), network.host("server"));
    let work = async move {
        let listener = far.listen(ADDRESS).await.expect("the port is free");
        let party = Party { network: Rc::new(near), handle: handle.clone() };
        let for_server = handle.clone();
        let serving = handle.spawn(async move {
            let stream = listener.accept().await.expect("a client comes");
            server(Peer::on(stream, for_server)).await;
        });
        let result = client(party).await;
        let ended = handle.now();
        serving.await;
        drop(network);
        (result, ended)
    };
    executor.run(work).expect("something always happens next")
}

/// What a client needs.
pub struct Party {
    pub network: Rc<dyn Network>,
    pub handle: Handle,
}

impl Party {
    pub fn endpoint(&self, security: Security, trusted_pem: &[u8]) -> Endpoint {
        let tls = TlsClient::trusting(trusted_pem).expect("the certificate is one");
        Endpoint {
            address: ADDRESS.to_owned(),
            security,
            tls: Some(tls),
            tls_name: "localhost".to_owned(),
        }
    }

    pub async fn imap(&self) -> Result<Imap, MailError> {
        self.imap_at(&self.endpoint(Security::None, SERVER_PEM), 1 << 20).await
    }

    pub async fn imap_at(
        &self,
        endpoint: &Endpoint,
        literal_bytes_max: u64,
    ) -> Result<Imap, MailError> {
        let options = ImapOptions {
            connect_timeout_ns: TIMEOUT_NS,
            command_timeout_ns: TIMEOUT_NS,
            literal_bytes_max,
        };
        Imap::connect(&*self.network, endpoint, &self.handle, options).await
    }

    /// A connection with an open folder.
    pub async fn opened(&self) -> Imap {
        let mut imap = self.imap().await.expect("the server greets");
        imap.select("INBOX").await.expect("it opens the folder");
        imap
    }
}
