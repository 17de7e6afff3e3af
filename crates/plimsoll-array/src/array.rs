//! The array as a whole: requests go in with a time, happenings come out in the order of time.
//!
//! A request travels over a link to its controller. A write ends in the cache (or, written through,
//! on the drives); a read ends when every piece of it has come from the cache or from the drives
//! and the answer has crossed the link. What is dirty goes to the drives in the background. Nothing
//! here reads a clock: the array knows the time of the event it is working on, and [`Array::next`]
//! goes on to the next one.
//!
//! Limits: a request belongs to the member its first byte is on; operations already at a drive when
//! it fails still end.

mod build;
mod counters;
mod destage;
mod faults;
mod neighbours;
mod queued;
mod reads;
mod rebuilding;
mod report;
mod stages;
mod writes;

use std::collections::VecDeque;

use plimsoll_io::Nanos;

pub use counters::{IoCounters, MemberCounters};
pub use report::{
    ArrayReport, CapReport, DriveReport, LinkReport, LostSetReport, MemberReport, NeighbourReport,
    RebuildReport, VolumeReport,
};
pub use stages::StageUse;

use crate::agenda::{Agenda, Event};
use crate::cache::{DirtyRows, Prefetcher, Recent};
use crate::drive::{Drive, DriveOperation, Owner};
use crate::path::{Controllers, Links, Queue, Sending, Way};
use crate::raid::{Extent, Layout, Rebuild, RebuildProgress, SlotWrite, Slots};
use crate::spec::{CacheSpec, Tenant, TimedFault};
use crate::station::Station;
use neighbours::Neighbour;

/// What a host asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Volume, counted from 0.
    pub volume: u32,
    /// Where on the volume.
    pub offset: u64,
    /// How much; never zero.
    pub bytes: u32,
    /// Whether it writes.
    pub is_write: bool,
    /// Whether a flush has to follow it where nothing below keeps what it has taken: a virtual
    /// disk.
    pub is_durable: bool,
    /// Comes back with the completion.
    pub token: u64,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completed {
    /// The request.
    pub request: Request,
    /// When it was submitted.
    pub submitted: Nanos,
    /// When its answer was complete at the host.
    pub completed: Nanos,
    /// Whether more drives were lost than the redundancy bears, so that the data is gone.
    pub is_lost: bool,
}

/// Something the driver of an array is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening {
    /// A request is done.
    Completed(Completed),
    /// A timer set with [`Array::set_timer`] is due.
    Timer(u32),
}

const NO_REQUEST: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Pending {
    request: Request,
    submitted: Nanos,
    /// When it reached its controller.
    arrived: Nanos,
    member: u32,
    /// Address within the member's slice of the pool.
    slice: u32,
    address: u64,
    link: u32,
    parts_left: u32,
    is_lost: bool,
    flush: Flush,
}

/// What a request has to do with a flush of the disk's queue.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flush {
    /// None is left to be waited for.
    Over,
    /// One has to follow it.
    Wanted,
    /// The one under way is told of as if it were this request.
    Leading,
}

struct Member {
    controllers: Controllers,
    cache: CacheSpec,
    read_latency_ns: Nanos,
    write_latency_ns: Nanos,
    latency_ns_per_byte: f64,
    dirty_bytes: u64,
    patience_ns: i64,
    is_writing_through: bool,
    /// Writes that wait for room in the cache.
    waiting: VecDeque<u32>,
    sets: Vec<u32>,
    counters: MemberCounters,
    /// Requests from their arrival until they are accepted.
    at_controllers: Station,
    /// Dirty bytes from the moment they are so until the drives have them.
    dirty: Station,
}

struct Set {
    layout: Layout,
    slots: Slots,
    member: u32,
    group: u32,
    drive_first: u32,
    element_bytes: u64,
    rebuild_bytes_per_second: f64,
    rows_end: u64,
    dirty: DirtyRows,
    rebuild: Option<Rebuild>,
    /// Rebuilds begun so far: operations of one that was given up belong to no other.
    rebuild_attempts: u32,
    is_lost: bool,
}

/// One member's part of a pool.
struct Slice {
    member: u32,
    element_bytes: u64,
    /// Set and data column of consecutive elements.
    columns: Vec<(u32, u32)>,
}

struct Pool {
    name: String,
    slices: Vec<Slice>,
    page_bytes: u64,
}

struct Volume {
    name: String,
    pool: u32,
    base: u64,
    /// Where each page of the volume lies in its pool, when volumes are spread; else it lies in one
    /// piece from `base` on.
    pages: Vec<u32>,
    capacity_bytes: u64,
    shift_bytes: u64,
    tenant: Tenant,
    prefetcher: Prefetcher,
    recent: Recent,
    counters: IoCounters,
}

