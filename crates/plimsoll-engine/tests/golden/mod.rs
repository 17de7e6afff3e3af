//! Opens the golden files of `tests/golden/ese` and, where it is present, the shared folder with
//! databases made by Windows.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "golden files lie on the real disk"
)]

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

fn workspace_root() -> PathBuf {
    let mut above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let found = above.find(|folder| folder.join("tests/golden/ese").is_dir());
    found.expect("the golden files lie in the repository").to_owned()
}

fn gunzip(path: &Path) -> Vec<u8> {
    let file =
        std::fs::File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(file).read_to_end(&mut bytes).expect("golden files are sound");
    bytes
}

/// The content of a golden file, named without `.gz`.
pub fn golden(name: &str) -> Vec<u8> {
    gunzip(&workspace_root().join("tests/golden/ese").join(format!("{name}.gz")))
}

/// A golden JSON file.
pub fn golden_json(name: &str) -> serde_json::Value {
    serde_json::from_slice(&golden(name)).expect("golden JSON parses")
}

/// The folder of databases made by Windows, or `None` with a message saying that the test checks
/// nothing here. Whoever names a folder is told when there are none in it.
pub fn real_databases() -> Option<PathBuf> {
    let named = std::env::var_os("PLIMSOLL_SHARED").map(PathBuf::from);
    let is_named = named.is_some();
    let shared = named.unwrap_or_else(|| workspace_root().join("../shared"));
    let folder = shared.join("data/edb_real");
    if folder.is_dir() {
        return Some(folder);
    }
    assert!(
        !is_named,
        "PLIMSOLL_SHARED is set, and there are no databases made by Windows in {}",
        folder.display()
    );
    // Not through a macro: what those print is kept back when a test passes.
    let message = format!(
        "skipped: no databases made by Windows in {}; set PLIMSOLL_SHARED to test with them\n",
        folder.display()
    );
    let _ = std::io::stderr().write_all(message.as_bytes());
    None
}

/// The manifest of a folder: name of each file with what is known of it.
pub fn manifest(json: &[u8]) -> Vec<(String, serde_json::Value)> {
    let manifest: serde_json::Value = serde_json::from_slice(json).expect("manifests parse");
    let files = manifest["files"].as_array().expect("a manifest lists files");
    files
        .iter()
        .map(|file| {
            let name = file["file"].as_str().expect("files have names").to_owned();
            (name, file.clone())
        })
        .collect()
}

/// Every database made by Windows with its manifest entry; empty when the folder is absent.
pub fn real() -> Vec<(String, serde_json::Value, Vec<u8>)> {
    let Some(folder) = real_databases() else {
        return Vec::new();
    };
    let json = std::fs::read(folder.join("manifest.json")).expect("the folder has a manifest");
    let files = manifest(&json);
    assert!(!files.is_empty(), "the manifest of {} lists nothing", folder.display());
    files
        .into_iter()
        .map(|(name, entry)| {
            let bytes = gunzip(&folder.join(&name));
            (name, entry, bytes)
        })
        .collect()
}

/// Every synthetic database with its manifest entry.
pub fn synthetic() -> Vec<(String, serde_json::Value, Vec<u8>)> {
    let json = std::fs::read(workspace_root().join("tests/golden/ese/edb_manifest.json"))
        .expect("the manifest is committed");
    manifest(&json)
        .into_iter()
        .map(|(name, entry)| {
            let bytes = golden(name.trim_end_matches(".gz"));
            (name, entry, bytes)
        })
        .collect()
}

/// Path of the file that [`on_memory_disk`] puts on its disk.
pub const DATABASE: &str = "/db/database.edb";

/// Runs `work` on a disk in memory that holds `bytes` as [`DATABASE`].
pub fn on_memory_disk<T: 'static, F: Future<Output = T> + 'static>(
    bytes: &[u8],
    work: impl FnOnce(plimsoll_io::Files, plimsoll_io::Handle) -> F,
) -> T {
    use plimsoll_io::{Clock, Executor, Files, MemoryDisk, MemoryOptions, Random};
    let clock = std::rc::Rc::new(Clock::simulated());
    let disk = MemoryDisk::new(clock.clone(), Random::from_seed(1), MemoryOptions::ram());
    disk.create_directory("/db");
    disk.load(DATABASE, bytes);
    let executor = Executor::new(clock, disk.clone());
    let future = work(Files::new(disk), executor.handle());
    executor.run(future).expect("the disk answers everything")
}
