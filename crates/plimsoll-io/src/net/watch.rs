//! Descriptors that are watched for readiness: what is known of each, who waits for it, and how the
//! watcher is told.
//!
//! An event says that a descriptor may have become readable or writable *since it was last found
//! not to be* (edge). So a reader tries first, and waits only after the kernel has said "nothing
//! there"; the lock around both lets no event fall between them. That the peer will send no more is
//! told once, possibly together with its last bytes: it is remembered, or a short read would hide
//! it.
//!
//! Who watches is either the executor's ring, which takes its orders when the disk is looked at
//! next, or a thread with epoll.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use super::epoll::EpollThread;
use super::{StreamError, socket};
use crate::executor::{Awaited, Outside};

/// What is asked of every watcher, in the numbers that poll and epoll share.
pub(crate) const WATCHED_EVENTS: u32 = (libc::POLLIN | libc::POLLOUT | libc::POLLRDHUP) as u32;
const ENDED: u32 = (libc::POLLRDHUP | libc::POLLHUP | libc::POLLERR) as u32;

/// What a watcher saw.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    /// Which descriptor.
    pub(crate) key: u64,
    /// Events, or a negative error number.
    pub(crate) result: i32,
    /// Whether it goes on watching.
    pub(crate) goes_on: bool,
}

/// What the ring is to do.
pub(crate) enum Order {
    /// Watch a descriptor under a key.
    Begin(u64, RawFd),
    /// Watch no more; answered by a last [`Seen`].
    End(u64),
}

/// Reading or writing.
#[derive(Clone, Copy)]
pub(super) enum Side {
    Read,
    Write,
}

struct Waiter {
    waker: Waker,
    _awaited: Awaited,
}

#[derive(Default)]
struct Readiness {
    may_read: bool,
    may_write: bool,
    /// The peer sends no more, or the connection is broken: there is always something to be read,
    /// be it the end.
    has_ended: bool,
    reader: Option<Waiter>,
    writer: Option<Waiter>,
    /// The first error that broke the stream: told again to whoever asks again.
    broken: Option<StreamError>,
    has_closed: bool,
}

/// One descriptor.
struct Descriptor {
    fd: OwnedFd,
    readiness: Mutex<Readiness>,
}

impl Descriptor {
    fn lock(&self) -> MutexGuard<'_, Readiness> {
        self.readiness.lock().expect("no panic happens under this lock")
    }

    /// Notes events; answers who is to be woken, without the lock.
    fn see(&self, events: u32) -> [Option<Waiter>; 2] {
        let mut readiness = self.lock();
        let has_ended = events & ENDED != 0;
        readiness.has_ended |= has_ended;
        let (mut reader, mut writer) = (None, None);
        if has_ended || events & libc::POLLIN as u32 != 0 {
            readiness.may_read = true;
            reader = readiness.reader.take();
        }
        if events & (libc::POLLOUT | libc::POLLHUP | libc::POLLERR) as u32 != 0 {
            readiness.may_write = true;
            writer = readiness.writer.take();
        }
        [reader, writer]
    }
}

#[derive(Default)]
struct Slots {
    descriptors: Vec<Slot>,
    free: Vec<u32>,
}

#[derive(Default)]
struct Slot {
    descriptor: Option<Arc<Descriptor>>,
    /// Counts the users of the slot: an event that comes late is known by it.
    generation: u32,
    /// The ring was told to let go.
    is_ending: bool,
}

enum Watcher {
    /// Orders for the ring, and their number for a look without the lock.
    Ring(Mutex<VecDeque<Order>>, AtomicUsize),
    Thread(EpollThread),
}

/// Everything one network watches.
pub(crate) struct WatchTable {
    slots: Mutex<Slots>,
    watcher: Watcher,
}

/// Generations use the bits below the mark of a socket in the ring.
const GENERATION_MASK: u32 = (1 << 30) - 1;

fn slot_of(key: u64) -> (usize, u32) {
    ((key & u64::from(u32::MAX)) as usize, (key >> 32) as u32)
}

impl WatchTable {
    /// Watched by the ring that asks for [`WatchTable::take_orders`].
    pub(crate) fn for_ring() -> Arc<Self> {
        Arc::new(Self {
            slots: Mutex::default(),
            watcher: Watcher::Ring(Mutex::default(), AtomicUsize::new(0)),
        })
    }

