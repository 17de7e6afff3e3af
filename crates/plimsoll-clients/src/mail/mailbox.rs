//! What is known of the folder that is open, and of the folders there are.

/// The open folder. Numbers of messages shift whenever one is expunged, by whomever; only UIDs
/// stay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mailbox {
    /// Its name.
    pub name: String,
    /// Messages in it.
    pub exists: u32,
    /// UIDs hold as long as this does not change.
    pub uid_validity: u32,
    /// The UID that the next message gets, as of when it was opened.
    pub uid_next: u32,
    /// Number of the last change; 0 where the server does not count them.
    pub highest_modseq: u64,
    /// Expunged since it was opened, by number, where the server says numbers.
    pub expunged_count: u64,
}

/// A folder of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    /// Its name as the server writes it.
    pub name: String,
    /// Whether it holds messages; otherwise only other folders.
    pub is_selectable: bool,
}
