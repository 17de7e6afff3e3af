//! The dictionary is the contract between the side that measures and the side that judges.

use plimsoll_measure::{COLUMNS, ColumnType, METRICS, Row, column_buffers, metric_code};

/// A buffer of the wrong width would be read as other numbers, silently.
#[test]
fn every_column_has_the_width_its_type_says() {
    let rows = [Row::default(), Row { value: 1.5, count: 7, ..Row::default() }];
    let buffers = column_buffers(&rows);
    assert_eq!(buffers.len(), COLUMNS.len());
    for (column, buffer) in COLUMNS.iter().zip(&buffers) {
        let width = if column.kind == ColumnType::U32 { 4 } else { 8 };
        assert_eq!(buffer.len(), 2 * width, "{}", column.name);
    }
    let position =
        |name: &str| COLUMNS.iter().position(|column| column.name == name).expect("a column");
    assert_eq!(buffers[position("count")][8..], 7u64.to_le_bytes());
    assert_eq!(buffers[position("value")][8..], 1.5f64.to_le_bytes());
}

/// Names are what files hold, so two things must not share one, and a code must lead back to its
/// name.
#[test]
fn names_are_unique_and_found() {
    let mut names: Vec<&str> = METRICS.iter().map(|metric| metric.name).collect();
    for (code, name) in names.iter().enumerate() {
        assert_eq!(metric_code(name), Some(code as u32));
    }
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), METRICS.len());
    assert_eq!(metric_code("no such metric"), None);
}
