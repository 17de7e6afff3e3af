//! TCP of this machine for the tasks of one executor.
//!
//! A socket is watched for readiness (see `watch`) by the ring of the real disk, so that one sleep
//! waits for disk and network; where the disk has no ring, a thread watches. What is ready is then
//! sent and received by plain system calls: for requests and answers that costs less than
//! operations of the ring, and needs no memory that outlives a dropped future.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::resolve::{LOOKUPS_MAX, resolve};
use super::socket::{self, ACCEPTING, CONNECTING, LISTENING};
use super::watch::{Side, WatchTable, Watched};
use super::{Listener, Network, NetworkFuture, Stream, StreamError};
use crate::executor::Outside;
use crate::posix::errno_of;
use crate::sync::within;
use crate::{Handle, NANOS_PER_SECOND, Nanos, Permits, RealDisk};

/// Who watches the sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchMethod {
    /// The ring in which the executor sleeps.
    Ring,
    /// A thread with epoll.
    Thread,
}

/// How a [`RealNetwork`] behaves.
#[derive(Clone, Debug)]
pub struct RealNetworkOptions {
    /// Connecting takes at most so long, all addresses of a name together. Asking for the name is
    /// not counted.
    pub connect_timeout_ns: Nanos,
    /// A peer that acknowledges nothing for so long counts as gone.
    pub vanished_after_ns: Nanos,
    /// Leaves the watching to a thread although there is a ring.
    pub without_ring: bool,
}

impl Default for RealNetworkOptions {
    fn default() -> Self {
        Self {
            connect_timeout_ns: 10 * NANOS_PER_SECOND,
            vanished_after_ns: 60 * NANOS_PER_SECOND,
            without_ring: false,
        }
    }
}

struct Shared {
    handle: Handle,
    outside: Outside,
    options: RealNetworkOptions,
    table: Arc<WatchTable>,
    method: WatchMethod,
    lookups: Permits,
}

/// See the module text.
#[derive(Clone)]
pub struct RealNetwork {
    shared: Rc<Shared>,
}

impl RealNetwork {
    /// The network for the tasks of an executor. `disk` is the disk the executor sleeps in, if it
    /// is a real one.
    ///
    /// # Errors
    /// In virtual time, and when the system gives no thread where one is needed.
    pub fn open(
        handle: &Handle,
        disk: Option<&RealDisk>,
        options: RealNetworkOptions,
    ) -> Result<Self, StreamError> {
        if handle.clock().is_virtual() {
            return Err(StreamError::VirtualTime);
        }
        let ring = disk.filter(|_| !options.without_ring).and_then(RealDisk::watch_table);
        let (table, method) = match ring {
            Some(table) => (table, WatchMethod::Ring),
            None => {
                let table = WatchTable::with_thread().map_err(|error| StreamError::Exhausted {
                    doing: "setting up",
                    address: "the network".to_owned(),
                    reason: error.to_string(),
                })?;
                (table, WatchMethod::Thread)
            }
        };
        Ok(Self {
            shared: Rc::new(Shared {
                handle: handle.clone(),
                outside: handle.outside(),
                options,
                table,
                method,
                lookups: Permits::new(LOOKUPS_MAX),
            }),
        })
    }

    /// Who watches the sockets.
    pub fn method(&self) -> WatchMethod {
        self.shared.method
    }
}

impl Network for RealNetwork {
    fn listen(&self, address: &str) -> NetworkFuture<'static, Box<dyn Listener>> {
        let (shared, address) = (self.shared.clone(), address.to_owned());
        Box::pin(async move {
            let addresses = resolve(&address, &shared.outside, &shared.lookups).await?;
            let failed =
                |error: io::Error| StreamError::from_errno(errno_of(&error), LISTENING, &address);
            let (fd, found) = socket::listen(&addresses).map_err(failed)?;
            let watched = shared.watch(fd, found.to_string(), true).map_err(failed)?;
            Ok(Box::new(RealListener { watched, shared }) as Box<dyn Listener>)
        })
    }

    fn connect(&self, address: &str) -> NetworkFuture<'static, Box<dyn Stream>> {
        let (shared, address) = (self.shared.clone(), address.to_owned());
        Box::pin(async move {
            let addresses = resolve(&address, &shared.outside, &shared.lookups).await?;
            let stream = shared.connect_any(&address, &addresses).await?;
            Ok(Box::new(stream) as Box<dyn Stream>)
        })
    }
}

impl Shared {
    fn watch(&self, fd: OwnedFd, peer: String, is_ready: bool) -> io::Result<Watched> {
        Watched::new(&self.table, &self.outside, fd, peer, is_ready)
    }

