//! Whether an array can be: every mistake of a description at once, each with its place and what to
//! do.

use std::collections::BTreeMap;
use std::fmt;

use crate::raid::{Layout, MemberState, Slots, impossibilities, usable_drives};
use crate::spec::{ArraySpec, DriveKind, Fault, GroupSpec, PageOrder, PoolSpec, Tenant};

/// One thing that cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    /// Where in the description, for instance `groups[0].sets`.
    pub place: String,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub hint: String,
}

/// Every mistake of a description.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct SpecErrors(pub Vec<SpecError>);

impl fmt::Display for SpecErrors {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "the array cannot be built")?;
        for error in &self.0 {
            write!(formatter, "\n  {} {}", error.place, error.message)?;
            write!(formatter, "\n      hint: {}", error.hint)?;
        }
        Ok(())
    }
}

/// Looks at a description.
///
/// # Errors
/// Every mistake found.
pub fn check(spec: &ArraySpec) -> Result<(), SpecErrors> {
    let mut found = Found(Vec::new());
    drives(spec, &mut found);
    members(spec, &mut found);
    for (index, group) in spec.groups.iter().enumerate() {
        check_group(spec, index, group, &mut found);
    }
    slots(spec, &mut found);
    if found.0.is_empty() {
        pools(spec, &mut found);
    }
    neighbours(spec, &mut found);
    path(spec, &mut found);
    faults(spec, &mut found);
    if found.0.is_empty() { Ok(()) } else { Err(SpecErrors(found.0)) }
}

struct Found(Vec<SpecError>);

impl Found {
    fn unless(
        &mut self,
        holds: bool,
        place: impl Into<String>,
        message: impl Into<String>,
        hint: &str,
    ) {
        if !holds {
            self.0.push(SpecError {
                place: place.into(),
                message: message.into(),
                hint: hint.to_owned(),
            });
        }
    }
}

fn drives(spec: &ArraySpec, found: &mut Found) {
    for (index, drive) in spec.drives.iter().enumerate() {
        let place = |key: &str| format!("drives[{index}].{key}");
        found.unless(
            drive.capacity_bytes > 0,
            place("capacity_bytes"),
            "is zero",
            "state the capacity of the drive",
        );
        match &drive.kind {
            DriveKind::Hdd(hdd) => {
                let rates = [hdd.outer_bytes_per_second, hdd.inner_bytes_per_second];
                let is_sane =
                    rates.iter().all(|rate| *rate > 0.0) && hdd.interface_bytes_per_second > 0.0;
                found.unless(
                    is_sane,
                    place("hdd"),
                    "has a rate of zero",
                    "state both sustained rates",
                );
                let turns = hdd.rotation_rpm > 0.0 && hdd.queue_count_max > 0;
                found.unless(
                    turns,
                    place("hdd"),
                    "does not turn or has no queue",
                    "state rpm and queue depth",
                );
                let settles = hdd.write_seek_ns >= hdd.read_seek_ns;
                found.unless(
                    settles,
                    place("hdd.write_seek_ns"),
                    "is below the read seek",
                    "a head settles longer to write",
                );
            }
            DriveKind::Ssd(ssd) => {
                let is_sane = ssd.die_count > 0 && ssd.die_count < 1 << 16 && ssd.unit_bytes > 0;
                found.unless(
                    is_sane,
                    place("ssd"),
                    "has no dies or no unit",
                    "state dies and unit size",
                );
                let is_sane = ssd.write_amplification >= 1.0 && ssd.units_per_block > 0;
                let hint = "each host write programs at least once";
                found.unless(is_sane, place("ssd.write_amplification"), "is below 1", hint);
                let moves = ssd.channel_bytes_per_second > 0.0 && ssd.bus_bytes_per_second > 0.0;
                found.unless(
                    moves,
                    place("ssd"),
                    "has a rate of zero",
                    "state channel and bus rate",
                );
            }
        }
    }
}

