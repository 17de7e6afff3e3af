//! A simulated connection: two directions, each with a carrier that takes segments over the wire
//! and a deliverer that hands them out when they arrive.
//!
//! A carrier sends one segment after the other: it waits for the wire's bandwidth, then tries until
//! the segment gets through. A try fails when chance or a partition loses it, and is repeated after
//! a time that doubles; after too many tries the sender gives its end up as reset. The other end
//! does not learn of that by itself: it finds out when bytes of its own reach an end that is gone.
//! So both sides of a partition may think differently of the connection, as in life.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::weather::Weather;
use super::{Stream, StreamError};
use crate::{Handle, Nanos};

/// A piece of a direction; `None` is the end of sending.
type Segment = Option<Vec<u8>>;

/// One end of a connection. Its stream may be on any thread, so it is locked.
pub(super) struct End {
    pub(super) host: String,
    state: Mutex<EndState>,
}

/// How one end stands.
#[derive(Default)]
struct EndState {
    /// Handed over and not yet on the wire.
    outgoing: VecDeque<Segment>,
    outgoing_bytes: usize,
    /// On the way here, with the time of arrival, in the order of sending.
    arriving: VecDeque<(Nanos, Segment)>,
    /// Arrived, the first from `read_from` on.
    arrived: VecDeque<Segment>,
    read_from: usize,
    /// On the way here or arrived, and not read.
    unread_bytes: usize,
    has_closed: bool,
    is_reset: bool,
    is_dropped: bool,
    /// Who waits for what: the carriers of both directions and the deliverer here, the stream's
    /// reader and writer.
    waiting: [Option<Waker>; 5],
}

#[derive(Clone, Copy)]
enum Who {
    Carrier,
    CarrierHere,
    Deliverer,
    Reader,
    Writer,
}

impl EndState {
    fn wait(&mut self, who: Who, context: &Context<'_>) {
        self.waiting[who as usize] = Some(context.waker().clone());
    }

    fn wake(&mut self, who: &[Who]) {
        for who in who {
            if let Some(waker) = self.waiting[*who as usize].take() {
                waker.wake();
            }
        }
    }

    fn reset(&mut self) {
        self.is_reset = true;
        self.outgoing.clear();
        self.outgoing_bytes = 0;
        self.arriving.clear();
        self.arrived.clear();
        self.unread_bytes = 0;
        self.wake(&[Who::Carrier, Who::CarrierHere, Who::Deliverer, Who::Reader, Who::Writer]);
    }

    fn push(&mut self, segment: Segment) {
        self.outgoing_bytes += segment.as_ref().map_or(0, Vec::len);
        self.outgoing.push_back(segment);
        self.wake(&[Who::Carrier]);
    }

    /// Takes what has arrived, as much as there is room for; false when nothing has.
    fn read_into(&mut self, into: &mut ReadBuf<'_>) -> bool {
        let read_from = self.read_from;
        let taken = match self.arrived.front() {
            None => return false,
            // The end of the stream stays in place: whoever asks again is told again.
            Some(None) => return true,
            Some(Some(segment)) => {
                let rest = &segment[read_from..];
                let taken = rest.len().min(into.remaining());
                into.put_slice(&rest[..taken]);
                if taken == rest.len() {
                    self.arrived.pop_front();
                    self.read_from = 0;
                } else {
                    self.read_from += taken;
                }
                taken
            }
        };
        self.unread_bytes -= taken;
        self.wake(&[Who::CarrierHere]);
        true
    }
}

