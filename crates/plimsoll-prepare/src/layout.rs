//! Where everything lies, in closed form: given the number of records, every page's role follows by
//! arithmetic.
//!
//! ```text
//! 1 .. system end | table: root, OE, AE, leaves, branch levels | index: root, OE, AE, leaves, branch levels, free |
//!                 | long values: root, OE, AE, leaves, branch levels, free | free pages of the table |
//! ```
//!
//! The table owns everything from its root to the end of the file; the index and the long values
//! own their part of it. Each space tree therefore has one entry. The database root owns the whole
//! file and has nothing free.

use super::keys::{KEY_PREFIX_BYTES, NUMBER_KEY_BYTES, TAG_BYTES, node_space_bytes, number_key};
use super::plan::{Extent, LongValues, PAGES_MAX, Plan, PlanError, RECORD_NUMBER_MAX, Secondary};
use super::record::RecordForm;
use super::value::ValueForm;
use plimsoll_engine::PageNumber;
use plimsoll_engine::catalog::system::USER_OBJECT_MIN;
use plimsoll_engine::page::page_flags;

const SPACE_HEADER_BYTES: usize = 16;
const CHILD_BYTES: usize = 4;
/// The smallest database ESE makes.
const PAGES_MIN: u64 = 254;
/// Stands for the form of values where there are none.
const NO_VALUES: LongValues = LongValues { every: 1, bytes: 1 };
/// Free pages an index or a long-value tree gets at least, the least ESE asks for when a tree
/// grows.
const SHARE_PAGES_MIN: u32 = 16;

/// What the leaves of a tree hold.
#[derive(Clone, Copy, Debug)]
pub(super) enum Leaves {
    /// So many records each.
    Records(u64),
    /// So many index entries each.
    Entries(u64),
    /// Long values.
    Values(ValueForm),
}

impl Leaves {
    pub(super) fn flags(&self) -> u32 {
        match self {
            Leaves::Records(_) => 0,
            Leaves::Entries(_) => page_flags::INDEX,
            Leaves::Values(_) => page_flags::LONG_VALUE,
        }
    }

    /// Shows the first key of leaf `leaf`, which is the separator of the leaf before.
    pub(super) fn with_first_key(&self, leaf: u64, show: impl FnOnce(&[u8])) {
        match self {
            Leaves::Records(per_leaf) | Leaves::Entries(per_leaf) => {
                show(&number_key(leaf * per_leaf))
            }
            Leaves::Values(form) => show(&form.first_key(leaf)),
        }
    }

    /// The external header of leaves and branches: the bytes all keys share.
    pub(super) fn prefix(&self) -> &'static [u8] {
        match self {
            Leaves::Records(_) | Leaves::Entries(_) => &[0x7F, 0x80, 0, 0],
            Leaves::Values(_) => &[],
        }
    }

    fn separator_bytes_max(&self) -> usize {
        match self {
            Leaves::Records(_) | Leaves::Entries(_) => NUMBER_KEY_BYTES,
            Leaves::Values(_) => 8,
        }
    }
}

/// One level of branch pages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Level {
    pub first: PageNumber,
    pub below: Below,
}

/// The pages a branch level (or the root) points to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Below {
    pub first: PageNumber,
    pub pages: u32,
    /// Leaves under each of them.
    pub span: u64,
}

/// What a page of a tree is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Root,
    Owned,
    Available,
    Leaf(u64),
    /// Level above the leaves (counted from 0) and place in it.
    Branch(usize, u32),
    Free,
}

/// One tree: root, two space trees, leaves, branch levels, from bottom to top.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    pub object: u32,
    pub root: PageNumber,
    pub parent: PageNumber,
    pub leaves: Leaves,
    pub leaf_count: u64,
    pub fan_out: u32,
    pub levels: Vec<Level>,
    /// What the root points to.
    pub top: Below,
    /// Pages of the tree itself, from its root on.
    pub used_pages: u32,
    /// Pages it owns from its root on, those of its children included.
    pub owned_pages: u32,
    /// Its free extent.
    pub free_first: PageNumber,
    pub free_pages: u32,
}

