"""Plants bugs in a copy of the engine and looks which tests find them: `make planted`.

A bug nobody finds is a hole in the tests. All bugs are planted in one copy, each behind a name, so that the copy is built once; a run with
`PLANTED=name` has that bug alone. The product's own sources know nothing of this.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
COPY = ROOT / "target" / "planted"
SOURCES = "crates/plimsoll-engine/src"
TESTS = ("trust", "model", "power_cut", "every_io_fails")
SECONDS_MAX = 240
SWITCH = """
/// Whether the bug of this name is planted.
pub(crate) fn planted(name: &str) -> bool {
    static NAME: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    NAME.get_or_init(|| std::env::var("PLANTED").unwrap_or_default()) == name
}
"""


class Bug(NamedTuple):
    """One bug: in `file`, `sound` is replaced by `broken`, where `PLANTED` stands for "this bug is planted"."""

    name: str
    file: str
    sound: str
    broken: str


BUGS = (
    Bug(
        "commit is acknowledged before it is durable",
        "transaction.rs",
        "Commit::Durable => store.log.make_durable(appended.end).await,",
        "Commit::Durable if PLANTED => Ok(()), Commit::Durable => store.log.make_durable(appended.end).await,",
    ),
    Bug(
        "a page is written before its log",
        "cache/writeback.rs",
        "self.log.make_durable(upto).await?;",
        "if !PLANTED { self.log.make_durable(upto).await?; }",
    ),
    Bug(
        "a page changed while it is written counts as clean",
        "cache/writeback.rs",
        "if frame.changes.get() != version {",
        "if !PLANTED && frame.changes.get() != version {",
    ),
    Bug(
        "no new image after a write",
        "cache/writeback.rs",
        "frame.set_imaged(false);",
        "frame.set_imaged(PLANTED && frame.is_imaged());",
    ),
    Bug(
        "the cleaner does not notice a failed log",
        "cache/writeback.rs",
        "self.log.check()?;\n            let Some(frame)",
        "if !PLANTED { self.log.check()?; }\n            let Some(frame)",
    ),
    Bug(
        "the checkpoint passes open transactions",
        "instance.rs",
        "let limits = [store.cache.oldest_dirty(), oldest_writer];",
        "let limits = [store.cache.oldest_dirty(), if PLANTED { None } else { oldest_writer }];",
    ),
    Bug(
        "the checkpoint passes dirty pages",
        "instance.rs",
        "[store.cache.oldest_dirty(), if",
        "[if PLANTED { None } else { store.cache.oldest_dirty() }, if",
    ),
    Bug(
        "the checkpoint does not wait for the sync of the database",
        "instance.rs",
        "database.sync().await?;\n        }\n        store.log.check()?;",
        "if !PLANTED { database.sync().await?; }\n        }\n        store.log.check()?;",
    ),
    Bug(
        "a failed checkpoint does not poison",
        "instance.rs",
        "this.store.log.fail(error);",
        "if !PLANTED { this.store.log.fail(error); }",
    ),
    Bug(
        "pages are left unwritten by a clean shutdown",
        "instance.rs",
        "self.writeback.write_everything(&store.databases).await?;",
        "if !PLANTED { self.writeback.write_everything(&store.databases).await?; }",
    ),
    Bug(
        "recovery lets the checkpoint pass what it still takes back",
        "transaction.rs",
        "store.writers.borrow_mut().insert(id, store.checkpoint.get());",
        "store.writers.borrow_mut().insert(id, if PLANTED { store.log.tip() } else { store.checkpoint.get() });",
    ),
    Bug(
        "a failed rollback does not poison",
        "transaction.rs",
        "self.store.log.fail(error);",
        "if !PLANTED { self.store.log.fail(error); }",
    ),
    Bug(
        "half a rollback to a savepoint can be committed",
        "transaction.rs",
        "self.partial.set(true);",
        "self.partial.set(!PLANTED);",
    ),
    Bug(
        "database times go back",
        "database.rs",
        "self.dbtime.get() + DBTIMES_PER_GENERATION",
        "self.dbtime.get() + if PLANTED { 0 } else { DBTIMES_PER_GENERATION }",
    ),
    Bug(
        "redo forgets that a change was taken back",
        "replay.rs",
        "undo.pop();",
        "if !PLANTED { undo.pop(); }",
    ),
    Bug(
        "redo takes finished rollbacks for unfinished",
        "replay.rs",
        "LogRecord::RolledBack { transaction } => {",
        "LogRecord::RolledBack { .. } if PLANTED => Ok(()), LogRecord::RolledBack { transaction } => {",
    ),
    Bug(
        "redo repeats what is done",
        "replay.rs",
        "if found >= after {",
        "if !PLANTED && found >= after {",
    ),
    Bug(
        "redo leaves out images of pages",
        "replay.rs",
        "LogRecord::Image(image) => self.redo_image(start, end, image).await,",
        "LogRecord::Image(_) if PLANTED => Ok(()),\n LogRecord::Image(image) => self.redo_image(start, end, image).await,",
    ),
    Bug(
        "recovery does not take back",
        "instance/open.rs",
        "transaction.rollback().await?;",
        "if PLANTED { std::mem::forget(transaction); continue; }\n        transaction.rollback().await?;",
    ),
    Bug(
        "two transactions may change one row",
        "versions.rs",
        "return Err(EngineError::WriteConflict);",
        "if !PLANTED { return Err(EngineError::WriteConflict); }",
    ),
    Bug(
        "logs are deleted one generation too far",
        "log/writer.rs",
        "if generation >= keep_from || generation",
        "if generation >= keep_from + u32::from(PLANTED) || generation",
    ),
    Bug(
        "a failed open leaves its files open",
        "instance/open.rs",
        "if opened.is_err() {",
        "if PLANTED { std::mem::forget(databases); return opened; }\n        if opened.is_err() {",
    ),
)


def plant() -> None:
    """Copies the workspace and puts every bug into the copy."""
    shutil.rmtree(COPY, ignore_errors=True)
    COPY.mkdir(parents=True)
    for name in ("Cargo.toml", "Cargo.lock", "rustfmt.toml"):
        shutil.copy(ROOT / name, COPY / name)
    shutil.copytree(ROOT / "crates", COPY / "crates")
    texts: dict[Path, str] = {}
    for bug in BUGS:
        path = COPY / SOURCES / bug.file
        text = texts.setdefault(path, path.read_text())
        before, found, after = text.partition(bug.sound)
        # Two bugs may share a place: the second finds it inside what the first made of it.
        if not found:
            sys.exit(f"{bug.name}: {bug.file} does not hold\n{bug.sound}")
        texts[path] = before + bug.broken.replace("PLANTED", f'crate::planted("{bug.name}")') + after
    for path, text in texts.items():
        path.write_text(text)
    library = COPY / SOURCES / "lib.rs"
    library.write_text(library.read_text() + SWITCH)


def environment(name: str) -> dict[str, str]:
    """The environment in which the bug of this name is planted."""
    own = {"PLANTED": name, "RUST_BACKTRACE": "0", "CARGO_TARGET_DIR": str(ROOT / "target" / "planted-build")}
    return os.environ | own


def first_failure(name: str) -> str | None:
    """The test that finds a bug, or None."""
    for test in TESTS:
        command = ["cargo", "test", "--quiet", "-p", "plimsoll-engine", "--test", test]
        try:
            done = subprocess.run(
                command,
                cwd=COPY,
                env=environment(name),
                capture_output=True,
                text=True,
                timeout=SECONDS_MAX,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"{test}: it does not end"
        if done.returncode != 0:
            failed = re.findall(r"^    (\S+)$", done.stdout, re.MULTILINE)
            return f"{test}: {failed[0] if failed else done.stderr.strip()[-300:]}"
    return None


def main() -> None:
    """Plants, builds, and prints who finds what; fails if a bug goes unnoticed or the sound copy fails."""
    plant()
    build = ["cargo", "test", "--quiet", "--no-run", "-p", "plimsoll-engine"]
    for test in TESTS:
        build += ["--test", test]
    subprocess.run(build, cwd=COPY, env=environment(""), check=True)
    wanted = sys.argv[1:]
    if failure := first_failure(""):
        sys.exit(f"the copy without a bug fails: {failure}")
    unnoticed = []
    for bug in BUGS:
        if wanted and not any(word in bug.name for word in wanted):
            continue
        started = time.monotonic()
        failure = first_failure(bug.name)
        print(f"{bug.name}: {failure or 'NOBODY NOTICES'} ({time.monotonic() - started:.0f} s)", flush=True)
        if failure is None:
            unnoticed.append(bug.name)
    if unnoticed:
        sys.exit(f"{len(unnoticed)} bugs go unnoticed: {', '.join(unnoticed)}")


if __name__ == "__main__":
    main()
