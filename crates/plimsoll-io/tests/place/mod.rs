//! A folder for one test on a real file system, removed at its end.

use std::fs;
use std::path::{Path, PathBuf};

pub struct Place {
    root: PathBuf,
}

impl Place {
    /// An empty folder below the build's own temporary folder.
    pub fn new(name: &str) -> Self {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        fs::create_dir_all(&root).expect("the build folder is writable");
        Self { root }
    }

    /// A new folder in it.
    pub fn folder(&self, name: &str) -> PathBuf {
        let folder = self.root.join(name);
        fs::create_dir(&folder).expect("each name is used once");
        folder
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}
