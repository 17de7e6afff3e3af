//! Walks every page of a tree and checks what must hold between them.

use std::collections::VecDeque;

use super::Findings;
use super::space::SpaceMap;
use crate::catalog::Place;
use crate::page::page_flags;
use crate::reader::{DatabaseReader, LoadedPage, PendingPage, ReadError};
use crate::{FormatError, PageNumber};

/// More levels than the largest possible tree has.
const LEVELS_MAX: usize = 24;
/// Page flag of trees in which several nodes may have one key. We make none.
const KEYS_REPEAT: u32 = 0x400;
const READ_AHEAD_PAGES: usize = 16;

/// Which tree to walk.
pub(super) struct Walk {
    pub place: Place,
    /// Which bits of [`page_flags::TREE_KIND`] its pages carry.
    pub kind: u32,
}

/// What the keys below a branch entry must keep to: at least `low`, below `high`; empty means no limit.
#[derive(Clone, Default)]
struct Bounds {
    low: Vec<u8>,
    high: Vec<u8>,
}

struct Branch {
    page: LoadedPage,
    bounds: Bounds,
    next_line: usize,
    ahead: VecDeque<(PendingPage, Bounds)>,
}

/// What the walk remembers of the leaves so far.
#[derive(Default)]
struct Leaves {
    last: Option<(PageNumber, PageNumber)>,
    depth: Option<usize>,
}

struct Walker<'w> {
    reader: &'w DatabaseReader,
    walk: &'w Walk,
    map: &'w mut SpaceMap,
    findings: &'w mut Findings,
    branches: Vec<Branch>,
    leaves: Leaves,
}

/// Walks a tree; `visit` gets page, key and data of every node that is not deleted, in order.
pub(super) async fn walk(
    reader: &DatabaseReader,
    plan: &Walk,
    map: &mut SpaceMap,
    findings: &mut Findings,
    visit: &mut impl FnMut(PageNumber, &[u8], &[u8]),
) -> Result<(), ReadError> {
    let root = reader.read_page(plan.place.root).await?;
    let mut walker = Walker {
        reader,
        walk: plan,
        map,
        findings,
        branches: Vec::new(),
        leaves: Leaves::default(),
    };
    let mut page = Some((root, Bounds::default()));
    while let Some((found, bounds)) = page {
        reader.pause().await;
        if !walker.check_page(&found, &bounds) {
            // What hangs below a page that makes no sense is reported as unreached.
            page = walker.next_child().await?;
            continue;
        }
        if found.view().is_leaf() {
            walker.leaf(&found, visit);
        } else {
            walker.branch(found, bounds)?;
        }
        page = walker.next_child().await?;
    }
    if let Some((last, next)) = walker.leaves.last.filter(|(_, next)| *next != 0) {
        walker.finding(
            last,
            format!("the last leaf names page {next} as its right neighbour"),
        );
    }
    Ok(())
}