fn members(spec: &ArraySpec, found: &mut Found) {
    found.unless(!spec.members.is_empty(), "members", "is empty", "an array has at least one box");
    for (index, member) in spec.members.iter().enumerate() {
        let works = member.controller_count > 0 && member.processor_count > 0;
        let place = format!("members[{index}].controller_count");
        found.unless(works, place, "is zero", "a box has a controller with a processor");
        let cache = &member.cache;
        let rises =
            cache.destage_full_share > cache.destage_start_share && cache.destage_full_share <= 1.0;
        let works = cache.dirty_bytes_max > 0 && rises && cache.destage_rows_per_drive > 0.0;
        found.unless(
            works || !cache.write_back,
            format!("members[{index}].cache"),
            "cannot be emptied: it has no bytes, or its destage marks are not rising",
            "set destage_start_share below destage_full_share, at most 1, or write_back = false",
        );
    }
}

fn check_group(spec: &ArraySpec, index: usize, group: &GroupSpec, found: &mut Found) {
    let place = |key: &str| format!("groups[{index}].{key}");
    let known = spec.drives.iter().any(|drive| drive.name == group.drive);
    found.unless(
        known,
        place("drive"),
        format!("names no drive: \"{}\"", group.drive),
        "name one of [[drives]]",
    );
    let has_member = (group.member as usize) < spec.members.len();
    found.unless(has_member, place("member"), "is no box of the array", "boxes are counted from 0");
    for wrong in impossibilities(group.level, &group.sets) {
        found.unless(false, place("sets"), wrong.message, wrong.hint);
    }
    let is_element = group.element_bytes >= 512 && group.element_bytes.is_multiple_of(512);
    found.unless(
        is_element,
        place("element_bytes"),
        "is no multiple of 512 bytes",
        "64 KiB is usual",
    );
    found.unless(
        group.element_bytes <= 1 << 30,
        place("element_bytes"),
        "is above 1 GiB",
        "64 KiB is usual",
    );
}

fn slots(spec: &ArraySpec, found: &mut Found) {
    for (index, member) in spec.members.iter().enumerate() {
        let mine = spec.groups.iter().filter(|group| group.member as usize == index);
        let count: u32 = mine.map(|group| group.sets.iter().sum::<u32>() + group.spare_count).sum();
        found.unless(
            count <= member.slot_count,
            format!("members[{index}].slot_count"),
            format!("is {}, but {count} drives and spares are placed there", member.slot_count),
            "use fewer drives or another box",
        );
    }
}

fn pools(spec: &ArraySpec, found: &mut Found) {
    for (index, pool) in spec.pools.iter().enumerate() {
        let known = !pool.groups.is_empty()
            && pool.groups.iter().all(|group| (*group as usize) < spec.groups.len());
        let place = format!("pools[{index}].groups");
        found.unless(
            known,
            place.clone(),
            "is empty or names no group",
            "groups are counted from 0",
        );
        found.unless(
            pool.page_bytes > 0,
            format!("pools[{index}].page_bytes"),
            "is zero",
            "15 MiB is usual",
        );
        if known {
            let elements: Vec<u64> = pool
                .groups
                .iter()
                .map(|group| spec.groups[*group as usize].element_bytes)
                .collect();
            let is_even = elements.windows(2).all(|pair| pair[0] == pair[1]);
            found.unless(
                is_even,
                place,
                "mixes element sizes",
                "groups of a pool share one element size",
            );
        }
    }
    for (index, volume) in spec.volumes.iter().enumerate() {
        let known = (volume.pool as usize) < spec.pools.len();
        let place = format!("volumes[{index}].pool");
        found.unless(known, place, "names no pool", "pools are counted from 0");
        let place = format!("volumes[{index}].capacity_bytes");
        found.unless(volume.capacity_bytes > 0, place, "is zero", "a volume has a size");
    }
    if !found.0.is_empty() {
        return;
    }
    for (index, pool) in spec.pools.iter().enumerate() {
        let mine = spec.volumes.iter().filter(|volume| volume.pool as usize == index);
        // Spread volumes take whole pages.
        let unit_bytes = match pool.page_order {
            PageOrder::VolumeByVolume => 1,
            PageOrder::Spread => pool.page_bytes,
        };
        let asked: u64 = mine
            .map(|volume| (volume.capacity_bytes + (2 << 20)).next_multiple_of(unit_bytes))
            .sum();
        let usable = pool_bytes(spec, pool);
        let gigabytes = |bytes: u64| bytes as f64 / 1e9;
        found.unless(
            asked <= usable,
            format!("pools[{index}]"),
            format!(
                "holds {:.1} GB, but its volumes ask for {:.1} GB",
                gigabytes(usable),
                gigabytes(asked)
            ),
            "make the volumes smaller, or use larger or more drives",
        );
    }
}

