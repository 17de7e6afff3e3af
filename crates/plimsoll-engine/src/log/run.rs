//! A run of log that is durable, as it is handed on.

use std::rc::Rc;

use super::Lsn;
use super::header::GenerationHeader;
use super::record::{LogRecord, decode_records};
use super::units::{UnitWrite, payload_start};
use crate::error::{EngineError, Result};

/// A run of log that is durable: whole records of one generation.
#[derive(Clone, Debug)]
pub struct LogRun {
    /// The header of the generation.
    pub header: Rc<GenerationHeader>,
    /// Where its records begin.
    pub from: Lsn,
    /// Where they end: everything before this is durable.
    pub upto: Lsn,
    payload: Rc<[u8]>,
    /// The payload offset at which `payload` begins, at or before `from`.
    payload_from: u32,
    /// The flush that wrote it, and its writes; none if it was read from a file.
    flush: u32,
    writes: Vec<UnitWrite>,
}

impl LogRun {
    /// What a flush has made durable. `payload` is that of the whole generation so far.
    pub(super) fn of_flush(
        header: &GenerationHeader,
        (from, upto): (Lsn, Lsn),
        (payload, flush): (&[u8], u32),
        writes: Vec<UnitWrite>,
    ) -> LogRun {
        let payload_from = payload_start(header.framing, &writes, from);
        LogRun {
            header: Rc::new(header.clone()),
            from,
            upto,
            payload: payload[payload_from as usize..upto.offset as usize].into(),
            payload_from,
            flush,
            writes,
        }
    }

    /// A run that was read from a file.
    pub(super) fn from_file(
        header: GenerationHeader,
        from: Lsn,
        upto: Lsn,
        payload: &[u8],
    ) -> LogRun {
        LogRun {
            header: Rc::new(header),
            payload: payload[from.offset as usize..upto.offset as usize].into(),
            payload_from: from.offset,
            from,
            upto,
            flush: 0,
            writes: Vec::new(),
        }
    }

    /// A run without the records before `from`, which its reader knows.
    pub(super) fn beginning_at(run: Rc<LogRun>, from: Lsn) -> Rc<LogRun> {
        if run.from >= from {
            return run;
        }
        Rc::new(LogRun { from, ..(*run).clone() })
    }

    /// The bytes of its records.
    pub fn payload(&self) -> &[u8] {
        &self.payload[(self.from.offset - self.payload_from) as usize..]
    }

    /// Its records, each with its place.
    ///
    /// # Errors
    /// [`EngineError::LogCorrupt`] for bytes that are no records.
    pub fn records(&self) -> Result<Vec<(Lsn, LogRecord)>> {
        decode_records(self.payload(), self.from).map_err(|(at, why)| EngineError::LogCorrupt {
            path: "what was logged".into(),
            offset: u64::from(at.offset),
            why: why.into(),
        })
    }

    /// What the flush wrote into the file of the generation: offset and bytes of each write, in
    /// order. Who carries all of them out behind the header has the file. Nothing for a run that
    /// was read from a file: that is the file itself.
    pub fn framed(&self) -> Vec<(u64, Vec<u8>)> {
        let (framing, flush) = (self.header.framing, (self.header.generation, self.flush));
        let frame = |write: &UnitWrite| {
            let unit_bytes = framing.unit_bytes();
            let mut bytes = vec![0; write.units().len() * unit_bytes];
            for (unit, index) in bytes.chunks_exact_mut(unit_bytes).zip(write.units()) {
                write.frame(framing, unit, index, flush, (&self.payload, self.payload_from));
            }
            (write.offset(framing), bytes)
        };
        self.writes.iter().map(frame).collect()
    }

    /// Bytes of log that it keeps in memory.
    pub(super) fn bytes(&self) -> usize {
        self.payload.len()
    }
}
