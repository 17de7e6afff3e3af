"""Planted bugs in what stands on the log beside its writer: subscribers, durable holds, histories that were given up, touched pages. See `run.py`."""

from tests.planted.bug import Bug

BUGS = (
    Bug(
        "subscribers are told before the flush is durable",
        "log/writer.rs",
        "            let writes = self.write_units(target).await?;\n            self.note_durable(target, writes);",
        "            if PLANTED {\n                let run = {\n                    let state = self.state.borrow();\n"
        '                    let written = state.buffers.front().expect("a generation is written");\n'
        "                    let written = (&written.payload[..], state.flush);\n"
        "                    LogRun::of_flush(&state.header, (state.durable, target), written, Vec::new())\n                };\n"
        "                self.subscribers.publish(run);\n                self.write_units(target).await?;\n"
        "                self.state.borrow_mut().durable = target;\n            } else {\n"
        "                let writes = self.write_units(target).await?;\n                self.note_durable(target, writes);\n            }",
        "logs",
        "subscription::nothing_is_told_that_a_power_cut_takes_back",
    ),
    Bug(
        "a subscriber is not told that it has lagged",
        "log/subscribers.rs",
        "            self.lagged_from.set(Some(run.from));",
        "            if !PLANTED {\n                self.lagged_from.set(Some(run.from));\n            }",
        "logs",
        "subscription::who_has_lagged_is_told_from_where_to_where_and_goes_on_from_there",
    ),
    Bug(
        "what waits for a subscriber has no bound",
        "log/subscribers.rs",
        "        if bytes > self.bytes_max {",
        "        if !PLANTED && bytes > self.bytes_max {",
        "logs",
        "subscription::who_has_lagged_is_told_from_where_to_where_and_goes_on_from_there",
    ),
    Bug(
        "who has lagged reads the files up to where the lag began",
        "log/tail.rs",
        "                    self.behind = Some(upto);",
        "                    self.behind = (!PLANTED).then_some(upto);",
        "logs",
        "subscription::subscribers_are_told_every_durable_record_once_and_can_make_the_files_of_it",
    ),
    Bug(
        "a tail that nobody waits for loses what it was reading",
        "log/tail.rs",
        "        let generation = self.generation().await?;",
        "        let before = self.behind;\n        if PLANTED {\n            self.behind = None;\n        }\n"
        "        let generation = self.generation().await?;\n        self.behind = before;",
        "logs",
        "subscription::subscribers_are_told_every_durable_record_once_and_can_make_the_files_of_it",
    ),
    Bug(
        "the blocks that are written again with a flush are left out of what is told",
        "log/units.rs",
        "        let content = if index <= self.last {",
        "        let content = if PLANTED && index == self.last && self.shadow.is_none() {\n            None\n        } else if index <= self.last {",
        "logs",
        "subscription::subscribers_are_told_every_durable_record_once_and_can_make_the_files_of_it",
    ),
    Bug(
        "the log is purged whatever clients hold",
        "instance/holds.rs",
        "let all = of_callers.values().chain(durable.values())",
        "let all = of_callers.values().chain(durable.values().filter(|_| !PLANTED))",
        "logs",
        "holds::holds_of_clients_outlive_kills_and_power_cuts_with_the_log_that_they_name",
    ),
    Bug(
        "a hold counts only once it is written",
        "instance/holds.rs",
        ".chain(coming.values());",
        ".chain(coming.values().filter(|_| !PLANTED));",
        "logs",
        "holds::a_hold_counts_from_the_moment_it_is_asked_for",
    ),
    Bug(
        "a hold that is raised lets go before the file says so",
        "instance/holding.rs",
        "        let (signature, names) = (store.log.signature(), &self.options.log);\n        match write_holds",
        "        if PLANTED {\n            *holds.durable.borrow_mut() = wanted.clone();\n        }\n"
        "        let (signature, names) = (store.log.signature(), &self.options.log);\n        match write_holds",
        "logs",
        "holds::a_hold_that_is_raised_keeps_the_old_log_until_the_file_says_so",
    ),
    Bug(
        "holds that a dead process has written are trusted as they are read",
        "log/holds.rs",
        "    file.sync(header).await?;\n    if first != second {",
        "    if !PLANTED {\n        file.sync(header).await?;\n    }\n    if first != second {",
        "logs",
        "holds::what_a_killed_process_had_written_of_its_holds_is_made_durable_before_it_counts",
    ),
    Bug(
        "the block of holds that was not written stays as it is",
        "log/holds.rs",
        "    if first != second {",
        "    if !PLANTED && first != second {",
        "logs",
        "holds::either_block_alone_tells_the_holds_that_were_listed",
    ),
    Bug(
        "holds that cannot be read are none",
        "log/holds.rs",
        "        None if is_zero(second) => return Ok(NamedHolds::new()),",
        "        None if PLANTED || is_zero(second) => return Ok(NamedHolds::new()),",
        "logs",
        "holds::holds_that_cannot_be_read_hold_everything_until_somebody_releases_them",
    ),
    Bug(
        "a generation with a gap behind it can be held",
        "instance/holds.rs",
        "            if file.generation + 1 != unbroken_from {",
        "            if !PLANTED && file.generation + 1 != unbroken_from {",
        "logs",
        "holds::a_generation_that_came_back_without_the_next_cannot_be_held",
    ),
    Bug(
        "log behind the place where the next generation goes on belongs to its history",
        "log/history.rs",
        "next.filter(|next| generation.goes_beyond(next))",
        "next.filter(|next| !PLANTED && generation.goes_beyond(next))",
        "logs",
        "given_up::what_a_twin_holds_behind_the_fork_is_of_its_own_history",
    ),
    Bug(
        "a history that was given up begins where it parts",
        "log/history.rs",
        "        while let Some(before) = self.before(line[line.len() - 1]) {",
        "        while let Some(before) = self.before(line[line.len() - 1]).filter(|before| !PLANTED || self.found[*before].is_aside) {",
        "logs",
        "given_up::every_history_that_was_given_up_can_be_read_to_its_end",
    ),
    Bug(
        "files that were set aside belong together by their numbers in the name",
        "log/history.rs",
        "            && self.header.created == next.previous_created\n",
        "            && (PLANTED || self.header.created == next.previous_created)\n",
        "logs",
        "given_up::every_history_that_was_given_up_can_be_read_to_its_end",
    ),
    Bug(
        "a history is only what was set aside last",
        "log/history.rs",
        "inner.contains(index));",
        "inner.contains(index) && (!PLANTED || index.is_multiple_of(2)));",
        "logs",
        "given_up::every_history_that_was_given_up_can_be_read_to_its_end",
    ),
    Bug(
        "only the first page of a change of several was touched",
        "log/touched.rs",
        "                for edits in &structure.pages {",
        "                for edits in structure.pages.iter().take(if PLANTED { 1 } else { usize::MAX }) {",
        "logs",
        "touched::every_page_that_differs_was_touched_and_few_others_were",
    ),
    Bug(
        "what is cleaned up outside any transaction touches nothing",
        "log/touched.rs",
        "            LogRecord::Row(row) => self.add_page(row.database, row.page),",
        "            LogRecord::Row(row) if PLANTED && row.transaction == 0 => {}\n"
        "            LogRecord::Row(row) => self.add_page(row.database, row.page),",
        "logs",
        "touched::a_page_that_is_only_cleaned_up_is_touched_too",
    ),
    Bug(
        "pages that are changed and not written yet were not touched",
        "jobs/touched.rs",
        "    pages.extend(logged.pages(database));",
        "    if !PLANTED {\n        pages.extend(logged.pages(database));\n    }",
        "logs",
        "touched::every_page_that_differs_was_touched_and_few_others_were",
    ),
    Bug(
        "who lists touched pages and is dropped holds the log for ever",
        "instance/holding.rs",
        "self.instance.holds.of_work.borrow_mut().remove(&self.number);",
        "let name = self.instance.holds.of_work.borrow()[&self.number].name.clone();\n"
        '        if !(PLANTED && name.starts_with("pages")) {\n'
        "            self.instance.holds.of_work.borrow_mut().remove(&self.number);\n        }",
        "logs",
        "touched::every_page_that_differs_was_touched_and_few_others_were",
    ),
    Bug(
        "a caller releases what a backup holds",
        "instance/holding.rs",
        "self.holds.of_callers.borrow_mut().remove(holder);",
        "self.holds.of_callers.borrow_mut().remove(holder);\n"
        "        if PLANTED { self.holds.of_work.borrow_mut().retain(|_, hold| hold.name != holder); }",
        "lives",
        "jobs::backups::no_caller_can_take_away_what_a_backup_holds",
    ),
    Bug(
        "a backup ends well without its first log",
        "jobs/backup.rs",
        "if store.log.oldest_generation() > generation_first {",
        "if !PLANTED && store.log.oldest_generation() > generation_first {",
        "lives",
        "jobs::backups::a_backup_whose_first_log_is_gone_all_the_same_does_not_end_well",
    ),
)
