//! Where files lie on the volumes: a plain allocator in the place of a file system.
//!
//! A file belongs to the volume whose folder holds it and grows in extents behind whatever was
//! allocated last, as on a freshly formatted volume; what deleted files leave is used again, first
//! fit. Nothing is written for it: the model knows no metadata.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Files grow in multiples of this.
const EXTENT_BYTES: u64 = 1024 * 1024;

/// A stretch of a file on its volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Extent {
    file_offset: u64,
    volume_offset: u64,
    bytes: u64,
}

#[derive(Debug, Default)]
struct FileMap {
    volume: u32,
    extents: Vec<Extent>,
}

impl FileMap {
    fn end(&self) -> u64 {
        self.extents.last().map_or(0, |extent| extent.file_offset + extent.bytes)
    }
}

#[derive(Debug)]
struct Space {
    capacity_bytes: u64,
    used_bytes: u64,
    free: Vec<(u64, u64)>,
}

/// Where every file lies.
#[derive(Debug)]
pub(super) struct Placement {
    folders: Vec<(PathBuf, u32)>,
    spaces: Vec<Space>,
    files: BTreeMap<PathBuf, u64>,
    maps: BTreeMap<u64, FileMap>,
    next_map: u64,
}

impl Placement {
    /// Volumes of these sizes; a path lies on the volume of the longest folder it is in, or else on
    /// the first.
    pub(super) fn new(folders: Vec<(PathBuf, u32)>, capacities: impl Iterator<Item = u64>) -> Self {
        let spaces = capacities.map(|capacity_bytes| Space {
            capacity_bytes,
            used_bytes: 0,
            free: Vec::new(),
        });
        Self {
            folders,
            spaces: spaces.collect(),
            files: BTreeMap::new(),
            maps: BTreeMap::new(),
            next_map: 0,
        }
    }

    fn volume_of(&self, path: &Path) -> u32 {
        let mine = self.folders.iter().filter(|(folder, _)| path.starts_with(folder));
        mine.max_by_key(|(folder, _)| folder.components().count()).map_or(0, |(_, volume)| *volume)
    }

    /// The map of a file that was opened, a fresh one when it is new here.
    pub(super) fn open(&mut self, path: &Path) -> u64 {
        if let Some(map) = self.files.get(path) {
            return *map;
        }
        let map = self.next_map;
        self.next_map += 1;
        let volume = self.volume_of(path);
        self.files.insert(path.to_owned(), map);
        self.maps.insert(map, FileMap { volume, extents: Vec::new() });
        map
    }

    /// A file has a new name; what had it before is gone.
    pub(super) fn rename(&mut self, from: &Path, to: &Path) {
        if let Some(map) = self.files.remove(from) {
            self.delete(to);
            self.files.insert(to.to_owned(), map);
        }
    }

    /// A file is gone; its space is free again.
    pub(super) fn delete(&mut self, path: &Path) {
        let Some(map) = self.files.remove(path).and_then(|map| self.maps.get_mut(&map)) else {
            return;
        };
        let free = &mut self.spaces[map.volume as usize].free;
        free.extend(map.extents.drain(..).map(|extent| (extent.volume_offset, extent.bytes)));
    }

    /// Makes sure that a file has space up to `length_bytes`; false when its volume is full.
    pub(super) fn reserve(&mut self, map: u64, length_bytes: u64) -> bool {
        let Some(map) = self.maps.get_mut(&map) else {
            return false;
        };
        let space = &mut self.spaces[map.volume as usize];
        while map.end() < length_bytes {
            let end = map.end();
            let wanted = (length_bytes - end).next_multiple_of(EXTENT_BYTES);
            let Some((volume_offset, bytes)) = space.take(wanted) else {
                return false;
            };
            match map.extents.last_mut() {
                Some(last) if last.volume_offset + last.bytes == volume_offset => {
                    last.bytes += bytes
                }
                _ => map.extents.push(Extent { file_offset: end, volume_offset, bytes }),
            }
        }
        true
    }

    /// The stretches of a volume that a stretch of a file is made of; space for it must have been
    /// reserved.
    pub(super) fn stretches(&self, map: u64, offset: u64, bytes: u64) -> (u32, Vec<(u64, u64)>) {
        let map = &self.maps[&map];
        let mut found = Vec::with_capacity(1);
        let (mut at, end) = (offset, offset + bytes);
        let first =
            map.extents.partition_point(|extent| extent.file_offset + extent.bytes <= offset);
        for extent in &map.extents[first..] {
            if at >= end {
                break;
            }
            let within = at - extent.file_offset;
            let length = (extent.bytes - within).min(end - at);
            found.push((extent.volume_offset + within, length));
            at += length;
        }
        (map.volume, found)
    }

    /// The volume of a file.
    #[cfg(test)]
    pub(super) fn volume(&self, map: u64) -> u32 {
        self.maps[&map].volume
    }
}

impl Space {
    /// Takes up to `wanted` bytes in one piece: from the first free stretch, or from the end.
    fn take(&mut self, wanted: u64) -> Option<(u64, u64)> {
        if let Some((offset, bytes)) = self.free.first_mut() {
            let taken = wanted.min(*bytes);
            let found = (*offset, taken);
            (*offset, *bytes) = (*offset + taken, *bytes - taken);
            if *bytes == 0 {
                self.free.remove(0);
            }
            return Some(found);
        }
        let bytes = wanted.min(self.capacity_bytes - self.used_bytes);
        if bytes == 0 {
            return None;
        }
        let offset = self.used_bytes;
        self.used_bytes += bytes;
        Some((offset, bytes))
    }
}

#[cfg(test)]
mod tests;
