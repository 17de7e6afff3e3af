//! Write plans held against arithmetic of their own: what is read suffices for parity, byte by
//! byte, and no cheaper way is open.
//!
//! Why it matters: a plan that reads too little makes a degraded array look fast, one that reads
//! too much a whole one slow.

use std::collections::BTreeSet;

use plimsoll_array::raid::{Extent, Layout, MemberState, RowPlan, Slots, Strategy, plan_write};
use plimsoll_array::spec::RaidLevel::{Raid5, Raid6};
use plimsoll_io::Random;

const ELEMENT_BYTES: u32 = 32;

/// One write to one row of a set that may have lost drives.
struct Case {
    layout: Layout,
    slots: Slots,
    row: u64,
    extents: Vec<Extent>,
}

impl Case {
    /// As many lost drives as the level bears at most, and extents that neither overlap nor touch,
    /// in no order.
    fn draw(random: &mut Random) -> Case {
        let (level, drive_count) = if random.chance(0.5) {
            (Raid5, 3 + random.below(6) as u32)
        } else {
            (Raid6, 4 + random.below(6) as u32)
        };
        let layout = Layout { level, drive_count };
        let mut slots = Slots::whole(drive_count);
        for _ in 0..random.below(u64::from(layout.parity_count()) + 1) {
            slots.change(random.below(u64::from(drive_count)) as u32, MemberState::Lost);
        }
        let mut extents: Vec<Extent> = Vec::new();
        for _ in 0..1 + random.below(4) {
            let start = random.below(u64::from(ELEMENT_BYTES)) as u32;
            let extent = Extent {
                column: random.below(u64::from(layout.column_count())) as u32,
                start,
                bytes: 1 + random.below(u64::from(ELEMENT_BYTES - start)) as u32,
            };
            let apart = |other: &Extent| {
                other.column != extent.column
                    || other.start > extent.start + extent.bytes
                    || extent.start > other.start + other.bytes
            };
            if extents.iter().all(apart) {
                extents.push(extent);
            }
        }
        Case { layout, slots, row: random.below(100), extents }
    }

    fn plan(&self) -> RowPlan {
        plan_write(&self.layout, &self.slots, self.row, ELEMENT_BYTES, &self.extents, false)
    }

    fn columns(&self) -> std::ops::Range<u32> {
        0..self.layout.column_count()
    }

    fn holds(&self, column: u32) -> bool {
        self.slots.holds(self.layout.data_drive(self.row, column), self.row)
    }

    fn alive_parities(&self) -> Vec<u32> {
        let parities = 0..self.layout.parity_count();
        let slots = parities.map(|parity| self.layout.parity_drive(self.row, parity));
        slots.filter(|slot| self.slots.holds(*slot, self.row)).collect()
    }

    fn hull(&self) -> std::ops::Range<u32> {
        let starts = self.extents.iter().map(|extent| extent.start);
        let ends = self.extents.iter().map(|extent| extent.start + extent.bytes);
        starts.min().unwrap_or(0)..ends.max().unwrap_or(0)
    }

    fn is_new(&self, column: u32, byte: u32) -> bool {
        let mine = self.extents.iter().filter(|extent| extent.column == column);
        mine.into_iter().any(|extent| (extent.start..extent.start + extent.bytes).contains(&byte))
    }

    /// Whether new parity of a byte follows from what the plan reads: by the difference to the old,
    /// or from the whole row.
    fn suffices(&self, plan: &RowPlan, byte: u32) -> bool {
        let is_read = |slot: u32| {
            plan.reads.iter().any(|read| {
                read.slot == slot && (read.start..read.start + read.bytes).contains(&byte)
            })
        };
        let old_is_read = |column: &u32| is_read(self.layout.data_drive(self.row, *column));
        let parities = self.alive_parities();
        let parities_read = parities.iter().filter(|slot| is_read(**slot)).count();
        let by_difference = parities_read == parities.len()
            && self
                .columns()
                .filter(|column| self.is_new(*column, byte))
                .all(|column| old_is_read(&column));
        let unknown =
            self.columns().filter(|column| !self.is_new(*column, byte) && !old_is_read(column));
        let unread = self.columns().filter(|column| !old_is_read(column)).count();
        by_difference || unknown.count() == 0 || unread <= parities_read
    }

    /// Drives of the cheapest way that is open, by the rule of the module.
    fn cheapest(&self) -> usize {
        let hull = self.hull();
        let touched: BTreeSet<u32> = self.extents.iter().map(|extent| extent.column).collect();
        let rest: Vec<u32> = self
            .columns()
            .filter(|column| !hull.clone().all(|byte| self.is_new(*column, byte)))
            .collect();
        let modify = touched.iter().all(|column| self.holds(*column));
        let modify = modify.then(|| touched.len() + self.alive_parities().len());
        let reconstruct = rest.iter().all(|column| self.holds(*column)).then_some(rest.len());
        let lost = self.columns().filter(|column| !self.holds(*column)).count();
        let whole_row = self.columns().count() - lost + lost;
        [modify, reconstruct].into_iter().flatten().min().unwrap_or(whole_row)
    }
}

#[test]
fn plans_read_what_parity_needs_and_no_more() {
    let mut random = Random::from_seed(20);
    for number in 0..100_000 {
        let case = Case::draw(&mut random);
        let plan = case.plan();
        let described = || {
            let lost =
                (0..case.layout.drive_count).filter(|slot| !case.slots.holds(*slot, case.row));
            let lost: Vec<u32> = lost.collect();
            format!(
                "{number}: {:?} row {} without {lost:?}, {:?}: {plan:?}",
                case.layout, case.row, case.extents
            )
        };
        if case.alive_parities().is_empty() || plan.strategy == Strategy::FullStripe {
            assert!(plan.reads.is_empty(), "{}", described());
            continue;
        }
        assert!(
            case.hull().all(|byte| case.suffices(&plan, byte)),
            "reads too little: {}",
            described()
        );
        let drives: BTreeSet<u32> = plan.reads.iter().map(|read| read.slot).collect();
        assert!(drives.iter().all(|slot| case.slots.holds(*slot, case.row)), "{}", described());
        assert_eq!(drives.len(), case.cheapest(), "{}", described());
    }
}
