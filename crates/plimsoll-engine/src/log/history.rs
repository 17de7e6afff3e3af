//! The histories of a log: the one that the stream goes on with, and those that were given up and
//! set aside.
//!
//! A history is given up when databases are opened with less of the log than there is: the
//! generations behind are renamed, and no reader takes them for the stream's. They are kept,
//! because they say what was lost, and which pages a copy that followed them has to fetch anew.
//!
//! Names do not tell which files belong together: given up twice, generation 9 has two pasts. The
//! headers do: each names the creation time of the one before it and where that ended. What a
//! generation holds behind the place where the next goes on belongs to no history but that of a
//! process that died.

use std::collections::BTreeSet;

use super::Lsn;
use super::header::GenerationHeader;
use super::reader::{Generation, GenerationFile, LogReader};
use crate::error::Result;

/// A history that was given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenUp {
    /// Everything before this it has in common with the history that goes on, as far as that is
    /// known.
    pub parts_at: Lsn,
    /// All generations of it that are still there, in order: those of the stream before it parts,
    /// then those set aside.
    pub files: Vec<GenerationFile>,
}

/// A generation that was found, with its header and how far it can be read.
struct Found {
    file: GenerationFile,
    header: GenerationHeader,
    end: Lsn,
    is_aside: bool,
}

impl Found {
    /// Whether `next` goes on from this, or from this as it is read by others.
    fn precedes(&self, next: &GenerationHeader) -> bool {
        self.header.generation + 1 == next.generation
            && self.header.signature == next.signature
            && self.header.created == next.previous_created
            && self.end >= next.previous_end
    }

    /// Whether both are one generation, of which one may have been written further.
    fn is_twin_of(&self, other: &Found) -> bool {
        self.header == other.header
    }
}

/// All generations of a log directory, and which follows which.
struct Family {
    found: Vec<Found>,
}

impl Family {
    async fn read(reader: &LogReader) -> Result<Family> {
        let folder = reader.folder().await?;
        let (main, aside) = (folder.generations.into_iter(), folder.set_aside.into_iter());
        let all = main.map(|file| (file, false)).chain(aside.map(|file| (file, true)));
        let mut found = Vec::new();
        for (file, is_aside) in all {
            let generation = reader.read_found(&file).await?;
            found.push(Found { file, end: generation.end(), header: generation.header, is_aside });
        }
        Ok(Family { found })
    }

    /// The generation before `of`: the stream's own where several will do, for they are the same up
    /// to where `of` goes on.
    fn before(&self, of: usize) -> Option<usize> {
        let next = &self.found[of].header;
        let precedes = |index: &usize| self.found[*index].precedes(next);
        (0..self.found.len()).filter(precedes).min_by_key(|index| self.found[*index].is_aside)
    }

    /// A generation and all before it, in order.
    fn line_of(&self, newest: usize) -> Vec<usize> {
        let mut line = vec![newest];
        while let Some(before) = self.before(line[line.len() - 1]) {
            line.push(before);
        }
        line.reverse();
        line
    }

    /// Whether everything in a line is in another one, too, or in the stream: a generation may lie
    /// there twice.
    fn is_part_of_others(&self, line: &[usize], lines: &[Vec<usize>]) -> bool {
        let newest = line[line.len() - 1];
        let own = &self.found[newest];
        let others = lines.iter().filter(|other| *other != line);
        let in_others = others.flatten().any(|index| {
            let other = &self.found[*index];
            let is_before =
                other.end > own.end || !lines.iter().any(|line| line.ends_with(&[*index]));
            *index != newest
                && own.is_twin_of(other)
                && other.end >= own.end
                && (is_before || *index < newest)
        });
        let mut stream = self.found.iter().filter(|found| !found.is_aside);
        in_others || stream.any(|found| own.is_twin_of(found) && self.reach(found) >= own.end)
    }

    /// How far the stream goes in a generation, whatever that can be read to.
    fn reach(&self, of: &Found) -> Lsn {
        let stream = self.found.iter().filter(|found| !found.is_aside);
        let goes_on = stream.filter(|next| of.precedes(&next.header));
        goes_on.map(|next| next.header.previous_end).min().unwrap_or(of.end)
    }

