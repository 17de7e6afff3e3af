//! The network seam: ordered byte streams between named places, every operation asynchronous.
//!
//! Replication, witnesses and clients are written against [`Network`], [`Listener`] and [`Link`]. The simulated network here has
//! delay, bandwidth, loss, resets and partitions on the executor's clock; it decides everything by its random source.
//!
//! Contract:
//! - bytes arrive in the order they were sent, each once, or the link is reset and no more arrive;
//! - a completed send means "taken over", never "arrived": only an answer from the other side tells that;
//! - after the peer has closed, what it sent before is still received, and then the end;
//! - a link that is dropped is closed. Sending to an end that is gone resets the sender's link, once the bytes get there.

mod messages;
mod simulated;
mod wire;

use std::future::Future;
use std::pin::Pin;

pub use messages::{MESSAGE_BYTES_MAX, Messages};
pub use simulated::{SimulatedHost, SimulatedNetwork};
pub use wire::LinkOptions;

/// The future of a network operation.
pub type LinkFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, LinkError>> + 'a>>;

/// One host's access to the network.
pub trait Network {
    /// Starts listening at `address`, `host:port`.
    fn listen(&self, address: &str) -> LinkFuture<'static, Box<dyn Listener>>;

    /// Connects to whoever listens at `address`.
    fn connect(&self, address: &str) -> LinkFuture<'static, Box<dyn Link>>;
}

/// A place where links arrive. Dropping it ends the listening; links already accepted go on.
pub trait Listener {
    /// The next link somebody has opened.
    fn accept(&self) -> LinkFuture<'_, Box<dyn Link>>;
}

/// One end of an ordered byte stream in both directions.
pub trait Link {
    /// Hands bytes over for sending; waits while too many are on their way.
    fn send(&self, bytes: Vec<u8>) -> LinkFuture<'_, ()>;

    /// The next bytes, at least one; empty when the peer has closed.
    fn receive(&self) -> LinkFuture<'_, Vec<u8>>;

    /// Sends no more. What was handed over still goes out, and receiving goes on.
    fn close(&self);

    /// The name of the other side, for messages.
    fn peer(&self) -> &str;
}

/// What can go wrong on a network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LinkError {
    /// Nobody listens there.
    #[error("nobody listens at {0}; start the other side first, or check the port")]
    Refused(String),
    /// Somebody listens there already.
    #[error("somebody listens at {0} already; choose another port")]
    InUse(String),
    /// No answer.
    #[error("{0} does not answer; check the network between the hosts")]
    TimedOut(String),
    /// The link is broken; what was sent and not answered may or may not have arrived.
    #[error("the link to {0} was reset; connect again and ask what has arrived")]
    Reset(String),
    /// This side has closed the link.
    #[error("the link to {0} was closed on this side; open a new one")]
    Closed(String),
    /// The peer sent something that is no message.
    #[error("{peer} sent a message of {length_bytes} bytes, more than is allowed; is it the right program?")]
    Oversized {
        /// The other side.
        peer: String,
        /// The length it announced.
        length_bytes: u64,
    },
    /// The peer closed in the middle of a message.
    #[error("{0} closed the link in the middle of a message; see its own report")]
    CutShort(String),
}