/// What a group holds for its users.
pub fn usable_bytes(spec: &ArraySpec, group: &GroupSpec) -> u64 {
    row_count(spec, group) * column_count(group) * group.element_bytes
}

fn row_count(spec: &ArraySpec, group: &GroupSpec) -> u64 {
    let drive = spec.drives.iter().find(|drive| drive.name == group.drive);
    drive.map_or(0, |drive| drive.capacity_bytes / group.element_bytes)
}

fn column_count(group: &GroupSpec) -> u64 {
    let drives = group.sets.iter().filter_map(|count| usable_drives(group.level, *count));
    drives.map(u64::from).sum()
}

/// What a pool holds. Elements go round all drives of a box and pages round the boxes, so that the
/// smallest drive ends the rows of its box, and the smallest box the pages of all.
fn pool_bytes(spec: &ArraySpec, pool: &PoolSpec) -> u64 {
    let mut boxes: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for number in &pool.groups {
        let group = &spec.groups[*number as usize];
        let (rows, columns) = boxes.entry(group.member).or_insert((u64::MAX, 0));
        *rows = (*rows).min(row_count(spec, group));
        *columns += column_count(group) * group.element_bytes;
    }
    let least = boxes.values().map(|(rows, columns)| rows * columns).min();
    least.unwrap_or(0) * boxes.len() as u64
}

/// A neighbour has a volume of its own, and something to do there.
fn neighbours(spec: &ArraySpec, found: &mut Found) {
    for (index, neighbour) in spec.neighbours.iter().enumerate() {
        let place = |key: &str| format!("neighbours[{index}].{key}");
        let volume = spec.volumes.get(neighbour.volume as usize);
        let is_theirs = volume.is_some_and(|volume| volume.tenant != Tenant::Host);
        let hint = "a neighbour has volumes of its own, counted from 0 with all others";
        found.unless(is_theirs, place("volume"), "names no volume of a neighbour", hint);
        found.unless(
            neighbour.per_second > 0.0 && neighbour.outstanding_max > 0,
            place("per_second"),
            "is zero, or nothing may be on its way",
            "leave a neighbour out that does nothing",
        );
        let is_share = (0.0..=1.0).contains(&neighbour.read_share);
        found.unless(is_share, place("read_share"), "is no share", "from 0 to 1");
        let fits = neighbour.request_bytes > 0
            && neighbour.request_bytes <= 1 << 30
            && volume.is_none_or(|volume| neighbour.request_bytes <= volume.capacity_bytes);
        found.unless(
            fits,
            place("request_bytes"),
            "is zero, above 1 GiB or above the volume",
            "4 KiB to 1 MiB is usual",
        );
    }
}

