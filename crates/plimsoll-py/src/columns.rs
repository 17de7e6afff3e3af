//! The sample dictionary, as Python sees it.

use plimsoll_measure::{COLUMNS, METRICS};
use plimsoll_run::built_in;
use pyo3::prelude::*;

type Row = (&'static str, &'static str, &'static str, &'static str);

/// The columns of a sample table: name, numpy type, unit, meaning.
#[pyfunction]
pub fn columns() -> Vec<Row> {
    COLUMNS
        .iter()
        .map(|column| (column.name, column.kind.name(), column.unit, column.meaning))
        .collect()
}

/// What is measured: name, kind, unit, meaning; a row's metric is its position in this list.
#[pyfunction]
pub fn metrics() -> Vec<Row> {
    let families = built_in().metrics();
    METRICS
        .iter()
        .chain(&families)
        .map(|metric| (metric.name, metric.kind.name(), metric.unit, metric.meaning))
        .collect()
}
