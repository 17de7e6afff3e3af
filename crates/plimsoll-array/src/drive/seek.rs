//! How long an arm takes to move: one measured curve, scaled by a drive's average seek.
//!
//! Source of the shape: the seek table that DiskSim's extraction tool measured on a 300 GB 10k
//! drive (repository westerndigitalcorporation/DiskSim, valid/dualseek_example), divided by its
//! mean; the Atlas 10K extraction agrees within a tenth beyond two hundredths of the stroke. A
//! drive whose table is not published is assumed to have this shape.

use plimsoll_io::Nanos;

/// Distance as a share of the full stroke, and time as a multiple of the average seek.
const SHAPE: [(f64, f64); 17] = [
    (0.0, 0.06),
    (1.2e-5, 0.10),
    (5e-5, 0.15),
    (1e-4, 0.18),
    (5e-4, 0.24),
    (1e-3, 0.27),
    (5e-3, 0.345),
    (0.01, 0.375),
    (0.025, 0.44),
    (0.05, 0.52),
    (0.1, 0.66),
    (0.2, 0.855),
    (0.333, 1.04),
    (0.5, 1.26),
    (0.8, 1.625),
    (0.95, 1.88),
    (1.0, 1.97),
];
/// Below this share of the stroke the arm is on its track already.
const SAME_TRACK: u32 = 430;
const MANTISSA_BITS: u32 = 5;

/// Seek time by distance. A distance is a fraction of the full stroke, as `u32` of 2^32.
#[derive(Clone, Debug)]
pub struct SeekCurve {
    /// By the exponent and the first mantissa bits of the distance: fine steps where the curve is
    /// steep.
    table: Vec<u32>,
}

impl SeekCurve {
    /// The curve of a drive with this average read seek.
    pub fn new(average_ns: f64) -> Self {
        let table = (0..32 << MANTISSA_BITS)
            .map(|index: u32| (average_ns * multiple(middle_of(index) / 4_294_967_296.0)) as u32)
            .collect();
        Self { table }
    }

    /// Time for a distance; zero on the same track.
    #[inline]
    pub fn time_ns(&self, distance: u32) -> Nanos {
        if distance < SAME_TRACK {
            return 0;
        }
        let exponent = 31 - distance.leading_zeros();
        let mantissa = (distance >> (exponent - MANTISSA_BITS)) & ((1 << MANTISSA_BITS) - 1);
        Nanos::from(self.table[((exponent << MANTISSA_BITS) | mantissa) as usize])
    }
}

/// The distance in the middle of a table entry.
fn middle_of(index: u32) -> f64 {
    let steps = f64::from(1u32 << MANTISSA_BITS);
    let (exponent, mantissa) = (index >> MANTISSA_BITS, index & ((1 << MANTISSA_BITS) - 1));
    f64::from(exponent).exp2() * (1.0 + (f64::from(mantissa) + 0.5) / steps)
}

/// The shape, interpolated over the square root of the distance, as short seeks are ruled by
/// acceleration.
fn multiple(share: f64) -> f64 {
    let share = share.min(1.0);
    let upper = SHAPE.iter().position(|(x, _)| *x >= share).unwrap_or(SHAPE.len() - 1).max(1);
    let ((x0, y0), (x1, y1)) = (SHAPE[upper - 1], SHAPE[upper]);
    let part = (share.sqrt() - x0.sqrt()) / (x1.sqrt() - x0.sqrt());
    y0 + part.clamp(0.0, 1.0) * (y1 - y0)
}
