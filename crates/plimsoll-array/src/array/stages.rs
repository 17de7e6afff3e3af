//! The stages of the way through an array: how busy each one was, who was there, and which would be
//! first to give way.
//!
//! The drives of each pool are a stage of their own: volumes of one pool do not wait for the drives
//! of another, so a mean over both would hide the one that is full. What has failed carries nothing
//! and is left out of a mean.

use std::collections::BTreeSet;

use plimsoll_io::Nanos;
use serde::Serialize;

use super::{Array, Pool};
use crate::drive::Drive;
use crate::path::Way;
use crate::raid::MemberState;
use crate::station::{Station, StationUse};

/// How busy one stage was.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StageUse {
    /// Drives (of the first pool; those of another are named with it), controllers, links to the
    /// array, links to the host; the host, the disk queue and the cap where they limit.
    pub stage: String,
    /// Mean share of the time, over the stage's servers that work.
    pub utilisation: f64,
    /// The part of it for other hosts.
    pub neighbour_utilisation: f64,
    /// Who was there, of all hosts; `None` for host and disk queue, of which it is not known.
    #[serde(flatten)]
    pub station: Option<StationUse>,
}

/// What the servers of a stage did together.
struct Work {
    busy_ns: Nanos,
    neighbour_ns: Nanos,
    server_count: usize,
}

impl Array {
    /// Every stage since counting began, the busiest first.
    pub(super) fn stages(&self) -> Vec<StageUse> {
        let mut stages = vec![
            self.controller_stage(),
            self.link_stage("links to the array", Way::ToArray),
            self.link_stage("links to the host", Way::ToHost),
        ];
        stages.extend(self.pools.iter().enumerate().map(|(number, pool)| {
            let name = match number {
                0 => "drives".to_owned(),
                _ => format!("drives of the pool {}", pool.name),
            };
            self.drive_stage(name, pool)
        }));
        let alone = |busy_ns| Work { busy_ns, neighbour_ns: 0, server_count: 1 };
        let host_busy_ns = self.links.host_busy_ns();
        stages.extend(
            host_busy_ns.map(|busy_ns| self.stage("host".to_owned(), alone(busy_ns), None)),
        );
        let queue_ns = self.queue.as_ref().map(|queue| queue.busy_ns());
        stages.extend(
            queue_ns.map(|busy_ns| self.stage("disk queue".to_owned(), alone(busy_ns), None)),
        );
        stages.extend(self.links.cap_use(self.now).map(|cap| {
            let waiting = Some(self.together([cap.waiting]));
            let busy_ns = cap.busy_ns.min(self.interval_ns());
            self.stage("cap".to_owned(), alone(busy_ns), waiting)
        }));
        stages.sort_by(|left, right| right.utilisation.total_cmp(&left.utilisation));
        stages
    }

    fn stage(&self, stage: String, work: Work, station: Option<StationUse>) -> StageUse {
        let mean = |busy_ns| self.share(busy_ns) / work.server_count.max(1) as f64;
        StageUse {
            stage,
            utilisation: mean(work.busy_ns),
            // Flash counts what a write will cost its dies before they have done it.
            neighbour_utilisation: mean(work.neighbour_ns.min(work.busy_ns)),
            station,
        }
    }

    fn drive_stage(&self, stage: String, pool: &Pool) -> StageUse {
        let drives = self.drives_of(pool);
        let work = Work {
            busy_ns: drives.iter().map(|drive| drive.counters.busy_ns).sum(),
            neighbour_ns: drives.iter().map(|drive| drive.counters.neighbour_busy_ns).sum(),
            server_count: drives.len(),
        };
        let there = self.together(drives.iter().map(|drive| drive.station));
        self.stage(stage, work, Some(there))
    }

    /// The drives that the volumes of a pool lie on, those that work.
    fn drives_of(&self, pool: &Pool) -> Vec<&Drive> {
        let columns = pool.slices.iter().flat_map(|slice| &slice.columns);
        let sets: BTreeSet<u32> = columns.map(|(set, _)| *set).collect();
        let working = |set: &u32| {
            let set = &self.sets[*set as usize];
            let slots = 0..set.layout.drive_count;
            let slots = slots.filter(|slot| set.slots.state(*slot) != MemberState::Lost);
            slots.map(|slot| &self.drives[(set.drive_first + slot) as usize])
        };
        sets.iter().flat_map(working).collect()
    }

    fn controller_stage(&self) -> StageUse {
        let controllers = || self.members.iter().map(|member| &member.controllers);
        let work = Work {
            busy_ns: controllers().map(|all| all.busy_ns).sum(),
            neighbour_ns: controllers().map(|all| all.neighbour_busy_ns).sum(),
            server_count: controllers().map(|all| all.processor_count()).sum(),
        };
        let there = self.together(self.members.iter().map(|member| member.at_controllers));
        self.stage("controllers".to_owned(), work, Some(there))
    }

    fn link_stage(&self, stage: &str, way: Way) -> StageUse {
        let alive = || self.links.usage().filter(|link| link.is_alive);
        let work = Work {
            busy_ns: alive().map(|link| link.busy_ns[way as usize]).sum(),
            neighbour_ns: alive().map(|link| link.neighbour_busy_ns[way as usize]).sum(),
            server_count: alive().count(),
        };
        let there = self.together(self.links.stations(self.now, way));
        self.stage(stage.to_owned(), work, Some(there))
    }

    /// Share of the time since counting began.
    pub(super) fn share(&self, busy_ns: Nanos) -> f64 {
        busy_ns as f64 / self.interval_ns() as f64
    }

    /// Several stations as one since counting began.
    pub(super) fn together(&self, stations: impl IntoIterator<Item = Station>) -> StationUse {
        Station::together(stations, self.now, self.interval_ns())
    }

    pub(super) fn interval_ns(&self) -> Nanos {
        (self.now - self.counting_since).max(1)
    }
}
