//! What the family counts: its operations, and single transfers by their size.

use plimsoll_measure::{Metric, MetricKind};

/// The operations: transactions by the direction of their request.
pub const OPERATIONS: [&str; 2] = ["file_read", "file_write"];

const fn timing(name: &'static str, meaning: &'static str) -> Metric {
    Metric { name, kind: MetricKind::Timing, unit: "ns", meaning }
}

/// The metrics of single transfers by their size, with the largest size that counts for each.
const SIZE_CLASSES: [(&str, u64); 12] = [
    ("file_io_512", 512),
    ("file_io_1k", 1 << 10),
    ("file_io_2k", 2 << 10),
    ("file_io_4k", 4 << 10),
    ("file_io_8k", 8 << 10),
    ("file_io_16k", 16 << 10),
    ("file_io_32k", 32 << 10),
    ("file_io_64k", 64 << 10),
    ("file_io_128k", 128 << 10),
    ("file_io_256k", 256 << 10),
    ("file_io_1m", 1 << 20),
    ("file_io_larger", u64::MAX),
];

/// What the family adds to the dictionary.
pub const METRICS: [Metric; 15] = [
    timing(
        OPERATIONS[0],
        "transactions on files whose request reads, from the intended start to the end of the \
         reply",
    ),
    timing(OPERATIONS[1], "transactions on files whose request writes, likewise"),
    timing(SIZE_CLASSES[0].0, "transfers of up to 512 bytes as the workload asked for them"),
    timing(SIZE_CLASSES[1].0, "transfers of up to 1 KiB, likewise"),
    timing(SIZE_CLASSES[2].0, "transfers of up to 2 KiB, likewise"),
    timing(SIZE_CLASSES[3].0, "transfers of up to 4 KiB, likewise"),
    timing(SIZE_CLASSES[4].0, "transfers of up to 8 KiB, likewise"),
    timing(SIZE_CLASSES[5].0, "transfers of up to 16 KiB, likewise"),
    timing(SIZE_CLASSES[6].0, "transfers of up to 32 KiB, likewise"),
    timing(SIZE_CLASSES[7].0, "transfers of up to 64 KiB, likewise"),
    timing(SIZE_CLASSES[8].0, "transfers of up to 128 KiB, likewise"),
    timing(SIZE_CLASSES[9].0, "transfers of up to 256 KiB, likewise"),
    timing(SIZE_CLASSES[10].0, "transfers of up to 1 MiB, likewise"),
    timing(SIZE_CLASSES[11].0, "longer transfers, likewise"),
    Metric {
        name: "file_below_block",
        kind: MetricKind::Counter,
        unit: "count",
        meaning: "transfers that were no whole number of logical blocks and were made so",
    },
];

/// The metric that a transfer of this size counts for.
pub fn size_class(size_bytes: u64) -> &'static str {
    let found = SIZE_CLASSES.iter().find(|(_, largest)| size_bytes <= *largest);
    found.expect("the last class has no end").0
}
