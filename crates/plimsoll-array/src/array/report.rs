//! What the array tells about itself: counters by volume, member, drive and link, how busy each stage was, and which
//! would be first to give way.

use plimsoll_io::Nanos;
use serde::Serialize;

use super::{Array, IoCounters};
use crate::drive::{Cause, DriveCounters};

/// Everything counted since the last [`Array::reset_counters`].
#[derive(Clone, Debug, Serialize)]
pub struct ArrayReport {
    /// How long it was counted.
    pub interval_ns: Nanos,
    /// By volume.
    pub volumes: Vec<VolumeReport>,
    /// By box.
    pub members: Vec<MemberReport>,
    /// By drive.
    pub drives: Vec<DriveReport>,
    /// By link.
    pub links: Vec<LinkReport>,
    /// The provider's cap; `None` where there is none.
    pub cap: Option<CapReport>,
    /// Spares that were or are being filled since the array began, the ended ones first.
    pub rebuilds: Vec<RebuildReport>,
    /// How busy each stage was, the busiest first: the first bottleneck.
    pub stages: Vec<StageUse>,
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
    /// Requests whose data was lost.
    pub lost_count: u64,
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

/// How busy one stage was.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StageUse {
    /// Drives, controllers, links to the array, links to the host; the host and the cap where they limit.
    pub stage: &'static str,
    /// Mean share of the time, over the stage's servers.
    pub utilisation: f64,
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
            member.controllers.busy_ns = 0;
        }
        for drive in &mut self.drives {
            drive.counters = DriveCounters::default();
        }
        self.links.reset_usage();
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
        let interval_ns = (self.now - self.counting_since).max(1);
        let share = |busy_ns: Nanos| busy_ns as f64 / interval_ns as f64;
        let volumes = self.volumes.iter().map(|volume| VolumeReport {
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
        });
        let drives = self
            .drives
            .iter()
            .zip(&self.drive_members)
            .map(|(drive, member)| DriveReport {
                member: *member,
                operations: Cause::ALL
                    .iter()
                    .map(|cause| (cause.name(), drive.counters.operations[*cause as usize]))
                    .filter(|(_, count)| *count > 0)
                    .collect(),
                utilisation: share(drive.counters.busy_ns),
                response_ms: mean_ms(drive.counters.response_ns, drive.counters.operation_count()),
            });
        let links = self.links.usage().map(|(busy_ns, _, request_count)| LinkReport {
            to_array_utilisation: share(busy_ns[0]),
            to_host_utilisation: share(busy_ns[1]),
            request_count,
        });
        let mut report = ArrayReport {
            interval_ns,
            volumes: volumes.collect(),
            members: members.collect(),
            drives: drives.collect(),
            links: links.collect(),
            cap: self.links.cap_use(self.now).map(|cap| CapReport {
                utilisation: share(cap.busy_ns).min(1.0),
                base_per_second: cap.spec.operations_per_second,
                credit_count: cap.credit_count,
                credit_count_max: cap.spec.credit_count_max,
            }),
            rebuilds: self.rebuild_reports(),
            stages: Vec::new(),
        };
        report.stages = self.stages(&report, share);
        report
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

    fn stages(&self, report: &ArrayReport, share: impl Fn(Nanos) -> f64) -> Vec<StageUse> {
        let mean = |total: f64, count: usize| if count == 0 { 0.0 } else { total / count as f64 };
        let drives = report.drives.iter().map(|drive| drive.utilisation).sum();
        let to_array = report.links.iter().map(|link| link.to_array_utilisation).sum();
        let to_host = report.links.iter().map(|link| link.to_host_utilisation).sum();
        let processors: usize = self
            .members
            .iter()
            .map(|member| member.controllers.processor_count())
            .sum();
        let busy = self
            .members
            .iter()
            .map(|member| share(member.controllers.busy_ns))
            .sum();
        let stage = |stage, utilisation| StageUse { stage, utilisation };
        let mut stages = vec![
            stage("drives", mean(drives, report.drives.len())),
            stage("controllers", mean(busy, processors)),
            stage("links to the array", mean(to_array, report.links.len())),
            stage("links to the host", mean(to_host, report.links.len())),
        ];
        stages.extend(
            self.links
                .host_busy_ns()
                .map(|busy_ns| stage("host", share(busy_ns))),
        );
        stages.extend(report.cap.as_ref().map(|cap| stage("cap", cap.utilisation)));
        stages.sort_by(|left, right| right.utilisation.total_cmp(&left.utilisation));
        stages
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
