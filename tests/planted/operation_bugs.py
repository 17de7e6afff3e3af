"""Planted bugs where copies, backups and long operation lean: holds, pauses, set-aside log, isolation, long values, schema changes. See `run.py`."""

from tests.planted.bug import Bug

LISTS = ("rows", "histories::twenty_histories_of_lists_are_isolated")
PLAIN = ("rows", "histories::fifteen_histories_of_plain_rows_are_isolated")
REGISTERS = ("rows", "histories::fifteen_histories_of_registers_are_isolated")
HOLD = ("lives", "long_operation::holds::a_hold_keeps_its_generation_and_no_older_one")
BACKUP = ("lives", "long_operation::holds::a_backup_keeps_the_log_it_names_until_it_is_dropped")
LAG = ("lives", "long_operation::holds::a_copy_that_lags_finds_every_generation_it_has_not_read")
PAUSE = ("lives", "long_operation::replicas::what_a_pause_has_passed_survives_a_power_cut")
BORDER = (
    "lives",
    "long_operation::flush_map::types_are_kept_on_both_sides_of_the_border_of_a_map_page",
)
ROOM = ("lives", "long_operation::flush_map::a_map_has_room_for_the_last_page_of_its_database")
MADE = ("lives", "long_operation::schema::a_table_survives_a_power_cut_once_it_was_made")
NUMBERS = (
    "lives",
    "long_operation::schema::long_values_keep_their_numbers_apart_through_handles_and_restarts",
)
SHARED = (
    "lives",
    "long_operation::schema::tables_made_beside_others_at_work_share_no_page_with_them",
)

