//! What a server tells: in answer to a command, or by itself. The grammar is imap-proto's; what it
//! does not know is counted and left out.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use imap_proto::rfc4315::UidSetMember;
use imap_proto::{
    AttributeValue, Capability, MailboxDatum, NameAttribute, Outcome, Response, ResponseCode,
    Status, StatusAttribute,
};
use plimsoll_io::StreamError;

use super::error::MailError;
use super::framer::{FrameError, Literal};
use super::mailbox::{Folder, Mailbox};

/// Bytes of an answer that a message about it shows.
const SHOWN_BYTES: usize = 80;

/// What is told of one message.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// Its number at that moment.
    pub number: u32,
    /// Its UID, where it was told.
    pub uid: Option<u32>,
    /// Its flags, where they were told.
    pub flags: Option<Vec<String>>,
    /// Its size, where it was told.
    pub size_bytes: Option<u32>,
    /// Its contents that came along.
    pub contents: Vec<Literal>,
}

impl Row {
    /// Whether it was read before; unknown flags are no proof.
    pub fn is_seen(&self) -> bool {
        self.has_flag("\\Seen")
    }

    /// Whether it bears a flag.
    pub fn has_flag(&self, wanted: &str) -> bool {
        let flags = self.flags.iter().flatten();
        flags.into_iter().any(|flag| flag.eq_ignore_ascii_case(wanted))
    }
}

/// What a command brought to light.
#[derive(Debug, Default)]
pub struct Found {
    /// Messages that were told of.
    pub rows: Vec<Row>,
    /// What a search found.
    pub uids: Vec<u32>,
    /// What a list found.
    pub folders: Vec<Folder>,
    /// Messages of a folder that was asked for its state.
    pub messages: Option<u32>,
    /// UIDs that are gone.
    pub vanished: Vec<RangeInclusive<u32>>,
    /// Number of the last change that a message told of; 0 where none did.
    pub modseq: u64,
    /// The UID that a message got which was appended.
    pub appended_uid: Option<u32>,
    /// Responses that the grammar does not know, until the connection has counted them.
    pub(super) unparsed: u64,
}

impl Found {
    /// With what another command found.
    pub(super) fn add(&mut self, other: Found) {
        self.rows.extend(other.rows);
        self.uids.extend(other.uids);
        self.folders.extend(other.folders);
        self.vanished.extend(other.vanished);
        self.messages = other.messages.or(self.messages);
        self.modseq = self.modseq.max(other.modseq);
        self.appended_uid = other.appended_uid.or(self.appended_uid);
        self.unparsed += other.unparsed;
    }
}

/// How a response ended a command.
pub(super) enum Ended {
    Ok,
    No(String),
    Bad(String),
    /// The server waits for the rest of the command.
    GoOn,
}

/// What a server has told so far of itself and of the open folder.
pub(super) struct Told {
    pub(super) server: String,
    pub(super) greeting: String,
    pub(super) capabilities: BTreeSet<String>,
    pub(super) mailbox: Option<Mailbox>,
    goodbye: Option<String>,
}

impl Told {
    pub(super) fn new(server: &str) -> Told {
        Told {
            server: server.to_owned(),
            greeting: String::new(),
            capabilities: BTreeSet::new(),
            mailbox: None,
            goodbye: None,
        }
    }

    pub(super) fn greet(&mut self, message: &[u8]) -> Result<(), MailError> {
        let Ok((_, Response::Data { status, outcome })) = Response::parse(message) else {
            return Err(self.garbled("greeting", message));
        };
        let text = outcome.information.as_deref().unwrap_or_default().to_owned();
        match status {
            Status::Ok | Status::PreAuth => {
                self.hear(&outcome);
                self.greeting = text;
                Ok(())
            }
            Status::Bye => Err(self.bye("greeting", text)),
            Status::No | Status::Bad => Err(self.garbled("greeting", message)),
        }
    }

