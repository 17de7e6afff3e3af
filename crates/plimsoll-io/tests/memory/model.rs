//! Crash images against an independent account of what may and must be found.
//!
//! Random operations run on the disk and on a model that knows only the rules of
//! `docs/reference/fault-model.md`: for every sector the certain value and the values at risk since
//! then, for every name the files it has stood for since its directory was synced. Every image must
//! lie within that; and over many images every allowed value must turn up, because a disk that is
//! kinder than its model tests nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use plimsoll_io::{Buffer, Durability, File, Loss, MemoryDisk, MemoryOptions, OpenMode, Random};

use crate::rig::{Rig, label};

const SECTOR: usize = 512;
const SECTORS: u64 = 6;
const NAMES: [&str; 4] = ["a", "b", "c", "d"];

/// What a sector may hold.
struct Sector {
    certain: u32,
    at_risk: Vec<u32>,
}

struct ModelFile {
    file: File,
    number: u32,
    sectors: Vec<Sector>,
    length: u64,
    stable_length: u64,
}

struct Model {
    rig: Rig,
    random: Random,
    files: Vec<ModelFile>,
    /// Every file a name has stood for since its directory was last synced, oldest first.
    names: BTreeMap<&'static str, Vec<Option<usize>>>,
    next_value: u32,
}

fn sector_of(value: u32) -> Vec<u8> {
    value.to_le_bytes().repeat(SECTOR / 4)
}

fn value_of(sector: &[u8]) -> u32 {
    let value = u32::from_le_bytes(sector[..4].try_into().unwrap());
    assert!(sector == sector_of(value), "a sector is torn");
    value
}

impl Model {
    fn new(seed: u64) -> Self {
        Self {
            rig: Rig::new(MemoryOptions::default()),
            random: Random::from_seed(seed),
            files: Vec::new(),
            names: NAMES.map(|name| (name, vec![None])).into(),
            next_value: 1,
        }
    }

    fn present(&self, name: &str) -> Option<usize> {
        *self.names[name].last().unwrap()
    }

    fn change(&mut self, name: &'static str, file: Option<usize>) {
        self.names.get_mut(name).unwrap().push(file);
    }

    fn step(&mut self) {
        let name = NAMES[self.random.below(4) as usize];
        match self.random.below(16) {
            0..9 => self.write(),
            9 => self.extend(),
            10..12 => self.sync(),
            12 => self.sync_directory(),
            13 => self.delete(name),
            _ => self.create_or_rename(name),
        }
    }

    /// Creates the name, or renames it where it exists.
    fn create_or_rename(&mut self, name: &'static str) {
        let files = self.rig.files.clone();
        if let Some(file) = self.present(name) {
            let target = NAMES[self.random.below(4) as usize];
            self.rig
                .run(async move { files.rename(name.as_ref(), target.as_ref(), label()).await })
                .unwrap();
            if name != target {
                self.change(name, None);
                self.change(target, Some(file));
            }
            return;
        }
        let file =
            self.rig.run(async move { files.open(name, OpenMode::Create, label()).await }).unwrap();
        // The file's number is its first sector, durable, so that it is known in every image it is
        // in.
        let number = self.take_value();
        self.rig.write(&file, 0, &sector_of(number), Durability::Durable);
        self.files.push(ModelFile {
            file,
            number,
            sectors: (0..SECTORS)
                .map(|sector| Sector {
                    certain: if sector == 0 { number } else { 0 },
                    at_risk: Vec::new(),
                })
                .collect(),
            length: SECTOR as u64,
            stable_length: SECTOR as u64,
        });
        self.change(name, Some(self.files.len() - 1));
    }

    fn take_value(&mut self) -> u32 {
        self.next_value += 1;
        self.next_value
    }

    fn any_file(&mut self) -> Option<usize> {
        let count = self.files.len() as u64;
        (count > 0).then(|| self.random.below(count) as usize)
    }

    fn write(&mut self) {
        let Some(index) = self.any_file() else { return };
        let first = 1 + self.random.below(SECTORS - 1);
        let last = first + self.random.below(SECTORS - first);
        let is_durable = self.random.below(4) == 0;
        let is_awaited = self.random.below(4) > 0;
        let values: Vec<u32> = (first..=last).map(|_| self.take_value()).collect();
        let bytes: Vec<u8> = values.iter().flat_map(|value| sector_of(*value)).collect();
        let file = &mut self.files[index];
        let length_before = file.length;
        let end = (last + 1) * SECTOR as u64;
        file.length = file.length.max(end);
        if is_durable {
            file.stable_length = file.stable_length.max(end);
        }
        for (sector, value) in (first..=last).zip(values) {
            let sector = &mut file.sectors[sector as usize];
            if is_durable {
                *sector = Sector { certain: value, at_risk: Vec::new() };
            } else {
                sector.at_risk.push(value);
            }
        }
        let durability = if is_durable { Durability::Durable } else { Durability::Volatile };
        let offset = first * SECTOR as u64;
        if is_awaited || is_durable {
            self.rig.write(&file.file, offset, &bytes, durability);
        } else {
            drop(file.file.write(offset, Buffer::copy_of(&bytes), durability, label()));
            let is_synced_beside = self.random.below(2) == 0;
            if is_synced_beside {
                // The sync is submitted while the write is in flight, so it covers only what was
                // before.
                let file = &mut self.files[index];
                file.settle(first..last + 1, length_before);
                self.rig.sync(&file.file);
            }
            self.check_images();
            let handle = self.rig.executor.handle();
            self.rig.run(async move { handle.sleep(1_000_000).await });
        }
    }