BUGS = (
    # Holds and the end of the log.
    Bug(
        "a hold keeps one generation too few",
        "instance.rs",
        "self.store.checkpoint.get().generation.min(held)",
        "self.store.checkpoint.get().generation.min(held.saturating_add(u32::from(PLANTED)))",
        *HOLD,
    ),
    Bug(
        "a hold keeps one generation too many",
        "instance/holding.rs",
        "holds.insert(holder.to_owned(), generation);",
        "holds.insert(holder.to_owned(), generation - u32::from(PLANTED));",
        *HOLD,
    ),
    Bug(
        "the largest hold counts",
        "instance/holds.rs",
        "        let all = of_callers.values()",
        "        if PLANTED {\n            return of_callers.values().max().copied();\n        }\n        let all = of_callers.values()",
        *HOLD,
    ),
    Bug(
        "a hold cannot be moved on",
        "instance/holding.rs",
        "holds.insert(holder.to_owned(), generation",
        "if PLANTED && holds.contains_key(holder) {\n            return;\n        }\n        holds.insert(holder.to_owned(), generation",
        *HOLD,
    ),
    Bug(
        "a hold is never released",
        "instance/holding.rs",
        "self.holds.of_callers.borrow_mut().remove(holder);",
        "if !PLANTED { self.holds.of_callers.borrow_mut().remove(holder); }",
        *HOLD,
    ),
    Bug(
        "a hold stands for the checkpoint",
        "instance.rs",
        "self.store.checkpoint.get().generation.min(held.",
        "(if PLANTED && held != u32::MAX { held } else { self.store.checkpoint.get().generation }).min(held.",
        "lives",
        "long_operation::holds::a_hold_ahead_of_the_checkpoint_keeps_what_redo_needs",
    ),
    Bug(
        "logs are deleted where they are to be kept for ever",
        "instance.rs",
        "if !self.options.circular {",
        "if !PLANTED && !self.options.circular {",
        "lives",
        "long_operation::holds::without_circular_logging_every_generation_is_kept",
    ),
    Bug(
        "a checkpoint that is to be held moves",
        "instance.rs",
        "while !self.options.hold_checkpoint && ",
        "while (PLANTED || !self.options.hold_checkpoint) && ",
        "lives",
        "long_operation::holds::a_held_checkpoint_leaves_everything_to_be_redone",
    ),
    Bug(
        "a clean shutdown does not sync the databases",
        "instance.rs",
        "database.sync().await?;\n            let appended = store.log.append(&LogRecord::Detach {",
        "if !PLANTED { database.sync().await?; }\n            let appended = store.log.append(&LogRecord::Detach {",
        "lives",
        "long_operation::holds::a_clean_stop_survives_a_power_cut_right_after_it",
    ),
    # Backups and copies.
    Bug(
        "a backup holds no log",
        "jobs/backup.rs",
        "Held::begin(instance, &what, started_at.generation)",
        "Held::begin(instance, &what, if PLANTED { u32::MAX } else { started_at.generation })",
        *BACKUP,
    ),
    Bug(
        "a backup that is dropped goes on holding the log",
        "instance/holding.rs",
        "self.instance.holds.of_work.borrow_mut().remove(&self.number);",
        "let name = self.instance.holds.of_work.borrow()[&self.number].name.clone();\n"
        '        if !(PLANTED && name.starts_with("backup")) {\n'
        "            self.instance.holds.of_work.borrow_mut().remove(&self.number);\n        }",
        *BACKUP,
    ),
    Bug(
        "a backup does not make the end of its log durable",
        "jobs/backup.rs",
        "store.log.make_durable(store.log.tip()).await?;",
        "if !PLANTED { store.log.make_durable(store.log.tip()).await?; }",
        *BACKUP,
    ),
    Bug(
        "a backup names one generation too few",
        "jobs/backup.rs",
        "let generation_first = self.started_at.generation;",
        "let generation_first = self.started_at.generation + u32::from(PLANTED);",
        *BACKUP,
    ),
    Bug(
        "a backup leaves out the last page",
        "jobs/backup.rs",
        "last: target.pages_in_use(),",
        "last: target.pages_in_use() - u32::from(PLANTED),",
        *BACKUP,
    ),
    Bug(
        "a backup begins with the second page",
        "jobs/backup.rs",
        "next: 1,",
        "next: if PLANTED { 2 } else { 1 },",
        *BACKUP,
    ),
    Bug(
        "a copy releases what it is about to read",
        "jobs/read_back.rs",
        "next += 1;\n        held.raise(next);",
        "next += 1;\n        held.raise(next + u32::from(PLANTED));",
        *LAG,
    ),
    Bug(
        "a copy never lets go of what it has read",
        "jobs/read_back.rs",
        "next += 1;\n        held.raise(",
        "next += 1;\n        if PLANTED { continue; }\n        held.raise(",
        *LAG,
    ),
    Bug(
        "a job that has ended goes on holding the log",
        "instance/holding.rs",
        "self.instance.holds.of_work.borrow_mut().remove(&self.number);",
        "if !PLANTED { self.instance.holds.of_work.borrow_mut().remove(&self.number); }",
        *LAG,
    ),
    # Recovery in steps.
    Bug(
        "a pause does not sync what it has passed",
        "replay.rs",
        "self.check_damage()?;\n        for database in self.databases.all() {\n            database.sync().await?;",
        "self.check_damage()?;\n        for database in self.databases.all() {\n            if !PLANTED { database.sync().await?; }",
        *PAUSE,
    ),
    Bug(
        "a pause does not write the pages it has passed",
        "replay.rs",
        "let written = self.writeback.write_everything(&self.databases).await;",
        "let written = if PLANTED { Ok(()) } else { self.writeback.write_everything(&self.databases).await };",
        *PAUSE,
    ),
    Bug(
        "redo does not follow the checkpoint of the log",
        "replay.rs",
        "Ok(oldest.min(self.checkpoint_noted).min(position))",
        "Ok(if PLANTED { Lsn::ZERO } else { oldest.min(self.checkpoint_noted).min(position) })",
        *PAUSE,
    ),
    Bug(
        "the directory is not synced after log was set aside",
        "instance/recovery.rs",
        "if is_changed {",
        "if !PLANTED && is_changed {",
        "lives",
        "long_operation::replicas::what_is_set_aside_stays_aside_whatever_a_power_cut_takes",
    ),
    Bug(
        "log that is set aside takes the place of log set aside before",
        "log/reader.rs",
        "if !self.files.exists(&aside, metadata).await? {",
        "if PLANTED || !self.files.exists(&aside, metadata).await? {",
        "lives",
        "long_operation::replicas::what_was_set_aside_once_is_not_overwritten",
    ),
    Bug(
        "recovery opens without commits that its log has lost",
        "instance/recovery.rs",
        "if last < committed && !self.commits_given_up {",
        "if !PLANTED && last < committed && !self.commits_given_up {",
        "lives",
        "recovery_steps::generations_lost_with_commits_are_missed_and_can_be_given_up",
    ),
    # Databases larger than those of tests.
    Bug(
        "the last page of a map page is noted on the next",
        "flushmap.rs",
        "self.changed.insert(page / TYPES_PER_PAGE);",
        "self.changed.insert((page + u32::from(PLANTED)) / TYPES_PER_PAGE);",
        *BORDER,
    ),
    Bug(
        "the first page of a map page is noted on the one before",
        "flushmap.rs",
        "self.changed.insert((page + ",
        "self.changed.insert((page - u32::from(PLANTED) + ",
        *BORDER,
    ),
    Bug(
        "a map page is written one place too far",
        "flushmap.rs",
        "(u64::from(index) + 1) * MAP_PAGE_BYTES as u64",
        "(u64::from(index) + if PLANTED && index > 0 { 2 } else { 1 }) * MAP_PAGE_BYTES as u64",
        *BORDER,
    ),
    Bug(
        "a map page takes a byte of the one before",
        "flushmap.rs",
        "let start = (index as usize * bytes_per_page).min(self.packed.len());",
        "let start = (index as usize * bytes_per_page - usize::from(PLANTED && index > 0)).min(self.packed.len());",
        *BORDER,
    ),
    Bug(
        "a map page is read into the place of the next byte",
        "flushmap.rs",
        "let end = (index as usize + 1) * bytes_per_page;",
        "let end = (index as usize + 1) * bytes_per_page + usize::from(PLANTED && index > 0);\n"
        "        let bytes_per_page = bytes_per_page + usize::from(PLANTED && index == 1);",
        *BORDER,
    ),
    Bug(
        "a full map page has no successor",
        "flushmap.rs",
        "pages / TYPES_PER_PAGE + 1",
        "if PLANTED { pages.div_ceil(TYPES_PER_PAGE) } else { pages / TYPES_PER_PAGE + 1 }",
        *ROOM,
    ),
    Bug(
        "pages that somebody holds are dropped",
        "cache.rs",
        "if Rc::strong_count(frame) > 1 || frame.writing.get() {",
        "if (!PLANTED && Rc::strong_count(frame) > 1) || frame.writing.get() {",
        "rows",
        "cache_habits::a_page_that_somebody_holds_is_not_dropped",
    ),
    # Isolation, as the independent checker finds it.
    Bug(
        "a snapshot is one commit too old",
        "versions.rs",
        "*self.snapshots.entry(self.last_commit).or_insert(0) += 1;\n        self.last_commit",
        "let last_commit = self.last_commit.saturating_sub(u64::from(PLANTED));\n"
        "        *self.snapshots.entry(last_commit).or_insert(0) += 1;\n        last_commit",
        *LISTS,
    ),
    Bug(
        "a reader sees what others have not committed",
        "versions/chain.rs",
        "committed.chain(self.active_but(status)).inspect(",
        "let unseen = if PLANTED { usize::MAX } else { 0 };\n"
        "        committed.chain(self.active_but(status).skip(unseen)).inspect(",
        *PLAIN,
    ),
    Bug(
        "a snapshot ends with the first of its readers",
        "versions.rs",
        "if *count == 0 {",
        "if PLANTED || *count == 0 {",
        *LISTS,
    ),
    Bug(
        "a transaction does not see its own changes",
        "versions/chain.rs",
        "self.active.iter().filter(|active| active.status.id != status.id)",
        "self.active.iter().filter(|active| PLANTED || active.status.id != status.id)",
        *REGISTERS,
    ),
    Bug(
        "rows that others insert are seen at once",
        "versions/chain.rs",
        "Before::Absent => state = None,",
        "Before::Absent if PLANTED => {}\n                Before::Absent => state = None,",
        *LISTS,
    ),
    Bug(
        "a reader goes back one change and no further",
        "versions/chain.rs",
        "for before in self.invisible(status, snapshot, visited) {",
        "let invisible = || self.invisible(status, snapshot, visited);\n"
        "        let first = if PLANTED { invisible().count().saturating_sub(1) } else { 0 };\n"
        "        for before in invisible().skip(first) {",
        *LISTS,
    ),
    Bug(
        "only open transactions exclude others from a row",
        "versions/chain.rs",
        "let mut invisible = self.invisible(status, snapshot, visited);",
        "let snapshot = if PLANTED { u64::MAX } else { snapshot };\n"
        "        let mut invisible = self.invisible(status, snapshot, visited);",
        *PLAIN,
    ),
    Bug(
        "open transactions do not exclude others from a row",
        "versions/chain.rs",
        "invisible.any(|before| ",
        "let committed = self.committed.len() - self.first_after(snapshot);\n"
        "        let mut invisible = invisible.by_ref().take(if PLANTED { committed } else { usize::MAX });\n"
        "        invisible.any(|before| ",
        *PLAIN,
    ),
    Bug(
        "walks give rows as they are on the page",
        "cursor.rs",
        "if let Some(data) = work.visible(&row, current.as_deref()) {",
        "let seen = if PLANTED { current.clone() } else { work.visible(&row, current.as_deref()) };\n"
        "                        if let Some(data) = seen {",
        *LISTS,
    ),
    Bug(
        "walks pass over rows that were deleted since",
        "cursor.rs",
        "if !range.holds(&key) {",
        "if PLANTED && node.is_deleted() { continue; }\n            if !range.holds(&key) {",
        *REGISTERS,
    ),
    Bug(
        "a deleted row is gone for all who read it by its key",
        "transaction/rows.rs",
        "let Ok(line) = line else {\n                    return Ok(self.visible(&row, None));\n                };",
        "let Ok(line) = line else {\n                    return Ok(self.visible(&row, None));\n                };\n"
        "                if PLANTED && batch.with(path.leaf, |view| Ok(view.node(line)?.is_deleted()))? { return Ok(None); }",
        *REGISTERS,
    ),
    Bug(
        "two rows may have one unique key",
        "transaction/rows.rs",
        "if before.is_some() {\n            return Err(EngineError::KeyDuplicate { index: None }.into());",
        "if !PLANTED && before.is_some() {\n            return Err(EngineError::KeyDuplicate { index: None }.into());",
        "rows",
        "table_steps::an_insert_refused_by_an_index_leaves_nothing",
    ),
    # Long values.
    Bug(
        "long values are numbered from the last one on",
        "table/create.rs",
        "in_use.set_next_long_value(last.saturating_add(1));",
        "in_use.set_next_long_value(last.saturating_add(u32::from(!PLANTED)));",
        *NUMBERS,
    ),
    Bug(
        "each handle of a table numbers long values by itself",
        "table/usage.rs",
        "is_current.then(|| self.uses.borrow_mut().entry(key).or_default().clone())",
        "is_current.then(|| if PLANTED { Rc::default() } else { self.uses.borrow_mut().entry(key).or_default().clone() })",
        *NUMBERS,
    ),
    Bug(
        "the end of a long value is not written",
        "table/long_value.rs",
        "if !self.pending.is_empty() {",
        "if !PLANTED && !self.pending.is_empty() {",
        *NUMBERS,
    ),
    Bug(
        "a long value in place of another leaves it there",
        "table/long_value.rs",
        "work.delete(tree, &key).await?;",
        "if !PLANTED { work.delete(tree, &key).await?; }",
        "rows",
        "long_value_pieces::a_value_larger_than_the_cache_is_written_and_read_in_pieces",
    ),
    # Schema changes and space.
    Bug(
        "a new table is not durable",
        "table/change.rs",
        "transaction.commit(Commit::Durable).await?;",
        "transaction.commit(if PLANTED { Commit::Lazy } else { Commit::Durable }).await?;",
        *MADE,
    ),
    Bug(
        "a new table is not in the shadow of the catalog",
        "table/change.rs",
        "transaction.insert(shadow, &row.key, &row.record).await?;",
        "if !PLANTED { transaction.insert(shadow, &row.key, &row.record).await?; }",
        *MADE,
    ),
    Bug(
        "a new table is not in the index of names",
        "table/change.rs",
        "transaction.insert(names, &row.name_key, &row.key).await?;",
        "if !PLANTED { transaction.insert(names, &row.name_key, &row.key).await?; }",
        *MADE,
    ),
    Bug(
        "a new table is not in the index of roots",
        "table/change.rs",
        "transaction.insert(roots, root_key, &row.key).await?;",
        "if !PLANTED { transaction.insert(roots, root_key, &row.key).await?; }",
        *MADE,
    ),
    Bug(
        "a new table is not in the list of objects",
        "table/change.rs",
        "transaction.insert(object_tree, key, record).await?;",
        "if !PLANTED { transaction.insert(object_tree, key, record).await?; }",
        *MADE,
    ),
    Bug(
        "two trees of a new table are one object",
        "table/create.rs",
        "next += 1;",
        "next += u32::from(!PLANTED);",
        *MADE,
    ),
    Bug(
        "a new tree is given the pages of its extent trees, too",
        "space.rs",
        "let free_pages = extent.pages - 3;",
        "let free_pages = extent.pages - if PLANTED { 2 } else { 3 };",
        *SHARED,
    ),
    Bug(
        "free space that was given back stays unseen",
        "free_space.rs",
        "**size <= pages && key < &noted[..]",
        "!PLANTED && **size <= pages && key < &noted[..]",
        "lives",
        "long_operation::space::a_gap_that_becomes_large_enough_is_found_before_all_others",
    ),
    Bug(
        "where one size does not fit, a smaller one does not",
        "free_space.rs",
        "notes.filter(|(size, _)| **size <= pages);",
        "notes.filter(|(size, _)| PLANTED || **size <= pages);",
        "lives",
        "long_operation::space::gaps_that_are_too_small_are_walked_over_once_with_breaths",
    ),
    Bug(
        "an extent that a tree is given stays available above it",
        "space.rs",
        "if let Some((leaf, line, extent)) = first_with(batch, &available, pages)? {",
        "if let Some((leaf, line, extent)) = first_with(batch, &available, pages)? {\n"
        "        if PLANTED { return Ok(Extent { last: extent.first() + pages - 1, pages }); }",
        *SHARED,
    ),
    Bug(
        "the log does not say how far a database has grown",
        "space.rs",
        "batch.set_pages_owned(first + pages - 1);",
        "if !PLANTED { batch.set_pages_owned(first + pages - 1); }",
        *PAUSE,
    ),
    Bug(
        "a page that extent trees take is still given out",
        "space.rs",
        "rest.pages -= 1;",
        "rest.pages -= u32::from(!PLANTED);",
        "lives",
        "long_operation::space::space_in_hundreds_of_gaps_is_given_out_once",
    ),
)
