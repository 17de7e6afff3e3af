//! A simulated connection: two directions, each with a carrier task that takes segments over the wire.
//!
//! A carrier sends one segment after the other: it waits for the wire's bandwidth, then tries until the segment gets through.
//! A try fails when chance or a partition loses it, and is repeated after a time that doubles; after too many tries the
//! sender gives its end up as reset. The other end does not learn of that by itself: it finds out when bytes of
//! its own reach an end that is gone. So both sides of a partition may think differently of the link, as in life.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use super::simulated::Weather;
use super::{Link, LinkError, LinkFuture};
use crate::{Handle, Latency, NANOS_PER_MILLISECOND, NANOS_PER_SECOND, Nanos, Notify};

/// What a simulated network is like.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkOptions {
    /// Time on the way, one direction.
    pub delay: Latency,
    /// Bandwidth of each direction of each connection; `None` is unlimited.
    pub bytes_per_second: Option<f64>,
    /// Probability that one try of one segment is lost.
    pub loss: f64,
    /// Probability that a segment breaks the connection for both ends.
    pub reset: f64,
    /// Time until the first repeated try; doubles with every further one.
    pub retry_ns: Nanos,
    /// Tries before an end gives up.
    pub tries_max: u32,
    /// The longest segment.
    pub segment_bytes: usize,
    /// A sender waits while this many bytes are handed over and not on the wire.
    pub send_buffer_bytes: usize,
}

impl Default for LinkOptions {
    /// A quiet local network: 100 µs, nothing lost.
    fn default() -> Self {
        Self {
            delay: Latency::Constant(NANOS_PER_MILLISECOND / 10),
            bytes_per_second: None,
            loss: 0.0,
            reset: 0.0,
            retry_ns: 200 * NANOS_PER_MILLISECOND,
            tries_max: 8,
            segment_bytes: 64 << 10,
            send_buffer_bytes: 1 << 20,
        }
    }
}

impl LinkOptions {
    fn wire_ns(&self, bytes: usize) -> Nanos {
        let seconds = self.bytes_per_second.map_or(0.0, |rate| bytes as f64 / rate);
        (seconds * NANOS_PER_SECOND as f64) as Nanos
    }
}

/// How one end stands.
#[derive(Default)]
pub(super) struct End {
    pub(super) host: String,
    /// Handed over and not yet on the wire; `None` is the end of sending.
    outgoing: RefCell<VecDeque<Option<Vec<u8>>>>,
    outgoing_bytes: Cell<usize>,
    /// On the way here, with the time of arrival, in the order of sending. Nothing is received before its predecessors.
    arriving: RefCell<VecDeque<(Nanos, Option<Vec<u8>>)>>,
    has_closed: Cell<bool>,
    is_reset: Cell<bool>,
    is_dropped: Cell<bool>,
    changed: Notify,
}

impl End {
    pub(super) fn on(host: &str) -> Rc<Self> {
        Rc::new(Self {
            host: host.to_owned(),
            ..Self::default()
        })
    }

    fn reset(&self) {
        self.is_reset.set(true);
        self.outgoing.borrow_mut().clear();
        self.outgoing_bytes.set(0);
        self.arriving.borrow_mut().clear();
        self.changed.notify_all();
    }

    fn push(&self, segment: Option<Vec<u8>>) {
        let bytes = segment.as_ref().map_or(0, Vec::len);
        self.outgoing_bytes.set(self.outgoing_bytes.get() + bytes);
        self.outgoing.borrow_mut().push_back(segment);
        self.changed.notify_all();
    }

    fn pop(&self) -> Option<Option<Vec<u8>>> {
        let segment = self.outgoing.borrow_mut().pop_front()?;
        let bytes = segment.as_ref().map_or(0, Vec::len);
        self.outgoing_bytes.set(self.outgoing_bytes.get() - bytes);
        self.changed.notify_all();
        Some(segment)
    }
}

/// Tries until one gets through, answering how long the way then takes; `None` after too many tries.
pub(super) async fn get_through(handle: &Handle, weather: &Weather, from: &str, to: &str) -> Option<Nanos> {
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
pub(super) async fn carry(handle: Handle, weather: Rc<Weather>, from: Rc<End>, to: Rc<End>) {
    while !from.is_reset.get() {
        let Some(segment) = from.pop() else {
            from.changed.notified().await;
            continue;
        };
        let bytes = segment.as_ref().map_or(0, Vec::len);
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
        if to.is_reset.get() || (to.is_dropped.get() && segment.is_some()) {
            // There, and the refusal back.
            handle.sleep(delay_ns + weather.delay_ns()).await;
            from.reset();
            return;
        }
        let is_last = segment.is_none();
        let arrival = handle.now() + delay_ns;
        to.arriving.borrow_mut().push_back((arrival, segment));
        to.changed.notify_all();
        if is_last {
            return;
        }
    }
}

/// One end of a simulated connection as its user holds it.
pub(super) struct SimulatedLink {
    pub(super) handle: Handle,
    pub(super) weather: Rc<Weather>,
    pub(super) end: Rc<End>,
    pub(super) peer: String,
}

impl SimulatedLink {
    fn check_reset(&self) -> Result<(), LinkError> {
        if self.end.is_reset.get() {
            return Err(LinkError::Reset(self.peer.clone()));
        }
        Ok(())
    }

    async fn send_all(&self, bytes: Vec<u8>) -> Result<(), LinkError> {
        let options = &self.weather.options;
        for segment in bytes.chunks(options.segment_bytes.max(1)) {
            loop {
                self.check_reset()?;
                if self.end.has_closed.get() {
                    return Err(LinkError::Closed(self.peer.clone()));
                }
                if self.end.outgoing_bytes.get() < options.send_buffer_bytes {
                    break;
                }
                self.end.changed.notified().await;
            }
            self.end.push(Some(segment.to_vec()));
        }
        self.check_reset()
    }

    async fn receive_some(&self) -> Result<Vec<u8>, LinkError> {
        loop {
            self.check_reset()?;
            let first = self.end.arriving.borrow().front().map(|(arrival, _)| *arrival);
            match first {
                None => self.end.changed.notified().await,
                Some(arrival) if arrival > self.handle.now() => self.handle.sleep_until(arrival).await,
                Some(_) => {
                    let mut arriving = self.end.arriving.borrow_mut();
                    // The end of the stream stays in place: whoever asks again is told again.
                    if let Some((_, None)) = arriving.front() {
                        return Ok(Vec::new());
                    }
                    let (_, bytes) = arriving.pop_front().expect("the front was just seen");
                    return Ok(bytes.unwrap_or_default());
                }
            }
        }
    }
}

impl Link for SimulatedLink {
    fn send(&self, bytes: Vec<u8>) -> LinkFuture<'_, ()> {
        Box::pin(self.send_all(bytes))
    }

    fn receive(&self) -> LinkFuture<'_, Vec<u8>> {
        Box::pin(self.receive_some())
    }

    fn close(&self) {
        if !self.end.has_closed.replace(true) {
            self.end.push(None);
        }
    }

    fn peer(&self) -> &str {
        &self.peer
    }
}

impl Drop for SimulatedLink {
    fn drop(&mut self) {
        self.end.is_dropped.set(true);
        self.close();
    }
}
