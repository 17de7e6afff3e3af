//! A flash drive: dies that read, program and erase, a protected write buffer, and the work that
//! writing leaves behind.
//!
//! A read goes to the dies that hold its units and then over the drive's bus. A write is done when
//! it is in the protected buffer; its units are programmed later, each on a die of its own, and the
//! buffer holds back new writes when it is full. Garbage collection is done where it arises: each
//! programmed unit owes a share of moved units (read and programmed again on the same die) that
//! makes up the write amplification, and each full block owes an erasure. A die serves reads first
//! but never interrupts a program or an erasure.
//!
//! Structure and default times as in MQSim's example configuration (FAST'18); amplification of a
//! drive in steady state under uniform writes after Desnoyers, "Analytic modeling of SSD write
//! performance" (SYSTOR 2012).

use std::collections::VecDeque;

use plimsoll_io::{Nanos, Random};

// Circle: a drive is one of its kinds, and hands each of them its operations.
use super::DriveOperation;
use crate::agenda::{Agenda, Event};
use crate::spec::SsdSpec;

/// Wake-up words: numbers below belong to dies, numbers from here on to operations on the bus.
const BUS_WORD: u32 = 1 << 16;

#[derive(Default)]
struct Die {
    at_work: Option<Work>,
    reads: VecDeque<u32>,
    /// Units to program for the host, units to move for the collection, blocks to erase.
    programs: u32,
    moves: u32,
    erasures: u32,
    move_debt: f64,
    programmed_units: u32,
}

#[derive(Clone, Copy)]
enum Work {
    Read(u32),
    Program,
    Move,
    Erase,
}

struct Active {
    operation: DriveOperation,
    units_left: u32,
}

/// See the module text.
pub(super) struct Ssd {
    spec: SsdSpec,
    random: Random,
    dies: Vec<Die>,
    bus_free_at: Nanos,
    active: Vec<Option<Active>>,
    free: Vec<u32>,
    buffered_units: u64,
    buffer_units_max: u64,
    held: VecDeque<DriveOperation>,
    /// Time of the mean die for other hosts since it was last asked for.
    neighbour_ns: Nanos,
}

impl Ssd {
    pub(super) fn new(spec: &SsdSpec, random: Random) -> Self {
        Self {
            dies: (0..spec.die_count).map(|_| Die::default()).collect(),
            buffer_units_max: (spec.buffer_bytes / u64::from(spec.unit_bytes)).max(1),
            spec: spec.clone(),
            random,
            bus_free_at: 0,
            active: Vec::new(),
            free: Vec::new(),
            buffered_units: 0,
            held: VecDeque::new(),
            neighbour_ns: 0,
        }
    }

    /// Time of the mean die for other hosts since this was last asked. What a write makes the dies
    /// do is counted when it enters the buffer: afterwards nobody knows whose a unit was.
    pub(super) fn take_neighbour_ns(&mut self) -> Nanos {
        std::mem::take(&mut self.neighbour_ns)
    }

    /// What programming so many units makes the dies do, collection and erasures included, by the
    /// mean die.
    fn owed_ns(&self, unit_count: u32) -> Nanos {
        let spec = &self.spec;
        let moved = (spec.write_amplification - 1.0) * (spec.read_ns + spec.program_ns) as f64;
        let erased =
            spec.write_amplification * spec.erase_ns as f64 / f64::from(spec.units_per_block);
        let unit_ns = spec.program_ns as f64 + moved + erased;
        (f64::from(unit_count) * unit_ns / f64::from(spec.die_count)) as Nanos
    }

    pub(super) fn submit(
        &mut self,
        now: Nanos,
        number: u32,
        operation: DriveOperation,
        agenda: &mut Agenda,
    ) {
        if operation.cause.is_write() {
            self.held.push_back(operation);
            self.admit_writes(now, number, agenda);
        } else {
            self.submit_read(now, number, operation, agenda);
        }
    }

    fn units_of(&self, operation: &DriveOperation) -> std::ops::RangeInclusive<u64> {
        let unit = u64::from(self.spec.unit_bytes);
        operation.offset / unit..=(operation.offset + u64::from(operation.bytes) - 1) / unit
    }

    fn submit_read(
        &mut self,
        now: Nanos,
        number: u32,
        operation: DriveOperation,
        agenda: &mut Agenda,
    ) {
        let units = self.units_of(&operation);
        let units_left = (units.end() - units.start() + 1) as u32;
        let slot = self.activate(Active { operation, units_left });
        for unit in units {
            let mixed = unit.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
            let die = (mixed % self.dies.len() as u64) as u32;
            self.dies[die as usize].reads.push_back(slot);
            self.start(now, number, die, agenda);
        }
    }

