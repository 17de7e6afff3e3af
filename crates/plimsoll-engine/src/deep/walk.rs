//! Walking a tree from its root, checking what is true of every tree, and showing every live node
//! to a [`Visitor`].

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use super::finding::{Finding, Findings};
use super::map::PageMap;
use super::outline::{KIND_MASK, Level, check_outline, expected_kind};
use super::pages::{PageSource, ReadPage};
use crate::catalog::Place;
use crate::page::{Node, PageFault, PageView, page_flags};
use crate::reader::ReadError;
use crate::{DatabaseHeader, PageClass, PageNumber, PageSize};

/// More levels than any tree has; a chain longer than that is no tree.
const LEVELS_MAX: usize = 16;
/// Keys may repeat; entries are ordered by key and data.
const NON_UNIQUE: u32 = 0x400;
/// Units of work of a node: reading it, comparing its key, showing it.
const NODE_WORK: u32 = 2;

/// Where a node lies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    pub page: PageNumber,
    pub line: usize,
}

/// Sees every node of the leaves that is not deleted, in order.
pub(super) trait Visitor {
    fn node(&mut self, at: Line, key: &[u8], node: &Node<'_>, findings: &mut Findings);

    /// Some nodes before the next one could not be read.
    fn gap(&mut self) {}
}

/// Looks at nothing.
pub(super) struct Ignore;

impl Visitor for Ignore {
    fn node(&mut self, _: Line, _: &[u8], _: &Node<'_>, _: &mut Findings) {}
}

/// How a walk treats pages it has seen before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Walk {
    /// The only walk through this tree: findings are reported, pages marked.
    First,
    /// Looks for details of a finding: neither.
    Again,
}

/// The key range of a page: at least `lower`, below `upper`; `None` is no limit.
#[derive(Clone, Default)]
struct Bounds {
    lower: Option<Rc<[u8]>>,
    upper: Option<Rc<[u8]>>,
}

struct Child {
    page: PageNumber,
    bounds: Bounds,
}

/// A walk through one tree.
struct Progress<'v> {
    place: Place,
    kind: u32,
    walk: Walk,
    visitor: &'v mut dyn Visitor,
    /// The last leaf and the right neighbour it names.
    last_leaf: Option<(PageNumber, PageNumber)>,
    /// Something before the next leaf was left out, so its neighbours are unknown.
    has_gap: bool,
    last_key: Option<Vec<u8>>,
    leaf_depth: Option<usize>,
}

/// Walks trees and keeps what was found.
pub(super) struct Walker {
    pub source: PageSource,
    pub findings: Findings,
    pub map: PageMap,
    /// Pages of the space trees, reached before it is known who owns what.
    pub visited: Vec<PageNumber>,
    /// Objects part of whose tree could not be looked at. What that part holds is unknown, so
    /// nothing is concluded from its absence.
    pub incomplete: BTreeSet<u32>,
    dbtime_max: u64,
    page_max: PageNumber,
}

impl Walker {
    pub(super) fn new(
        source: PageSource,
        header: &DatabaseHeader,
        page_max: PageNumber,
        findings_max: usize,
    ) -> Self {
        Self {
            source,
            findings: Findings::new(findings_max),
            map: PageMap::empty(page_max),
            visited: Vec::new(),
            incomplete: BTreeSet::new(),
            dbtime_max: header.dbtime_max,
            page_max,
        }
    }

    pub(super) fn page_size(&self) -> PageSize {
        self.source.size()
    }

    pub(super) fn page_max(&self) -> PageNumber {
        self.page_max
    }

    /// Whether one of these trees could not be read in full.
    pub(super) fn is_incomplete(&self, objects: &[u32]) -> bool {
        objects.iter().any(|object| self.incomplete.contains(object))
    }

    /// Walks the tree at `place`, whose pages carry the `kind` flags.
    pub(super) async fn walk(
        &mut self,
        place: Place,
        kind: u32,
        walk: Walk,
        visitor: &mut dyn Visitor,
    ) -> Result<(), ReadError> {
        let mut progress = Progress {
            place,
            kind,
            walk,
            visitor,
            last_leaf: None,
            has_gap: false,
            last_key: None,
            leaf_depth: None,
        };
        let root = Child { page: place.root, bounds: Bounds::default() };
        self.descend(&mut progress, 0, vec![root], 0, Level::Root).await?;
        if let Some((page, found)) = progress.last_leaf
            && found != 0
            && !progress.has_gap
        {
            self.found(walk, Finding::WrongNext { page, found, expected: 0 });
        }
        Ok(())
    }

    fn found(&mut self, walk: Walk, finding: Finding) {
        if walk == Walk::First {
            self.findings.push(finding);
        }
    }

