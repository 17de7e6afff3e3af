//! What can be wrong with a database whose pages may all be sound one by one.

use std::borrow::Cow;

use serde::{Serialize, Serializer};

use crate::page::PageFault;
use crate::{PageClass, PageNumber, RecordFault};

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Finding {
    /// A page's checksum does not fit, or an empty page is in use.
    #[error("page {page} of object {object} is damaged ({class})")]
    PageDamaged {
        /// Its number.
        page: PageNumber,
        /// Tree that leads to it.
        object: u32,
        /// What the checksum says.
        class: PageClass,
    },
    /// A page is sound but malformed: tags, free space, key order.
    #[error("page {page} is malformed: {fault}")]
    PageMalformed {
        /// Its number.
        page: PageNumber,
        /// What is wrong.
        fault: PageFault,
    },
    /// A tree leads to a page of another object.
    #[error(
        "page {page} says that it belongs to object {found}, but the tree of object {expected} \
         leads to it"
    )]
    WrongObject {
        /// Its number.
        page: PageNumber,
        /// On the page.
        found: u32,
        /// Of the tree.
        expected: u32,
    },
    /// A page's flags do not fit its place: root, branch, leaf, kind of tree.
    #[error("page {page} has flags {found:#x}; its place in the tree asks for {expected:#x}")]
    WrongKind {
        /// Its number.
        page: PageNumber,
        /// On the page, as far as they tell the kind.
        found: u32,
        /// What they should be.
        expected: u32,
    },
    /// A page is younger than the header allows.
    #[error("page {page} has database time {dbtime}, above the header's {dbtime_max}")]
    DbtimeAboveHeader {
        /// Its number.
        page: PageNumber,
        /// On the page.
        dbtime: u64,
        /// In the header.
        dbtime_max: u64,
    },
    /// A tree leads out of the file.
    #[error("page {parent} leads to page {page}, but the file ends with page {page_max}")]
    PageOutside {
        /// Branch page.
        parent: PageNumber,
        /// Where it leads.
        page: PageNumber,
        /// Last page of the file.
        page_max: PageNumber,
    },
    /// Two ways lead to one page.
    #[error("page {page} is reached a second time, by the tree of object {object}")]
    ReachedTwice {
        /// Its number.
        page: PageNumber,
        /// Tree of the second way.
        object: u32,
    },
    /// A tree uses a page it does not own, or that belongs to one of its children.
    #[error("the tree of object {object} uses page {page}, which it does not own")]
    NotOwned {
        /// Its number.
        page: PageNumber,
        /// Tree.
        object: u32,
    },
    /// A tree uses a page that is listed as free.
    #[error("the tree of object {object} uses page {page}, which is listed as free")]
    UsedWhileFree {
        /// Its number.
        page: PageNumber,
        /// Tree.
        object: u32,
    },
    /// Pages are owned but neither free nor reached.
    #[error(
        "pages {first} to {last} are owned by object {object} but neither free nor in its tree"
    )]
    Leaked {
        /// First page.
        first: PageNumber,
        /// Last page.
        last: PageNumber,
        /// Owner.
        object: u32,
    },
    /// A leaf lies deeper or higher than the first one.
    #[error(
        "leaf {page} of object {object} lies on level {found}, the first leaf on level {expected}"
    )]
    UnequalDepth {
        /// Its number.
        page: PageNumber,
        /// Tree.
        object: u32,
        /// Its level, the root being 0.
        found: usize,
        /// The first leaf's.
        expected: usize,
    },
    /// A tree has more levels than any real one: its pages are chained, not branched.
    #[error("page {page} of object {object} lies deeper than any tree reaches")]
    TooDeep {
        /// Its number.
        page: PageNumber,
        /// Tree.
        object: u32,
    },
    /// A key is not below the separator that leads to its page, or below the one before.
    #[error("line {line} of page {page} lies outside the separators that lead to the page")]
    KeyOutsideSeparators {
        /// Page.
        page: PageNumber,
        /// Line.
        line: usize,
    },
    /// The last entry of a branch has a key, so that no page is responsible for what lies above.
    #[error("the last entry of branch {page} has a separator below that of the branch")]
    BranchEndsEarly {
        /// Branch page.
        page: PageNumber,
    },
    /// Keys do not rise from line to line, or from leaf to leaf.
    #[error("the key of line {line} of page {page} is not above the one before")]
    KeyOrder {
        /// Page.
        page: PageNumber,
        /// Line.
        line: usize,
    },
    /// A page points at another left neighbour than the tree gives.
    #[error("page {page} has left neighbour {found}, the tree gives {expected}")]
    WrongPrevious {
        /// Its number.
        page: PageNumber,
        /// On the page.
        found: PageNumber,
        /// By the tree; 0 for none, and on branches.
        expected: PageNumber,
    },
    /// A page points at another right neighbour than the tree gives.
    #[error("page {page} has right neighbour {found}, the tree gives {expected}")]
    WrongNext {
        /// Its number.
        page: PageNumber,
        /// On the page.
        found: PageNumber,
        /// By the tree; 0 for none, and on branches.
        expected: PageNumber,
    },
    /// The space header of a root cannot be read or contradicts the catalog.
    #[error("the space header on root {root} of object {object} is wrong: {problem}")]
    SpaceHeader {
        /// Root page.
        root: PageNumber,
        /// Tree.
        object: u32,
        /// What is wrong.
        problem: &'static str,
    },
    /// An entry of a space tree cannot be read.
    #[error("line {line} of page {page} is no extent")]
    BadExtent {
        /// Page.
        page: PageNumber,
        /// Line.
        line: usize,
    },
    /// Two extents of one list share pages.
    #[error("pages {first} to {last} are listed twice among the extents of object {object}")]
    ExtentsOverlap {
        /// First shared page.
        first: PageNumber,
        /// Last shared page.
        last: PageNumber,
        /// Owner.
        object: u32,
    },
    /// Free pages are not owned.
    #[error("pages {first} to {last} are free in object {object} but not owned by it")]
    FreeNotOwned {
        /// First such page.
        first: PageNumber,
        /// Last such page.
        last: PageNumber,
        /// Tree.
        object: u32,
    },
    /// A tree owns pages its parent does not own, or the database pages the file does not have.
    #[error("pages {first} to {last} are owned by object {object} but not by what it is part of")]
    NotOwnedByParent {
        /// First such page.
        first: PageNumber,
        /// Last such page.
        last: PageNumber,
        /// Tree.
        object: u32,
    },
    /// A tree owns pages that are free in its parent.
    #[error("pages {first} to {last} are owned by object {object} and free in its parent")]
    FreeInParent {
        /// First such page.
        first: PageNumber,
        /// Last such page.
        last: PageNumber,
        /// Tree.
        object: u32,
    },
    /// Two trees own the same pages.
    #[error(
        "pages {first} to {last} are owned by object {object} and by another child of its parent"
    )]
    OwnedTwice {
        /// First such page.
        first: PageNumber,
        /// Last such page.
        last: PageNumber,
        /// Tree.
        object: u32,
    },
    /// A record cannot be read.
    #[error("line {line} of page {page} is no record of table {table}: {fault}")]
    BadRecord {
        /// Page.
        page: PageNumber,
        /// Line.
        line: usize,
        /// Table.
        table: String,
        /// What is wrong.
        fault: RecordFault,
    },
    /// A record lies under another key than its columns give.
    #[error(
        "the record on line {line} of page {page} of table {table} lies under another key than its \
         columns give"
    )]
    WrongPrimaryKey {
        /// Page.
        page: PageNumber,
        /// Line.
        line: usize,
        /// Table.
        table: String,
    },
    /// An index does not hold exactly the entries its records call for.
    #[error(
        "index {index} of table {table} has {entries} entries; the records call for {expected}, or \
         for other ones"
    )]
    IndexDisagrees {
        /// Table.
        table: String,
        /// Index.
        index: String,
        /// Entries there are.
        entries: u64,
        /// Entries there should be.
        expected: u64,
    },
    /// A node of a long-value tree is neither head nor chunk, or a chunk is out of place.
    #[error("line {line} of page {page} of the long values of table {table}: {problem}")]
    BadLongValue {
        /// Page.
        page: PageNumber,
        /// Line.
        line: usize,
        /// Table.
        table: String,
        /// What is wrong.
        problem: &'static str,
    },
    /// The chunks of a long value are not as long together as its head says.
    #[error(
        "long value {long_value} of table {table} has {found_bytes} bytes, its head says \
         {expected_bytes}"
    )]
    LongValueLength {
        /// Table.
        table: String,
        /// Number of the value.
        long_value: u64,
        /// In its chunks.
        found_bytes: u64,
        /// In its head.
        expected_bytes: u64,
    },
    /// A long value is referred to by another number of records than it counts.
    #[error(
        "long value {long_value} of table {table} counts {counted} references, {found} were found"
    )]
    LongValueReferences {
        /// Table.
        table: String,
        /// Number of the value.
        long_value: u64,
        /// In its head; 0 if there is no such value.
        counted: u64,
        /// In the records.
        found: u64,
    },
    /// The shadow of the catalog has other rows than the catalog.
    #[error(
        "the catalog has {catalog_rows} rows, its shadow {shadow_rows}, and they are not the same"
    )]
    ShadowDiffers {
        /// Rows of MSysObjects.
        catalog_rows: u64,
        /// Rows of MSysObjectsShadow.
        shadow_rows: u64,
    },
    /// MSysObjids does not list an object of the catalog.
    #[error("object {object} of table object {table_object} is not listed as such in MSysObjids")]
    ObjectUnlisted {
        /// Object.
        object: u32,
        /// Its table.
        table_object: u32,
    },
    /// MSysObjids lists an object the catalog does not have.
    #[error(
        "MSysObjids lists object {object} of table object {table_object}, which the catalog does \
         not have"
    )]
    ObjectUnknown {
        /// Object.
        object: u32,
        /// Its table.
        table_object: u32,
    },
    /// Two trees have the same object number.
    #[error("object number {object} is used twice")]
    ObjectTwice {
        /// Object.
        object: u32,
    },
    /// An object number is above the highest the header knows.
    #[error("object {object} is above the highest object number of the header, {object_max}")]
    ObjectAboveHeader {
        /// Object.
        object: u32,
        /// In the header.
        object_max: u32,
    },
}

