//! One home: its folders and files as they should be, and what a scenario asks of them.
//!
//! A home stays about as full as it was made: a scenario that would add to one that has doubled is
//! gone through as its opposite, and so is one that would take from one that has halved.

use plimsoll_io::Random;

use super::scenario::{Effect, Operation, Scenarios, Step};
use crate::draw_place;

/// Empty folders that a home keeps at most.
const SPARE_FOLDERS_MAX: usize = 4;

/// How long files are, by chance: bytes and weights.
#[derive(Clone, Debug, PartialEq)]
pub struct Sizes {
    bytes: Vec<u64>,
    weights: Vec<f64>,
}

impl Sizes {
    /// These sizes with their weights.
    ///
    /// # Errors
    /// When there are none, one has no bytes, or the weights are no shares.
    pub fn new(sizes: &[(u64, f64)]) -> Result<Sizes, String> {
        let (bytes, weights): (Vec<u64>, Vec<f64>) = sizes.iter().copied().unzip();
        let possible = |weight: &f64| weight.is_finite() && *weight >= 0.0;
        if !weights.iter().all(possible) || weights.iter().sum::<f64>() <= 0.0 {
            return Err("the weights of the sizes are no shares; write numbers above 0".into());
        }
        if bytes.contains(&0) {
            return Err("a size of a file is 0; take at least a sector".into());
        }
        Ok(Sizes { bytes, weights })
    }

    /// The mean.
    pub fn mean_bytes(&self) -> f64 {
        let weighed = self.bytes.iter().zip(&self.weights);
        let total: f64 = weighed.map(|(bytes, weight)| *bytes as f64 * weight).sum();
        total / self.weights.iter().sum::<f64>()
    }

    fn draw(&self, random: &mut Random) -> u64 {
        self.bytes[draw_place(&self.weights, random)]
    }
}

/// What a home is made with.
#[derive(Clone, Debug, PartialEq)]
pub struct HomeShape {
    /// Folders in it, each with files.
    pub folders: u32,
    /// Files of each.
    pub files_per_folder: u32,
    /// How long they are.
    pub sizes: Sizes,
}

/// A file as it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileState {
    /// What it is called by.
    pub number: u64,
    /// What was written into it: no two writes of a home are the same.
    pub content: u64,
    /// Its length.
    pub size_bytes: u64,
}

impl FileState {
    /// Its name.
    pub fn name(&self) -> String {
        format!("f{:08}.dat", self.number)
    }

    /// What an editor would mark it with.
    pub fn lock_name(&self) -> String {
        format!("~f{:08}.lck", self.number)
    }
}

/// A folder as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderState {
    /// What it is called by.
    pub number: u64,
    /// Its files.
    pub files: Vec<FileState>,
}

impl FolderState {
    /// Its name.
    pub fn name(&self) -> String {
        format!("d{:06}", self.number)
    }
}

/// One thing to do. Folders are positions in [`Home::folders`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Move {
    /// Lists the home.
    ListHome,
    /// Lists a folder.
    List { folder: usize },
    /// Asks what a folder is.
    StatFolder { folder: usize },
    /// Asks what a file is.
    StatFile { folder: usize, file: FileState },
    /// Opens a name that is not there.
    Probe { folder: usize, name: String },
    /// Opens a file.
    OpenFile { folder: usize, file: FileState },
    /// Reads a piece of it.
    Read { file: FileState, offset: u64, size_bytes: u64 },
    /// Closes it.
    CloseFile,
    /// Creates the new file.
    CreateNew { folder: usize, file: FileState },
    /// Writes a piece of it.
    Write { file: FileState, offset: u64, size_bytes: u64 },
    /// Makes it durable.
    SyncNew,
    /// Closes it.
    CloseNew,
    /// Gives the new file the name of another, which goes.
    Replace { folder: usize, new: FileState, file: FileState },
    /// Deletes a file.
    Delete { folder: usize, file: FileState },
    /// Makes a folder.
    MakeFolder { number: u64 },
    /// Removes an empty folder.
    RemoveFolder { folder: usize },
}