    /// Notes that part of a tree is left out.
    fn leave_out(&mut self, progress: &mut Progress<'_>) {
        progress.has_gap = true;
        progress.visitor.gap();
        self.incomplete.insert(progress.place.object);
    }

    /// Whether the walk may go on to a page; marks it.
    fn enter(&mut self, progress: &Progress<'_>, parent: PageNumber, page: PageNumber) -> bool {
        let object = progress.place.object;
        if page == 0 || page > self.page_max {
            let page_max = self.page_max;
            self.found(progress.walk, Finding::PageOutside { parent, page, page_max });
            return false;
        }
        if progress.walk == Walk::Again {
            return true;
        }
        if !self.map.reach(page) {
            self.findings.push(Finding::ReachedTwice { page, object });
            return false;
        }
        if progress.kind & page_flags::SPACE != 0 {
            self.visited.push(page);
        } else {
            self.check_owner(progress.place, page);
        }
        true
    }

    /// Checks that a page is its tree's to use.
    pub(super) fn check_owner(&mut self, place: Place, page: PageNumber) {
        let Some((own, free)) = self.map.of_tree(place.root) else {
            return;
        };
        let object = place.object;
        if !own.contains(page) {
            self.findings.push(Finding::NotOwned { page, object });
        } else if free.contains(page) {
            self.findings.push(Finding::UsedWhileFree { page, object });
        }
    }

