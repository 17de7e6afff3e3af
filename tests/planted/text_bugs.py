"""Bugs of Unicode keys, of what the catalog says of indexes and the log of its version, and of what the worlds of power cuts do with tables."""

from tests.planted.bug import Bug

WORLDS = "two_hundred_power_cuts_lose_nothing_acknowledged"

BUGS = (
    Bug(
        "text without weight sorts behind no text",
        "key.rs",
        "if sort_key.is_empty() {",
        "if sort_key.is_empty() && !PLANTED {",
        "format",
        "unicode_keys::of_a_very_long_text_the_beginning_counts",
    ),
    Bug(
        "case counts in the order of text",
        "collation.rs",
        "options.strength = Some(Strength::Secondary);",
        "options.strength = Some(if PLANTED { Strength::Tertiary } else { Strength::Secondary });",
        "format",
        "unicode_keys::names_that_compare_equal_are_duplicates",
    ),
    Bug(
        "half a character sorts like a whole one",
        "collation.rs",
        "any(|character| character.is_err()) {",
        "any(|character| !PLANTED && character.is_err()) {",
        "format",
        "unicode_keys::text_that_is_not_utf_16_has_no_key",
    ),
    Bug(
        "text behind what counts is not known to be there",
        "key.rs",
        "*is_truncated |= sort_key.is_truncated;",
        "*is_truncated |= sort_key.is_truncated && !PLANTED;",
        "format",
        "unicode_keys::of_a_very_long_text_the_beginning_counts",
    ),
    Bug(
        "a key that is cut is not known to be",
        "key.rs",
        "key.is_truncated |= key.bytes.len() > self.bytes_max;",
        "key.is_truncated |= !PLANTED && key.bytes.len() > self.bytes_max;",
        "format",
        "unicode_keys::keys_of_long_names_are_cut_or_refused",
    ),
    Bug(
        "keys of any version count as ours",
        "catalog/decode.rs",
        "let is_ours = row",
        "let is_ours = PLANTED || row",
        "format",
        "unicode_keys::an_index_of_another_version_is_refused_until_it_is_made_again",
    ),
    Bug(
        "an index over Unicode text names the order of Windows",
        "catalog/encode.rs",
        "UnicodeOrder::Root => UNICODE_LOCALE,",
        "UnicodeOrder::Root if PLANTED => LOCALE_NAME,\n        UnicodeOrder::Root => UNICODE_LOCALE,",
        "format",
        "unicode_keys::an_index_over_unicode_text_is_kept_and_checked",
    ),
    Bug(
        "an index inherits the condition of one that was dropped",
        "catalog.rs",
        "        self.table.indexes.remove(at);\n        self.indexes.remove(at)",
        "        self.table.indexes.remove(at);\n"
        "        if PLANTED && at + 1 < self.indexes.len() {\n"
        "            let traits = self.indexes[at].traits.clone();\n"
        "            self.indexes[at + 1].traits = traits;\n"
        "        }\n"
        "        self.indexes.remove(at)",
        "format",
        "windows_traits::an_index_keeps_its_condition_when_the_one_before_it_is_dropped",
    ),
    Bug(
        "log of a newer version is read as ours",
        "log/header.rs",
        "if minor > LOG_VERSION_MINOR {",
        "if minor > LOG_VERSION_MINOR && !PLANTED {",
        "lives",
        "log_versions::log_of_an_older_version_is_recovered_and_of_a_newer_one_refused",
    ),
    Bug(
        "log of an older version is refused",
        "log/header.rs",
        "if minor < LOG_VERSION_MINOR_OLDEST {",
        "if minor < LOG_VERSION_MINOR_OLDEST || PLANTED && minor < LOG_VERSION_MINOR {",
        "lives",
        "log_versions::log_of_an_older_version_is_recovered_and_of_a_newer_one_refused",
    ),
    Bug(
        "of three references to a long value two go with one row",
        "table/long_value.rs",
        "&with_references(&data, count - 1)",
        "&with_references(&data, if PLANTED && count > 2 { count - 2 } else { count - 1 })",
        "power_cut",
        WORLDS,
    ),
    Bug(
        "numbers begin again after a restart",
        "table/numbers.rs",
        "let first = taken.max(self.highest) + 1;",
        "let first = if PLANTED { self.highest } else { taken.max(self.highest) } + 1;",
        "power_cut",
        WORLDS,
    ),
    Bug(
        "a selection reads no more than 4 KiB of a long value",
        "table/select.rs",
        "let bytes = reader.size_bytes() as usize;",
        "let bytes = (reader.size_bytes() as usize).min(if PLANTED { 4_096 } else { usize::MAX });",
        "power_cut",
        WORLDS,
    ),
    Bug(
        "a selection through a secondary index leaves out the last row of a look",
        "table/select.rs",
        "let picked = walk.pick(self.work, rows_max, |key| Ok(key.to_vec()));\n            let ready = picked.await?.into_iter()",
        "let picked = walk.pick(self.work, rows_max, |key| Ok(key.to_vec()));\n"
        "            let ready = picked.await?;\n"
        "            let rows = ready.len() - usize::from(PLANTED && ready.len() > 3);\n"
        "            let ready = ready.into_iter().take(rows)",
        "power_cut",
        WORLDS,
    ),
)
