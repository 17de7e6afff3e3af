//! One IMAP connection (RFC 3501 and the extensions that a server names): one command at a time,
//! its answer, and all that is told in between.
//!
//! Every wait has an end: a command without an answer for the stated time gives the connection up.
//! A connection that was given up, or whose command was dropped half-way, refuses everything that
//! follows.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use plimsoll_io::{Handle, NANOS_PER_SECOND, Nanos, Network, Stream, read, within, write_all};

use plimsoll_workload::mail::Corpus;

use super::answers::{Ended, Found, Told};
use super::encoding::{base64, quoted, uid_set};
use super::error::MailError;
use super::framer::Framer;
use super::mailbox::{Folder, Mailbox};
use super::security::{Endpoint, Security};

/// Bytes that are taken from the stream at once.
const READ_BYTES: usize = 32 << 10;
/// Characters of a UID set in one command; servers bound the length of a line.
const UIDS_MAX: usize = 500;

/// How a connection behaves.
#[derive(Clone, Copy, Debug)]
pub struct ImapOptions {
    /// Connecting takes at most so long.
    pub connect_timeout_ns: Nanos,
    /// A command without an answer for so long gives the connection up.
    pub command_timeout_ns: Nanos,
    /// Contents of so many bytes are taken.
    pub literal_bytes_max: u64,
}

/// See the module text.
pub struct Imap {
    stream: Option<Box<dyn Stream>>,
    handle: Handle,
    options: ImapOptions,
    told: Told,
    framer: Framer,
    buffer: Vec<u8>,
    from: usize,
    to: usize,
    tags: u64,
    idle_tag: Option<String>,
    unparsed: u64,
}

impl Imap {
    /// Connects, waits for the greeting, begins TLS where it comes then, and asks what the server
    /// can do.
    ///
    /// # Errors
    /// When the server cannot be reached, does not greet, or TLS does not come about.
    pub async fn connect(
        network: &dyn Network,
        endpoint: &Endpoint,
        handle: &Handle,
        options: ImapOptions,
    ) -> Result<Imap, MailError> {
        let told = Told::new(&endpoint.address);
        let timeout = options.connect_timeout_ns;
        let stream = within(handle, timeout, endpoint.connect(network)).await;
        let stream = stream.ok_or_else(|| timed_out(&told.server, "connecting", timeout))?;
        let stream = stream.map_err(|error| told.stream_error("connecting", error))?;
        let mut imap = Imap {
            stream: Some(stream),
            handle: handle.clone(),
            options,
            told,
            framer: Framer::new(options.literal_bytes_max),
            buffer: Vec::new(),
            from: 0,
            to: 0,
            tags: 0,
            idle_tag: None,
            unparsed: 0,
        };
        imap.greet().await?;
        if endpoint.security == Security::StartTls {
            imap.start_tls(endpoint).await?;
        }
        if imap.told.capabilities.is_empty() {
            imap.command("CAPABILITY", "CAPABILITY", None).await?;
        }
        Ok(imap)
    }

    async fn greet(&mut self) -> Result<(), MailError> {
        let Some(mut stream) = self.stream.take() else {
            return Err(self.told.closed("greeting"));
        };
        let (timeout, handle) = (self.options.command_timeout_ns, self.handle.clone());
        let greeted = within(&handle, timeout, self.read_response(&mut stream, "greeting")).await;
        greeted.ok_or_else(|| timed_out(&self.told.server, "greeting", timeout))??;
        self.told.greet(self.framer.message())?;
        self.framer.begin_next();
        self.stream = Some(stream);
        Ok(())
    }

    async fn start_tls(&mut self, endpoint: &Endpoint) -> Result<(), MailError> {
        self.command("STARTTLS", "STARTTLS", None).await?;
        let Some(stream) = self.stream.take() else {
            return Err(self.told.closed("STARTTLS"));
        };
        if self.from < self.to {
            // What came in the clear behind the answer must not be taken for what comes under TLS.
            return Err(self.told.garbled("STARTTLS", b"text in the clear after the answer"));
        }
        let timeout = self.options.command_timeout_ns;
        let secured = within(&self.handle, timeout, endpoint.secure(stream)).await;
        let secured = secured.ok_or_else(|| timed_out(&self.told.server, "STARTTLS", timeout))?;
        self.stream = Some(secured.map_err(|error| self.told.stream_error("STARTTLS", error))?);
        self.told.capabilities.clear();
        Ok(())
    }

