//! One sample as a row, and rows as one buffer per column in the order of
//! [`COLUMNS`](crate::COLUMNS).

use crate::{COLUMNS, Histogram};

/// One metric of one instance and database over one interval. Fields are the columns of the
/// dictionary.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "the dictionary says what each field means")]
pub struct Row {
    pub end_ns: u64,
    pub interval_ns: u64,
    pub phase: u32,
    pub host: u32,
    pub instance: u32,
    pub database: u32,
    pub workload: u32,
    pub metric: u32,
    pub count: u64,
    pub errors: u64,
    pub bytes: u64,
    pub latency_ns_sum: u64,
    pub latency_ns_max: u64,
    pub latency_ns_p50: u64,
    pub latency_ns_p99: u64,
    pub value: f64,
}

impl Row {
    /// Fills the latency columns and the count from a histogram.
    pub fn set_latencies(&mut self, histogram: &Histogram) {
        self.count = histogram.count();
        self.latency_ns_sum = histogram.sum_ns().min(u128::from(u64::MAX)) as u64;
        self.latency_ns_max = histogram.max_ns();
        self.latency_ns_p50 = histogram.quantile_ns(0.5);
        self.latency_ns_p99 = histogram.quantile_ns(0.99);
    }

    /// The value of the column at `position`, as its little-endian bytes.
    fn put(&self, position: usize, buffer: &mut Vec<u8>) {
        match position {
            0 => buffer.extend(self.end_ns.to_le_bytes()),
            1 => buffer.extend(self.interval_ns.to_le_bytes()),
            2 => buffer.extend(self.phase.to_le_bytes()),
            3 => buffer.extend(self.host.to_le_bytes()),
            4 => buffer.extend(self.instance.to_le_bytes()),
            5 => buffer.extend(self.database.to_le_bytes()),
            6 => buffer.extend(self.workload.to_le_bytes()),
            7 => buffer.extend(self.metric.to_le_bytes()),
            8 => buffer.extend(self.count.to_le_bytes()),
            9 => buffer.extend(self.errors.to_le_bytes()),
            10 => buffer.extend(self.bytes.to_le_bytes()),
            11 => buffer.extend(self.latency_ns_sum.to_le_bytes()),
            12 => buffer.extend(self.latency_ns_max.to_le_bytes()),
            13 => buffer.extend(self.latency_ns_p50.to_le_bytes()),
            14 => buffer.extend(self.latency_ns_p99.to_le_bytes()),
            15 => buffer.extend(self.value.to_le_bytes()),
            other => unreachable!("the dictionary has no column {other}"),
        }
    }
}

/// The rows as one buffer per column.
pub fn column_buffers(rows: &[Row]) -> Vec<Vec<u8>> {
    (0..COLUMNS.len())
        .map(|position| {
            let mut buffer = Vec::with_capacity(rows.len() * 8);
            for row in rows {
                row.put(position, &mut buffer);
            }
            buffer
        })
        .collect()
}