impl Tree {
    fn new(
        plan: &Plan,
        object: u32,
        root: PageNumber,
        parent: PageNumber,
        leaves: Leaves,
        leaf_count: u64,
    ) -> Option<Tree> {
        let fan_out = fan_out(plan, &leaves);
        let leaf_first = root + 3;
        let mut below =
            Below { first: leaf_first, pages: u32::try_from(leaf_count).ok()?, span: 1 };
        let mut next = u64::from(leaf_first) + leaf_count;
        let mut levels = Vec::new();
        while below.pages > root_fan_out(plan, &leaves) {
            let pages = below.pages.div_ceil(fan_out);
            let first = page_number(next)?;
            levels.push(Level { first, below });
            next += u64::from(pages);
            below = Below { first, pages, span: below.span * u64::from(fan_out) };
        }
        let used_pages = page_number(next)? - root;
        Some(Tree {
            object,
            root,
            parent,
            leaves,
            leaf_count,
            fan_out,
            levels,
            top: below,
            used_pages,
            owned_pages: used_pages,
            free_first: root + used_pages,
            free_pages: 0,
        })
    }

    /// Adds free pages right behind the tree.
    fn with_free_pages(mut self, pages: u32) -> Option<Tree> {
        self.free_pages = pages;
        self.owned_pages = self.used_pages.checked_add(pages)?;
        page_number(u64::from(self.root) + u64::from(self.owned_pages))?;
        Some(self)
    }

    /// The last page of everything the tree owns.
    pub(super) fn last_owned(&self) -> PageNumber {
        self.root + self.owned_pages - 1
    }

    pub(super) fn leaf_page(&self, leaf: u64) -> PageNumber {
        self.root + 3 + leaf as u32
    }

    /// What `page` is in this tree, if the tree uses it or has it free.
    pub(super) fn role(&self, page: PageNumber) -> Option<Role> {
        let offset = page.checked_sub(self.root)?;
        if offset >= self.used_pages {
            let from_free = page.checked_sub(self.free_first)?;
            return (from_free < self.free_pages).then_some(Role::Free);
        }
        Some(match offset {
            0 => Role::Root,
            1 => Role::Owned,
            2 => Role::Available,
            _ if u64::from(offset - 3) < self.leaf_count => Role::Leaf(u64::from(offset - 3)),
            _ => {
                let level = self.levels.iter().rposition(|level| level.first <= page)?;
                Role::Branch(level, page - self.levels[level].first)
            }
        })
    }
}

fn page_number(number: u64) -> Option<PageNumber> {
    (number < PAGES_MAX).then_some(number as PageNumber)
}

fn fan_out(plan: &Plan, leaves: &Leaves) -> u32 {
    let prefix_bytes = leaves.prefix().len();
    let key_words = if prefix_bytes > 0 { 4 } else { 2 };
    let entry_bytes =
        TAG_BYTES + key_words + leaves.separator_bytes_max() - prefix_bytes + CHILD_BYTES;
    let space_bytes = node_space_bytes(plan.page_size, prefix_bytes);
    filled(space_bytes, plan.branch_fill_percent, entry_bytes, 2)
}

fn root_fan_out(plan: &Plan, leaves: &Leaves) -> u32 {
    let entry_bytes = TAG_BYTES + 2 + leaves.separator_bytes_max() + CHILD_BYTES;
    let space_bytes = node_space_bytes(plan.page_size, SPACE_HEADER_BYTES);
    filled(space_bytes, plan.branch_fill_percent, entry_bytes, 2)
}

fn filled(space_bytes: usize, percent: u8, entry_bytes: usize, least: usize) -> u32 {
    (space_bytes * usize::from(percent) / 100 / entry_bytes).max(least) as u32
}

/// The whole file.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub records: u64,
    /// Pages the database owns.
    pub pages: u32,
    pub table: Tree,
    pub index: Option<Tree>,
    pub values: Tree,
}

impl Layout {
    /// Lays out the plan behind a system region that ends before `first_page`.
    pub(super) fn new(
        plan: &Plan,
        form: &RecordForm,
        first_page: PageNumber,
    ) -> Result<Layout, PlanError> {
        let (pages, records) = match plan.extent {
            Extent::Records(records) => {
                let pages = needed_pages(plan, form, first_page, records);
                (pages.ok_or(PlanError::TooLarge { records })?, records)
            }
            Extent::Bytes(bytes) => {
                let pages = (bytes / plan.page_size.bytes() as u64).saturating_sub(2);
                let records = most_records(plan, form, first_page, pages);
                let needed = needed_pages(plan, form, first_page, 1).unwrap_or(0);
                let too_small = PlanError::TooSmall {
                    bytes,
                    needed_bytes: plan.page_size.file_bytes(needed as u32),
                };
                (pages, records.ok_or(too_small)?)
            }
        };
        let too_large = PlanError::TooLarge { records };
        let mut layout = Self::for_records(plan, form, first_page, records).ok_or(too_large)?;
        layout.pages = page_number(pages).ok_or(too_large)?;
        // What is left over belongs to the table, which grows first.
        layout.table.owned_pages = layout.pages - layout.table.root + 1;
        layout.table.free_pages = layout.pages - layout.table.free_first + 1;
        Ok(layout)
    }

