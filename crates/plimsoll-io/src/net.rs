//! The network seam: ordered byte streams between named places, every operation asynchronous.
//!
//! Whatever speaks over a network is written against [`Network`], [`Listener`] and [`Stream`]. A
//! stream is what libraries expect too: `AsyncRead` and `AsyncWrite`, of which only the traits are
//! used here, with no runtime behind them. There are
//! - [`RealNetwork`]: TCP of this machine, watched by the ring of the real disk or, where there is
//!   none, by a thread;
//! - [`SimulatedNetwork`]: delay, bandwidth, loss, resets and partitions on the executor's clock,
//!   all decided by its random source;
//! - [`TlsClient`] and [`TlsServer`], which put TLS on a stream of either (feature `tls`).
//!
//! Contract:
//! - bytes arrive in the order they were sent, each once, or the stream is reset and no more
//!   arrive;
//! - a completed write means "taken over", never "arrived": only an answer from the other side
//!   tells that. What was taken over is on its way for certain after a flush;
//! - after the peer has closed, what it sent before is still received, and then the end, again and
//!   again;
//! - a stream that is dropped is closed. Writing to an end that is gone resets the writer's stream,
//!   once the bytes get there;
//! - a stream that was reset says so for ever; its end is never taken for an orderly one;
//! - a read or write that is dropped while it waits has taken nothing and given nothing.
//!
//! One task reads a stream at a time and one writes it; [`SharedStream`] is one stream for two
//! tasks.

mod address;
mod epoll;
mod error;
mod messages;
mod real;
mod resolve;
mod shared;
mod simulated;
mod socket;
mod stream;
#[cfg(feature = "tls")]
mod tls;
mod watch;
mod weather;
mod wire;

use std::future::Future;
use std::pin::Pin;

use tokio::io::{AsyncRead, AsyncWrite};

pub use address::is_loopback;
pub use error::StreamError;
pub use messages::{MESSAGE_BYTES_MAX, Messages};
pub use real::{RealNetwork, RealNetworkOptions, WatchMethod};
pub use shared::SharedStream;
pub use simulated::{SimulatedHost, SimulatedNetwork};
pub use stream::{close, flush, read, read_exact, write, write_all};
#[cfg(feature = "tls")]
pub use tls::{TlsClient, TlsServer};
pub(crate) use watch::{Order, Seen, WATCHED_EVENTS, WatchTable};
pub use weather::WireOptions;

/// The future of a network operation.
pub type NetworkFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StreamError>> + 'a>>;

/// One host's access to the network.
pub trait Network {
    /// Starts listening at `address`, `host:port`. Port 0 is any that is free.
    fn listen(&self, address: &str) -> NetworkFuture<'static, Box<dyn Listener>>;

    /// Connects to whoever listens at `address`.
    fn connect(&self, address: &str) -> NetworkFuture<'static, Box<dyn Stream>>;
}

/// A place where streams arrive. Dropping it ends the listening; streams already accepted go on.
pub trait Listener {
    /// The next stream somebody has opened.
    fn accept(&self) -> NetworkFuture<'_, Box<dyn Stream>>;

    /// Where it listens, with the port that was found.
    fn address(&self) -> &str;
}

/// One end of an ordered byte stream in both directions. Errors are [`StreamError`]s inside
/// `std::io::Error`; see [`StreamError::of`].
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {
    /// The name of the other side, for messages.
    fn peer(&self) -> &str;

    /// Whether both ends are on the same host.
    fn is_local(&self) -> bool;
}

impl<S: Stream + ?Sized> Stream for Box<S> {
    fn peer(&self) -> &str {
        (**self).peer()
    }

    fn is_local(&self) -> bool {
        (**self).is_local()
    }
}
