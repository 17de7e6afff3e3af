//! What the array tells about itself: counters by volume, member, drive and link, and how busy each
//! stage was.

use plimsoll_io::Nanos;
use serde::Serialize;

use super::neighbours::Neighbour;
use super::stages::StageUse;
use super::{Array, IoCounters};
use crate::drive::{Cause, Drive, DriveCounters};
use crate::spec::Tenant;
use crate::station::StationUse;

/// Everything counted since the last [`Array::reset_counters`].
#[derive(Clone, Debug, Serialize)]
pub struct ArrayReport {
    /// How long it was counted.
    pub interval_ns: Nanos,
    /// By volume of the host.
    pub volumes: Vec<VolumeReport>,
    /// By neighbour, whose requests are in no other list of requests but that of the boxes.
    pub neighbours: Vec<NeighbourReport>,
    /// By box, for all hosts.
    pub members: Vec<MemberReport>,
    /// By drive.
    pub drives: Vec<DriveReport>,
    /// By link.
    pub links: Vec<LinkReport>,
    /// The provider's cap; `None` where there is none.
    pub cap: Option<CapReport>,
    /// Spares that were or are being filled since the array began, the ended ones first.
    pub rebuilds: Vec<RebuildReport>,
    /// Sets that lost more drives than their level bears since the array began: their data is gone.
    pub lost_sets: Vec<LostSetReport>,
    /// How busy each stage was, the busiest first: the first bottleneck.
    pub stages: Vec<StageUse>,
}

/// A set whose data is gone.
#[derive(Clone, Debug, Serialize)]
pub struct LostSetReport {
    /// Its group.
    pub group: String,
    /// When it lost one drive too many, from the beginning of the simulation.
    pub at_s: f64,
    /// What only the cache held of it.
    pub dirty_bytes: u64,
}

/// One volume.
#[derive(Clone, Debug, Serialize)]
pub struct VolumeReport {
    /// Its name.
    pub name: String,
    /// Its reads, writes, bytes and mean latencies.
    #[serde(flatten)]
    pub host: HostReport,
}

/// Requests as an administrator reads them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct HostReport {
    /// Reads.
    pub read_count: u64,
    /// Writes.
    pub write_count: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Mean latency of reads.
    pub read_latency_ms: f64,
    /// Mean latency of writes.
    pub write_latency_ms: f64,
    /// Requests whose data was lost; they are in no other count.
    pub lost_count: u64,
}

/// Another host's load.
#[derive(Clone, Debug, Serialize)]
pub struct NeighbourReport {
    /// Its name.
    pub name: String,
    /// Its volume.
    pub volume: String,
    /// Requests per second it was to make.
    pub wanted_per_second: f64,
    /// Requests it did not make because too many were on their way.
    pub left_out_count: u64,
    /// Its reads, writes, bytes and mean latencies.
    #[serde(flatten)]
    pub host: HostReport,
}

/// One box.
#[derive(Clone, Debug, Serialize)]
pub struct MemberReport {
    /// Host requests.
    #[serde(flatten)]
    pub host: HostReport,
    /// Reads answered from memory.
    pub read_hit_count: u64,
    /// Writes that waited for room in the cache.
    pub write_stall_count: u64,
    /// Rows that went to the drives.
    pub destaged_row_count: u64,
    /// Of these, rows written whole.
    pub full_stripe_count: u64,
    /// Dirty bytes now.
    pub dirty_bytes: u64,
    /// Dirty bytes from the moment they are so until the drives have them.
    pub dirty: StationUse,
}

/// One drive.
#[derive(Clone, Debug, Serialize)]
pub struct DriveReport {
    /// Its box.
    pub member: u32,
    /// Operations by cause, those that occurred.
    pub operations: Vec<(&'static str, u64)>,
    /// Share of the time it was at work.
    pub utilisation: f64,
    /// Mean time from arrival to completion.
    pub response_ms: f64,
    /// Operations there on average, waiting or at work.
    pub present_mean: f64,
}

/// One link.
#[derive(Clone, Debug, Serialize)]
pub struct LinkReport {
    /// Share of the time data flowed to the array.
    pub to_array_utilisation: f64,
    /// Share of the time data flowed to the host.
    pub to_host_utilisation: f64,
    /// Requests sent over it.
    pub request_count: u64,
}

/// A provider's cap.
#[derive(Clone, Debug, Serialize)]
pub struct CapReport {
    /// Share of the time it held requests back or let one through.
    pub utilisation: f64,
    /// Requests per second in the long run.
    pub base_per_second: f64,
    /// Credits left, one for each request above the base rate.
    pub credit_count: f64,
    /// Credits saved up at most.
    pub credit_count_max: f64,
}

/// One spare being filled.
#[derive(Clone, Debug, Serialize)]
pub struct RebuildReport {
    /// When it began, from the beginning of the simulation.
    pub started_s: f64,
    /// How long it took, or has taken so far.
    pub duration_s: f64,
    /// Share of the rows that are whole again.
    pub share: f64,
}

impl Array {
    /// Counts anew from now on.
    pub fn reset_counters(&mut self) {
        self.counting_since = self.now;
        for volume in &mut self.volumes {
            volume.counters = IoCounters::default();
        }
        for member in &mut self.members {
            member.counters = Default::default();
            (member.controllers.busy_ns, member.controllers.neighbour_busy_ns) = (0, 0);
            member.at_controllers.reset(self.now);
            member.dirty.reset(self.now);
        }
        self.neighbours.iter_mut().for_each(Neighbour::reset_counters);
        for drive in &mut self.drives {
            drive.counters = DriveCounters::default();
            drive.station.reset(self.now);
        }
        self.links.reset_usage(self.now);
        if let Some(queue) = &mut self.queue {
            queue.reset_usage();
        }
    }