    /// Walks the children of one page. Boxed, because it calls itself.
    fn descend<'w>(
        &'w mut self,
        progress: &'w mut Progress<'_>,
        parent: PageNumber,
        children: Vec<Child>,
        depth: usize,
        level: Level,
    ) -> Pin<Box<dyn Future<Output = Result<(), ReadError>> + 'w>> {
        Box::pin(async move {
            let entered: Vec<bool> =
                children.iter().map(|child| self.enter(progress, parent, child.page)).collect();
            let to_read = children.iter().zip(&entered).filter(|(_, entered)| **entered);
            let mut stream = self.source.read(to_read.map(|(child, _)| child.page).collect());
            for (child, entered) in children.iter().zip(entered) {
                let page = if entered { stream.next().await? } else { None };
                let page = page.filter(|page| self.check_page(progress, page, depth, level));
                let Some(page) = page.filter(|page| self.check_depth(progress, page, depth)) else {
                    self.leave_out(progress);
                    continue;
                };
                if page.view().is_leaf() {
                    self.walk_leaf(progress, &page, &child.bounds, depth).await;
                    continue;
                }
                let below = if page.view().flags() & page_flags::PARENT_OF_LEAF == 0 {
                    Level::Branch
                } else {
                    Level::Leaf
                };
                let grandchildren = self.walk_branch(progress, &page, &child.bounds).await;
                self.descend(progress, page.number, grandchildren, depth + 1, below).await?;
            }
            Ok(())
        })
    }

    /// Whether the tree may go on below a page.
    fn check_depth(&mut self, progress: &Progress<'_>, read: &ReadPage, depth: usize) -> bool {
        let is_fine = read.view().is_leaf() || depth + 1 < LEVELS_MAX;
        if !is_fine {
            let (page, object) = (read.number, progress.place.object);
            self.found(progress.walk, Finding::TooDeep { page, object });
        }
        is_fine
    }

    /// Checks a page as such and in its place; whether its lines can be looked at.
    fn check_page(
        &mut self,
        progress: &Progress<'_>,
        read: &ReadPage,
        depth: usize,
        level: Level,
    ) -> bool {
        let (view, page, walk) = (read.view(), read.number, progress.walk);
        let object = progress.place.object;
        let class = read.class;
        if !matches!(class, PageClass::Ok | PageClass::Correctable { .. }) {
            self.found(walk, Finding::PageDamaged { page, object, class });
            return false;
        }
        if view.object() != object {
            let found = view.object();
            self.found(walk, Finding::WrongObject { page, found, expected: object });
            return false;
        }
        if let Err(fault) = check_outline(&view) {
            self.found(walk, Finding::PageMalformed { page, fault });
            return false;
        }
        let found = view.flags() & KIND_MASK;
        let expected = expected_kind(found, progress.kind, depth, level);
        if found != expected {
            self.found(walk, Finding::WrongKind { page, found, expected });
        }
        if view.dbtime() > self.dbtime_max {
            let (dbtime, dbtime_max) = (view.dbtime(), self.dbtime_max);
            self.found(walk, Finding::DbtimeAboveHeader { page, dbtime, dbtime_max });
        }
        if depth == 0 || !view.is_leaf() {
            self.check_neighbours(walk, &view, page, (0, view.next()));
        }
        true
    }

    /// Compares a page's left neighbour with what it should be, and a branch's right neighbour with
    /// none.
    fn check_neighbours(
        &mut self,
        walk: Walk,
        view: &PageView<'_>,
        page: PageNumber,
        expected: (PageNumber, PageNumber),
    ) {
        let (previous, next) = (view.previous(), view.next());
        if previous != expected.0 {
            let expected = expected.0;
            self.found(walk, Finding::WrongPrevious { page, found: previous, expected });
        }
        if !view.is_leaf() && next != 0 {
            self.found(walk, Finding::WrongNext { page, found: next, expected: 0 });
        }
    }

    async fn walk_leaf(
        &mut self,
        progress: &mut Progress<'_>,
        read: &ReadPage,
        bounds: &Bounds,
        depth: usize,
    ) {
        let (view, page, walk) = (read.view(), read.number, progress.walk);
        let object = progress.place.object;
        let expected = *progress.leaf_depth.get_or_insert(depth);
        if depth != expected {
            let found = depth;
            self.found(walk, Finding::UnequalDepth { page, object, found, expected });
        }
        if !std::mem::take(&mut progress.has_gap) {
            let (last, next) = progress.last_leaf.unwrap_or((0, page));
            if depth > 0 {
                self.check_neighbours(walk, &view, page, (last, 0));
            }
            if next != page {
                let expected = page;
                self.found(walk, Finding::WrongNext { page: last, found: next, expected });
            }
        }
        progress.last_leaf = Some((page, view.next()));
        let orders_by_data = view.flags() & NON_UNIQUE != 0;
        for line in 0..view.lines() {
            self.source.spend(NODE_WORK).await;
            let node = match view.node(line) {
                Ok(node) => node,
                Err(fault) => {
                    self.found(walk, Finding::PageMalformed { page, fault });
                    self.leave_out(progress);
                    return;
                }
            };
            let key = node.key();
            let mut ordered = key.clone();
            if orders_by_data {
                ordered.extend_from_slice(node.data);
            }
            if progress.last_key.as_ref().is_some_and(|last| *last >= ordered) {
                self.found(walk, Finding::KeyOrder { page, line });
            }
            if !bounds.hold(&ordered) {
                self.found(walk, Finding::KeyOutsideSeparators { page, line });
            }
            progress.last_key = Some(ordered);
            if !node.is_deleted() {
                progress.visitor.node(Line { page, line }, &key, &node, &mut self.findings);
            }
        }
    }

    /// Checks the separators of a branch and returns its children with their bounds.
    async fn walk_branch(
        &mut self,
        progress: &mut Progress<'_>,
        read: &ReadPage,
        bounds: &Bounds,
    ) -> Vec<Child> {
        let (view, page, walk) = (read.view(), read.number, progress.walk);
        let mut children: Vec<Child> = Vec::with_capacity(view.lines());
        let mut lower = bounds.lower.clone();
        for line in 0..view.lines() {
            self.source.spend(NODE_WORK).await;
            let (child, node) = match (view.child(line), view.node(line)) {
                (Ok(child), Ok(node)) => (child, node),
                (Err(fault), _) | (_, Err(fault)) => {
                    self.found(walk, Finding::PageMalformed { page, fault });
                    self.leave_out(progress);
                    break;
                }
            };
            let key = node.key();
            let is_last = line + 1 == view.lines();
            let upper = if key.is_empty() && is_last {
                bounds.upper.clone()
            } else {
                self.check_separator(walk, Line { page, line }, &key, lower.as_deref(), bounds);
                // Where a branch was split, its last entry may keep the separator that leads to it.
                if is_last && bounds.upper.as_deref() != Some(&key) {
                    self.found(walk, Finding::BranchEndsEarly { page });
                }
                Some(Rc::from(key))
            };
            let child_bounds = Bounds { lower, upper: upper.clone() };
            children.push(Child { page: child, bounds: child_bounds });
            lower = upper;
        }
        if view.lines() == 0 {
            let fault = PageFault::NoChild { line: 0 };
            self.found(walk, Finding::PageMalformed { page, fault });
            self.leave_out(progress);
        }
        children
    }

    fn check_separator(
        &mut self,
        walk: Walk,
        at: Line,
        key: &[u8],
        lower: Option<&[u8]>,
        bounds: &Bounds,
    ) {
        let Line { page, line } = at;
        if lower.is_some_and(|lower| lower >= key) {
            self.found(walk, Finding::KeyOrder { page, line });
        }
        if bounds.upper.as_deref().is_some_and(|upper| key > upper) {
            self.found(walk, Finding::KeyOutsideSeparators { page, line });
        }
    }
}

impl Bounds {
    fn hold(&self, key: &[u8]) -> bool {
        self.lower.as_deref().is_none_or(|lower| key.cmp(lower) != Ordering::Less)
            && self.upper.as_deref().is_none_or(|upper| key < upper)
    }
}