impl Walker<'_> {
    fn finding(&mut self, page: PageNumber, problem: impl Into<String>) {
        self.findings.add(self.walk.place.object, page, problem);
    }

    /// Checks a page by itself and against its parent; false if its content cannot be used.
    fn check_page(&mut self, page: &LoadedPage, bounds: &Bounds) -> bool {
        let (number, view) = (page.number(), page.view());
        let object = self.walk.place.object;
        if !self.map.reach(number) {
            self.finding(number, "the page is reached twice");
            return false;
        }
        if view.object() != object {
            self.finding(number, format!("the page belongs to object {}", view.object()));
            return false;
        }
        if let Err(fault) = view.check_structure() {
            self.finding(number, fault.to_string());
            return false;
        }
        if !self.map.may_hold(object, number) {
            self.finding(number, "the tree uses a page that is free or not its own");
        }
        self.check_flags(page);
        if view.dbtime() > self.reader.header().dbtime_max {
            let problem = format!(
                "its database time {:#x} is higher than the header's",
                view.dbtime()
            );
            self.finding(number, problem);
        }
        self.check_bounds(page, bounds);
        true
    }

    fn check_flags(&mut self, page: &LoadedPage) {
        let (number, view) = (page.number(), page.view());
        let flags = view.flags();
        if flags & page_flags::TREE_KIND != self.walk.kind {
            self.finding(
                number,
                format!("its flags {flags:#x} are those of another kind of tree"),
            );
        }
        if (number == self.walk.place.root) != view.is_root() {
            self.finding(number, "its root flag is wrong");
        }
        let must_be_leaf = self
            .branches
            .last()
            .is_some_and(|branch| branch.page.view().flags() & page_flags::PARENT_OF_LEAF != 0);
        if !self.branches.is_empty() && must_be_leaf != view.is_leaf() {
            self.finding(number, "its parent takes it for another level");
        }
        if !view.is_leaf() && (view.previous(), view.next()) != (0, 0) {
            self.finding(number, "a branch page has neighbours");
        }
    }

    fn check_bounds(&mut self, page: &LoadedPage, bounds: &Bounds) {
        let (number, view) = (page.number(), page.view());
        let Some(last_line) = view.lines().checked_sub(1) else {
            return;
        };
        // Where keys may repeat, order and separators go by key and data together.
        let is_repeating = view.is_leaf() && view.flags() & KEYS_REPEAT != 0;
        let key = |line| {
            let node = view.node(line);
            node.map_or(Vec::new(), |node| {
                let data = if is_repeating { node.data } else { &[] };
                [node.prefix, node.suffix, data].concat()
            })
        };
        let (first, last) = (key(0), key(last_line));
        // The last entry of a branch page is unbounded: its empty key stands for the bound above it.
        if first < bounds.low && (view.is_leaf() || !first.is_empty()) {
            self.finding(number, "its first key is below the separator before it");
        }
        // A branch page may repeat the separator above it as its own last one; Windows does that, we leave it empty.
        let is_outside = last > bounds.high || (view.is_leaf() && last == bounds.high);
        if !bounds.high.is_empty() && is_outside {
            self.finding(number, "its last key is not below its separator");
        }
        if !view.is_leaf() && !last.is_empty() && bounds.high.is_empty() {
            self.finding(number, "the last separator of the right edge is not unbounded");
        }
    }

    fn leaf(&mut self, page: &LoadedPage, visit: &mut impl FnMut(PageNumber, &[u8], &[u8])) {
        let (number, view) = (page.number(), page.view());
        let depth = self.branches.len();
        if *self.leaves.depth.get_or_insert(depth) != depth {
            self.finding(number, "the leaf is not at the depth of the others");
        }
        let (left, left_next) = self.leaves.last.unwrap_or((0, number));
        if view.previous() != left {
            let problem = format!(
                "it names page {} as its left neighbour, not {left}",
                view.previous()
            );
            self.finding(number, problem);
        }
        if left_next != number {
            self.finding(
                left,
                format!("it names page {left_next} as its right neighbour, not {number}"),
            );
        }
        self.leaves.last = Some((number, view.next()));
        for line in 0..view.lines() {
            // The structure was checked.
            let Ok(node) = view.node(line) else { continue };
            if !node.is_deleted() {
                visit(number, &node.key(), node.data);
            }
        }
    }

    fn branch(&mut self, page: LoadedPage, bounds: Bounds) -> Result<(), ReadError> {
        if self.branches.len() >= LEVELS_MAX {
            let (object, page) = (self.walk.place.object, page.number());
            return Err(self.reader.fault(FormatError::Circle { object, page }));
        }
        if page.view().lines() == 0 {
            self.finding(page.number(), "a branch page has no children");
        }
        self.branches.push(Branch {
            page,
            bounds,
            next_line: 0,
            ahead: VecDeque::new(),
        });
        Ok(())
    }

    async fn next_child(&mut self) -> Result<Option<(LoadedPage, Bounds)>, ReadError> {
        loop {
            let Some(branch) = self.branches.last_mut() else {
                return Ok(None);
            };
            let wanted = match branch.page.view().flags() & page_flags::PARENT_OF_LEAF {
                0 => 1,
                _ => READ_AHEAD_PAGES,
            };
            while branch.ahead.len() < wanted && branch.next_line < branch.page.view().lines() {
                let line = branch.next_line;
                branch.next_line += 1;
                let child = branch.page.view().child(line).unwrap_or(0);
                let bounds = branch.bounds_of(line);
                match self.reader.start_read(child) {
                    Ok(pending) => branch.ahead.push_back((pending, bounds)),
                    Err(error) => self.findings.add_error(self.walk.place.object, &error),
                }
            }
            match branch.ahead.pop_front() {
                None => drop(self.branches.pop()),
                Some((pending, bounds)) => match self.reader.finish_read(pending).await {
                    Ok(page) => return Ok(Some((page, bounds))),
                    Err(error @ ReadError::Disk(_)) => return Err(error),
                    Err(error) => self.findings.add_error(self.walk.place.object, &error),
                },
            }
        }
    }
}

impl Branch {
    /// The bounds of the keys below a line: the separator before it and its own.
    fn bounds_of(&self, line: usize) -> Bounds {
        let view = self.page.view();
        let key = |line: usize| view.node(line).map(|node| node.key()).unwrap_or_default();
        let own = key(line);
        Bounds {
            low: if line > 0 {
                key(line - 1)
            } else {
                self.bounds.low.clone()
            },
            high: if own.is_empty() {
                self.bounds.high.clone()
            } else {
                own
            },
        }
    }
}