    /// Watched by a thread.
    pub(super) fn with_thread() -> io::Result<Arc<Self>> {
        let thread = EpollThread::new()?;
        let table = Arc::new(Self { slots: Mutex::default(), watcher: Watcher::Thread(thread) });
        if let Watcher::Thread(thread) = &table.watcher {
            let told = Arc::downgrade(&table);
            thread.start(move |key, events| {
                let table = told.upgrade();
                if let Some(table) = &table {
                    let result = events as i32;
                    table.see(Seen { key, result, goes_on: true });
                }
                table.is_some()
            })?;
        }
        Ok(table)
    }

    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().expect("no panic happens under this lock")
    }

    /// Begins to watch a descriptor.
    fn begin(&self, descriptor: &Arc<Descriptor>) -> io::Result<u64> {
        let fd = descriptor.fd.as_raw_fd();
        let key = {
            let mut slots = self.slots();
            let index = slots.free.pop().unwrap_or_else(|| {
                slots.descriptors.push(Slot::default());
                (slots.descriptors.len() - 1) as u32
            });
            let slot = &mut slots.descriptors[index as usize];
            slot.generation = (slot.generation + 1) & GENERATION_MASK;
            slot.is_ending = false;
            slot.descriptor = Some(descriptor.clone());
            u64::from(slot.generation) << 32 | u64::from(index)
        };
        match &self.watcher {
            Watcher::Ring(orders, count) => give(orders, count, Order::Begin(key, fd)),
            Watcher::Thread(thread) => {
                thread.begin(key, fd, WATCHED_EVENTS).inspect_err(|_| self.forget(key))?
            }
        }
        Ok(key)
    }

    /// Ends watching. The ring keeps the descriptor until it has let go of it.
    fn end(&self, key: u64, fd: RawFd) {
        match &self.watcher {
            Watcher::Thread(thread) => {
                thread.end(fd);
                self.forget(key);
            }
            Watcher::Ring(orders, count) => {
                let mut waiting = orders.lock().expect("no panic happens under this lock");
                let begun = waiting
                    .iter()
                    .position(|order| matches!(order, Order::Begin(begun, _) if *begun == key));
                if let Some(position) = begun {
                    waiting.remove(position);
                    count.store(waiting.len(), Ordering::SeqCst);
                    drop(waiting);
                    self.forget(key);
                } else {
                    drop(waiting);
                    self.slots().descriptors[slot_of(key).0].is_ending = true;
                    give(orders, count, Order::End(key));
                }
            }
        }
    }

    fn forget(&self, key: u64) {
        let (index, generation) = slot_of(key);
        let mut slots = self.slots();
        let slot = &mut slots.descriptors[index];
        if slot.generation == generation && slot.descriptor.is_some() {
            let descriptor = slot.descriptor.take();
            slots.free.push(index as u32);
            drop(slots);
            drop(descriptor);
        }
    }

    fn find(&self, key: u64) -> Option<Arc<Descriptor>> {
        let (index, generation) = slot_of(key);
        let slots = self.slots();
        let slot = slots.descriptors.get(index)?;
        (slot.generation == generation).then(|| slot.descriptor.clone()).flatten()
    }

    fn is_ending(&self, key: u64) -> bool {
        self.slots().descriptors[slot_of(key).0].is_ending
    }

    /// What the ring has to do: a load from memory when that is nothing.
    pub(crate) fn take_orders(&self) -> VecDeque<Order> {
        let Watcher::Ring(orders, count) = &self.watcher else {
            return VecDeque::new();
        };
        if count.load(Ordering::SeqCst) == 0 {
            return VecDeque::new();
        }
        count.store(0, Ordering::SeqCst);
        std::mem::take(&mut orders.lock().expect("no panic happens under this lock"))
    }

    /// Notes what was seen and wakes who waits for it. Answers the descriptor where the ring must
    /// begin anew.
    pub(crate) fn see(&self, seen: Seen) -> Option<RawFd> {
        let descriptor = self.find(seen.key)?;
        if !seen.goes_on && self.is_ending(seen.key) {
            self.forget(seen.key);
            return None;
        }
        // A watch that failed tells nothing: let both sides try, and hear of it from the kernel.
        let events = u32::try_from(seen.result).unwrap_or(WATCHED_EVENTS);
        for waiter in descriptor.see(events).into_iter().flatten() {
            waiter.waker.wake_by_ref();
        }
        (!seen.goes_on).then(|| descriptor.fd.as_raw_fd())
    }
}

