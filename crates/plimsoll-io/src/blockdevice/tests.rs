//! Every known mark is found where it lies, and nothing else is taken for one.

use super::signature::{MARKS, Place};
use super::{DATABASE, SCAN_BYTES, find_signature};
use crate::Random;

const CAPACITY_BYTES: usize = 5 << 20;

fn look_at(device: &[u8]) -> Option<&'static str> {
    let scan = SCAN_BYTES.min(device.len());
    find_signature(&device[..scan], &device[device.len() - scan..], device.len() as u64)
}

fn device_with(offset: usize, bytes: &[u8]) -> Vec<u8> {
    let mut device = vec![0; CAPACITY_BYTES];
    device[offset..offset + bytes.len()].copy_from_slice(bytes);
    device
}

/// A mark that the table has at a wrong place would let a disk full of data be destroyed.
#[test]
fn every_mark_is_found_at_every_place() {
    for mark in MARKS {
        for place in mark.places {
            let offset = match place {
                Place::Start(offset) => *offset,
                Place::End(before) => CAPACITY_BYTES - before,
            };
            let found = look_at(&device_with(offset, mark.magic));
            assert_eq!(found, Some(mark.owner), "{place:?}");
        }
    }
}

/// The marks whose place depends on the capacity.
#[test]
fn marks_counted_from_the_capacity_are_found() {
    let raid = [0xFC, 0x4E, 0x2B, 0xA9];
    let at = |offset| look_at(&device_with(offset, &raid));
    assert_eq!(at(CAPACITY_BYTES - 8192), Some("Linux RAID"), "version 1.0");
    assert_eq!(at(CAPACITY_BYTES - 65536), Some("Linux RAID"), "version 0.90");
    let uberblock = 0x00BA_B10C_u64.to_le_bytes();
    let label = 256 * 1024;
    for start in [0, label, CAPACITY_BYTES - 2 * label, CAPACITY_BYTES - label] {
        let found = look_at(&device_with(start + label / 2 + 5 * 1024, &uberblock));
        assert_eq!(found, Some("ZFS"), "the label at {start}");
    }
}

/// An empty device, a tiny one and one full of noise are nobody's.
#[test]
fn nothing_is_found_where_nothing_is() {
    assert_eq!(look_at(&vec![0; CAPACITY_BYTES]), None);
    assert_eq!(look_at(&[0; 4096]), None);
    assert_eq!(look_at(&vec![0xFF; CAPACITY_BYTES]), None);
    let mut noise = vec![0; CAPACITY_BYTES];
    Random::from_seed(1).fill(&mut noise);
    assert_eq!(look_at(&noise), None);
}

/// Our own database on a device is told from everybody else's data.
#[test]
fn a_database_is_known() {
    let mut device = device_with(4, &[0xEF, 0xCD, 0xAB, 0x89]);
    device[8..12].copy_from_slice(&0x620_u32.to_le_bytes());
    assert_eq!(look_at(&device), Some(DATABASE));
}
