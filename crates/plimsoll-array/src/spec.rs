//! What an array is made of, as plain data: unknown keys are refused and nothing has a default
//! here.
//!
//! Sizes are bytes, times nanoseconds, rates bytes per second. Where each figure comes from stands
//! in the presets, not here. [`check`](crate::check) finds every mistake of a description at once.

use plimsoll_io::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A whole storage system: members (boxes) with groups of drives, pools over them, volumes, and the
/// way there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArraySpec {
    /// Kinds of drives, named by the groups.
    pub drives: Vec<DriveSpec>,
    /// The boxes.
    pub members: Vec<MemberSpec>,
    /// Drives bound together by redundancy.
    pub groups: Vec<GroupSpec>,
    /// Where volumes take their space from.
    pub pools: Vec<PoolSpec>,
    /// What hosts see.
    pub volumes: Vec<VolumeSpec>,
    /// What other hosts do to volumes of theirs meanwhile.
    pub neighbours: Vec<NeighbourSpec>,
    /// How hosts get there.
    pub path: PathSpec,
    /// What breaks and when.
    pub faults: Vec<TimedFault>,
}

/// One kind of drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DriveSpec {
    /// The name groups use.
    pub name: String,
    /// Addressable bytes.
    pub capacity_bytes: u64,
    /// How it works.
    pub kind: DriveKind,
}

/// Spinning or flash.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DriveKind {
    /// A hard drive.
    Hdd(HddSpec),
    /// A flash drive.
    Ssd(SsdSpec),
}

/// How a hard drive picks its next operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scheduling {
    /// As they came.
    InOrder,
    /// The one that can start soonest, with a credit for waiting.
    ShortestPositioning,
}

/// A hard drive's data sheet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HddSpec {
    /// Revolutions per minute.
    pub rotation_rpm: f64,
    /// Average seek before a read.
    pub read_seek_ns: f64,
    /// Average seek before a write; the difference is the settling time.
    pub write_seek_ns: f64,
    /// Sustained rate at the outer rim.
    pub outer_bytes_per_second: f64,
    /// Sustained rate at the inner rim.
    pub inner_bytes_per_second: f64,
    /// Rate between drive and controller.
    pub interface_bytes_per_second: f64,
    /// Time to take in a command.
    pub overhead_ns: Nanos,
    /// What reading ahead may fill.
    pub buffer_bytes: u64,
    /// Commands the drive itself can choose among.
    pub queue_count_max: u32,
    /// How it chooses.
    pub scheduling: Scheduling,
}

/// A flash drive's data sheet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SsdSpec {
    /// Independent dies.
    pub die_count: u32,
    /// What a die reads or programs at once.
    pub unit_bytes: u32,
    /// Units erased together.
    pub units_per_block: u32,
    /// Sensing a unit.
    pub read_ns: Nanos,
    /// Programming a unit.
    pub program_ns: Nanos,
    /// Erasing a block.
    pub erase_ns: Nanos,
    /// Rate between a die and the drive's controller.
    pub channel_bytes_per_second: f64,
    /// Rate between the drive and the array's controller.
    pub bus_bytes_per_second: f64,
    /// Time to take in a command.
    pub overhead_ns: Nanos,
    /// Units programmed for each unit written by the host, in steady state.
    pub write_amplification: f64,
    /// Writes that survive a power cut before they are programmed.
    pub buffer_bytes: u64,
}

/// One box: its controllers and its cache.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MemberSpec {
    /// Controllers that share the work; volumes are owned in turn.
    pub controller_count: u32,
    /// Slots for drives.
    pub slot_count: u32,
    /// Latency a read spends in the controller beside the work below.
    pub read_latency_ns: Nanos,
    /// Latency a write spends there.
    pub write_latency_ns: Nanos,
    /// Latency for each byte, for boxes that store and forward.
    pub latency_ns_per_byte: f64,
    /// Processor time for each request.
    pub processor_ns: Nanos,
    /// Processors of a controller.
    pub processor_count: u32,
    /// How long requests stand still when a controller fails and its partner takes over.
    pub failover_ns: Nanos,
    /// The cache.
    pub cache: CacheSpec,
}

/// A box's cache.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CacheSpec {
    /// Whether a write is done when it is in the cache.
    pub write_back: bool,
    /// Dirty bytes the cache can hold.
    pub dirty_bytes_max: u64,
    /// Below this share of dirty bytes nothing is destaged.
    pub destage_start_share: f64,
    /// At this share the most rows are destaged at once.
    pub destage_full_share: f64,
    /// The most rows destaged at once, for each drive of a set.
    pub destage_rows_per_drive: f64,
    /// How much sooner a host's read is served than a destage while the cache is empty.
    pub read_preference_ns: Nanos,
    /// Share of small writes whose old data is still in the cache.
    pub old_data_share: f64,
    /// Freshly written bytes of a stream that can be read back from the cache.
    pub recent_bytes: u64,
    /// Reading ahead; `None` where the box does not.
    pub prefetch: Option<PrefetchSpec>,
}

/// Reading ahead of a sequential stream.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PrefetchSpec {
    /// What is read at once.
    pub chunk_bytes: u64,
    /// Chunks read beyond the one asked for.
    pub ahead_count: u32,
    /// Reads in sequence before reading ahead begins.
    pub run_count_min: u32,
    /// A pause longer than this between two reads ends the run.
    pub pause_ns_max: Nanos,
}

/// How drives are bound together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RaidLevel {
    /// Striped, no redundancy.
    Raid0,
    /// Mirrored pair.
    Raid1,
    /// Striped with one parity.
    Raid5,
    /// Striped with two parities.
    Raid6,
    /// Striped over mirrored pairs.
    Raid10,
    /// Striped over several sets with one parity each.
    Raid50,
}