    /// What a response means for the command under way; how it ended, if it did.
    pub(super) fn understand(
        &mut self,
        command: &'static str,
        tag: &str,
        message: &[u8],
        literals: Vec<Literal>,
        found: &mut Found,
    ) -> Result<Option<Ended>, MailError> {
        match Response::parse(message) {
            Ok((_, Response::Done { tag: theirs, status, outcome })) => {
                if theirs.0 != tag {
                    return Err(self.garbled(command, message));
                }
                self.hear(&outcome);
                if let Some(ResponseCode::AppendUid(_, uids)) = &outcome.code {
                    found.appended_uid = uids.first().map(|member| match member {
                        UidSetMember::Uid(uid) => *uid,
                        UidSetMember::UidRange(range) => *range.start(),
                    });
                }
                let text = outcome.information.unwrap_or_default().into_owned();
                Ok(Some(match status {
                    Status::Ok => Ended::Ok,
                    Status::No => Ended::No(text),
                    _ => Ended::Bad(text),
                }))
            }
            Ok((_, Response::Continue(_))) => Ok(Some(Ended::GoOn)),
            Ok((_, response)) => {
                self.take(response, literals, found);
                Ok(None)
            }
            Err(_) if message.starts_with(b"+ ") || message == b"+\r\n" => Ok(Some(Ended::GoOn)),
            Err(_) if message.starts_with(b"* ") => {
                found.unparsed += 1;
                Ok(None)
            }
            Err(_) => self.tagged_only(command, tag, message, found).map(Some),
        }
    }

    /// The status of an answer whose details the grammar does not know.
    fn tagged_only(
        &self,
        command: &'static str,
        tag: &str,
        message: &[u8],
        found: &mut Found,
    ) -> Result<Ended, MailError> {
        let text = String::from_utf8_lossy(message);
        let rest = text.strip_prefix(tag).and_then(|rest| rest.strip_prefix(' '));
        let (status, text) = rest
            .and_then(|rest| rest.trim_end().split_once(' '))
            .ok_or_else(|| self.garbled(command, message))?;
        found.unparsed += 1;
        match status.to_ascii_uppercase().as_str() {
            "OK" => Ok(Ended::Ok),
            "NO" => Ok(Ended::No(text.to_owned())),
            "BAD" => Ok(Ended::Bad(text.to_owned())),
            _ => Err(self.garbled(command, message)),
        }
    }

    fn take(&mut self, response: Response<'_>, literals: Vec<Literal>, found: &mut Found) {
        match response {
            Response::Data { status, outcome } => {
                self.hear(&outcome);
                if status == Status::Bye {
                    self.goodbye = Some(outcome.information.unwrap_or_default().into_owned());
                }
            }
            Response::Capabilities(all) => self.capabilities = names_of(&all),
            Response::Expunge(_) => {
                if let Some(mailbox) = &mut self.mailbox {
                    mailbox.exists = mailbox.exists.saturating_sub(1);
                    mailbox.expunged_count += 1;
                }
            }
            Response::Vanished { earlier, uids } => {
                if let Some(mailbox) = self.mailbox.as_mut().filter(|_| !earlier) {
                    let count: u64 = uids
                        .iter()
                        .map(|run| u64::from(run.end().saturating_sub(*run.start())) + 1)
                        .sum();
                    mailbox.exists =
                        mailbox.exists.saturating_sub(u32::try_from(count).unwrap_or(u32::MAX));
                    mailbox.expunged_count += count;
                }
                found.vanished.extend(uids);
            }
            Response::Fetch(number, values) => {
                let told = values.iter().filter_map(|value| match value {
                    AttributeValue::ModSeq(modseq) => Some(*modseq),
                    _ => None,
                });
                found.modseq = told.fold(found.modseq, u64::max);
                found.rows.push(row(number, values, literals));
            }
            Response::MailboxData(datum) => self.take_datum(datum, found),
            _ => {}
        }
    }

