//! What breaks, and what the array does about it.

use super::Array;
use crate::agenda::Event;
use crate::raid::MemberState;
use crate::spec::Fault;

impl Array {
    pub(super) fn fault(&mut self, index: u32) {
        match self.faults[index as usize].fault {
            Fault::DriveFails { group, drive } => self.drive_fails(group, drive),
            Fault::LinkFails { link } => self.links.set_alive(link, false),
            Fault::LinkReturns { link } => {
                self.links.set_alive(link, true);
                for slot in std::mem::take(&mut self.stranded) {
                    self.send(slot);
                }
            }
            Fault::ControllerFails { member, controller } => {
                let number = member;
                let member = &mut self.members[number as usize];
                member.controllers.fail(self.now, controller);
                // Without a partner to mirror to, the cache holds nothing that is not on the
                // drives.
                self.write_through_from_now_on(number);
            }
            Fault::CacheLost { member } => self.write_through_from_now_on(member),
            Fault::CacheReturns { member } => {
                let member = &mut self.members[member as usize];
                member.is_writing_through = !member.cache.write_back;
            }
        }
    }

    fn write_through_from_now_on(&mut self, number: u32) {
        self.members[number as usize].is_writing_through = true;
        self.admit_waiting(number);
        self.destage(number);
    }

    fn drive_fails(&mut self, group: u32, drive: u32) {
        let mut left = drive;
        let numbers = 0..self.sets.len() as u32;
        for number in numbers {
            let set = &mut self.sets[number as usize];
            if set.group != group {
                continue;
            }
            if left >= set.layout.drive_count {
                left -= set.layout.drive_count;
                continue;
            }
            if set.rebuild.is_some_and(|rebuild| rebuild.slot == left) {
                set.rebuild = None;
            }
            set.slots.change(left, MemberState::Lost);
            if !set.is_lost && set.slots.is_beyond_repair(&set.layout) {
                self.lose_set(number);
            }
            self.begin_rebuild(number);
            return;
        }
    }

    /// A set's data is gone, and with it what only the cache held: nothing can take it any more,
    /// and whoever waits for room in the cache would wait for ever.
    fn lose_set(&mut self, number: u32) {
        let set = &mut self.sets[number as usize];
        set.is_lost = true;
        set.rebuild = None;
        let (bytes, since_ns) = set.dirty.drop_all();
        let member_number = set.member;
        self.lost_sets.push(super::LostSetReport {
            group: self.group_names[set.group as usize].clone(),
            at_s: self.now as f64 / 1e9,
            dirty_bytes: bytes,
        });
        let member = &mut self.members[member_number as usize];
        member.dirty_bytes -= bytes;
        let stay_ns = u128::from(bytes) * u128::from(self.now) - since_ns;
        member.dirty.leave(self.now, bytes, stay_ns);
        self.admit_waiting(member_number);
        self.destage(member_number);
    }

    /// Lets a fault happen at a moment not known when the array was described.
    pub fn break_at(&mut self, at_ns: u64, fault: Fault) {
        self.faults.push(crate::spec::TimedFault { at_ns, fault });
        let index = (self.faults.len() - 1) as u32;
        self.agenda.at(at_ns.max(self.now), Event::Fault(index));
    }
}
