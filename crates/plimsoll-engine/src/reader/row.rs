//! Rows of a table, one after the other, borrowed from their pages.

use std::borrow::Cow;

use super::{CompressionFault, LongValueScan, ReadError, TreeScan, Value, decompress};
use crate::catalog::{Place, PlacedTable};
use crate::{
    Column, FormatError, PageNumber, Record, RecordFault, RecordLayout, StoredValue, Table,
};

/// See [`super::DatabaseReader::rows`].
pub struct Rows {
    scan: TreeScan,
    layout: RecordLayout,
    long_values: Option<Place>,
    line: usize,
}

/// One row. Values that are in the record are borrowed; long values elsewhere are fetched.
pub struct Row<'a> {
    scan: &'a TreeScan,
    record: Record<'a>,
    long_values: Option<Place>,
    page: PageNumber,
    line: usize,
}

impl Rows {
    pub(super) fn new(scan: TreeScan, placed: &PlacedTable) -> Self {
        Self {
            scan,
            layout: RecordLayout::of_placed(placed),
            long_values: placed.long_values,
            line: 0,
        }
    }

    /// The next row, or `None` after the last.
    ///
    /// # Errors
    /// When a page or the record is damaged.
    pub async fn next(&mut self) -> Result<Option<Row<'_>>, ReadError> {
        loop {
            if let Some(line) = self.next_line()? {
                self.line = line + 1;
                return self.row(line).map(Some);
            }
            if self.scan.next_leaf().await?.is_none() {
                return Ok(None);
            }
            self.line = 0;
        }
    }

    /// The next line of the current leaf that is not deleted.
    fn next_line(&self) -> Result<Option<usize>, ReadError> {
        let Some(leaf) = self.scan.leaf() else {
            return Ok(None);
        };
        for line in self.line..leaf.view().lines() {
            let reader = self.scan.reader();
            let node = reader.view_fault(leaf.number(), leaf.view(), |view| view.node(line))?;
            if !node.is_deleted() {
                return Ok(Some(line));
            }
        }
        Ok(None)
    }

    fn row(&self, line: usize) -> Result<Row<'_>, ReadError> {
        let leaf = self.scan.leaf().expect("the line is on the current leaf");
        let (reader, page) = (self.scan.reader(), leaf.number());
        let node = reader.view_fault(page, leaf.view(), |view| view.node(line))?;
        let record = Record::parse(node.data, &self.layout, reader.page_size());
        let record =
            record.map_err(|fault| reader.fault(FormatError::Record { page, line, fault }))?;
        Ok(Row { scan: &self.scan, record, long_values: self.long_values, page, line })
    }
}

impl<'a> Row<'a> {
    /// Where the row lies: page and line.
    pub fn place(&self) -> (PageNumber, usize) {
        (self.page, self.line)
    }

    /// The value as the record holds it.
    ///
    /// # Errors
    /// When the record is damaged.
    pub fn stored(&self, column: &Column) -> Result<StoredValue<'a>, ReadError> {
        self.record.value_of(column).map_err(|fault| self.fault(fault))
    }

    /// The bytes of a value, the first of several, `None` for null. Defaults are filled in, long
    /// values fetched, compressed ones expanded.
    ///
    /// # Errors
    /// When the record or the long value is damaged, or the value is encrypted.
    pub async fn bytes(&self, column: &'a Column) -> Result<Option<Cow<'a, [u8]>>, ReadError> {
        let stored = match self.stored(column)? {
            StoredValue::Multi(values) => values.value(0).map_err(|fault| self.fault(fault))?,
            single => single,
        };
        self.resolve(column, stored).await
    }

    /// The bytes of one stored value; see [`Row::bytes`].
    ///
    /// # Errors
    /// As there.
    pub async fn resolve(
        &self,
        column: &'a Column,
        stored: StoredValue<'a>,
    ) -> Result<Option<Cow<'a, [u8]>>, ReadError> {
        let unusable = || self.fault(RecordFault::Outside { column: column.id });
        Ok(match stored {
            StoredValue::Null => None,
            StoredValue::Absent => column.default.as_deref().map(Cow::Borrowed),
            StoredValue::Bytes(bytes) => Some(Cow::Borrowed(bytes)),
            StoredValue::Compressed(bytes) => {
                let limit = self.scan.reader().page_size().bytes() * 64;
                let bytes = decompress(bytes, limit).map_err(|fault| match fault {
                    CompressionFault::Method { method } if CompressionFault::is_later(method) => {
                        self.scan.reader().packed(method)
                    }
                    _ => unusable(),
                })?;
                Some(Cow::Owned(bytes))
            }
            StoredValue::Separated { long_value } => {
                let scan = self.long_value(column, long_value).await?;
                Some(Cow::Owned(scan.read_all().await?))
            }
            StoredValue::Encrypted(_) | StoredValue::Multi(_) => return Err(unusable()),
        })
    }

    /// Begins to read a value that lies in the tree of long values.
    ///
    /// # Errors
    /// When the table has no such tree or the value is not in it.
    pub async fn long_value(
        &self,
        column: &Column,
        long_value: u64,
    ) -> Result<LongValueScan, ReadError> {
        let outside = RecordFault::Outside { column: column.id };
        let place = self.long_values.ok_or_else(|| self.fault(outside))?;
        LongValueScan::open(self.scan.reader(), place, long_value).await
    }

    /// Every column's value, in the order of the table, long ones included; of several values the
    /// first.
    ///
    /// # Errors
    /// As [`Row::bytes`].
    pub async fn values(&self, table: &'a Table) -> Result<Vec<(&'a str, Value)>, ReadError> {
        let mut values = Vec::with_capacity(table.columns.len());
        for column in &table.columns {
            let bytes = self.bytes(column).await?;
            let value = bytes.map_or(Value::Null, |bytes| Value::of(column, &bytes));
            values.push((&column.name[..], value));
        }
        Ok(values)
    }

    pub(super) fn fault(&self, fault: RecordFault) -> ReadError {
        let (page, line) = (self.page, self.line);
        self.scan.reader().fault(FormatError::Record { page, line, fault })
    }
}
