//! What can be wrong with bytes that should be part of a database. Decoders return these for any
//! input and never panic; each says where, what was found and what was expected.

use crate::catalog::CatalogFault;
use crate::page::PageFault;
// Circle: an error names the kind of file that was found, which the header defines.
use crate::{FileType, PageClass, PageNumber, RecordFault};

/// See the module text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// The file ends inside its header.
    #[error(
        "the file ends inside its header ({found_bytes} bytes); it is not a database, or it was \
         cut off"
    )]
    HeaderShort {
        /// Bytes there are.
        found_bytes: usize,
    },
    /// The word that marks ESE files is missing.
    #[error(
        "the file does not begin like an ESE database (found {found:#010x} at byte 4); check the \
         path"
    )]
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
        "the header is damaged (checksum {stored:08x}, content {computed:08x}); run `plimsoll \
         verify` on the file"
    )]
    HeaderChecksum {
        /// In the header.
        stored: u32,
        /// Of its content.
        computed: u32,
    },
    /// The header says that this is another kind of file.
    #[error("the file is not a database but a {found:?} file; check the path")]
    FileType {
        /// What the header says.
        found: FileType,
    },
    /// A page's checksum does not fit, or the page is not the one that belongs here.
    #[error("page {page} is damaged ({class}); run `plimsoll verify` on the file")]
    PageDamaged {
        /// Its number.
        page: PageNumber,
        /// What the checksum says.
        class: PageClass,
    },
    /// A page inside a sound checksum makes no sense.
    #[error("page {page} has a sound checksum but is malformed: {fault}")]
    Page {
        /// Its number.
        page: PageNumber,
        /// What is wrong.
        fault: PageFault,
    },
    /// A tree leads to a page outside the file.
    #[error("a tree leads to page {page}, but the file ends with page {page_max}")]
    PageOutside {
        /// Where it leads.
        page: PageNumber,
        /// Last page of the file.
        page_max: PageNumber,
    },
    /// A tree leads to a page of another tree.
    #[error("page {page} belongs to object {found}, but the tree of object {expected} leads to it")]
    WrongObject {
        /// Its number.
        page: PageNumber,
        /// Object on the page.
        found: u32,
        /// Object of the tree.
        expected: u32,
    },
    /// A tree has more levels or pages than the file could hold: it leads in circles.
    #[error("the tree of object {object} leads in circles, back to page {page}")]
    Circle {
        /// Object of the tree.
        object: u32,
        /// Where it was noticed.
        page: PageNumber,
    },
    /// A record cannot be read.
    #[error("line {line} of page {page} is no record of its table: {fault}")]
    Record {
        /// Page number.
        page: PageNumber,
        /// Line on the page.
        line: usize,
        /// What is wrong.
        fault: RecordFault,
    },
    /// The catalog cannot be read.
    #[error("line {line} of page {page} is no sound catalog row: {fault}")]
    Catalog {
        /// Page number.
        page: PageNumber,
        /// Line on the page.
        line: usize,
        /// What is wrong.
        fault: CatalogFault,
    },
    /// A long value is missing or incomplete.
    #[error("long value {long_value} of object {object} is {problem}")]
    LongValue {
        /// Object of the long-value tree.
        object: u32,
        /// Number of the value.
        long_value: u64,
        /// What is wrong with it.
        problem: &'static str,
    },
}

impl FormatError {
    /// The same error of a file of this length: what lies behind the last whole block was not read.
    pub(crate) fn of_file(self, length_bytes: u64) -> Self {
        match self {
            FormatError::HeaderShort { .. } => {
                FormatError::HeaderShort { found_bytes: length_bytes as usize }
            }
            other => other,
        }
    }
}
