//! What can go wrong on a network: each says what, with whom, and what to do. On a stream they
//! travel inside `std::io::Error`, because libraries hand on nothing else.

use std::io;

/// See the module text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    /// The text is no address.
    #[error("{0:?} is not an address; write HOST:PORT, with an IPv6 address in brackets")]
    BadAddress(String),
    /// The name of the host means nothing.
    #[error(
        "the name {name:?} cannot be resolved: {reason}; check the spelling and the name servers, \
         or give the IP address"
    )]
    UnknownName {
        /// The host as it was given.
        name: String,
        /// What the resolver said.
        reason: String,
    },
    /// No process listens there.
    #[error("no process listens at {0}; start the other side first, or check the port")]
    Refused(String),
    /// Another process listens there.
    #[error("another process listens at {0}; choose another port")]
    InUse(String),
    /// The address belongs to another machine.
    #[error("{0} is not an address of this machine; listen at one that is")]
    NotHere(String),
    /// The system forbids it.
    #[error(
        "the system does not permit {doing} {address}; ports below 1024 need a privilege, and a \
         firewall may forbid the rest"
    )]
    NotPermitted {
        /// "listening at", "connecting to".
        doing: &'static str,
        /// Where.
        address: String,
    },
    /// No way leads there.
    #[error("{address} cannot be reached: {reason}; check address, routes and cables")]
    Unreachable {
        /// Where.
        address: String,
        /// What the system said.
        reason: String,
    },
    /// No answer.
    #[error("{0} does not answer; check that it runs, and the network between the hosts")]
    TimedOut(String),
    /// The stream is broken; what was sent and not answered may or may not have arrived.
    #[error("the connection to {0} was reset; connect again and ask what has arrived")]
    Reset(String),
    /// This side has closed the stream.
    #[error("the connection to {0} was closed on this side; open a new one")]
    Closed(String),
    /// The peer sent something that is no message.
    #[error(
        "{peer} sent a message of {length_bytes} bytes, more than is allowed; is it the right \
         program?"
    )]
    Oversized {
        /// The other side.
        peer: String,
        /// The length it announced.
        length_bytes: u64,
    },
    /// The peer closed in the middle of something.
    #[error("{0} closed the connection in the middle of a message; see its own report")]
    CutShort(String),
    /// TLS does not come about, or is broken.
    #[error("TLS with {peer} failed: {reason}; check certificate, name and clock on both sides")]
    Tls {
        /// The other side, or what was to be used with it.
        peer: String,
        /// What TLS said.
        reason: String,
    },
    /// Sockets of the machine have no place in virtual time.
    #[error(
        "the network of this machine cannot be used in virtual time; use a simulated network there"
    )]
    VirtualTime,
    /// The process or the machine has too little of something.
    #[error(
        "{doing} {address} failed: {reason}; close other programs or raise the limit (`ulimit -n`)"
    )]
    Exhausted {
        /// What was done.
        doing: &'static str,
        /// Where.
        address: String,
        /// What the system said.
        reason: String,
    },
    /// Anything else the operating system reports.
    #[error("{doing} {address} failed: {reason}; see the kernel log")]
    Other {
        /// What was done.
        doing: &'static str,
        /// Where.
        address: String,
        /// What the system said.
        reason: String,
    },
}

impl StreamError {
    /// What went wrong on the stream to `peer`.
    pub fn of(error: &io::Error, peer: &str) -> Self {
        if let Some(known) = error.get_ref().and_then(|inner| inner.downcast_ref::<Self>()) {
            return known.clone();
        }
        match error.kind() {
            io::ErrorKind::UnexpectedEof => StreamError::CutShort(peer.to_owned()),
            _ => match error.raw_os_error() {
                Some(errno) => Self::from_errno(errno, "using the connection to", peer),
                None => StreamError::Other {
                    doing: "using the connection to",
                    address: peer.to_owned(),
                    reason: error.to_string(),
                },
            },
        }
    }

    /// What an error number of a system call means.
    pub(super) fn from_errno(errno: i32, doing: &'static str, address: &str) -> Self {
        let reason = || io::Error::from_raw_os_error(errno).to_string();
        let address = address.to_owned();
        match errno {
            libc::ECONNREFUSED => StreamError::Refused(address),
            libc::EADDRINUSE => StreamError::InUse(address),
            libc::EADDRNOTAVAIL if doing == super::socket::LISTENING => {
                StreamError::NotHere(address)
            }
            libc::EACCES | libc::EPERM => StreamError::NotPermitted { doing, address },
            libc::ETIMEDOUT => StreamError::TimedOut(address),
            libc::ECONNRESET | libc::EPIPE | libc::ECONNABORTED => StreamError::Reset(address),
            libc::EHOSTUNREACH
            | libc::ENETUNREACH
            | libc::EHOSTDOWN
            | libc::ENETDOWN
            | libc::ENOTUNIQ
            | libc::EADDRNOTAVAIL
            | libc::EAFNOSUPPORT => StreamError::Unreachable { address, reason: reason() },
            libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM => {
                StreamError::Exhausted { doing, address, reason: reason() }
            }
            _ => StreamError::Other { doing, address, reason: reason() },
        }
    }
}

impl From<StreamError> for io::Error {
    fn from(error: StreamError) -> Self {
        let kind = match &error {
            StreamError::Refused(_) => io::ErrorKind::ConnectionRefused,
            StreamError::TimedOut(_) => io::ErrorKind::TimedOut,
            StreamError::Reset(_) => io::ErrorKind::ConnectionReset,
            StreamError::Closed(_) => io::ErrorKind::BrokenPipe,
            StreamError::CutShort(_) => io::ErrorKind::UnexpectedEof,
            StreamError::Tls { .. } | StreamError::Oversized { .. } => io::ErrorKind::InvalidData,
            _ => io::ErrorKind::Other,
        };
        io::Error::new(kind, error)
    }
}