/// Written as the sentence that names what is wrong and where.
impl Serialize for Finding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Written as one sentence.
impl Serialize for Unchecked {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Something that was not checked, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} was not checked: {reason}")]
pub struct Unchecked {
    /// Table, index or tree.
    pub what: String,
    /// Why not.
    pub reason: Cow<'static, str>,
}

/// Findings up to a limit, and a count of the rest.
#[derive(Debug, Default)]
pub struct Findings {
    pub(super) listed: Vec<Finding>,
    pub(super) unlisted: u64,
    pub(super) unchecked: Vec<Unchecked>,
    pub(super) listed_max: usize,
}

impl Findings {
    pub(super) fn new(listed_max: usize) -> Self {
        Self { listed_max, ..Self::default() }
    }

    pub(super) fn push(&mut self, finding: Finding) {
        if self.listed.len() < self.listed_max {
            self.listed.push(finding);
        } else {
            self.unlisted += 1;
        }
    }

    pub(super) fn not_checked(&mut self, what: String, reason: impl Into<Cow<'static, str>>) {
        let reason = reason.into();
        let unchecked = Unchecked { what, reason };
        if self.unchecked.len() < self.listed_max && !self.unchecked.contains(&unchecked) {
            self.unchecked.push(unchecked);
        }
    }
}