    /// Lets writes into the buffer as far as there is room; the units of a write count until they
    /// are programmed.
    fn admit_writes(&mut self, now: Nanos, number: u32, agenda: &mut Agenda) {
        while let Some(operation) = self.held.front() {
            let exact = f64::from(operation.bytes) / f64::from(self.spec.unit_bytes);
            if self.buffered_units > 0 && self.buffered_units + exact as u64 > self.buffer_units_max
            {
                return;
            }
            let operation = self.held.pop_front().expect("the front was just seen");
            let count = exact as u32 + u32::from(self.random.chance(exact.fract()));
            for _ in 0..count {
                let die = self.random.below(self.dies.len() as u64) as u32;
                self.dies[die as usize].programs += 1;
                self.start(now, number, die, agenda);
            }
            self.buffered_units += u64::from(count);
            if operation.is_neighbours {
                self.neighbour_ns += self.owed_ns(count);
            }
            let slot = self.activate(Active { operation, units_left: 0 });
            self.transfer(now, number, slot, agenda);
        }
    }

    fn activate(&mut self, active: Active) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.active[slot as usize] = Some(active);
            return slot;
        }
        self.active.push(Some(active));
        (self.active.len() - 1) as u32
    }

    fn transfer(&mut self, now: Nanos, number: u32, slot: u32, agenda: &mut Agenda) {
        let bytes =
            self.active[slot as usize].as_ref().expect("it was just put there").operation.bytes;
        let start = self.bus_free_at.max(now);
        self.bus_free_at =
            start + (f64::from(bytes) * 1e9 / self.spec.bus_bytes_per_second) as Nanos;
        agenda.at(self.bus_free_at + self.spec.overhead_ns, Event::Drive(number, BUS_WORD + slot));
    }

    /// How long a unit takes on the channel of its die.
    fn channel_ns(&self) -> Nanos {
        (f64::from(self.spec.unit_bytes) * 1e9 / self.spec.channel_bytes_per_second) as Nanos
    }

    fn start(&mut self, now: Nanos, number: u32, index: u32, agenda: &mut Agenda) {
        let channel_ns = self.channel_ns();
        let spec = &self.spec;
        let die = &mut self.dies[index as usize];
        if die.at_work.is_some() {
            return;
        }
        let (work, service_ns) = if let Some(slot) = die.reads.pop_front() {
            (Work::Read(slot), spec.read_ns + channel_ns)
        } else if die.erasures > 0 {
            die.erasures -= 1;
            (Work::Erase, spec.erase_ns)
        } else if die.moves > 0 && (die.moves > die.programs || die.programs == 0) {
            die.moves -= 1;
            (Work::Move, spec.read_ns + spec.program_ns)
        } else if die.programs > 0 {
            die.programs -= 1;
            (Work::Program, spec.program_ns)
        } else {
            return;
        };
        die.at_work = Some(work);
        agenda.at(now + service_ns, Event::Drive(number, index));
    }

    /// Goes on; gives what is done, and the time by which the mean die was busy.
    pub(super) fn wake(
        &mut self,
        now: Nanos,
        number: u32,
        word: u32,
        agenda: &mut Agenda,
    ) -> (Option<DriveOperation>, Nanos) {
        if let Some(slot) = word.checked_sub(BUS_WORD) {
            let active = self.active[slot as usize].take().expect("it is on the bus");
            self.free.push(slot);
            return (Some(active.operation), 0);
        }
        let work = self.dies[word as usize].at_work.take().expect("the wake-up was for its work");
        let spec = &self.spec;
        let busy_ns = match work {
            // The die is held until its register has crossed the channel.
            Work::Read(_) => spec.read_ns + self.channel_ns(),
            Work::Program => spec.program_ns,
            Work::Move => spec.read_ns + spec.program_ns,
            Work::Erase => spec.erase_ns,
        } / u64::from(spec.die_count);
        match work {
            Work::Read(slot) => {
                let active = self.active[slot as usize].as_mut().expect("a read of it was at work");
                active.units_left -= 1;
                if active.operation.is_neighbours {
                    self.neighbour_ns += busy_ns;
                }
                if active.units_left == 0 {
                    self.transfer(now, number, slot, agenda);
                }
            }
            Work::Program => {
                self.programmed(word, true);
                self.buffered_units -= 1;
                self.admit_writes(now, number, agenda);
            }
            Work::Move => self.programmed(word, false),
            Work::Erase => {}
        }
        self.start(now, number, word, agenda);
        (None, busy_ns)
    }

    /// What a programmed unit leaves to be done on its die.
    fn programmed(&mut self, index: u32, for_host: bool) {
        let die = &mut self.dies[index as usize];
        die.programmed_units += 1;
        if die.programmed_units >= self.spec.units_per_block {
            die.programmed_units = 0;
            die.erasures += 1;
        }
        if for_host {
            die.move_debt += self.spec.write_amplification - 1.0;
            while die.move_debt >= 1.0 {
                die.move_debt -= 1.0;
                die.moves += 1;
            }
        }
    }
}