    /// What the server said when it was reached.
    pub fn greeting(&self) -> &str {
        &self.told.greeting
    }

    /// Whether the server names a capability, such as "IDLE".
    pub fn offers(&self, capability: &str) -> bool {
        self.told.capabilities.contains(capability)
    }

    /// Everything the server names.
    pub fn capabilities(&self) -> &BTreeSet<String> {
        &self.told.capabilities
    }

    /// The open folder.
    pub fn mailbox(&self) -> Option<&Mailbox> {
        self.told.mailbox.as_ref()
    }

    /// Whether the connection can still be used.
    pub fn is_open(&self) -> bool {
        self.stream.is_some()
    }

    /// Logs in: by PLAIN in one write where the server takes it, else by LOGIN.
    ///
    /// # Errors
    /// When the server does not let the account in.
    pub async fn login(&mut self, account: &str, password: &str) -> Result<(), MailError> {
        for (what, text) in [("the account", account), ("the password", password)] {
            if text.contains(['\r', '\n', '\0']) {
                return Err(MailError::Unsendable { what });
            }
        }
        let before = std::mem::take(&mut self.told.capabilities);
        let text = if before.contains("SASL-IR") && before.contains("AUTH=PLAIN") {
            let plain = format!("\0{account}\0{password}");
            format!("AUTHENTICATE PLAIN {}", base64(plain.as_bytes()))
        } else {
            format!("LOGIN {} {}", quoted(account), quoted(password))
        };
        let answered = self.command("LOGIN", &text, None).await;
        if answered.is_err() {
            self.told.capabilities = before;
            return answered.map(drop);
        }
        if self.told.capabilities.is_empty() {
            self.command("CAPABILITY", "CAPABILITY", None).await?;
        }
        Ok(())
    }

    /// Opens a folder.
    ///
    /// # Errors
    /// When there is none of that name.
    pub async fn select(&mut self, folder: &str) -> Result<Mailbox, MailError> {
        let condstore = if self.offers("CONDSTORE") { " (CONDSTORE)" } else { "" };
        self.told.mailbox = Some(Mailbox { name: folder.to_owned(), ..Mailbox::default() });
        let text = format!("SELECT {}{condstore}", quoted(folder));
        if let Err(error) = self.command("SELECT", &text, None).await {
            self.told.mailbox = None;
            return Err(error);
        }
        Ok(self.told.mailbox.clone().unwrap_or_default())
    }

    /// All folders.
    ///
    /// # Errors
    /// What the connection or the server says.
    pub async fn list(&mut self) -> Result<Vec<Folder>, MailError> {
        let found = self.command("LIST", "LIST \"\" \"*\"", None).await?;
        Ok(found.folders)
    }

    /// Messages in a folder that need not be open.
    ///
    /// # Errors
    /// What the connection or the server says.
    pub async fn status(&mut self, folder: &str) -> Result<u32, MailError> {
        let text = format!("STATUS {} (MESSAGES UNSEEN UIDNEXT)", quoted(folder));
        let found = self.command("STATUS", &text, None).await?;
        found.messages.ok_or_else(|| MailError::Garbled {
            server: self.told.server.clone(),
            command: "STATUS",
            what: "no number of messages".to_owned(),
        })
    }

    /// Makes a folder.
    ///
    /// # Errors
    /// What the connection or the server says.
    pub async fn create(&mut self, folder: &str) -> Result<(), MailError> {
        let text = format!("CREATE {}", quoted(folder));
        self.command("CREATE", &text, None).await.map(drop)
    }

