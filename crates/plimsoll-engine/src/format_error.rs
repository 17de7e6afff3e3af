//! What can be wrong with bytes that should be part of a database. Decoders return these for any input and never panic; each says
//! where, what was found and what was expected.

use crate::FileType;

/// See the module text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// The file ends inside its header.
    #[error("the file ends inside its header ({found_bytes} bytes); it is no database, or it was cut off")]
    HeaderShort {
        /// Bytes there are.
        found_bytes: usize,
    },
    /// The word that marks ESE files is missing.
    #[error("the file does not begin like an ESE database (found {found:#010x} at byte 4); check the path")]
    NotEse {
        /// What is there instead.
        found: u32,
    },
    /// The header gives an impossible page size.
    #[error("the header gives a page size of {found_bytes} bytes; known are 4, 8, 16 and 32 KiB")]
    PageSize {
        /// What it gives.
        found_bytes: u32,
    },
    /// The header's checksum does not fit its content.
    #[error(
        "the header is damaged (checksum {stored:08x}, content {computed:08x}); run `plimsoll verify` on the file"
    )]
    HeaderChecksum {
        /// In the header.
        stored: u32,
        /// Of its content.
        computed: u32,
    },
    /// The header says that this is another kind of file.
    #[error("the file is no database but a {found:?} file; check the path")]
    FileType {
        /// What the header says.
        found: FileType,
    },
}
