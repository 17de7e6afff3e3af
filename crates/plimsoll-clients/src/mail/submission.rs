//! Delivery: LMTP (RFC 2033), where each recipient is answered for itself, or SMTP submission (RFC
//! 6409), where all are answered together.
//!
//! A connection is kept for many messages. A recipient that is refused is counted and the others
//! get theirs. When the connection is lost after the message was sent and before it was answered,
//! nobody knows: that is told apart, because an audit must allow for both.

use plimsoll_io::{
    Handle, NANOS_PER_SECOND, Nanos, Network, Stream, StreamError, read, within, write_all,
};

use super::encoding::base64;
use super::error::MailError;
use super::security::{Endpoint, Security};

const READ_BYTES: usize = 4 << 10;
/// Bytes of an answer; RFC 5321 allows 512 a line.
const REPLY_BYTES_MAX: usize = 64 << 10;
/// Bytes of an answer that a message about it shows.
const SHOWN_BYTES: usize = 80;

/// Characters of a refusal that are shown.
const TEXT_CHARACTERS: usize = 200;

/// Which protocol delivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryProtocol {
    /// To mailboxes of this server.
    Lmtp,
    /// To anybody, through a queue.
    Smtp,
}

/// What became of one recipient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recipient {
    /// The server has the message for it.
    Accepted,
    /// The server said no, with this code.
    Refused(u16),
    /// The connection was lost before the answer to the message.
    Unknown,
}

/// What became of one message.
#[derive(Debug)]
pub struct Delivery {
    /// Each recipient, in order.
    pub recipients: Vec<Recipient>,
    /// What broke the connection, if it did; it is of no more use then.
    pub lost: Option<MailError>,
}

impl Delivery {
    /// How many recipients ended like this.
    pub fn count(&self, wanted: impl Fn(Recipient) -> bool) -> u64 {
        self.recipients.iter().filter(|end| wanted(**end)).count() as u64
    }
}

/// An answer: its code, and its lines.
struct Reply {
    code: u16,
    lines: Vec<String>,
}

impl Reply {
    fn is_good(&self) -> bool {
        (200..400).contains(&self.code)
    }

    fn text(&self) -> String {
        let said = self.lines.join(" ");
        format!("{} {}", self.code, said.chars().take(TEXT_CHARACTERS).collect::<String>())
    }
}

/// See the module text.
pub struct Submission {
    stream: Option<Box<dyn Stream>>,
    handle: Handle,
    server: String,
    protocol: DeliveryProtocol,
    timeout_ns: Nanos,
    buffer: Vec<u8>,
    extensions: Vec<String>,
}

impl Submission {
    /// Connects, greets, begins TLS and logs in, where an account is given.
    ///
    /// # Errors
    /// When the server cannot be reached, does not greet, or does not let the account in.
    pub async fn connect(
        network: &dyn Network,
        endpoint: &Endpoint,
        protocol: DeliveryProtocol,
        account: Option<(&str, &str)>,
        handle: &Handle,
        timeout_ns: Nanos,
    ) -> Result<Submission, MailError> {
        let mut submission = Submission {
            stream: None,
            handle: handle.clone(),
            server: endpoint.address.clone(),
            protocol,
            timeout_ns,
            buffer: Vec::new(),
            extensions: Vec::new(),
        };
        let beginning = submission.begin(network, endpoint, account);
        let begun = within(handle, timeout_ns, beginning).await;
        begun.ok_or_else(|| submission.timed_out("connecting"))??;
        Ok(submission)
    }

    async fn begin(
        &mut self,
        network: &dyn Network,
        endpoint: &Endpoint,
        account: Option<(&str, &str)>,
    ) -> Result<(), MailError> {
        let stream = endpoint.connect(network).await;
        self.stream = Some(stream.map_err(|error| self.stream_error("connecting", error))?);
        self.expect("greeting", b"").await?;
        self.say_hello().await?;
        if endpoint.security == Security::StartTls {
            if !self.offers("STARTTLS") {
                return Err(self.not_offered("STARTTLS"));
            }
            self.expect("STARTTLS", b"STARTTLS\r\n").await?;
            if !self.buffer.is_empty() {
                return Err(self.garbled("STARTTLS", b"text in the clear after the answer"));
            }
            let Some(stream) = self.stream.take() else {
                return Err(self.closed("STARTTLS"));
            };
            let secured = endpoint.secure(stream).await;
            self.stream = Some(secured.map_err(|error| self.stream_error("STARTTLS", error))?);
            self.say_hello().await?;
        }
        if let Some((account, password)) = account {
            if !self.extensions.iter().any(|line| {
                let mut words = line.split_ascii_whitespace();
                words.next() == Some("AUTH") && words.any(|word| word == "PLAIN")
            }) {
                return Err(self.not_offered("AUTH PLAIN"));
            }
            let plain = base64(format!("\0{account}\0{password}").as_bytes());
            self.expect("AUTH", format!("AUTH PLAIN {plain}\r\n").as_bytes()).await?;
        }
        Ok(())
    }

