//! What can go wrong with a mail server: each says which server, at which command, and what to do.
//! Contents and passwords are never part of it.

use plimsoll_io::StreamError;

/// See the module text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MailError {
    /// The connection cannot be made or is broken.
    #[error("{server}, at {command}: {error}")]
    Stream {
        /// Which server.
        server: String,
        /// What was under way.
        command: &'static str,
        /// What happened.
        error: StreamError,
    },
    /// The server closed the connection where an answer was due.
    #[error("{server} closed the connection at {command}; see its log")]
    Closed {
        /// Which server.
        server: String,
        /// What was under way.
        command: &'static str,
    },
    /// The server cannot do it.
    #[error("{server} refused {command}: {text}")]
    No {
        /// Which server.
        server: String,
        /// What was asked for.
        command: &'static str,
        /// What it said.
        text: String,
    },
    /// The server does not understand.
    #[error(
        "{server} does not understand {command}: {text}; report this with the name of the server"
    )]
    Bad {
        /// Which server.
        server: String,
        /// What was asked for.
        command: &'static str,
        /// What it said.
        text: String,
    },
    /// The server says goodbye.
    #[error(
        "{server} ended the session at {command}: {text}; see its log and its limits of connections"
    )]
    Bye {
        /// Which server.
        server: String,
        /// What was under way.
        command: &'static str,
        /// What it said.
        text: String,
    },
    /// No answer in time.
    #[error(
        "{server} has not answered {command} for {seconds} s; see whether it hangs, or raise the \
         command timeout"
    )]
    TimedOut {
        /// Which server.
        server: String,
        /// What was under way.
        command: &'static str,
        /// How long it was waited for.
        seconds: u64,
    },
    /// The bytes are not what the protocol allows.
    #[error(
        "{server} sent at {command} what is not of its protocol: {what}; is it the right port, and \
         with TLS or without?"
    )]
    Garbled {
        /// Which server.
        server: String,
        /// What was under way.
        command: &'static str,
        /// What came.
        what: String,
    },
    /// More than is taken.
    #[error(
        "{server} announced {bytes} bytes at {command}, and {limit} are taken; raise the limit, or \
         take smaller messages"
    )]
    TooLong {
        /// Which server.
        server: String,
        /// What was under way.
        command: &'static str,
        /// What was announced.
        bytes: u64,
        /// What is taken.
        limit: u64,
    },
    /// The server has no such thing.
    #[error(
        "{server} does not offer {what}; set the plan to what it offers, or the server to this"
    )]
    NotOffered {
        /// Which server.
        server: String,
        /// What was wanted.
        what: &'static str,
    },
    /// What was to be sent has no place in the protocol.
    #[error(
        "{what} holds a line break or a NUL byte, which the protocol does not allow; take another"
    )]
    Unsendable {
        /// What it was.
        what: &'static str,
    },
}

impl MailError {
    /// Whether the connection is of no more use; otherwise the server only said no.
    pub fn is_lost(&self) -> bool {
        !matches!(self, MailError::No { .. } | MailError::Bad { .. } | MailError::Unsendable { .. })
    }
}