    /// The rows that a mail program shows, of messages by their numbers.
    ///
    /// # Errors
    /// What the connection or the server says.
    pub async fn page(&mut self, numbers: RangeInclusive<u32>) -> Result<Found, MailError> {
        let text = format!(
            "FETCH {}:{} (UID FLAGS INTERNALDATE RFC822.SIZE ENVELOPE)",
            numbers.start(),
            numbers.end()
        );
        self.command("FETCH", &text, None).await
    }

    /// Messages that are new or have changed since a change was counted, and UIDs that are gone,
    /// where the server says so.
    ///
    /// # Errors
    /// What the connection or the server says.
    pub async fn changes(&mut self, first_uid: u32, since: u64) -> Result<Found, MailError> {
        let since = match since {
            0 => String::new(),
            since => format!(" (CHANGEDSINCE {since})"),
        };
        let text = format!("UID FETCH {first_uid}:* (UID FLAGS){since}");
        self.command("UID FETCH", &text, None).await
    }

    /// Contents of messages, which stay unread. `section` is empty for the whole.
    ///
    /// # Errors
    /// What the connection or the server says.
    pub async fn fetch(&mut self, uids: &[u32], section: &str) -> Result<Found, MailError> {
        let text = format!("UID FETCH {} (UID BODY.PEEK[{section}])", uid_set(uids));
        self.command("UID FETCH", &text, None).await
    }

    /// A message as a program that shows it asks for it: what tells it from others, and one part.
    ///
    /// # Errors
    /// What the connection or the server says.
    pub async fn show(&mut self, uid: u32, part: &str) -> Result<Found, MailError> {
        let text = format!("UID FETCH {uid} (UID BODY.PEEK[HEADER] BODY.PEEK[{part}])");
        self.command("UID FETCH", &text, None).await
    }

    /// The header line that tells our messages from others, of these messages.
    ///
    /// # Errors
    /// What the connection or the server says.
    pub async fn headers_of(&mut self, uids: &[u32]) -> Result<Found, MailError> {
        let mut all = Found::default();
        for some in uids.chunks(UIDS_MAX) {
            all.add(self.headers(&uid_set(some)).await?);
        }
        Ok(all)
    }

    /// The same of all messages from a UID on. The last message comes along in any case, as IMAP
    /// defines such a range.
    ///
    /// # Errors
    /// What the connection or the server says.
    pub async fn headers_from(&mut self, first_uid: u32) -> Result<Found, MailError> {
        self.headers(&format!("{first_uid}:*")).await
    }

    async fn headers(&mut self, set: &str) -> Result<Found, MailError> {
        let header = Corpus::HEADER;
        let text = format!("UID FETCH {set} (UID BODY.PEEK[HEADER.FIELDS ({header})])");
        self.command("UID FETCH", &text, None).await
    }

    /// UIDs of messages by their numbers.
    ///
    /// # Errors
    /// What the connection or the server says.
    pub async fn uids(&mut self, numbers: RangeInclusive<u32>) -> Result<Vec<u32>, MailError> {
        let text = format!("FETCH {}:{} (UID)", numbers.start(), numbers.end());
        let found = self.command("FETCH", &text, None).await?;
        Ok(found.rows.iter().filter_map(|row| row.uid).collect())
    }

    /// Responses so far that the grammar does not know.
    pub fn unparsed(&self) -> u64 {
        self.unparsed
    }

    /// UIDs of what a search finds.
    ///
    /// # Errors
    /// What the connection or the server says.
    pub async fn search(&mut self, what: &str) -> Result<Vec<u32>, MailError> {
        let text = format!("UID SEARCH {what}");
        Ok(self.command("UID SEARCH", &text, None).await?.uids)
    }

    /// Sets flags, such as `\Seen`.
    ///
    /// # Errors
    /// What the connection or the server says.
    pub async fn store(&mut self, uids: &[u32], flags: &str) -> Result<Found, MailError> {
        let mut all = Found::default();
        for some in uids.chunks(UIDS_MAX) {
            let text = format!("UID STORE {} +FLAGS ({flags})", uid_set(some));
            all.add(self.command("UID STORE", &text, None).await?);
        }
        Ok(all)
    }