fn give(orders: &Mutex<VecDeque<Order>>, count: &AtomicUsize, order: Order) {
    let mut waiting = orders.lock().expect("no panic happens under this lock");
    waiting.push_back(order);
    count.store(waiting.len(), Ordering::SeqCst);
}

/// A watched descriptor in use. Dropping it closes it.
pub(super) struct Watched {
    descriptor: Arc<Descriptor>,
    key: u64,
    table: Arc<WatchTable>,
    outside: Outside,
    peer: String,
}

impl Watched {
    /// Begins to watch a descriptor that tasks of `outside`'s executor wait for; `is_ready` lets
    /// the first try go ahead.
    pub(super) fn new(
        table: &Arc<WatchTable>,
        outside: &Outside,
        fd: OwnedFd,
        peer: String,
        is_ready: bool,
    ) -> io::Result<Self> {
        let descriptor = Arc::new(Descriptor {
            fd,
            readiness: Mutex::new(Readiness {
                may_read: is_ready,
                may_write: is_ready,
                ..Readiness::default()
            }),
        });
        Ok(Self {
            key: table.begin(&descriptor)?,
            descriptor,
            table: table.clone(),
            outside: outside.clone(),
            peer,
        })
    }

    pub(super) fn fd(&self) -> RawFd {
        self.descriptor.fd.as_raw_fd()
    }

    pub(super) fn peer(&self) -> &str {
        &self.peer
    }

    /// Lets `attempt` try while the descriptor may be ready, else waits. `attempt` answers its
    /// value and whether that was all there is.
    pub(super) fn poll<T>(
        &self,
        side: Side,
        context: &Context<'_>,
        mut attempt: impl FnMut(RawFd) -> io::Result<(T, bool)>,
    ) -> Poll<Result<T, StreamError>> {
        let mut readiness = self.descriptor.lock();
        if let Some(broken) = &readiness.broken {
            return Poll::Ready(Err(broken.clone()));
        }
        if matches!(side, Side::Write) && readiness.has_closed {
            return Poll::Ready(Err(StreamError::Closed(self.peer.clone())));
        }
        while *readiness.may(side) {
            match attempt(self.fd()) {
                Ok((value, is_drained)) => {
                    if is_drained && !readiness.has_ended {
                        *readiness.may(side) = false;
                    }
                    return Poll::Ready(Ok(value));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    *readiness.may(side) = false
                }
                Err(error) => {
                    let broken = StreamError::of(&error, &self.peer);
                    readiness.broken = Some(broken.clone());
                    return Poll::Ready(Err(broken));
                }
            }
        }
        let before = readiness.wait(side, context, &self.outside);
        drop(readiness);
        drop(before);
        Poll::Pending
    }

    /// Sends no more.
    pub(super) fn close(&self) -> Result<(), StreamError> {
        let mut readiness = self.descriptor.lock();
        if let Some(broken) = &readiness.broken {
            return Err(broken.clone());
        }
        if !std::mem::replace(&mut readiness.has_closed, true) {
            socket::shutdown(self.fd(), libc::SHUT_WR);
        }
        Ok(())
    }
}

impl Readiness {
    fn may(&mut self, side: Side) -> &mut bool {
        match side {
            Side::Read => &mut self.may_read,
            Side::Write => &mut self.may_write,
        }
    }

    /// Notes who waits; answers what is to be dropped without the lock.
    fn wait(&mut self, side: Side, context: &Context<'_>, outside: &Outside) -> Option<Waiter> {
        let place = match side {
            Side::Read => &mut self.reader,
            Side::Write => &mut self.writer,
        };
        if place.as_ref().is_some_and(|waiter| waiter.waker.will_wake(context.waker())) {
            return None;
        }
        place.replace(Waiter { waker: context.waker().clone(), _awaited: outside.awaited() })
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // Closing with bytes unread would take from the peer what it has not read either.
        socket::discard(self.fd());
        // The ring may hold the descriptor a little longer; the peer is told at once.
        socket::shutdown(self.fd(), libc::SHUT_RDWR);
        self.table.end(self.key, self.fd());
    }
}