    /// A drive's counters, counted from 0 in the order of the groups.
    pub fn drive_counters(&self, drive: u32) -> DriveCounters {
        self.drives[drive as usize].counters
    }

    /// Rebuilds that have ended.
    pub fn rebuilds(&self) -> &[crate::raid::RebuildProgress] {
        &self.rebuilds
    }

    /// Drives of the array.
    pub fn drive_count(&self) -> u32 {
        self.drives.len() as u32
    }

    /// Dirty bytes of a box.
    pub fn dirty_bytes(&self, member: u32) -> u64 {
        self.members[member as usize].dirty_bytes
    }

    /// Everything counted since the last reset.
    pub fn report(&self) -> ArrayReport {
        let own = self.volumes.iter().filter(|volume| volume.tenant == Tenant::Host);
        let volumes = own.map(|volume| VolumeReport {
            name: volume.name.clone(),
            host: HostReport::of(&volume.counters),
        });
        let members = self.members.iter().map(|member| MemberReport {
            host: HostReport::of(&member.counters.host),
            read_hit_count: member.counters.read_hit_count,
            write_stall_count: member.counters.write_stall_count,
            destaged_row_count: member.counters.destaged_row_count,
            full_stripe_count: member.counters.full_stripe_count,
            dirty_bytes: member.dirty_bytes,
            dirty: self.together([member.dirty]),
        });
        let drives = self.drives.iter().zip(&self.drive_members);
        let links = self.links.usage().map(|link| LinkReport {
            to_array_utilisation: self.share(link.busy_ns[0]),
            to_host_utilisation: self.share(link.busy_ns[1]),
            request_count: link.request_count,
        });
        ArrayReport {
            interval_ns: self.interval_ns(),
            volumes: volumes.collect(),
            neighbours: self.neighbour_reports(),
            members: members.collect(),
            drives: drives.map(|(drive, member)| self.drive_report(drive, *member)).collect(),
            links: links.collect(),
            cap: self.links.cap_use(self.now).map(|cap| CapReport {
                utilisation: self.share(cap.busy_ns).min(1.0),
                base_per_second: cap.spec.operations_per_second,
                credit_count: cap.credit_count,
                credit_count_max: cap.spec.credit_count_max,
            }),
            rebuilds: self.rebuild_reports(),
            lost_sets: self.lost_sets.clone(),
            stages: self.stages(),
        }
    }

    fn drive_report(&self, drive: &Drive, member: u32) -> DriveReport {
        let operations = Cause::ALL
            .iter()
            .map(|cause| (cause.name(), drive.counters.operations[*cause as usize]));
        let station = self.together([drive.station]);
        DriveReport {
            member,
            operations: operations.filter(|(_, count)| *count > 0).collect(),
            utilisation: self.share(drive.counters.busy_ns),
            response_ms: station.stay_ms_mean,
            present_mean: station.present_mean,
        }
    }

    fn neighbour_reports(&self) -> Vec<NeighbourReport> {
        let neighbours = self.neighbours.iter();
        neighbours
            .map(|neighbour| NeighbourReport {
                name: neighbour.spec.name.clone(),
                volume: self.volumes[neighbour.spec.volume as usize].name.clone(),
                wanted_per_second: neighbour.spec.per_second,
                left_out_count: neighbour.left_out_count,
                host: HostReport::of(&neighbour.counters),
            })
            .collect()
    }

    fn rebuild_reports(&self) -> Vec<RebuildReport> {
        let seconds = |ns: Nanos| ns as f64 / 1e9;
        let ended = self.rebuilds.iter().map(|progress| RebuildReport {
            started_s: seconds(progress.started),
            duration_s: seconds(progress.finished.unwrap_or(self.now) - progress.started),
            share: 1.0,
        });
        let running = self.sets.iter().filter_map(|set| set.rebuild.as_ref());
        let running = running.map(|rebuild| RebuildReport {
            started_s: seconds(rebuild.progress.started),
            duration_s: seconds(self.now - rebuild.progress.started),
            share: rebuild.next_row as f64 / rebuild.rows_end.max(1) as f64,
        });
        ended.chain(running).collect()
    }
}

impl HostReport {
    fn of(counters: &IoCounters) -> Self {
        Self {
            read_count: counters.read_count,
            write_count: counters.write_count,
            read_bytes: counters.read_bytes,
            write_bytes: counters.write_bytes,
            read_latency_ms: mean_ms(counters.read_latency_ns, counters.read_count),
            write_latency_ms: mean_ms(counters.write_latency_ns, counters.write_count),
            lost_count: counters.lost_count,
        }
    }
}

fn mean_ms(sum_ns: u64, count: u64) -> f64 {
    if count == 0 {
        return 0.0;
    }
    sum_ns as f64 / count as f64 / 1e6
}
