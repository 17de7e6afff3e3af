//! One drive: takes operations, works on them one or many at a time, and says when each is done.
//!
//! A drive never reads a clock. It is handed the time with every call and asks the agenda to be
//! woken.

mod hdd;
mod mechanics;
mod seek;
mod ssd;

use plimsoll_io::{Nanos, Random};

use crate::agenda::Agenda;
use crate::spec::{DriveKind, DriveSpec};
use crate::station::Station;
use hdd::Hdd;
pub use mechanics::Mechanics;
pub use seek::SeekCurve;
use ssd::Ssd;

/// Why an operation is done: it decides its urgency and the counter it falls into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A host waits for the data.
    HostRead,
    /// Read ahead for a host that reads in sequence.
    ReadAhead,
    /// Old data or the rest of a row, needed to compute parity.
    OldData,
    /// Old parity.
    OldParity,
    /// New data.
    NewData,
    /// New parity.
    NewParity,
    /// A surviving member is read to rebuild a lost one.
    RebuildRead,
    /// A rebuilt element is written to the spare.
    RebuildWrite,
}

impl Cause {
    /// Every cause, in the order of the counters.
    pub const ALL: [Cause; 8] = [
        Cause::HostRead,
        Cause::ReadAhead,
        Cause::OldData,
        Cause::OldParity,
        Cause::NewData,
        Cause::NewParity,
        Cause::RebuildRead,
        Cause::RebuildWrite,
    ];

    /// The name used in reports.
    pub fn name(self) -> &'static str {
        match self {
            Cause::HostRead => "host_read",
            Cause::ReadAhead => "read_ahead",
            Cause::OldData => "old_data_read",
            Cause::OldParity => "old_parity_read",
            Cause::NewData => "data_write",
            Cause::NewParity => "parity_write",
            Cause::RebuildRead => "rebuild_read",
            Cause::RebuildWrite => "rebuild_write",
        }
    }

    /// Whether the drive writes.
    pub fn is_write(self) -> bool {
        matches!(self, Cause::NewData | Cause::NewParity | Cause::RebuildWrite)
    }

    /// Whether nobody outside waits for it while the write cache has room.
    fn can_wait(self) -> bool {
        !matches!(self, Cause::HostRead | Cause::ReadAhead)
    }
}

/// Who is told when an operation is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// A host request that reads.
    Request(u32),
    /// A write of a row.
    RowWrite(u32),
    /// A read-ahead chunk.
    Chunk(u32),
    /// The rebuild of a set, counted from 1.
    Rebuild {
        /// The set.
        set: u32,
        /// Which of its rebuilds.
        attempt: u32,
    },
}

/// One operation on a drive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DriveOperation {
    pub(crate) offset: u64,
    pub(crate) bytes: u32,
    pub(crate) cause: Cause,
    pub(crate) owner: Owner,
    /// Whether it is done for another host than the one whose figures are wanted.
    pub(crate) is_neighbours: bool,
    pub(crate) arrived: Nanos,
}

/// What a drive has done so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct DriveCounters {
    /// Operations by cause, in the order of [`Cause::ALL`].
    pub operations: [u64; 8],
    /// Bytes by cause.
    pub bytes: [u64; 8],
    /// Time the drive was at work: its arm for a hard drive, the mean of its dies for flash.
    pub busy_ns: u64,
    /// The part of it for other hosts.
    pub neighbour_busy_ns: u64,
}

impl DriveCounters {
    /// Operations of every cause.
    pub fn operation_count(&self) -> u64 {
        self.operations.iter().sum()
    }

    fn count(&mut self, operation: &DriveOperation) {
        let cause = operation.cause as usize;
        self.operations[cause] += 1;
        self.bytes[cause] += u64::from(operation.bytes);
    }
}

enum Works {
    Hdd(Box<Hdd>),
    Ssd(Box<Ssd>),
}

/// A drive of either kind.
pub(crate) struct Drive {
    works: Works,
    pub(crate) counters: DriveCounters,
    /// Operations from their arrival to their completion.
    pub(crate) station: Station,
}

impl Drive {
    pub(crate) fn new(spec: &DriveSpec, random: Random) -> Self {
        let works = match &spec.kind {
            DriveKind::Hdd(hdd) => Works::Hdd(Box::new(Hdd::new(spec.capacity_bytes, hdd, random))),
            DriveKind::Ssd(ssd) => Works::Ssd(Box::new(Ssd::new(ssd, random))),
        };
        Self { works, counters: DriveCounters::default(), station: Station::default() }
    }

    /// Takes an operation in. `patience_ns` is how much dearer an operation that can wait may look
    /// to the scheduler.
    pub(crate) fn submit(
        &mut self,
        now: Nanos,
        number: u32,
        operation: DriveOperation,
        patience_ns: i64,
        agenda: &mut Agenda,
    ) {
        self.station.enter(now, 1);
        match &mut self.works {
            Works::Hdd(hdd) => hdd.submit(now, number, operation, patience_ns, agenda),
            Works::Ssd(ssd) => ssd.submit(now, number, operation, agenda),
        }
    }

    /// Goes on after a wake-up; gives the operation that is done, if one is.
    pub(crate) fn wake(
        &mut self,
        now: Nanos,
        number: u32,
        word: u32,
        patience_ns: i64,
        agenda: &mut Agenda,
    ) -> Option<DriveOperation> {
        let done = match &mut self.works {
            Works::Hdd(hdd) => {
                let (done, busy_ns) = hdd.finish(now, number, patience_ns, agenda);
                self.counters.busy_ns += busy_ns;
                self.counters.neighbour_busy_ns += if done.is_neighbours { busy_ns } else { 0 };
                Some(done)
            }
            Works::Ssd(ssd) => {
                let (done, busy_ns) = ssd.wake(now, number, word, agenda);
                self.counters.busy_ns += busy_ns;
                self.counters.neighbour_busy_ns += ssd.take_neighbour_ns();
                done
            }
        };
        if let Some(operation) = &done {
            self.counters.count(operation);
            self.station.leave(now, 1, u128::from(now - operation.arrived));
        }
        done
    }
}