impl End {
    pub(super) fn on(host: &str) -> Arc<Self> {
        Arc::new(Self { host: host.to_owned(), state: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, EndState> {
        self.state.lock().expect("no panic happens under this lock")
    }

    /// Breaks the connection on this side.
    pub(super) fn reset(&self) {
        self.lock().reset();
    }

    /// The next segment to be carried; `None` once this end is reset.
    async fn next_outgoing(&self) -> Option<Segment> {
        poll_fn(|context| {
            let mut state = self.lock();
            if state.is_reset {
                return Poll::Ready(None);
            }
            let Some(segment) = state.outgoing.pop_front() else {
                state.wait(Who::Carrier, context);
                return Poll::Pending;
            };
            state.outgoing_bytes -= segment.as_ref().map_or(0, Vec::len);
            state.wake(&[Who::Writer]);
            Poll::Ready(Some(segment))
        })
        .await
    }

    /// Waits until the other side has room for more, or will never read it.
    async fn room(&self, bytes: usize, receive_buffer_bytes: usize) {
        poll_fn(|context| {
            let mut state = self.lock();
            let is_full =
                state.unread_bytes > 0 && state.unread_bytes + bytes > receive_buffer_bytes;
            if is_full && !state.is_reset && !state.is_dropped {
                state.wait(Who::CarrierHere, context);
                return Poll::Pending;
            }
            Poll::Ready(())
        })
        .await
    }
}

/// Tries until one gets through, answering how long the way then takes; `None` after too many
/// tries.
pub(super) async fn get_through(
    handle: &Handle,
    weather: &Weather,
    from: &str,
    to: &str,
) -> Option<Nanos> {
    let mut pause_ns = weather.options.retry_ns;
    for _ in 0..weather.options.tries_max {
        if !weather.is_parted(from, to) && !weather.loses() {
            return Some(weather.delay_ns());
        }
        handle.sleep(pause_ns).await;
        pause_ns = pause_ns.saturating_mul(2);
    }
    None
}

/// Takes everything that `from` hands over to `to`.
pub(super) async fn carry(handle: Handle, weather: Rc<Weather>, from: Arc<End>, to: Arc<End>) {
    while let Some(segment) = from.next_outgoing().await {
        let bytes = segment.as_ref().map_or(0, Vec::len);
        to.room(bytes, weather.options.receive_buffer_bytes).await;
        handle.sleep(weather.options.wire_ns(bytes)).await;
        let Some(delay_ns) = get_through(&handle, &weather, &from.host, &to.host).await else {
            from.reset();
            return;
        };
        if weather.breaks() {
            from.reset();
            to.reset();
            return;
        }
        let is_refused = {
            let there = to.lock();
            there.is_reset || (there.is_dropped && segment.is_some())
        };
        if is_refused {
            // There, and the refusal back.
            handle.sleep(delay_ns + weather.delay_ns()).await;
            from.reset();
            return;
        }
        let is_last = segment.is_none();
        let arrival = handle.now() + delay_ns;
        let mut there = to.lock();
        there.unread_bytes += bytes;
        there.arriving.push_back((arrival, segment));
        there.wake(&[Who::Deliverer]);
        if is_last {
            return;
        }
    }
}

/// Hands out what arrives at an end, each segment at its time and none before its predecessors.
pub(super) async fn deliver(handle: Handle, end: Arc<End>) {
    loop {
        let arrival = poll_fn(|context| {
            let mut state = end.lock();
            match state.arriving.front() {
                Some((arrival, _)) => Poll::Ready(Some(*arrival)),
                None if state.is_reset || state.is_dropped => Poll::Ready(None),
                None => {
                    state.wait(Who::Deliverer, context);
                    Poll::Pending
                }
            }
        });
        let Some(arrival) = arrival.await else { return };
        handle.sleep_until(arrival).await;
        let mut state = end.lock();
        if let Some((_, segment)) = state.arriving.pop_front() {
            let is_last = segment.is_none();
            state.arrived.push_back(segment);
            state.wake(&[Who::Reader]);
            if is_last {
                return;
            }
        }
    }
}

/// One end of a simulated connection as its user holds it.
pub(super) struct SimulatedStream {
    pub(super) end: Arc<End>,
    pub(super) segment_bytes: usize,
    pub(super) send_buffer_bytes: usize,
    pub(super) peer: String,
    pub(super) is_local: bool,
}

impl SimulatedStream {
    fn lock(&self) -> Result<MutexGuard<'_, EndState>, StreamError> {
        let state = self.end.lock();
        if state.is_reset {
            return Err(StreamError::Reset(self.peer.clone()));
        }
        Ok(state)
    }
}

impl Stream for SimulatedStream {
    fn peer(&self) -> &str {
        &self.peer
    }

    fn is_local(&self) -> bool {
        self.is_local
    }
}

impl AsyncRead for SimulatedStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut state = self.lock()?;
        if into.remaining() == 0 || state.read_into(into) {
            return Poll::Ready(Ok(()));
        }
        state.wait(Who::Reader, context);
        Poll::Pending
    }
}

impl AsyncWrite for SimulatedStream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut state = self.lock()?;
        if state.has_closed {
            return Poll::Ready(Err(StreamError::Closed(self.peer.clone()).into()));
        }
        let mut taken = 0;
        for segment in bytes.chunks(self.segment_bytes.max(1)) {
            if state.outgoing_bytes >= self.send_buffer_bytes {
                break;
            }
            state.push(Some(segment.to_vec()));
            taken += segment.len();
        }
        if taken == 0 && !bytes.is_empty() {
            state.wait(Who::Writer, context);
            return Poll::Pending;
        }
        Poll::Ready(Ok(taken))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        drop(self.lock()?);
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.lock()?;
        if !std::mem::replace(&mut state.has_closed, true) {
            state.push(None);
        }
        Poll::Ready(Ok(()))
    }
}

impl Drop for SimulatedStream {
    fn drop(&mut self) {
        let mut state = self.end.lock();
        state.is_dropped = true;
        if !std::mem::replace(&mut state.has_closed, true) {
            state.push(None);
        }
        state.wake(&[Who::CarrierHere, Who::Deliverer]);
    }
}