/// A group of drives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupSpec {
    /// Its name.
    pub name: String,
    /// The box its drives are in, counted from 0.
    pub member: u32,
    /// The kind of drive.
    pub drive: String,
    /// Redundancy.
    pub level: RaidLevel,
    /// Drives of each set; one set except for RAID 50.
    pub sets: Vec<u32>,
    /// Drives that wait to replace a failed one, of whichever set.
    pub spare_count: u32,
    /// Consecutive bytes on one drive.
    pub element_bytes: u64,
    /// How fast a spare is filled, if the drives let it; zero for no rebuild.
    pub rebuild_bytes_per_second: f64,
}

/// Space that volumes are cut from: all drives of its groups are used by each volume.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PoolSpec {
    /// Its name.
    pub name: String,
    /// Its groups, counted from 0.
    pub groups: Vec<u32>,
    /// What is put on one member before the next has its turn.
    pub page_bytes: u64,
    /// In which order volumes get their pages.
    pub page_order: PageOrder,
}

/// How the pages of a pool are shared out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PageOrder {
    /// One volume after the other, from the outer rim inward.
    VolumeByVolume,
    /// All volumes side by side: each is spread evenly over everything that is in use.
    Spread,
}

/// A volume.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VolumeSpec {
    /// Its name.
    pub name: String,
    /// Its pool, counted from 0.
    pub pool: u32,
    /// Its size. Volumes lie one behind the other from the outer rim inward.
    pub capacity_bytes: u64,
    /// Granularity at which its blocks may be shifted against the elements; zero for aligned.
    pub shift_bytes: u64,
    /// Whose it is.
    pub tenant: Tenant,
}

/// Whose a volume is, in the order in which the volumes of a pool lie from the outer rim inward.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Tenant {
    /// Another host's that was there first.
    NeighbourBefore,
    /// The host's whose figures are wanted.
    Host,
    /// Another host's that came later.
    NeighbourBehind,
}

/// Where a neighbour goes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NeighbourPattern {
    /// Anywhere, block by block.
    Random,
    /// On from the last request, and from the start again at the end.
    Sequential,
}

/// Another host's load on a volume of its own, for as long as the array is there: exponential times
/// between requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NeighbourSpec {
    /// Its name.
    pub name: String,
    /// Its volume, counted from 0; no host's whose figures are wanted.
    pub volume: u32,
    /// Requests per second.
    pub per_second: f64,
    /// Share of requests that read.
    pub read_share: f64,
    /// Size of a request.
    pub request_bytes: u64,
    /// Where it goes.
    pub pattern: NeighbourPattern,
    /// Requests on their way at most; what would be more is not made.
    pub outstanding_max: u32,
    /// Whether its requests come over the links of the host, or over some that never limit.
    pub shares_links: bool,
}

/// How a host spreads its requests over the links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PathPolicy {
    /// In turn.
    RoundRobin,
    /// The link that will be free first.
    LeastBusy,
    /// One link as long as it lives.
    Failover,
}

/// The way between host and array.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PathSpec {
    /// Links, each full duplex.
    pub link_count: u32,
    /// Payload rate of a link in each direction.
    pub link_bytes_per_second: f64,
    /// Latency one way.
    pub link_latency_ns: Nanos,
    /// Rate at which the host itself takes data in, over all links; `None` where it does not limit.
    pub host_bytes_per_second: Option<f64>,
    /// Latency the host's storage stack adds to each request (a hypervisor, a guest's own
    /// initiator).
    pub host_latency_ns: Nanos,
    /// How links are chosen.
    pub policy: PathPolicy,
    /// How long a request on a lost link waits before another link is tried.
    pub path_timeout_ns: Nanos,
    /// A cap on requests and bytes (a cloud volume); `None` where there is none.
    pub cap: Option<CapSpec>,
    /// The queue of a virtual disk; `None` where requests go straight to a link.
    pub queue: Option<QueueSpec>,
}

/// One queue that all requests go through one after the other, told of together when it is worked
/// off.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QueueSpec {
    /// Until an idle queue is looked at, and again until the end of its work is noticed.
    pub notice_ns: Nanos,
    /// Work for each request.
    pub request_ns: Nanos,
    /// Work for each byte that is read.
    pub read_ns_per_byte: f64,
    /// Work for each byte that is written.
    pub write_ns_per_byte: f64,
    /// Work for a flush, which follows each write that is to be durable.
    pub flush_ns: Nanos,
    /// What a durable write waits for besides: the kernel finishes it in workers of its own, which
    /// need a processor.
    pub durable_ns: Nanos,
}

/// A provider's cap: a bucket of credits that fills at the base rate, and a ceiling while credits
/// last.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CapSpec {
    /// Requests per second in the long run.
    pub operations_per_second: f64,
    /// Requests per second while there are credits.
    pub burst_operations_per_second: f64,
    /// Credits saved up at most, one for each request.
    pub credit_count_max: f64,
    /// Bytes per second.
    pub bytes_per_second: f64,
}

/// Something breaks or is mended.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// A drive of a group fails, counted from 0 over its sets; a spare takes its place when there
    /// is one.
    DriveFails { group: u32, drive: u32 },
    /// A link is lost.
    LinkFails { link: u32 },
    /// A link is back.
    LinkReturns { link: u32 },
    /// A controller fails; its volumes move to the partner and the cache writes through.
    ControllerFails { member: u32, controller: u32 },
    /// The cache loses its protection and writes through.
    CacheLost { member: u32 },
    /// The cache is protected again.
    CacheReturns { member: u32 },
}

/// A fault with its time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TimedFault {
    /// When.
    pub at_ns: Nanos,
    /// What.
    pub fault: Fault,
}