    fn take_datum(&mut self, datum: MailboxDatum<'_>, found: &mut Found) {
        match datum {
            MailboxDatum::Exists(count) => {
                if let Some(mailbox) = &mut self.mailbox {
                    mailbox.exists = count;
                }
            }
            MailboxDatum::Search(uids) => found.uids.extend(uids),
            MailboxDatum::List(list) => found.folders.push(Folder {
                is_selectable: !list.name_attributes.contains(&NameAttribute::NoSelect),
                name: list.name.into_owned(),
            }),
            MailboxDatum::Status { status, .. } => {
                for attribute in status {
                    if let StatusAttribute::Messages(count) = attribute {
                        found.messages = Some(count);
                    }
                }
            }
            _ => {}
        }
    }

    fn hear(&mut self, outcome: &Outcome<'_>) {
        let mailbox = self.mailbox.as_mut();
        match (&outcome.code, mailbox) {
            (Some(ResponseCode::Capabilities(all)), _) => self.capabilities = names_of(all),
            (Some(ResponseCode::UidValidity(value)), Some(mailbox)) => {
                mailbox.uid_validity = *value
            }
            (Some(ResponseCode::UidNext(value)), Some(mailbox)) => mailbox.uid_next = *value,
            (Some(ResponseCode::HighestModSeq(value)), Some(mailbox)) => {
                mailbox.highest_modseq = mailbox.highest_modseq.max(*value);
            }
            _ => {}
        }
    }

    pub(super) fn judge(&self, command: &'static str, ended: Ended) -> Result<(), MailError> {
        let server = self.server.clone();
        match ended {
            Ended::Ok => Ok(()),
            Ended::No(text) => Err(MailError::No { server, command, text }),
            Ended::Bad(text) => Err(MailError::Bad { server, command, text }),
            Ended::GoOn => {
                Err(self.garbled(command, b"+ (a wish for more, of which there is none)"))
            }
        }
    }

    fn bye(&self, command: &'static str, text: String) -> MailError {
        MailError::Bye { server: self.server.clone(), command, text }
    }

    /// The stream has ended.
    pub(super) fn ended(&self, command: &'static str) -> MailError {
        match &self.goodbye {
            Some(text) => self.bye(command, text.clone()),
            None => self.closed(command),
        }
    }

    pub(super) fn closed(&self, command: &'static str) -> MailError {
        MailError::Closed { server: self.server.clone(), command }
    }

    pub(super) fn garbled(&self, command: &'static str, message: &[u8]) -> MailError {
        let shown = &message[..message.len().min(SHOWN_BYTES)];
        MailError::Garbled {
            server: self.server.clone(),
            command,
            what: shown.escape_ascii().to_string(),
        }
    }

    pub(super) fn stream_error(&self, command: &'static str, error: StreamError) -> MailError {
        match &self.goodbye {
            Some(text) => self.bye(command, text.clone()),
            None => MailError::Stream { server: self.server.clone(), command, error },
        }
    }

    pub(super) fn frame_error(&self, command: &'static str, error: FrameError) -> MailError {
        match error {
            FrameError::TooLong { bytes, limit } => {
                MailError::TooLong { server: self.server.clone(), command, bytes, limit }
            }
            FrameError::Garbled => self.garbled(command, b"a line or a length that is none"),
        }
    }
}

fn names_of(capabilities: &[Capability<'_>]) -> BTreeSet<String> {
    let names = capabilities.iter().map(|capability| match capability {
        Capability::Imap4rev1 => "IMAP4REV1".to_owned(),
        Capability::Auth(how) => format!("AUTH={}", how.to_ascii_uppercase()),
        Capability::Atom(name) => name.to_ascii_uppercase(),
    });
    names.collect()
}

fn row(number: u32, values: Vec<AttributeValue<'_>>, contents: Vec<Literal>) -> Row {
    let mut row = Row { number, contents, ..Row::default() };
    for value in values {
        match value {
            AttributeValue::Uid(uid) => row.uid = Some(uid),
            AttributeValue::Rfc822Size(size) => row.size_bytes = Some(size),
            AttributeValue::Flags(flags) => {
                row.flags = Some(flags.into_iter().map(|flag| flag.into_owned()).collect());
            }
            _ => {}
        }
    }
    row
}
