//! Long values: each whole, each referred to as often as it counts.

use super::Findings;
use super::content::{PROBLEMS_MAX, walk_tree};
use super::space::SpaceMap;
use super::sum::Sum;
use crate::PageNumber;
use crate::catalog::PlacedTable;
use crate::reader::DatabaseReader;

/// The long value being read: its number, its length, and how much of it has come.
struct Current {
    key: Vec<u8>,
    size_bytes: u64,
    seen_bytes: u64,
}

#[derive(Default)]
struct LongValues {
    current: Option<Current>,
    references: Sum,
    count: u64,
    problems: Vec<(PageNumber, String)>,
}

impl LongValues {
    fn node(&mut self, page: PageNumber, key: &[u8], data: &[u8]) {
        if let Err(problem) = self.take(page, key, data)
            && self.problems.len() < PROBLEMS_MAX
        {
            self.problems.push((page, problem.to_owned()));
        }
    }

    fn take(&mut self, page: PageNumber, key: &[u8], data: &[u8]) -> Result<(), &'static str> {
        // Chunks repeat the number of their value in front of their offset.
        let offset = self
            .current
            .as_ref()
            .and_then(|current| key.strip_prefix(&current.key[..]));
        if let (Some(offset), Some(current)) = (offset.filter(|offset| !offset.is_empty()), &mut self.current)
        {
            let offset: [u8; 4] = offset.try_into().map_err(|_| "a chunk has a malformed key")?;
            let is_next = u64::from(u32::from_be_bytes(offset)) == current.seen_bytes;
            // What a compressed chunk holds is not looked at; the next offset tells.
            current.seen_bytes += data.len() as u64;
            return if is_next {
                Ok(())
            } else {
                Err("a chunk of a long value is missing or too much")
            };
        }
        self.finish(page);
        let number = match *key {
            [a, b, c, d] => u64::from(u32::from_be_bytes([a, b, c, d])),
            [a, b, c, d, e, f, g, h] => u64::from_be_bytes([a, b, c, d, e, f, g, h]),
            _ => return Err("a long value has a malformed number"),
        };
        let [count, size, ..] = *data.as_chunks::<4>().0 else {
            return Err("a long value has no size");
        };
        let count = u32::from_le_bytes(count);
        self.references
            .add_times(&number.to_le_bytes(), &[], u64::from(count));
        self.count += 1;
        self.current = Some(Current {
            key: key.to_vec(),
            size_bytes: u64::from(u32::from_le_bytes(size)),
            seen_bytes: 0,
        });
        if count == 0 {
            Err("a long value that nobody refers to was left behind")
        } else {
            Ok(())
        }
    }

    fn finish(&mut self, page: PageNumber) {
        if let Some(current) = self.current.take()
            && current.seen_bytes != current.size_bytes
        {
            self.problems.push((
                page,
                format!(
                    "a long value has {} of its {} bytes",
                    current.seen_bytes, current.size_bytes
                ),
            ));
        }
    }
}

/// Walks the long values of a table and compares their reference counts with what its rows refer to.
pub(super) async fn check_long_values(
    reader: &DatabaseReader,
    placed: &PlacedTable,
    referred: Sum,
    map: &mut SpaceMap,
    findings: &mut Findings,
) {
    let Some(place) = placed.long_values else {
        if referred.count > 0 {
            findings.add(
                placed.place.object,
                0,
                "rows refer to long values, but the table has none",
            );
        }
        return;
    };
    let mut values = LongValues::default();
    {
        let visit = &mut |page: PageNumber, key: &[u8], data: &[u8]| values.node(page, key, data);
        walk_tree(reader, place, map, findings, visit).await;
    }
    values.finish(0);
    findings.report.long_values += values.count;
    for (page, problem) in values.problems {
        findings.add(place.object, page, problem);
    }
    if values.references != referred {
        let problem = format!(
            "rows refer to long values {} times, the values count {} references; some are missing or forgotten",
            referred.count, values.references.count
        );
        findings.add(place.object, 0, problem);
    }
}