    /// Moves messages to another folder: by MOVE, or by copying and deleting where there is none.
    ///
    /// # Errors
    /// What the connection or the server says.
    pub async fn r#move(&mut self, uids: &[u32], folder: &str) -> Result<Found, MailError> {
        let mut all = Found::default();
        for some in uids.chunks(UIDS_MAX) {
            let (set, folder) = (uid_set(some), quoted(folder));
            if self.offers("MOVE") {
                let text = format!("UID MOVE {set} {folder}");
                all.add(self.command("UID MOVE", &text, None).await?);
            } else {
                let text = format!("UID COPY {set} {folder}");
                all.add(self.command("UID COPY", &text, None).await?);
                all.add(self.store(some, "\\Deleted").await?);
                all.add(self.expunge(some).await?);
            }
        }
        Ok(all)
    }

    /// Removes messages that are marked as deleted: these alone where the server can, else all that
    /// are marked.
    ///
    /// # Errors
    /// What the connection or the server says.
    pub async fn expunge(&mut self, uids: &[u32]) -> Result<Found, MailError> {
        if !self.offers("UIDPLUS") {
            return self.command("EXPUNGE", "EXPUNGE", None).await;
        }
        let mut all = Found::default();
        for some in uids.chunks(UIDS_MAX) {
            let text = format!("UID EXPUNGE {}", uid_set(some));
            all.add(self.command("UID EXPUNGE", &text, None).await?);
        }
        Ok(all)
    }

    /// Lays a message into a folder; its UID where the server says it.
    ///
    /// # Errors
    /// What the connection or the server says.
    pub async fn append(
        &mut self,
        folder: &str,
        flags: &str,
        message: &[u8],
    ) -> Result<Option<u32>, MailError> {
        let text = format!("APPEND {} ({flags})", quoted(folder));
        let found = self.command("APPEND", &text, Some(message)).await?;
        Ok(found.appended_uid)
    }

    /// Does nothing but hear what is new.
    ///
    /// # Errors
    /// What the connection or the server says.
    pub async fn noop(&mut self) -> Result<Found, MailError> {
        self.command("NOOP", "NOOP", None).await
    }

    /// Ends the session.
    ///
    /// # Errors
    /// What the connection or the server says; the connection is of no more use either way.
    pub async fn logout(&mut self) -> Result<(), MailError> {
        let ended = self.command("LOGOUT", "LOGOUT", None).await;
        self.stream = None;
        ended.map(drop)
    }

    /// Lets the server tell by itself what is new, until [`Imap::end_idle`].
    ///
    /// # Errors
    /// What the connection or the server says.
    pub async fn begin_idle(&mut self) -> Result<(), MailError> {
        if !self.offers("IDLE") {
            return Err(MailError::NotOffered { server: self.told.server.clone(), what: "IDLE" });
        }
        let tag = self.next_tag();
        let line = format!("{tag} IDLE\r\n");
        let mut found = Found::default();
        match self.exchange("IDLE", &tag, line.as_bytes(), &mut found).await? {
            Ended::GoOn => {
                self.idle_tag = Some(tag);
                Ok(())
            }
            ended => self.judge("IDLE", ended),
        }
    }

    /// What the server told since [`Imap::begin_idle`].
    ///
    /// # Errors
    /// What the connection or the server says.
    pub async fn end_idle(&mut self) -> Result<Found, MailError> {
        let mut found = Found::default();
        if let Some(tag) = self.idle_tag.take() {
            let ended = self.exchange("IDLE", &tag, b"DONE\r\n", &mut found).await?;
            self.judge("IDLE", ended)?;
        }
        Ok(found)
    }

    /// Gives back the memory that only commands need. Whoever waits for long calls it: thousands of
    /// idle sessions hold little more than their sockets.
    pub fn rest(&mut self) {
        // What has come already stays.
        self.buffer.truncate(self.to);
        self.buffer.drain(..self.from);
        self.buffer.shrink_to_fit();
        (self.from, self.to) = (0, self.buffer.len());
        self.framer.rest();
    }

    fn next_tag(&mut self) -> String {
        self.tags += 1;
        format!("p{}", self.tags)
    }

    /// One command and its answer. A message goes along as a literal: in the same write where the
    /// server allows it.
    async fn command(
        &mut self,
        name: &'static str,
        text: &str,
        literal: Option<&[u8]>,
    ) -> Result<Found, MailError> {
        if text.contains(['\r', '\n', '\0']) {
            return Err(MailError::Unsendable { what: "the name of a folder" });
        }
        let mut found = Found::default();
        if self.idle_tag.is_some() {
            found = self.end_idle().await?;
        }
        let tag = self.next_tag();
        let mut out = format!("{tag} {text}").into_bytes();
        let mut rest = None;
        if let Some(literal) = literal {
            let at_once =
                self.offers("LITERAL+") || (self.offers("LITERAL-") && literal.len() <= 4096);
            let plus = if at_once { "+" } else { "" };
            out.extend_from_slice(format!(" {{{}{plus}}}\r\n", literal.len()).as_bytes());
            match at_once {
                true => {
                    out.extend_from_slice(literal);
                    out.extend_from_slice(b"\r\n");
                }
                false => rest = Some([literal, b"\r\n"].concat()),
            }
        } else {
            out.extend_from_slice(b"\r\n");
        }
        let mut ended = self.exchange(name, &tag, &out, &mut found).await?;
        if let (Ended::GoOn, Some(rest)) = (&ended, &rest) {
            ended = self.exchange(name, &tag, rest, &mut found).await?;
        }
        self.judge(name, ended)?;
        Ok(found)
    }

    fn judge(&mut self, command: &'static str, ended: Ended) -> Result<(), MailError> {
        if matches!(ended, Ended::GoOn) {
            self.stream = None;
        }
        self.told.judge(command, ended)
    }

    /// Writes and reads until the command has ended. The stream is put back only then: a connection
    /// whose command was late, failed or was dropped half-way is gone.
    async fn exchange(
        &mut self,
        name: &'static str,
        tag: &str,
        out: &[u8],
        found: &mut Found,
    ) -> Result<Ended, MailError> {
        let Some(mut stream) = self.stream.take() else {
            return Err(self.told.closed(name));
        };
        let (timeout, handle) = (self.options.command_timeout_ns, self.handle.clone());
        let work = async {
            let written = write_all(&mut stream, out).await;
            written.map_err(|error| self.told.stream_error(name, error))?;
            loop {
                self.read_response(&mut stream, name).await?;
                let literals = self.framer.take_literals();
                let ended = self.told.understand(name, tag, self.framer.message(), literals, found);
                self.framer.begin_next();
                if let Some(ended) = ended? {
                    return Ok(ended);
                }
            }
        };
        let ended = within(&handle, timeout, work).await;
        let ended = ended.unwrap_or_else(|| Err(timed_out(&self.told.server, name, timeout)))?;
        self.unparsed += std::mem::take(&mut found.unparsed);
        self.stream = Some(stream);
        Ok(ended)
    }

    /// Reads until the framer holds a whole response.
    async fn read_response(
        &mut self,
        stream: &mut Box<dyn Stream>,
        name: &'static str,
    ) -> Result<(), MailError> {
        loop {
            let taken = self.framer.take(&self.buffer[self.from..self.to]);
            let (count, is_whole) = taken.map_err(|error| self.told.frame_error(name, error))?;
            self.from += count;
            if is_whole {
                return Ok(());
            }
            self.buffer.resize(READ_BYTES, 0);
            let count = read(stream, &mut self.buffer).await;
            let count = count.map_err(|error| self.told.stream_error(name, error))?;
            if count == 0 {
                return Err(self.told.ended(name));
            }
            (self.from, self.to) = (0, count);
        }
    }
}

fn timed_out(server: &str, command: &'static str, timeout_ns: Nanos) -> MailError {
    MailError::TimedOut {
        server: server.to_owned(),
        command,
        seconds: timeout_ns / NANOS_PER_SECOND,
    }
}