    /// Whether the connection can still be used.
    pub fn is_open(&self) -> bool {
        self.stream.is_some()
    }

    /// Delivers one message. A server that says no to all recipients is no error: see what is
    /// returned.
    ///
    /// # Errors
    /// When nothing of the message was sent yet and the connection is lost; the message was
    /// certainly not delivered.
    pub async fn send(
        &mut self,
        from: &str,
        to: &[String],
        message: &[u8],
    ) -> Result<Delivery, MailError> {
        let bad = |text: &str| text.contains(['\r', '\n', '\0', '<', '>']);
        if bad(from) || to.iter().any(|to| bad(to)) {
            return Err(MailError::Unsendable { what: "an address" });
        }
        let (handle, timeout) = (self.handle.clone(), self.timeout_ns);
        let mut recipients = vec![Recipient::Refused(0); to.len()];
        let offered = within(&handle, timeout, self.offer(from, to, &mut recipients)).await;
        let is_wanted = match offered {
            Some(offered) => offered.inspect_err(|_| self.stream = None)?,
            None => {
                self.stream = None;
                return Err(self.timed_out("RCPT"));
            }
        };
        if !is_wanted {
            return Ok(Delivery { recipients, lost: None });
        }
        let handed = within(&handle, timeout, self.hand_over(message, &mut recipients)).await;
        let handed = handed.unwrap_or_else(|| Err(self.timed_out("DATA")));
        if handed.is_err() {
            self.stream = None;
        }
        Ok(Delivery { recipients, lost: handed.err() })
    }

    /// Names sender and recipients; whether the server waits for the message. Accepted ones are
    /// marked as unknown until the answer is here.
    async fn offer(
        &mut self,
        from: &str,
        to: &[String],
        recipients: &mut [Recipient],
    ) -> Result<bool, MailError> {
        let mut lines = vec![format!("MAIL FROM:<{from}>\r\n")];
        lines.extend(to.iter().map(|to| format!("RCPT TO:<{to}>\r\n")));
        let at_once = self.offers("PIPELINING");
        if at_once {
            self.write("MAIL", lines.concat().as_bytes()).await?;
        }
        let mut sender = None;
        for (position, line) in lines.iter().enumerate() {
            let command = if position == 0 { "MAIL" } else { "RCPT" };
            if !at_once {
                self.write(command, line.as_bytes()).await?;
            }
            let reply = self.reply(command).await?;
            match position.checked_sub(1) {
                None if reply.is_good() => {}
                None => sender = Some(reply.code),
                Some(place) if reply.is_good() && sender.is_none() => {
                    recipients[place] = Recipient::Unknown
                }
                Some(place) => recipients[place] = Recipient::Refused(sender.unwrap_or(reply.code)),
            }
            if sender.is_some() && !at_once {
                recipients.fill(Recipient::Refused(sender.unwrap_or(0)));
                break;
            }
        }
        if recipients.contains(&Recipient::Unknown) {
            self.write("DATA", b"DATA\r\n").await?;
            let reply = self.reply("DATA").await?;
            if reply.code == 354 {
                return Ok(true);
            }
            for end in recipients.iter_mut().filter(|end| **end == Recipient::Unknown) {
                *end = Recipient::Refused(reply.code);
            }
        }
        self.write("RSET", b"RSET\r\n").await?;
        self.reply("RSET").await?;
        Ok(false)
    }

    async fn hand_over(
        &mut self,
        message: &[u8],
        recipients: &mut [Recipient],
    ) -> Result<(), MailError> {
        self.write("DATA", &with_dots_doubled(message)).await?;
        let mut common = None;
        for end in recipients.iter_mut().filter(|end| **end == Recipient::Unknown) {
            // LMTP answers once for each recipient, SMTP once for all.
            let code = match (self.protocol, common) {
                (DeliveryProtocol::Smtp, Some(code)) => code,
                _ => {
                    let reply = self.reply("DATA").await?;
                    common = Some(reply.code);
                    reply.code
                }
            };
            *end = match (200..300).contains(&code) {
                true => Recipient::Accepted,
                false => Recipient::Refused(code),
            };
        }
        Ok(())
    }