    /// Where a line leaves the stream.
    fn parts_at(&self, line: &[usize]) -> Lsn {
        let first_aside = line.iter().position(|index| self.found[*index].is_aside);
        let first = &self.found[line[first_aside.unwrap_or(line.len() - 1)]];
        let mut stream = self.found.iter().filter(|found| !found.is_aside);
        if let Some(twin) = stream.find(|found| found.is_twin_of(first)) {
            return self.reach(twin).min(first.end);
        }
        match first_aside.and_then(|at| at.checked_sub(1)) {
            Some(before) => self.reach(&self.found[line[before]]).min(first.header.previous_end),
            // What was before it is gone.
            None => Lsn::new(first.header.generation, 0),
        }
    }

    fn files_of(&self, line: &[usize]) -> Vec<GenerationFile> {
        line.iter().map(|index| self.found[*index].file.clone()).collect()
    }
}

impl LogReader {
    /// Every history that was given up and of which something is still there, in the order in which
    /// they part from the stream.
    ///
    /// # Errors
    /// When a generation cannot be read.
    pub async fn given_up(&self) -> Result<Vec<GivenUp>> {
        let family = Family::read(self).await?;
        let aside: Vec<usize> =
            (0..family.found.len()).filter(|index| family.found[*index].is_aside).collect();
        let inner: BTreeSet<usize> =
            aside.iter().filter_map(|index| family.before(*index)).collect();
        let newest = aside.iter().filter(|index| !inner.contains(index));
        let lines: Vec<Vec<usize>> = newest.map(|index| family.line_of(*index)).collect();
        let of_its_own = lines.iter().filter(|line| !family.is_part_of_others(line, &lines));
        let mut given_up: Vec<GivenUp> = of_its_own
            .map(|line| GivenUp { parts_at: family.parts_at(line), files: family.files_of(line) })
            .collect();
        given_up.sort_by_key(|history| history.parts_at);
        Ok(given_up)
    }

    /// Reads a history that was given up from its beginning on, through the generations that it
    /// shares with the stream and those set aside.
    pub fn read_given_up(&self, history: &GivenUp) -> HistoryReader {
        HistoryReader::new(self.clone(), history.files.clone())
    }

    /// Reads the history that goes on, from generation `first` on, as far as it has come now.
    pub async fn read_history(&self, first: u32) -> Result<HistoryReader> {
        let mut files = self.generations().await?;
        files.retain(|file| file.generation >= first);
        Ok(HistoryReader::new(self.clone(), files))
    }
}

/// Reads the generations of one history in order: each as far as the next goes on from it, and
/// checked to be the next.
pub struct HistoryReader {
    reader: LogReader,
    files: Vec<GenerationFile>,
    /// How many were given.
    read: usize,
    /// The one after those, which is there already.
    ahead: Option<Generation>,
    previous: Option<Generation>,
}

impl HistoryReader {
    fn new(reader: LogReader, files: Vec<GenerationFile>) -> HistoryReader {
        HistoryReader { reader, files, read: 0, ahead: None, previous: None }
    }

    /// The next generation, `None` at the end. It may be dropped while it reads: nothing is lost.
    ///
    /// # Errors
    /// When a generation is missing or damaged, or does not follow the one before it.
    pub async fn next(&mut self) -> Result<Option<Generation>> {
        let Some(file) = self.files.get(self.read) else {
            return Ok(None);
        };
        if self.ahead.is_none() {
            self.ahead = Some(self.reader.read_found(file).await?);
        }
        let following = match self.files.get(self.read + 1) {
            Some(file) => Some(self.reader.read_found(file).await?),
            None => None,
        };
        let Some(mut generation) = std::mem::replace(&mut self.ahead, following) else {
            return Ok(None);
        };
        self.read += 1;
        let next = self.ahead.as_ref().map(|following| &following.header);
        if let Some(next) = next.filter(|next| generation.goes_beyond(next)) {
            generation.cut_at(next.previous_end);
        }
        if let Some(previous) = &self.previous {
            LogReader::check_chain(previous, &generation.header, &generation.path)?;
        }
        self.previous = Some(generation.clone());
        Ok(Some(generation))
    }
}