/// A row on its way to the drives.
struct RowWrite {
    set: u32,
    row: u64,
    reads_left: u32,
    writes_left: u32,
    writes: Vec<SlotWrite>,
    extents: Vec<Extent>,
    bytes: u64,
    /// For each of its bytes, when it became dirty: the sum.
    since_ns: u128,
    /// The request that waits for it, when it is written through.
    request: u32,
    is_neighbours: bool,
}

/// A chunk being read ahead.
struct Fetch {
    volume: u32,
    parts_left: u32,
    waiters: Vec<u32>,
}

/// A place in a pool's slice, resolved to a set.
#[derive(Clone, Copy)]
struct Piece {
    set: u32,
    row: u64,
    extent: Extent,
}

/// See the module text.
pub struct Array {
    now: Nanos,
    agenda: Agenda,
    drives: Vec<Drive>,
    drive_members: Vec<u32>,
    sets: Vec<Set>,
    members: Vec<Member>,
    pools: Vec<Pool>,
    volumes: Vec<Volume>,
    neighbours: Vec<Neighbour>,
    links: Links,
    queue: Option<Queue>,
    host_latency_ns: Nanos,
    requests: Vec<Pending>,
    requests_free: Vec<u32>,
    stranded: VecDeque<u32>,
    row_writes: Vec<Option<RowWrite>>,
    row_writes_free: Vec<u32>,
    fetches: Vec<Fetch>,
    fetches_free: Vec<u32>,
    pieces: Vec<Piece>,
    parts: Vec<(u32, u64, u32)>,
    /// Spares left, by group: its sets share them.
    spare_counts: Vec<u32>,
    faults: Vec<TimedFault>,
    rebuilds: Vec<RebuildProgress>,
    /// Name of each group.
    group_names: Vec<String>,
    lost_sets: Vec<LostSetReport>,
    counting_since: Nanos,
    event_count: u64,
}

impl Array {
    /// The moment the array is at.
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Events handled so far.
    pub fn event_count(&self) -> u64 {
        self.event_count
    }

    /// When something happens next inside the array, if anything does.
    pub fn next_time(&self) -> Option<Nanos> {
        self.agenda.next_time()
    }

    /// Volumes.
    pub fn volume_count(&self) -> usize {
        self.volumes.len()
    }

    /// A volume's size.
    pub fn capacity_bytes(&self, volume: u32) -> u64 {
        self.volumes[volume as usize].capacity_bytes
    }

    /// Asks to be told at a moment.
    pub fn set_timer(&mut self, at: Nanos, token: u32) {
        self.agenda.at(at.max(self.now), Event::Timer(token));
    }

    /// Takes a request in at `now`, which is never before the last happening.
    ///
    /// # Panics
    /// When the request is empty or reaches beyond its volume: that is a fault of the caller.
    pub fn submit(&mut self, now: Nanos, request: Request) {
        assert!(now >= self.now, "requests come in the order of time");
        let volume = &self.volumes[request.volume as usize];
        let end = request.offset + u64::from(request.bytes);
        assert!(
            request.bytes > 0 && end <= volume.capacity_bytes,
            "{request:?} lies within its volume"
        );
        self.now = now;
        let (slice, member, address) = self.resolve(request.volume, request.offset);
        let flush = if request.is_write && request.is_durable && self.queue.is_some() {
            Flush::Wanted
        } else {
            Flush::Over
        };
        let pending = Pending {
            request,
            submitted: now,
            arrived: now,
            member,
            slice,
            address,
            link: 0,
            parts_left: 0,
            is_lost: false,
            flush,
        };
        let slot = match self.requests_free.pop() {
            Some(slot) => {
                self.requests[slot as usize] = pending;
                slot
            }
            None => {
                self.requests.push(pending);
                (self.requests.len() - 1) as u32
            }
        };
        self.send(slot);
    }

    /// Puts a request on a link.
    fn send(&mut self, slot: u32) {
        let request = self.requests[slot as usize].request;
        if self.has_own_links(&request) {
            self.agenda.at(self.now, Event::Arrived(slot));
            return;
        }
        let Request { volume, bytes, is_write, .. } = request;
        let is_neighbours = self.is_neighbours(volume);
        let Some(link) = self.links.choose(volume) else {
            self.stranded.push_back(slot);
            return;
        };
        self.requests[slot as usize].link = link;
        // A cap, a queue and a host's own latency are those of the host whose figures are wanted.
        let start = if is_neighbours {
            self.now
        } else {
            let ready = self.now + self.host_latency_ns;
            let admitted = self.links.admitted_at(self.now, ready, bytes);
            self.through_queue(admitted, bytes, is_write)
        };
        let bytes = if is_write { bytes } else { 0 };
        let sent = Sending { ready: start, bytes, is_neighbours };
        let arrival = self.links.send(self.now, link, Way::ToArray, sent);
        self.agenda.at(arrival, Event::Arrived(slot));
    }