    fn for_records(
        plan: &Plan,
        form: &RecordForm,
        first_page: PageNumber,
        records: u64,
    ) -> Option<Layout> {
        if records > RECORD_NUMBER_MAX / 2 {
            return None;
        }
        let per_leaf = form.per_leaf(plan);
        let leaf_count = records.div_ceil(per_leaf);
        let mut table =
            Tree::new(plan, USER_OBJECT_MIN, first_page, 1, Leaves::Records(per_leaf), leaf_count)?;
        let mut next = first_page + table.used_pages;
        let share = (plan.free_pages / 64).max(SHARE_PAGES_MIN);
        // Numbered in the order of the catalog's rows: table, index, long values.
        let mut next_object = USER_OBJECT_MIN + 1;
        let mut index = None;
        if plan.secondary == Secondary::Unique {
            let per_leaf = entries_per_leaf(plan);
            let leaf_count = records.div_ceil(per_leaf);
            let leaves = Leaves::Entries(per_leaf);
            let tree = Tree::new(plan, next_object, next, table.root, leaves, leaf_count)?;
            let tree = tree.with_free_pages(share)?;
            next = page_number(u64::from(next) + u64::from(tree.owned_pages))?;
            next_object += 1;
            index = Some(tree);
        }
        // The tree is there even without values, so that the engine can add some.
        let form = ValueForm::new(plan.page_size, plan.long_values.unwrap_or(NO_VALUES));
        let count = plan.long_values.map_or(0, |long_values| value_count(long_values, records));
        let leaves = Leaves::Values(form);
        let values =
            Tree::new(plan, next_object, next, table.root, leaves, form.leaf_count(count))?;
        let values = values.with_free_pages(share)?;
        next = page_number(u64::from(next) + u64::from(values.owned_pages))?;
        table.free_first = next;
        table.free_pages = plan.free_pages;
        let pages = page_number(u64::from(next) + u64::from(plan.free_pages))? - 1;
        table.owned_pages = pages - table.root + 1;
        Some(Layout { records, pages, table, index, values })
    }

    /// The tree a page belongs to and what it is there; `None` for the pages before the table.
    pub(super) fn find(&self, page: PageNumber) -> Option<(&Tree, Role)> {
        [Some(&self.table), self.index.as_ref(), Some(&self.values)]
            .into_iter()
            .flatten()
            .find_map(|tree| tree.role(page).map(|role| (tree, role)))
    }
}

/// How many records have a long value.
pub(super) fn value_count(long_values: LongValues, records: u64) -> u64 {
    records.div_ceil(long_values.every)
}

/// Index entries per leaf: key of the scatter value, bookmark of the record number.
fn entries_per_leaf(plan: &Plan) -> u64 {
    let entry_bytes = TAG_BYTES + 4 + (NUMBER_KEY_BYTES - KEY_PREFIX_BYTES) + NUMBER_KEY_BYTES;
    let space_bytes = node_space_bytes(plan.page_size, KEY_PREFIX_BYTES);
    u64::from(filled(space_bytes, plan.leaf_fill_percent, entry_bytes, 1))
}

fn needed_pages(
    plan: &Plan,
    form: &RecordForm,
    first_page: PageNumber,
    records: u64,
) -> Option<u64> {
    let layout = Layout::for_records(plan, form, first_page, records)?;
    Some(u64::from(layout.pages).max(PAGES_MIN))
}

/// The most records, at least one, that fit into so many pages.
fn most_records(plan: &Plan, form: &RecordForm, first_page: PageNumber, pages: u64) -> Option<u64> {
    let fits = |records| {
        needed_pages(plan, form, first_page, records).is_some_and(|needed| needed <= pages)
    };
    if !fits(1) {
        return None;
    }
    let (mut least, mut most) = (1, RECORD_NUMBER_MAX);
    while most - least > 1 {
        let middle = least + (most - least) / 2;
        if fits(middle) {
            least = middle;
        } else {
            most = middle;
        }
    }
    Some(least)
}
