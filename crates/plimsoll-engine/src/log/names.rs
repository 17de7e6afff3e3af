//! File names of a log stream with base name `E00`: the current generation `E00.log`, closed ones
//! `E0000000001.log`, the next one being prepared `E00tmp.log`, the checkpoint `E00.chk`, holds of
//! clients `E00.holds`; generations of a history that was given up `E0000000002.1.aside`.

use std::path::{Path, PathBuf};

use crate::error::{EngineError, Result};

/// Where a log stream lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogNames {
    directory: PathBuf,
    base: String,
}

impl LogNames {
    /// The stream `base` in `directory`. The base is a part of file names and holds no slash;
    /// `"E00"` is usual. An instance is not opened with another.
    pub fn new(directory: impl AsRef<Path>, base: &str) -> Self {
        Self { directory: directory.as_ref().to_owned(), base: base.to_owned() }
    }

    /// Refuses a base that makes no names of files in the directory, or hidden ones.
    pub(crate) fn check(&self) -> Result<()> {
        let base = &self.base;
        if !base.is_empty() && !base.starts_with('.') && !base.contains(['/', '\0']) {
            return Ok(());
        }
        let why = format!(
            "no file of the log can be named after {base:?}: choose a name like \"E00\", which \
             is not empty, has no slash and begins with no dot"
        );
        Err(EngineError::BadOption { name: "log", why })
    }

    /// The stream that a file belongs to by its name, if that is one of a generation.
    pub fn of_generation(path: &Path) -> Option<Self> {
        let stem = path.file_name()?.to_str()?.strip_suffix(".log")?;
        let digits_at = stem.len().checked_sub(8).filter(|at| stem.is_char_boundary(*at));
        let base = match digits_at.map(|at| stem.split_at(at)) {
            Some((base, digits)) if u32::from_str_radix(digits, 16).is_ok() => base,
            _ => stem,
        };
        Some(Self::new(path.parent()?, base))
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The generation being written.
    pub fn current(&self) -> PathBuf {
        self.directory.join(format!("{}.log", self.base))
    }

    /// A closed generation.
    pub fn closed(&self, generation: u32) -> PathBuf {
        self.directory.join(format!("{}{generation:08X}.log", self.base))
    }

    /// The next generation, formatted ahead.
    pub fn prepared(&self) -> PathBuf {
        self.directory.join(format!("{}tmp.log", self.base))
    }

    /// Where a generation goes that belongs to a history given up: no reader takes it for one of
    /// the stream.
    pub fn set_aside(&self, generation: u32, number: u32) -> PathBuf {
        self.directory.join(format!("{}{generation:08X}.{number}.aside", self.base))
    }

    /// The checkpoint file.
    pub fn checkpoint(&self) -> PathBuf {
        self.directory.join(format!("{}.chk", self.base))
    }

    /// The file of the holds.
    pub fn holds(&self) -> PathBuf {
        self.directory.join(format!("{}.holds", self.base))
    }

    /// Whether a file name is that of the holds.
    pub fn is_holds(&self, file_name: &str) -> bool {
        file_name.strip_prefix(&self.base) == Some(".holds")
    }

    /// The generation and the number of a file name, if it is a generation of this stream that was
    /// set aside.
    pub fn set_aside_of(&self, file_name: &str) -> Option<(u32, u32)> {
        let (digits, number) =
            file_name.strip_prefix(&self.base)?.strip_suffix(".aside")?.split_once('.')?;
        let generation = u32::from_str_radix(digits, 16).ok()?;
        (digits.len() == 8).then_some((generation, number.parse().ok()?))
    }

    /// The generation a file name stands for, if it is a closed generation of this stream.
    pub fn generation_of(&self, file_name: &str) -> Option<u32> {
        let digits = file_name.strip_prefix(&self.base)?.strip_suffix(".log")?;
        (digits.len() == 8).then(|| u32::from_str_radix(digits, 16).ok()).flatten()
    }
}