    /// The first address that answers; each has its share of the time that is left.
    async fn connect_any(
        &self,
        name: &str,
        addresses: &[SocketAddr],
    ) -> Result<RealStream, StreamError> {
        let deadline = self.handle.now() + self.options.connect_timeout_ns;
        let mut failure = StreamError::TimedOut(name.to_owned());
        for (index, address) in addresses.iter().enumerate() {
            let left_ns = deadline.saturating_sub(self.handle.now());
            let share_ns = left_ns / (addresses.len() - index) as u64;
            let connecting = within(&self.handle, share_ns, self.connect_one(name, address)).await;
            failure =
                match connecting.unwrap_or_else(|| Err(StreamError::TimedOut(name.to_owned()))) {
                    Ok(stream) => return Ok(stream),
                    Err(error) => error,
                };
        }
        Err(failure)
    }

    async fn connect_one(
        &self,
        name: &str,
        address: &SocketAddr,
    ) -> Result<RealStream, StreamError> {
        let failed = |error: io::Error| StreamError::from_errno(errno_of(&error), CONNECTING, name);
        let fd = socket::connect(address).map_err(failed)?;
        let watched = self.watch(fd, name.to_owned(), false).map_err(failed)?;
        poll_fn(|context| {
            watched.poll(Side::Write, context, |fd| Ok((socket::connected(fd), false)))
        })
        .await?
        .map_err(failed)?;
        let (here, there) =
            socket::prepare(watched.fd(), self.options.vanished_after_ns).map_err(failed)?;
        if here == there {
            // The kernel chose the very port that was asked for, and the socket found itself.
            return Err(StreamError::Refused(name.to_owned()));
        }
        Ok(RealStream { watched, is_local: here.ip() == there.ip() })
    }
}

struct RealListener {
    watched: Watched,
    shared: Rc<Shared>,
}

impl RealListener {
    async fn accept_one(&self) -> Result<Box<dyn Stream>, StreamError> {
        loop {
            let accepted = poll_fn(|context| {
                // What fails concerns one connection or passes, so the listener goes on.
                self.watched.poll(Side::Read, context, |listener| match socket::accept(listener) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(error),
                    result => Ok((result, false)),
                })
            });
            match accepted.await?.and_then(|fd| self.prepare(fd)) {
                Ok(stream) => return Ok(Box::new(stream)),
                // Gone before it was accepted, or a signal came: nobody misses it.
                Err(error) if is_of_one(&error) => {}
                Err(error) => {
                    return Err(StreamError::from_errno(
                        errno_of(&error),
                        ACCEPTING,
                        self.watched.peer(),
                    ));
                }
            }
        }
    }

    fn prepare(&self, fd: OwnedFd) -> io::Result<RealStream> {
        use std::os::fd::AsRawFd;
        let (here, there) = socket::prepare(fd.as_raw_fd(), self.shared.options.vanished_after_ns)?;
        Ok(RealStream {
            watched: self.shared.watch(fd, there.to_string(), true)?,
            is_local: here.ip() == there.ip(),
        })
    }
}

/// Errors of accept(2) that concern the connection that was to be accepted.
fn is_of_one(error: &io::Error) -> bool {
    matches!(
        errno_of(error),
        libc::ECONNABORTED | libc::EINTR | libc::EPROTO | libc::ENOTCONN | libc::ETIMEDOUT
    )
}

impl Listener for RealListener {
    fn accept(&self) -> NetworkFuture<'_, Box<dyn Stream>> {
        Box::pin(self.accept_one())
    }

    fn address(&self) -> &str {
        self.watched.peer()
    }
}

struct RealStream {
    watched: Watched,
    is_local: bool,
}

impl Stream for RealStream {
    fn peer(&self) -> &str {
        self.watched.peer()
    }

    fn is_local(&self) -> bool {
        self.is_local
    }
}

impl AsyncRead for RealStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let wanted = into.remaining();
        if wanted == 0 {
            return Poll::Ready(Ok(()));
        }
        // SAFETY: nothing that is initialised is made uninitialised: bytes are only received into
        // it.
        let room = unsafe { into.unfilled_mut() };
        let received = ready!(self.watched.poll(Side::Read, context, |fd| {
            let count = socket::receive(fd, room)?;
            // Less than was asked for is all there is.
            Ok((count, count > 0 && count < wanted))
        }))?;
        // SAFETY: the kernel has written so many bytes.
        unsafe { into.assume_init(received) };
        into.advance(received);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for RealStream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let sent = ready!(
            self.watched.poll(Side::Write, context, |fd| Ok((socket::send(fd, bytes)?, false)))
        )?;
        Poll::Ready(Ok(sent))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.watched.close()?;
        Poll::Ready(Ok(()))
    }
}
