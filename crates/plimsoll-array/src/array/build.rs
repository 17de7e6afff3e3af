//! Putting an array together from its description.

use std::collections::VecDeque;

use plimsoll_io::Random;

use super::neighbours::Neighbour;
use super::{Array, IoCounters, Member, MemberCounters, Pool, Set, Slice, Volume};
use crate::agenda::{Agenda, Event};
use crate::cache::{DirtyRows, Prefetcher, Recent};
use crate::check::{SpecErrors, check};
use crate::drive::Drive;
use crate::path::{Controllers, Links, Queue};
use crate::raid::{Layout, Slots};
use crate::spec::{ArraySpec, MemberSpec, PageOrder, PoolSpec, VolumeSpec};
use crate::station::Station;

impl Array {
    /// Builds an array. `random` decides where platters and arms stand at first, and nothing else.
    ///
    /// # Errors
    /// When the description cannot be: every mistake of it.
    pub fn new(spec: &ArraySpec, random: &Random) -> Result<Self, SpecErrors> {
        check(spec)?;
        let mut members: Vec<Member> = spec.members.iter().map(member).collect();
        let (mut drives, mut drive_members, mut sets) = (Vec::new(), Vec::new(), Vec::new());
        for (index, group) in spec.groups.iter().enumerate() {
            let model = spec.drives.iter().find(|drive| drive.name == group.drive);
            let model = model.expect("the description was checked");
            for drive_count in &group.sets {
                members[group.member as usize].sets.push(sets.len() as u32);
                sets.push(Set {
                    layout: Layout { level: group.level, drive_count: *drive_count },
                    slots: Slots::whole(*drive_count),
                    member: group.member,
                    group: index as u32,
                    drive_first: drives.len() as u32,
                    element_bytes: group.element_bytes,
                    rebuild_bytes_per_second: group.rebuild_bytes_per_second,
                    rows_end: model.capacity_bytes / group.element_bytes,
                    dirty: DirtyRows::default(),
                    rebuild: None,
                    rebuild_attempts: 0,
                    is_lost: false,
                });
                for _ in 0..*drive_count {
                    let random = random.child(&format!("drive {}", drives.len()));
                    drives.push(Drive::new(model, random));
                    drive_members.push(group.member);
                }
            }
        }
        let pools: Vec<Pool> =
            spec.pools.iter().map(|pool| build_pool(pool, spec, &sets)).collect();
        let slice_counts: Vec<usize> = pools.iter().map(|pool| pool.slices.len()).collect();
        let mut agenda = Agenda::default();
        for (index, fault) in spec.faults.iter().enumerate() {
            agenda.at(fault.at_ns, Event::Fault(index as u32));
        }
        let mut array = Self {
            now: 0,
            agenda,
            drives,
            drive_members,
            sets,
            members,
            pools,
            volumes: volumes(spec, &slice_counts),
            neighbours: Neighbour::all(spec, random),
            links: Links::new(&spec.path, spec.volumes.len()),
            queue: spec.path.queue.map(Queue::new),
            host_latency_ns: spec.path.host_latency_ns,
            requests: Vec::new(),
            requests_free: Vec::new(),
            stranded: VecDeque::new(),
            row_writes: Vec::new(),
            row_writes_free: Vec::new(),
            fetches: Vec::new(),
            fetches_free: Vec::new(),
            pieces: Vec::new(),
            parts: Vec::new(),
            group_names: spec.groups.iter().map(|group| group.name.clone()).collect(),
            lost_sets: Vec::new(),
            spare_counts: spec.groups.iter().map(|group| group.spare_count).collect(),
            faults: spec.faults.clone(),
            rebuilds: Vec::new(),
            counting_since: 0,
            event_count: 0,
        };
        array.start_neighbours();
        Ok(array)
    }
}

