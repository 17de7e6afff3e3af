//! A prepared database: what follows from a plan for its pages, records and long values.

use std::ops::Range;

use super::filler::derive;
use super::layout::Layout;
use super::plan::{Plan, PlanError, Secondary};
use super::record::{self, RecordColumns, RecordForm};
use super::value::{self, ValueForm};
use super::{identity, keys, layout, vacancy};
use plimsoll_engine::catalog::system::USER_PAGE_MIN;
use plimsoll_engine::whole_pages::{
    FRESH_DBTIME_FIRST, KnownPage, PREPARED_FLUSH_TYPE, SystemPages,
};
use plimsoll_engine::{DatabaseHeader, PageNumber, PageSize, Table};

/// A database that exists as a rule. Cheap to clone into every writer.
#[derive(Clone, Debug)]
pub struct PreparedDatabase {
    pub(super) plan: Plan,
    pub(super) layout: Layout,
    pub(super) form: RecordForm,
    value_form: Option<ValueForm>,
    pub(super) value_key: u64,
    vacancy_key: u64,
    pub(super) system: SystemPages,
}

impl PreparedDatabase {
    /// Works out the layout of a plan. No I/O and no work in proportion to the size.
    ///
    /// # Errors
    /// A [`PlanError`] when the plan is impossible.
    pub fn new(plan: Plan) -> Result<Self, PlanError> {
        check(&plan)?;
        let key = derive(plan.seed, u64::from(plan.database) + 1);
        let sized = RecordForm::new(&plan, key, 0);
        let layout = Layout::new(&plan, &sized, USER_PAGE_MIN)?;
        let form = RecordForm::new(&plan, key, layout.records);
        let value_form =
            plan.long_values.map(|long_values| ValueForm::new(plan.page_size, long_values));
        let system =
            SystemPages::new(plan.page_size, layout.pages, &identity::tables(&plan, &layout), &[]);
        Ok(Self {
            form,
            value_form,
            value_key: derive(key, 3),
            vacancy_key: derive(key, 4),
            system,
            layout,
            plan,
        })
    }

    /// The plan it was made from.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Bytes per page.
    pub fn page_size(&self) -> PageSize {
        self.plan.page_size
    }

    /// Places for records in the table, numbered from 0; without vacancies each holds one.
    pub fn records(&self) -> u64 {
        self.layout.records
    }

    /// Whether a record was prepared: its number is below [`Self::records`] and its place was not
    /// left vacant.
    pub fn has_record(&self, number: u64) -> bool {
        number < self.layout.records
            && vacancy::is_taken(&self.plan, self.per_leaf(), self.vacancy_key_of(number), number)
    }

    fn vacancy_key_of(&self, number: u64) -> u64 {
        self.form.shared_leaf(number).map_or(self.vacancy_key, |shared| shared.vacancy_key)
    }

    /// Whether any place may be vacant.
    pub fn has_vacancies(&self) -> bool {
        self.plan.vacancy_percent > 0
    }

    /// How many places for records a leaf of the prepared table has.
    pub fn per_leaf(&self) -> u64 {
        self.form.per_leaf(&self.plan)
    }

    /// Pages the database owns, which are numbered from 1.
    pub fn pages(&self) -> u32 {
        self.layout.pages
    }

    /// Length of the file.
    pub fn file_bytes(&self) -> u64 {
        self.plan.page_size.file_bytes(self.layout.pages)
    }

    /// What a check of page `page` would find, where that follows from its place.
    pub(crate) fn known(&self, page: PageNumber) -> Option<KnownPage> {
        Some(match self.layout.find(page)? {
            (_, layout::Role::Free) => KnownPage::Empty,
            _ => KnownPage::Sound { flush_type: PREPARED_FLUSH_TYPE },
        })
    }

    /// The header of the file as prepared: a clean database that belongs to no log stream yet.
    pub fn header(&self) -> DatabaseHeader {
        identity::header(&self.plan, self.dbtime(self.pages()) + 1, self.layout.values.object)
    }

    /// The header as both of its pages hold it.
    pub fn header_page(&self) -> Vec<u8> {
        self.header().encode()
    }

    /// The table's schema.
    pub fn schema(&self) -> Table {
        identity::schema(&self.plan)
    }

    /// The bytes of a record as the tree holds them. `version` counts its replacements; prepared
    /// records have version 0. Numbers from [`Self::records`] on are for records inserted later.
    pub fn record(&self, number: u64, version: u32) -> Vec<u8> {
        let mut bytes = vec![0; self.form.bytes()];
        self.form.write(number, version, &mut bytes);
        bytes
    }

    /// The values of a record, column by column: what an insert or a replacement through the engine
    /// sets.
    pub fn record_columns(&self, number: u64, version: u32) -> RecordColumns {
        self.form.columns(number, version)
    }

    /// The primary key of a record.
    pub fn record_key(&self, number: u64) -> Vec<u8> {
        keys::number_key(number).to_vec()
    }

    /// The primary keys of several records.
    pub fn record_keys(&self, numbers: Range<u64>) -> Vec<[u8; keys::NUMBER_KEY_BYTES]> {
        numbers.map(keys::number_key).collect()
    }

    /// The record whose key this is.
    pub fn record_of_key(&self, key: &[u8]) -> Option<u64> {
        keys::number_of_key(key)
    }

    /// The secondary key of a record.
    pub fn scatter_key(&self, number: u64) -> Vec<u8> {
        keys::number_key(self.form.permutation.forward(number)).to_vec()
    }

    /// The content a long value of record `number` has in a given version; empty when the plan has
    /// no long values.
    pub fn long_value(&self, number: u64, version: u32) -> Vec<u8> {
        let Some(form) = self.value_form else {
            return Vec::new();
        };
        let mut bytes = vec![0; form.bytes];
        let percent = self.random_percent();
        for (chunk, place) in bytes.chunks_mut(form.chunk_bytes).enumerate() {
            value::write_chunk(self.value_key, number, version, chunk as u64, percent, place);
        }
        bytes
    }

    pub(super) fn dbtime(&self, page: PageNumber) -> u64 {
        FRESH_DBTIME_FIRST + u64::from(page)
    }

    pub(super) fn random_percent(&self) -> usize {
        100 - usize::from(self.plan.compressible_percent)
    }
}

/// Refuses what no layout can make good.
fn check(plan: &Plan) -> Result<(), PlanError> {
    let percents = [
        ("compressible_percent", plan.compressible_percent, 0),
        ("leaf_fill_percent", plan.leaf_fill_percent, 1),
        ("branch_fill_percent", plan.branch_fill_percent, 1),
        ("vacancy_percent", plan.vacancy_percent, 0),
    ];
    for (name, percent, least) in percents {
        if !(least..=100).contains(&percent) {
            return Err(PlanError::Percent { name, percent, least });
        }
    }
    if let Some(sharing) = plan.sharing
        && sharing.leaves_per_million > 1_000_000
    {
        let leaves_per_million = sharing.leaves_per_million;
        return Err(PlanError::Sharing { leaves_per_million });
    }
    let has_others = plan.long_values.is_some() || plan.secondary == Secondary::Unique;
    if has_others && plan.vacancy_percent > 0 {
        return Err(PlanError::VacantWithOthers);
    }
    if let Some(long_values) = plan.long_values {
        let bytes_max = value::bytes_max(plan.page_size);
        if long_values.every == 0 || !(1..=bytes_max).contains(&long_values.bytes) {
            return Err(PlanError::LongValues { bytes_max });
        }
    }
    record::check(plan)
}
