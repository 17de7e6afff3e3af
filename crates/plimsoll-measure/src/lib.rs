//! What a measurement is made of: one histogram configuration for every latency, and the dictionary
//! of sample columns.
//!
//! This crate is a leaf: it knows no I/O, no clock and no engine. Everybody who times something
//! records into these types, so that figures from different hosts, databases and phases can be
//! merged without conversion.

mod histogram;
mod row;
mod sample;

pub use histogram::{HISTOGRAM_MAX_NS, Histogram};
pub use row::{Row, column_buffers};
pub use sample::{COLUMNS, Column, ColumnType, METRICS, Metric, MetricKind, metric, metric_code};