fn member(spec: &MemberSpec) -> Member {
    Member {
        controllers: Controllers::new(spec),
        cache: spec.cache.clone(),
        read_latency_ns: spec.read_latency_ns,
        write_latency_ns: spec.write_latency_ns,
        latency_ns_per_byte: spec.latency_ns_per_byte,
        dirty_bytes: 0,
        patience_ns: spec.cache.read_preference_ns as i64,
        is_writing_through: !spec.cache.write_back,
        waiting: VecDeque::new(),
        sets: Vec::new(),
        counters: MemberCounters::default(),
        at_controllers: Station::default(),
        dirty: Station::default(),
    }
}

fn build_pool(pool: &PoolSpec, spec: &ArraySpec, sets: &[Set]) -> Pool {
    let mut slices: Vec<Slice> = Vec::new();
    for group in &pool.groups {
        let member = spec.groups[*group as usize].member;
        let index = slices.iter().position(|slice| slice.member == member).unwrap_or_else(|| {
            slices.push(Slice {
                member,
                element_bytes: spec.groups[*group as usize].element_bytes,
                columns: Vec::new(),
            });
            slices.len() - 1
        });
        for (number, set) in sets.iter().enumerate().filter(|(_, set)| set.group == *group) {
            let columns = (0..set.layout.column_count()).map(|column| (number as u32, column));
            slices[index].columns.extend(columns);
        }
    }
    Pool { name: pool.name.clone(), slices, page_bytes: pool.page_bytes }
}

fn volumes(spec: &ArraySpec, slice_counts: &[usize]) -> Vec<Volume> {
    let mut used: Vec<u64> = vec![0; spec.pools.len()];
    let mut bases = vec![0; spec.volumes.len()];
    let mut inward: Vec<usize> = (0..spec.volumes.len()).collect();
    inward.sort_by_key(|number| spec.volumes[*number].tenant);
    for number in inward {
        let volume = &spec.volumes[number];
        let used = &mut used[volume.pool as usize];
        bases[number] = *used;
        // Rounded up so that every volume begins at an element, with room for its shift.
        let room = volume.capacity_bytes + if volume.shift_bytes > 0 { 1 << 20 } else { 0 };
        *used += room.next_multiple_of(1 << 20);
    }
    let place = |(volume, base): (&VolumeSpec, u64)| Volume {
        name: volume.name.clone(),
        pool: volume.pool,
        base,
        pages: Vec::new(),
        capacity_bytes: volume.capacity_bytes,
        shift_bytes: volume.shift_bytes,
        tenant: volume.tenant,
        prefetcher: Prefetcher::default(),
        recent: Recent::default(),
        counters: IoCounters::default(),
    };
    let mut volumes: Vec<Volume> = spec.volumes.iter().zip(bases).map(place).collect();
    for (number, pool) in spec.pools.iter().enumerate() {
        if pool.page_order == PageOrder::Spread {
            spread(&mut volumes, number as u32, pool.page_bytes, slice_counts[number]);
        }
    }
    volumes
}

/// Gives every volume of a pool its pages, on one box after the other, so that on each box the same
/// share of every volume lies before any place: a page comes by how far within its volume its
/// middle is.
fn spread(volumes: &mut [Volume], pool: u32, page_bytes: u64, slice_count: usize) {
    let mut by_slice: Vec<Vec<(u64, u32, u32)>> = vec![Vec::new(); slice_count];
    for (number, volume) in volumes.iter_mut().enumerate() {
        if volume.pool != pool {
            continue;
        }
        let count = volume.capacity_bytes.div_ceil(page_bytes) as u32;
        volume.pages = vec![0; count as usize];
        for page in 0..count {
            let middle = ((u128::from(2 * u64::from(page) + 1) << 63) / u128::from(count)) as u64;
            by_slice[page as usize % slice_count].push((middle, number as u32, page));
        }
    }
    for (slice, pages) in by_slice.iter_mut().enumerate() {
        pages.sort_unstable();
        for (place, (_, number, page)) in pages.iter().enumerate() {
            volumes[*number as usize].pages[*page as usize] = (place * slice_count + slice) as u32;
        }
    }
}
