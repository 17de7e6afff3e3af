//! Places for tests: a folder on the build's own file system, and, for root, mounts and loop
//! devices. All are removed at the end of the test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A folder for one test on a real file system.
pub struct Place {
    root: PathBuf,
}

impl Place {
    /// An empty folder below the build's own temporary folder.
    pub fn new(name: &str) -> Self {
        let root =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        fs::create_dir_all(&root).expect("the build folder is writable");
        Self { root }
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.root
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

/// Says why a test does nothing, unless this user is root.
pub fn root_or_skip(test: &str) -> bool {
    // SAFETY: the call has no arguments and cannot fail.
    let root = unsafe { libc::geteuid() } == 0;
    if !root {
        eprintln!("skipped: {test} needs root");
    }
    root
}

/// Runs a command; answers its output when it succeeds.
pub fn run(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        eprintln!("{program} {arguments:?} failed: {said}");
        return None;
    }
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// A mounted file system.
pub struct Mounted {
    pub point: PathBuf,
}

impl Mounted {
    /// Mounts `source` as `kind` in a new folder of `place`; `None`, with a message, where that
    /// cannot be done.
    pub fn new(place: &Place, kind: &str, source: &str, options: &str) -> Option<Self> {
        let point = place.root().join("mounted");
        fs::create_dir_all(&point).expect("the folder is ours");
        let target = point.to_str().expect("the build folder has an ordinary name");
        run("mount", &["-t", kind, "-o", options, source, target])?;
        Some(Self { point })
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let target = self.point.to_str().expect("the build folder has an ordinary name");
        for _ in 0..20 {
            if run("umount", &[target]).is_some() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
    }
}

/// A block device made of a file.
pub struct Loop {
    pub device: PathBuf,
}

impl Loop {
    /// A device of `size_bytes`; `None`, with a message, where that cannot be done.
    pub fn new(place: &Place, size_bytes: u64) -> Option<Self> {
        let backing = place.root().join("device");
        let file = fs::File::create(&backing).expect("the folder is ours");
        file.set_len(size_bytes).expect("a sparse file");
        let backing = backing.to_str().expect("the build folder has an ordinary name");
        let device = run("losetup", &["--find", "--show", backing])?;
        Some(Self { device: device.into() })
    }

    pub fn name(&self) -> &str {
        self.device.to_str().expect("devices have ordinary names")
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        run("losetup", &["--detach", self.name()]);
    }
}
