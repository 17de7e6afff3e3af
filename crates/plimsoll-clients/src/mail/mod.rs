//! Mail servers: IMAP to read, LMTP or SMTP to deliver, each on a stream of any network, with TLS
//! or without.
//!
//! Framing and the loop of commands are ours, because they are timed; the grammar of responses is
//! read by imap-proto. One command is one write where the server allows it, and one command is
//! under way at a time. Contents of messages are summed up as they come and never kept, so a body
//! of any length takes the same memory. What a server says is never trusted: lengths are bounded,
//! what cannot be read is counted, and a connection that is out of step is given up.

mod answers;
mod encoding;
mod error;
mod framer;
mod imap;
mod mailbox;
mod security;
mod submission;

pub use answers::{Found, Row};
pub use error::MailError;
pub use framer::{FrameError, Framer, Literal};
pub use imap::{Imap, ImapOptions};
pub use mailbox::{Folder, Mailbox};
pub use security::{Endpoint, Security};
pub use submission::{Delivery, DeliveryProtocol, Recipient, Submission};