    fn extend(&mut self) {
        let Some(index) = self.any_file() else { return };
        let length = (1 + self.random.below(SECTORS)) * SECTOR as u64;
        let file = &mut self.files[index];
        file.length = file.length.max(length);
        let handle = file.file.clone();
        self.rig.run(async move { handle.extend(length, label()).await }).unwrap();
    }

    fn sync(&mut self) {
        let Some(index) = self.any_file() else { return };
        let file = &mut self.files[index];
        self.rig.sync(&file.file);
        file.settle(0..0, file.length);
    }

    fn sync_directory(&mut self) {
        let files = self.rig.files.clone();
        self.rig.run(async move { files.sync_directory("".as_ref(), label()).await }).unwrap();
        for states in self.names.values_mut() {
            *states = vec![*states.last().unwrap()];
        }
    }

    fn delete(&mut self, name: &'static str) {
        if self.present(name).is_none() {
            return;
        }
        let files = self.rig.files.clone();
        self.rig.run(async move { files.delete(name.as_ref(), label()).await }).unwrap();
        self.change(name, None);
    }

    /// Makes a few images and holds each to the rules.
    fn check_images(&mut self) {
        for loss in [Loss::Drawn, Loss::Drawn, Loss::Everything, Loss::Nothing] {
            let image = self.rig.disk.crash_image(loss, &mut self.random);
            self.check_image(&image);
        }
    }

    fn check_image(&self, image: &MemoryDisk) {
        let mut seen = BTreeSet::new();
        for (name, states) in &self.names {
            let Some(bytes) = image.bytes(name) else {
                assert!(states.contains(&None), "{name} is missing and never was");
                continue;
            };
            let number = value_of(&bytes[..SECTOR]);
            assert!(seen.insert(number), "one file under two names");
            let file = states
                .iter()
                .flatten()
                .map(|index| &self.files[*index])
                .find(|file| file.number == number);
            let file = file.unwrap_or_else(|| panic!("{name} never stood for file {number}"));
            file.check(&bytes);
        }
    }
}

impl ModelFile {
    /// What a sync makes certain: everything but the newest write of the sectors with one in
    /// flight.
    fn settle(&mut self, in_flight: Range<u64>, length: u64) {
        self.stable_length = self.stable_length.max(length);
        for (index, sector) in self.sectors.iter_mut().enumerate() {
            let newest =
                in_flight.contains(&(index as u64)).then(|| sector.at_risk.pop()).flatten();
            if let Some(last) = sector.at_risk.drain(..).next_back() {
                sector.certain = last;
            }
            sector.at_risk.extend(newest);
        }
    }

    fn check(&self, bytes: &[u8]) {
        let length = bytes.len() as u64;
        assert!((self.stable_length..=self.length).contains(&length), "length {length}");
        for (index, found) in bytes.chunks(SECTOR).enumerate() {
            let (sector, value) = (&self.sectors[index], value_of(found));
            let is_allowed = value == sector.certain || sector.at_risk.contains(&value);
            assert!(is_allowed, "sector {index} holds {value}, which it cannot");
        }
    }
}

/// No image breaks a rule, whatever was done before it and whatever was in flight.
#[test]
fn images_keep_the_rules() {
    for seed in 0..150 {
        let mut model = Model::new(seed);
        for _ in 0..60 {
            model.step();
            if model.random.below(6) == 0 {
                model.check_images();
            }
        }
    }
}

/// Everything that may be found is found at some time, or the disk would be kinder than its rules.
#[test]
fn images_use_the_whole_room() {
    let mut met = 0;
    for seed in 0..10 {
        let mut model = Model::new(seed);
        for _ in 0..40 {
            model.step();
        }
        let images: Vec<_> =
            (0..400).map(|_| model.rig.disk.crash_image(Loss::Drawn, &mut model.random)).collect();
        for name in NAMES {
            let file = model.present(name).map(|index| &model.files[index]);
            for (index, sector) in file.iter().flat_map(|file| file.sectors.iter().enumerate()) {
                // Older values at risk need every newer one to be lost; three are met surely
                // enough.
                if sector.at_risk.is_empty() || sector.at_risk.len() > 3 {
                    continue;
                }
                let place = index * SECTOR..(index + 1) * SECTOR;
                let number = file.unwrap().number;
                let found: BTreeSet<u32> = images
                    .iter()
                    .filter_map(|image| image.bytes(name))
                    .filter(|bytes| {
                        value_of(&bytes[..SECTOR]) == number && bytes.len() >= place.end
                    })
                    .map(|bytes| value_of(&bytes[place.clone()]))
                    .collect();
                let mut allowed: BTreeSet<u32> = sector.at_risk.iter().copied().collect();
                allowed.insert(sector.certain);
                assert_eq!(found, allowed, "seed {seed} {name} sector {index}");
                met += 1;
            }
        }
    }
    assert!(met > 20, "only {met} sectors had anything at risk");
}