impl Move {
    /// What it counts as.
    pub fn operation(&self) -> Operation {
        match self {
            Move::ListHome | Move::List { .. } => Operation::QueryDirectory,
            Move::StatFolder { .. } | Move::StatFile { .. } => Operation::QueryInfo,
            Move::Probe { .. } | Move::OpenFile { .. } | Move::CreateNew { .. } => {
                Operation::Create
            }
            Move::CloseFile | Move::CloseNew => Operation::Close,
            Move::Read { .. } => Operation::Read,
            Move::Write { .. } => Operation::Write,
            Move::SyncNew
            | Move::Replace { .. }
            | Move::Delete { .. }
            | Move::MakeFolder { .. }
            | Move::RemoveFolder { .. } => Operation::Other,
        }
    }
}

/// See the module text.
#[derive(Clone, Debug, PartialEq)]
pub struct Home {
    folders: Vec<FolderState>,
    made_with_files: usize,
    made_with_folders: usize,
    next_number: u64,
}

impl Home {
    /// A home as it is made.
    pub fn new(shape: &HomeShape, random: &mut Random) -> Home {
        let mut home = Home {
            folders: Vec::new(),
            made_with_files: (shape.folders * shape.files_per_folder) as usize,
            made_with_folders: shape.folders as usize,
            next_number: 1,
        };
        for _ in 0..shape.folders {
            let number = home.number();
            let files =
                (0..shape.files_per_folder).map(|_| home.new_file(&shape.sizes, random)).collect();
            home.folders.push(FolderState { number, files });
        }
        home
    }

    /// Its folders.
    pub fn folders(&self) -> &[FolderState] {
        &self.folders
    }

    /// How many files it has.
    pub fn file_count(&self) -> usize {
        self.folders.iter().map(|folder| folder.files.len()).sum()
    }

    fn number(&mut self) -> u64 {
        let number = self.next_number;
        self.next_number += 1;
        number
    }

    fn new_file(&mut self, sizes: &Sizes, random: &mut Random) -> FileState {
        let number = self.number();
        FileState { number, content: number, size_bytes: sizes.draw(random) }
    }

