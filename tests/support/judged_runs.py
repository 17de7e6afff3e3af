"""The stages after a run without its report, for tests that only read figures."""

from pathlib import Path

from plimsoll.files import folder
from tests.support.plain_stages import judge, summarize


def judged(run_folder: Path) -> Path:
    """Summary and verdict of a run folder, which is returned."""
    plan, environment = (
        folder.read_json(run_folder / name) for name in (folder.PLAN, folder.ENVIRONMENT)
    )
    summary = summarize(run_folder)
    folder.write_json(run_folder / folder.SUMMARY, summary)
    folder.write_json(run_folder / folder.VERDICT, judge(plan, summary, environment))
    return run_folder
