//! Where things are on a hard drive: zones, tracks and the angle of the platter.
//!
//! The recording rate falls linearly from the outer to the inner rim in equal rings; data sheets
//! give both ends. Each address has a radius (share of the stroke from the outer rim) and an angle,
//! both fractions of 2^32, so that positions are compared in whole numbers and a run is the same on
//! every machine. Rates are sustained rates: head and track switches are inside them.

use plimsoll_io::Nanos;

use crate::spec::HddSpec;

const ZONE_COUNT: usize = 24;
const FULL_TURN: f64 = 4_294_967_296.0;

struct Zone {
    start: u64,
    radius_start: f64,
    radius_per_byte: f64,
    turns_per_byte: f64,
    nanos_per_byte: f64,
}

/// The geometry of one drive model.
pub struct Mechanics {
    zones: Vec<Zone>,
    revolution_ns: u64,
    /// 2^64 over the revolution: multiplying by the time gives the angle in the upper bits.
    turn_per_ns: u64,
}

/// A stretch of addresses as the arm sees it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place {
    /// Share of the stroke, of 2^32.
    pub radius: u32,
    /// Angle of the first byte, of 2^32.
    pub angle: u32,
    /// Time under the head.
    pub transfer_ns: u32,
}

impl Mechanics {
    /// The geometry of a drive of this capacity.
    pub fn new(capacity_bytes: u64, spec: &HddSpec) -> Self {
        let revolution_ns = (60e9 / spec.rotation_rpm).round() as u64;
        let (outer, inner) = (spec.outer_bytes_per_second, spec.inner_bytes_per_second);
        let rates: Vec<f64> = (0..ZONE_COUNT)
            .map(|index| outer - (outer - inner) * (index as f64 + 0.5) / ZONE_COUNT as f64)
            .collect();
        let total: f64 = rates.iter().sum();
        let mut start = 0.0;
        let zones = rates.iter().enumerate().map(|(index, rate)| {
            let zone_bytes = capacity_bytes as f64 * rate / total;
            let zone = Zone {
                start: start as u64,
                radius_start: index as f64 / ZONE_COUNT as f64 * FULL_TURN,
                radius_per_byte: FULL_TURN / ZONE_COUNT as f64 / zone_bytes,
                turns_per_byte: 1e9 / (rate * revolution_ns as f64),
                nanos_per_byte: 1e9 / rate,
            };
            start += zone_bytes;
            zone
        });
        Self {
            zones: zones.collect(),
            revolution_ns,
            turn_per_ns: (u64::MAX as f64 / revolution_ns as f64) as u64,
        }
    }

    /// Time of one revolution.
    pub fn revolution_ns(&self) -> Nanos {
        self.revolution_ns
    }

    fn zone_of(&self, offset: u64) -> &Zone {
        let after = self.zones.partition_point(|zone| zone.start <= offset);
        &self.zones[after - 1]
    }

    /// Where a stretch begins and how long it takes to pass.
    pub fn place(&self, offset: u64, bytes: u32) -> Place {
        let zone = self.zone_of(offset);
        let within = (offset - zone.start) as f64;
        let turns = within * zone.turns_per_byte;
        Place {
            radius: (zone.radius_start + within * zone.radius_per_byte).min(FULL_TURN - 1.0) as u32,
            angle: ((turns - turns.floor()) * FULL_TURN) as u32,
            transfer_ns: (f64::from(bytes) * zone.nanos_per_byte) as u32,
        }
    }

    /// Time for `bytes` to pass at `offset`.
    pub fn transfer_ns(&self, offset: u64, bytes: u64) -> Nanos {
        (bytes as f64 * self.zone_of(offset).nanos_per_byte) as Nanos
    }

    /// The platter's angle at a moment.
    #[inline]
    pub fn angle_at(&self, time: Nanos) -> u32 {
        (time.wrapping_mul(self.turn_per_ns) >> 32) as u32
    }

    /// Time from one angle to the next.
    #[inline]
    pub fn turn_ns(&self, from: u32, to: u32) -> Nanos {
        (u64::from(to.wrapping_sub(from)) * self.revolution_ns) >> 32
    }
}