    /// Goes on to the next happening up to `until`; `None` when there is none, and then the time is
    /// `until`.
    pub fn next(&mut self, until: Nanos) -> Option<Happening> {
        while self.agenda.next_time().is_some_and(|time| time <= until) {
            let (time, event) = self.agenda.pop().expect("it was just seen");
            self.now = time;
            self.event_count += 1;
            match event {
                Event::Drive(drive, word) => self.drive_woke(drive, word),
                Event::Arrived(slot) => self.arrived(slot),
                Event::Accepted(slot) => self.accepted(slot),
                Event::Answered(slot) if self.goes_through_queue(slot) => self.done_in_queue(slot),
                Event::Answered(slot) => {
                    let completed = self.answered(slot);
                    if !self.is_neighbours(completed.request.volume) {
                        return Some(Happening::Completed(completed));
                    }
                    self.neighbour_answered(&completed);
                }
                Event::Told(slot) => {
                    if let Some(completed) = self.told(slot) {
                        return Some(Happening::Completed(completed));
                    }
                }
                Event::Queue => self.look_at_queue(),
                Event::Timer(token) => return Some(Happening::Timer(token)),
                Event::Rebuild(set, attempt) => self.rebuild_stretch(set, attempt),
                Event::Fault(index) => self.fault(index),
                Event::Neighbour(number) => self.neighbour_due(number),
            }
        }
        self.now = self.now.max(until);
        None
    }

    fn arrived(&mut self, slot: u32) {
        let pending = &self.requests[slot as usize];
        if !self.has_own_links(&pending.request) && !self.links.is_alive(pending.link) {
            // Lost on the way: the host notices after a while and tries another path.
            self.try_another_link(slot);
            return;
        }
        let volume = pending.request.volume;
        let is_neighbours = self.is_neighbours(volume);
        let member = &mut self.members[pending.member as usize];
        let Some(accepted) = member.controllers.accept(self.now, volume, is_neighbours) else {
            self.requests[slot as usize].is_lost = true;
            self.agenda.at(self.now, Event::Answered(slot));
            return;
        };
        member.at_controllers.enter(self.now, 1);
        let latency_ns =
            if pending.request.is_write { member.write_latency_ns } else { member.read_latency_ns };
        let forward_ns = member.latency_ns_per_byte * f64::from(pending.request.bytes);
        self.agenda.at(accepted + latency_ns + forward_ns as Nanos, Event::Accepted(slot));
        self.requests[slot as usize].arrived = self.now;
    }

    fn try_another_link(&mut self, slot: u32) {
        let again = self.now + self.links.timeout_ns();
        let volume = self.requests[slot as usize].request.volume;
        match self.links.choose(volume) {
            Some(link) => {
                self.requests[slot as usize].link = link;
                self.agenda.at(again, Event::Arrived(slot));
            }
            None => self.stranded.push_back(slot),
        }
    }

    fn accepted(&mut self, slot: u32) {
        let pending = &self.requests[slot as usize];
        let stay_ns = u128::from(self.now - pending.arrived);
        self.members[pending.member as usize].at_controllers.leave(self.now, 1, stay_ns);
        if pending.request.is_write {
            self.take_write(slot);
        } else {
            self.take_read(slot);
        }
    }

    /// Everything a request waited for is there: the answer goes to the host.
    fn answer(&mut self, slot: u32) {
        let pending = &self.requests[slot as usize];
        if self.has_own_links(&pending.request) {
            self.agenda.at(self.now, Event::Answered(slot));
            return;
        }
        let is_neighbours = self.is_neighbours(pending.request.volume);
        let bytes = if pending.request.is_write { 0 } else { pending.request.bytes };
        let mut start = self.now;
        let mut link = pending.link;
        if !self.links.is_alive(link) {
            start += self.links.timeout_ns();
            match self.links.choose(pending.request.volume) {
                Some(other) => link = other,
                None => {
                    self.stranded.push_back(slot);
                    return;
                }
            }
        }
        let arrival = if bytes == 0 {
            start + self.links.latency_ns()
        } else {
            let sent = Sending { ready: start, bytes, is_neighbours };
            self.links.send(self.now, link, Way::ToHost, sent)
        };
        self.agenda.at(arrival, Event::Answered(slot));
    }