fn path(spec: &ArraySpec, found: &mut Found) {
    let path = &spec.path;
    found.unless(path.link_count > 0, "path.link_count", "is zero", "a host needs a link");
    let is_moving = path.link_bytes_per_second > 0.0
        && path.host_bytes_per_second.is_none_or(|rate| rate > 0.0);
    let hint = "a link that carries nothing is no link; 117 MB/s is a gigabit link's payload";
    found.unless(is_moving, "path.link_bytes_per_second", "is zero", hint);
    if let Some(cap) = &path.cap {
        let is_moving = cap.operations_per_second > 0.0
            && cap.burst_operations_per_second >= cap.operations_per_second
            && cap.bytes_per_second > 0.0;
        let hint = "the burst is at least the base rate, and no rate is zero";
        found.unless(is_moving, "path.cap", "lets nothing pass or bursts below its base", hint);
    }
    if let Some(queue) = &path.queue {
        let takes_time = |ns: f64| ns.is_finite() && ns >= 0.0;
        found.unless(
            takes_time(queue.read_ns_per_byte) && takes_time(queue.write_ns_per_byte),
            "path.queue",
            "works faster than in no time",
            "no byte takes less than nothing",
        );
    }
}

/// What breaks has to be there.
fn faults(spec: &ArraySpec, found: &mut Found) {
    for (index, timed) in spec.faults.iter().enumerate() {
        let is_there = match timed.fault {
            Fault::DriveFails { group, drive } => {
                let group = spec.groups.get(group as usize);
                group.is_some_and(|group| drive < group.sets.iter().sum())
            }
            Fault::LinkFails { link } | Fault::LinkReturns { link } => link < spec.path.link_count,
            Fault::ControllerFails { member, controller } => {
                let member = spec.members.get(member as usize);
                member.is_some_and(|member| controller < member.controller_count)
            }
            Fault::CacheLost { member } | Fault::CacheReturns { member } => {
                (member as usize) < spec.members.len()
            }
        };
        let place = format!("faults[{index}]");
        found.unless(is_there, place, "names what is not there", "everything is counted from 0");
    }
    drives_that_fail_twice(spec, found);
    for (index, group) in spec.groups.iter().enumerate() {
        lost_from_the_beginning(spec, index, group, found);
    }
}

/// A drive can fail again only where a spare has taken its place.
fn drives_that_fail_twice(spec: &ArraySpec, found: &mut Found) {
    let mut failed: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    for (index, timed) in spec.faults.iter().enumerate() {
        let Fault::DriveFails { group, drive } = timed.fault else {
            continue;
        };
        let times = failed.entry((group, drive)).or_default();
        *times += 1;
        let spares = spec.groups.get(group as usize).map_or(0, |group| group.spare_count);
        found.unless(
            *times <= 1 + spares,
            format!("faults[{index}]"),
            format!(
                "is of drive {drive} of group {group}, which fails twice without a spare in \
             its place"
            ),
            "name another drive, or add a spare",
        );
    }
}

/// Nothing can be put on a set that has lost its data before it is used.
fn lost_from_the_beginning(spec: &ArraySpec, index: usize, group: &GroupSpec, found: &mut Found) {
    let at_once = spec.faults.iter().filter(|timed| timed.at_ns == 0);
    let failed: Vec<u32> = at_once
        .filter_map(|timed| match timed.fault {
            Fault::DriveFails { group, drive } if group as usize == index => Some(drive),
            _ => None,
        })
        .collect();
    let mut first = 0;
    for drive_count in &group.sets {
        let layout = Layout { level: group.level, drive_count: *drive_count };
        let mut slots = Slots::whole(*drive_count);
        let mine = failed.iter().filter_map(|drive| drive.checked_sub(first));
        mine.filter(|slot| slot < drive_count)
            .for_each(|slot| slots.change(slot, MemberState::Lost));
        first += drive_count;
        found.unless(
            usable_drives(group.level, *drive_count).is_none() || !slots.is_beyond_repair(&layout),
            "faults",
            format!(
                "leave group {index} ({:?} of {drive_count} drives) with {} failed drives: it \
                 would have lost its data \
                 before anything begins",
                group.level,
                slots.impaired_count()
            ),
            "fail fewer drives, or let them fail while the array is in use",
        );
    }
}