    fn empty_folders(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.folders.len()).filter(|position| self.folders[*position].files.is_empty())
    }

    /// The scenario that is gone through where one was drawn.
    pub fn chosen(&self, scenarios: &Scenarios, drawn: usize) -> usize {
        let (scenario, effect) = scenarios.get(drawn);
        let (files, folders) = (self.file_count(), self.folders.len());
        let is_too_much = match (effect.files, effect.folders) {
            (1, _) => files >= 2 * self.made_with_files,
            (-1, _) => files <= self.made_with_files.div_ceil(2),
            (_, 1) => folders >= self.made_with_folders + SPARE_FOLDERS_MAX,
            (_, -1) => folders <= self.made_with_folders || self.empty_folders().next().is_none(),
            _ => scenario.needs_file() && files == 0,
        };
        let opposite = Effect { files: -effect.files, folders: -effect.folders };
        match is_too_much {
            true => scenarios.with_effect(opposite).unwrap_or(drawn),
            false => drawn,
        }
    }

    /// What a scenario asks for, one thing after the other, in pieces of at most so many bytes;
    /// nothing where there is no file or folder for it.
    pub fn moves(
        &mut self,
        scenarios: &Scenarios,
        position: usize,
        sizes: &Sizes,
        piece_bytes: u64,
        random: &mut Random,
    ) -> Vec<Move> {
        let (scenario, effect) = scenarios.get(position);
        let found = match (scenario.needs_file(), effect.folders) {
            (true, _) => self.some_file(random),
            (false, -1) => self.some_empty_folder(random).map(|folder| (folder, None)),
            _ => Some((random.below(self.folders.len().max(1) as u64) as usize, None)),
        };
        let Some((folder, file)) = found.filter(|_| !self.folders.is_empty()) else {
            return Vec::new();
        };
        let new = self.new_file(sizes, random);
        let file = file.unwrap_or(new);
        let mut moves = Vec::new();
        for step in &scenario.steps {
            match step {
                Step::ListHome => moves.push(Move::ListHome),
                Step::ListFolder => moves.push(Move::List { folder }),
                Step::ListTree => {
                    moves.push(Move::ListHome);
                    moves.extend((0..self.folders.len()).map(|folder| Move::List { folder }));
                }
                Step::StatFolder => moves.push(Move::StatFolder { folder }),
                Step::StatFile => moves.push(Move::StatFile { folder, file }),
                Step::OpenFile => moves.push(Move::OpenFile { folder, file }),
                Step::ReadHead => {
                    let size_bytes = file.size_bytes.min(piece_bytes);
                    moves.push(Move::Read { file, offset: 0, size_bytes });
                }
                Step::ReadFile => {
                    let piece = |(offset, size_bytes)| Move::Read { file, offset, size_bytes };
                    moves.extend(pieces(file.size_bytes, piece_bytes).map(piece));
                }
                Step::CloseFile => moves.push(Move::CloseFile),
                Step::ProbeLock => moves.push(Move::Probe { folder, name: file.lock_name() }),
                Step::ProbeNew => moves.push(Move::Probe { folder, name: new.name() }),
                Step::CreateNew => moves.push(Move::CreateNew { folder, file: new }),
                Step::WriteNew => {
                    let piece =
                        |(offset, size_bytes)| Move::Write { file: new, offset, size_bytes };
                    moves.extend(pieces(new.size_bytes, piece_bytes).map(piece));
                }
                Step::SyncNew => moves.push(Move::SyncNew),
                Step::CloseNew => moves.push(Move::CloseNew),
                Step::StatNew => moves.push(Move::StatFile { folder, file: new }),
                Step::ReplaceFile => moves.push(Move::Replace { folder, new, file }),
                Step::DeleteFile => moves.push(Move::Delete { folder, file }),
                Step::MakeFolder => moves.push(Move::MakeFolder { number: self.number() }),
                Step::RemoveFolder => moves.push(Move::RemoveFolder { folder }),
            }
        }
        moves
    }

    /// A file, each as likely as any other.
    fn some_file(&self, random: &mut Random) -> Option<(usize, Option<FileState>)> {
        let count = self.file_count();
        let mut left = random.below(count.max(1) as u64) as usize;
        for (position, folder) in self.folders.iter().enumerate() {
            match folder.files.get(left) {
                Some(file) => return Some((position, Some(*file))),
                None => left -= folder.files.len(),
            }
        }
        None
    }

    fn some_empty_folder(&self, random: &mut Random) -> Option<usize> {
        let empty: Vec<usize> = self.empty_folders().collect();
        let chosen = random.below(empty.len().max(1) as u64) as usize;
        empty.get(chosen).copied()
    }

    /// Notes that a move was made.
    pub fn made(&mut self, done: &Move) {
        match done {
            Move::CreateNew { folder, file } => self.folders[*folder].files.push(*file),
            Move::Replace { folder, new, file } => {
                let files = &mut self.folders[*folder].files;
                files.retain(|held| held.number != new.number && held.number != file.number);
                files.push(FileState { number: file.number, ..*new });
            }
            Move::Delete { folder, file } => {
                self.folders[*folder].files.retain(|held| held.number != file.number);
            }
            Move::MakeFolder { number } => {
                self.folders.push(FolderState { number: *number, files: Vec::new() });
            }
            Move::RemoveFolder { folder } => {
                self.folders.remove(*folder);
            }
            _ => {}
        }
    }
}

/// The pieces of a file: offsets and lengths.
fn pieces(size_bytes: u64, piece_bytes: u64) -> impl Iterator<Item = (u64, u64)> {
    let count = size_bytes.div_ceil(piece_bytes);
    (0..count).map(move |index| {
        let offset = index * piece_bytes;
        (offset, piece_bytes.min(size_bytes - offset))
    })
}