    fn answered(&mut self, slot: u32) -> Completed {
        let pending = self.requests[slot as usize];
        self.requests_free.push(slot);
        let completed = Completed {
            request: pending.request,
            submitted: pending.submitted,
            completed: self.now,
            is_lost: pending.is_lost,
        };
        self.volumes[pending.request.volume as usize].counters.count(&completed);
        self.members[pending.member as usize].counters.host.count(&completed);
        completed
    }

    /// One piece a request waited for is there.
    fn part_done(&mut self, slot: u32) {
        let pending = &mut self.requests[slot as usize];
        pending.parts_left -= 1;
        if pending.parts_left == 0 {
            self.answer(slot);
        }
    }

    fn drive_woke(&mut self, drive: u32, word: u32) {
        let patience_ns = self.patience_of(drive);
        let done =
            self.drives[drive as usize].wake(self.now, drive, word, patience_ns, &mut self.agenda);
        let Some(DriveOperation { owner, cause, .. }) = done else {
            return;
        };
        match owner {
            Owner::Request(slot) => self.part_done(slot),
            Owner::RowWrite(slot) => self.row_part_done(slot, cause),
            Owner::Chunk(slot) => self.chunk_part_done(slot),
            Owner::Rebuild { set, attempt } => self.rebuild_part_done(set, attempt),
        }
    }

    /// How much dearer work that can wait looks to the drives of a box: less and less as its cache
    /// fills.
    fn patience_of(&self, drive: u32) -> i64 {
        self.members[self.drive_members[drive as usize] as usize].patience_ns
    }

    fn operate(&mut self, drive: u32, offset: u64, bytes: u32, cause: crate::Cause, owner: Owner) {
        let operation = DriveOperation {
            offset,
            bytes,
            cause,
            owner,
            is_neighbours: self.is_for_neighbours(owner),
            arrived: self.now,
        };
        let patience_ns = self.patience_of(drive);
        self.drives[drive as usize].submit(
            self.now,
            drive,
            operation,
            patience_ns,
            &mut self.agenda,
        );
    }

    /// Whether a drive works for another host; rebuilding is for all of them.
    fn is_for_neighbours(&self, owner: Owner) -> bool {
        match owner {
            Owner::Request(slot) => self.is_neighbours(self.requests[slot as usize].request.volume),
            Owner::Chunk(slot) => self.is_neighbours(self.fetches[slot as usize].volume),
            Owner::RowWrite(slot) => self.row_writes[slot as usize]
                .as_ref()
                .is_some_and(|row_write| row_write.is_neighbours),
            Owner::Rebuild { .. } => false,
        }
    }

    /// A volume's address as slice, member and address within the slice.
    fn resolve(&self, volume: u32, offset: u64) -> (u32, u32, u64) {
        let volume = &self.volumes[volume as usize];
        let pool = &self.pools[volume.pool as usize];
        let (page, within) = (offset / pool.page_bytes, offset % pool.page_bytes);
        let mut address = match volume.pages.get(page as usize) {
            Some(place) => u64::from(*place) * pool.page_bytes + within,
            None => volume.base + offset,
        };
        if volume.shift_bytes > 0 {
            address += shift_of(offset, volume.shift_bytes, pool.slices[0].element_bytes);
        }
        let count = pool.slices.len() as u64;
        if count == 1 {
            return (0, pool.slices[0].member, address);
        }
        let (page, within) = (address / pool.page_bytes, address % pool.page_bytes);
        let slice = (page % count) as u32;
        (slice, pool.slices[slice as usize].member, page / count * pool.page_bytes + within)
    }

    /// Cuts a stretch of a slice into elements, into `self.pieces`.
    fn cut(&mut self, pool: u32, slice: u32, address: u64, bytes: u64) {
        let slice = &self.pools[pool as usize].slices[slice as usize];
        self.pieces.clear();
        let (mut address, end) = (address, address + bytes);
        while address < end {
            let (index, within) = (address / slice.element_bytes, address % slice.element_bytes);
            let length = (slice.element_bytes - within).min(end - address);
            let count = slice.columns.len() as u64;
            let (set, column) = slice.columns[(index % count) as usize];
            self.pieces.push(Piece {
                set,
                row: index / count,
                extent: Extent { column, start: within as u32, bytes: length as u32 },
            });
            address += length;
        }
    }
}

/// Where a file of a box's own file system lies against the elements: a whole number of its blocks
/// off, the same for all of one allocation of 16 MiB.
fn shift_of(offset: u64, shift_bytes: u64, element_bytes: u64) -> u64 {
    let mixed = (offset >> 24).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
    mixed % (element_bytes / shift_bytes).max(1) * shift_bytes
}
