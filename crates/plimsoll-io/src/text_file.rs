//! Small text files of this machine that are no part of what is tested: passwords, certificates.

use std::io::Read;
use std::path::Path;

/// What is larger is not what was meant.
const BYTES_MAX: u64 = 1 << 20;

/// The text of a small file.
///
/// # Errors
/// A sentence that says what is wrong with the file: not there, not readable, too large, or no
/// text.
pub fn read_text_file(path: &Path) -> Result<String, String> {
    let failed = |reason: String| format!("{} cannot be read: {reason}", path.display());
    let file = std::fs::File::open(path).map_err(|error| failed(error.to_string()))?;
    let mut text = String::new();
    let read = file.take(BYTES_MAX + 1).read_to_string(&mut text);
    let bytes = read.map_err(|error| failed(error.to_string()))? as u64;
    match bytes <= BYTES_MAX {
        true => Ok(text),
        false => Err(failed("it is larger than 1 MiB".to_owned())),
    }
}