    /// Takes leave; what comes of it does not matter.
    pub async fn quit(&mut self) {
        let (handle, timeout) = (self.handle.clone(), self.timeout_ns);
        let leaving = async {
            self.write("QUIT", b"QUIT\r\n").await?;
            self.reply("QUIT").await
        };
        let _ = within(&handle, timeout.min(NANOS_PER_SECOND), leaving).await;
        self.stream = None;
    }

    fn offers(&self, extension: &str) -> bool {
        let mut names =
            self.extensions.iter().filter_map(|line| line.split_ascii_whitespace().next());
        names.any(|name| name == extension)
    }

    async fn say_hello(&mut self) -> Result<(), MailError> {
        let (command, line) = match self.protocol {
            DeliveryProtocol::Lmtp => ("LHLO", &b"LHLO plimsoll\r\n"[..]),
            DeliveryProtocol::Smtp => ("EHLO", &b"EHLO plimsoll\r\n"[..]),
        };
        let reply = self.expect(command, line).await?;
        self.extensions =
            reply.lines.iter().skip(1).map(|line| line.to_ascii_uppercase()).collect();
        Ok(())
    }

    async fn expect(&mut self, command: &'static str, line: &[u8]) -> Result<Reply, MailError> {
        if !line.is_empty() {
            self.write(command, line).await?;
        }
        let reply = self.reply(command).await?;
        match reply.is_good() {
            true => Ok(reply),
            false => {
                Err(MailError::No { server: self.server.clone(), command, text: reply.text() })
            }
        }
    }

    async fn write(&mut self, command: &'static str, bytes: &[u8]) -> Result<(), MailError> {
        let Some(stream) = &mut self.stream else {
            return Err(self.closed(command));
        };
        let written = write_all(stream, bytes).await;
        written.map_err(|error| self.stream_error(command, error))
    }

    async fn reply(&mut self, command: &'static str) -> Result<Reply, MailError> {
        let mut lines = Vec::new();
        loop {
            let line = self.line(command).await?;
            let code = line.get(..3).and_then(|code| code.parse::<u16>().ok());
            let code = code
                .filter(|code| (200..600).contains(code))
                .ok_or_else(|| self.garbled(command, line.as_bytes()))?;
            lines.push(line.get(4..).unwrap_or_default().trim_end().to_owned());
            if line.as_bytes().get(3) != Some(&b'-') {
                return Ok(Reply { code, lines });
            }
            if lines.iter().map(String::len).sum::<usize>() > REPLY_BYTES_MAX {
                return Err(self.garbled(command, b"an answer without an end"));
            }
        }
    }

    async fn line(&mut self, command: &'static str) -> Result<String, MailError> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return Ok(String::from_utf8_lossy(&line).trim_end().to_owned());
            }
            if self.buffer.len() > REPLY_BYTES_MAX {
                return Err(self.garbled(command, b"a line without an end"));
            }
            let Some(stream) = &mut self.stream else {
                return Err(self.closed(command));
            };
            let mut bytes = [0; READ_BYTES];
            let count = read(stream, &mut bytes).await;
            let count = count.map_err(|error| self.stream_error(command, error))?;
            if count == 0 {
                return Err(self.closed(command));
            }
            self.buffer.extend_from_slice(&bytes[..count]);
        }
    }

    fn timed_out(&self, command: &'static str) -> MailError {
        MailError::TimedOut {
            server: self.server.clone(),
            command,
            seconds: self.timeout_ns / NANOS_PER_SECOND,
        }
    }

    fn stream_error(&self, command: &'static str, error: StreamError) -> MailError {
        MailError::Stream { server: self.server.clone(), command, error }
    }

    fn closed(&self, command: &'static str) -> MailError {
        MailError::Closed { server: self.server.clone(), command }
    }

    fn not_offered(&self, what: &'static str) -> MailError {
        MailError::NotOffered { server: self.server.clone(), what }
    }

    fn garbled(&self, command: &'static str, message: &[u8]) -> MailError {
        MailError::Garbled {
            server: self.server.clone(),
            command,
            what: message[..message.len().min(SHOWN_BYTES)].escape_ascii().to_string(),
        }
    }
}

/// The message as it is sent: no line of it can be taken for its end, which follows.
fn with_dots_doubled(message: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(message.len() + 8);
    for line in message.split_inclusive(|byte| *byte == b'\n') {
        if line.starts_with(b".") {
            out.push(b'.');
        }
        out.extend_from_slice(line);
    }
    if !out.ends_with(b"\r\n") {
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b".\r\n");
    out
}
