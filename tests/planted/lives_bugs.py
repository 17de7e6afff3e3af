"""Planted bugs in what outlives a process: what recovery finds, a close beside sessions, headers, the end of the log, forks. See `run.py`."""

from tests.planted.bug import Bug

LIVES = ("power_cut", "cuts_after_other_lives_lose_nothing_acknowledged")
BUGS = (
    Bug(
        "what a dead process left unsynced counts as synced",
        "database.rs",
        "            unsynced: Cell::new(true),",
        "            unsynced: Cell::new(!PLANTED),",
        "lives",
        "killed::what_a_killed_process_had_written_is_synced_before_the_checkpoint_passes_it",
    ),
    Bug(
        "log of a dead process is trusted as it is read",
        "log/reader.rs",
        "if let Err(error) = file.sync(self.context).await {",
        "if let Err(error) = if PLANTED { Ok(()) } else { file.sync(self.context).await } {",
        "lives",
        "killed::log_that_a_killed_process_had_written_is_synced_before_anything_builds_on_it",
    ),
    Bug(
        "a transaction is begun while the instance closes",
        "transaction/begin.rs",
        "if store.closing.get() {",
        "if !PLANTED && store.closing.get() {",
        "lives",
        "closing::a_close_waits_for_the_transactions_that_were_begun_before_it",
    ),
    Bug(
        "a transaction that was refused ends like another",
        "transaction/undo.rs",
        "if self.is_refused {",
        "if !PLANTED && self.is_refused {",
        "lives",
        "closing::a_close_waits_for_the_transactions_that_were_begun_before_it",
    ),
    Bug(
        "a close does not wait for what is under way",
        "instance.rs",
        "while store.active.get() > 0 {",
        "while !PLANTED && store.active.get() > 0 {",
        "lives",
        "closing::a_close_waits_for_the_transactions_that_were_begun_before_it",
    ),
    Bug(
        "a close lets others begin again before it has written everything",
        "instance.rs",
        "        store.sealed.set(true);\n        // Only now",
        "        if PLANTED {\n            store.closing.set(false);\n        } else {\n            store.sealed.set(true);\n        }\n"
        "        // Only now",
        "lives",
        "closing::no_commit_acknowledged_beside_a_close_is_lost",
    ),
    Bug(
        "a closed instance is looked at and changed",
        "store.rs",
        "if self.sealed.get() {",
        "if !PLANTED && self.sealed.get() {",
        "lives",
        "closing::after_an_instance_was_abandoned_its_transactions_are_refused",
    ),
    Bug(
        "nobody is told that the log is written no more",
        "log/writer.rs",
        "if self.stopped.get() {",
        "if !PLANTED && self.stopped.get() {",
        "lives",
        "closing::log_that_nobody_writes_any_more_is_waited_for_by_nobody",
    ),
    Bug(
        "a close ends when nobody waits for it",
        "instance.rs",
        "        handle.spawn(async move { self.close_alone().await }).await",
        "        if PLANTED {\n            return self.close_alone().await;\n        }\n"
        "        handle.spawn(async move { self.close_alone().await }).await",
        "lives",
        "closing::a_close_that_nobody_waits_for_any_longer_is_finished_all_the_same",
    ),
    Bug(
        "the header does not know of a rollover",
        "database.rs",
        "if self.header.borrow().generation_max_committed >= generation {",
        "if PLANTED || self.header.borrow().generation_max_committed >= generation {",
        "lives",
        "lost_log::however_many_of_the_newest_generations_are_gone_recovery_says_so",
    ),
    Bug(
        "the header knows of a generation before there is one",
        "log/writer.rs",
        "        write_header(&prepared, &header, self.context).await?;\n        let current",
        "        if PLANTED {\n            let noted = self.note_generation.borrow().as_ref().map(|note| note(header.generation));\n"
        "            if let Some(noted) = noted {\n                noted.await?;\n            }\n        }\n"
        "        write_header(&prepared, &header, self.context).await?;\n        let current",
        "lives",
        "lost_log::a_cut_at_any_event_of_a_rollover_leaves_databases_that_open",
    ),
    Bug(
        "a header write that nobody waits for keeps its turn",
        "database.rs",
        "        let changed = self.handle.spawn(async move { this.change_header(change).await });",
        "        if PLANTED {\n            let turn = std::mem::ManuallyDrop::new(this.header_turn.acquire().await);\n"
        "            let bytes = {\n                let mut header = this.header.borrow_mut();\n                change(&mut header);\n"
        "                header.dbtime_max = header.dbtime_max.max(this.dbtime.get() + DBTIMES_PER_GENERATION);\n"
        "                header.encode()\n            };\n            let written = this.write_header(&bytes).await;\n"
        "            drop(std::mem::ManuallyDrop::into_inner(turn));\n            return written;\n        }\n"
        "        let changed = self.handle.spawn(async move { this.change_header(change).await });",
        "lives",
        "dropped::a_header_that_nobody_waits_for_is_written_to_the_end",
    ),
    Bug(
        "an empty commit does not end what was logged",
        "transaction.rs",
        "if rows.is_empty() && !work.has_logged() {",
        "if rows.is_empty() && (PLANTED || !work.has_logged()) {",
        "lives",
        "savepoints::a_commit_after_everything_was_taken_back_lets_the_checkpoint_go_on",
    ),
    Bug(
        "what looks like a loss in a live log is one",
        "log/reader.rs",
        "if before.as_ref().is_none_or(|before| !same(before, &parts))",
        "if !PLANTED && before.as_ref().is_none_or(|before| !same(before, &parts))",
        "lives",
        "following::a_follower_beside_a_live_writer_is_told_every_record_once_and_of_no_loss",
    ),
    Bug(
        "a follower waits for ever for a loss to go away",
        "log/reader.rs",
        "                    before = Some(parts);",
        "                    before = if PLANTED { None } else { Some(parts) };",
        "lives",
        "following::a_follower_is_told_of_a_loss_that_stays",
        "it reads the same bytes again and again",
    ),
    Bug(
        "a diverged database is given the new history",
        "instance/recovery.rs",
        "needs_recovery(database) && opened_in < following.generation",
        "!PLANTED && needs_recovery(database) && opened_in < following.generation",
        "lives",
        "forked::a_database_that_went_further_in_the_generation_of_the_fork_is_refused_the_new_history",
    ),
    Bug(
        "log that was given up is redone",
        "instance/recovery.rs",
        "if let Some(following) = following.filter(|following| generation.goes_beyond(following)) {",
        "if let Some(following) = following.filter(|following| !PLANTED && generation.goes_beyond(following)) {",
        "lives",
        "forked::log_that_was_given_up_and_comes_back_is_cut_where_the_next_generation_goes_on",
    ),
    # The same once more, found without a story: by worlds whose lives are drawn.
    Bug(
        "what a dead process left unsynced counts as synced, in worlds",
        "database.rs",
        '            unsynced: Cell::new(!crate::planted("what a dead process left unsynced counts as synced")),',
        '            unsynced: Cell::new(!crate::planted("what a dead process left unsynced counts as synced") && !PLANTED),',
        *LIVES,
    ),
    Bug(
        "a close lets others begin again before it has written everything, in worlds",
        "instance.rs",
        '        if crate::planted("a close lets others begin again before it has written everything") {',
        '        if PLANTED || crate::planted("a close lets others begin again before it has written everything") {',
        *LIVES,
    ),
    Bug(
        "a header write that nobody waits for keeps its turn, in worlds",
        "database.rs",
        '        if crate::planted("a header write that nobody waits for keeps its turn") {',
        '        if PLANTED || crate::planted("a header write that nobody waits for keeps its turn") {',
        *LIVES,
    ),
)
