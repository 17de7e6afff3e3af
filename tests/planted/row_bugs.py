"""Planted bugs of rows under impolite use: operations at once, keys of long values, schemas that change beside each other. See `run.py`."""

from tests.planted.bug import Bug

BUGS = (
    Bug(
        "a change goes beside another of its transaction",
        "transaction/steps.rs",
        "if self.under_way.get() != UnderWay::Nothing {",
        "if !PLANTED && self.under_way.get() != UnderWay::Nothing {",
        "rows",
        "at_once::an_operation_that_fails_takes_nothing_of_another_back",
    ),
    Bug(
        "a read goes beside a change",
        "transaction/steps.rs",
        "UnderWay::Change => return Err(EngineError::TransactionBusy),",
        "UnderWay::Change if PLANTED => 1,\n            UnderWay::Change => return Err(EngineError::TransactionBusy),",
        "rows",
        "at_once::a_read_beside_a_change_is_refused_and_reads_go_together",
    ),
    Bug(
        "one operation that ends well stands for all",
        "transaction/steps.rs",
        "!self.steps.borrow().is_empty()",
        "self.steps.borrow().len() > usize::from(PLANTED)",
        "rows",
        "at_once::a_long_value_without_a_row_is_not_committed_because_another_found_one",
    ),
    Bug(
        "a savepoint that was passed by is taken",
        "transaction/undo.rs",
        "if !self.holds(savepoint) {",
        "if !PLANTED && !self.holds(savepoint) {",
        "rows",
        "at_once::a_savepoint_that_was_passed_by_is_refused",
    ),
    Bug(
        "a long value goes on after it was taken back",
        "table/long_value.rs",
        "} else if !self.work.is_begun(&self.steps) {",
        "} else if !PLANTED && !self.work.is_begun(&self.steps) {",
        "rows",
        "at_once::a_long_value_that_was_taken_back_cannot_be_written_on",
    ),
    Bug(
        "a value kept apart is null to its index",
        "table/index.rs",
        "Some(Held::Separated(_)) => apart",
        "Some(Held::Separated(_)) if PLANTED => None,\n            Some(Held::Separated(_)) => apart",
        "rows",
        "long_keys::a_row_with_a_separated_indexed_column_is_updated_and_deleted",
    ),
    Bug(
        "an index does not follow its columns",
        "table/rows.rs",
        "let keys = if columns.iter().any(",
        "let keys = if !PLANTED && columns.iter().any(",
        "rows",
        "long_keys::a_long_value_given_to_an_indexed_column_changes_its_index",
    ),
    Bug(
        "a key is longer than its page can say",
        "transaction/rows.rs",
        "if key.len() > KEY_BYTES_MAX {",
        "if !PLANTED && key.len() > KEY_BYTES_MAX {",
        "rows",
        "long_keys::a_key_longer_than_its_page_can_say_is_refused",
    ),
    Bug(
        "schemas change beside each other",
        "table/create.rs",
        "let _alone = this.schema_changes().acquire().await;",
        "let _alone = if PLANTED { None } else { Some(this.schema_changes().acquire().await) };",
        "rows",
        "schema_changes::tables_made_at_once_are_all_there",
    ),
)
