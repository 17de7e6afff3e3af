"""A release says one version everywhere, or every reason why it cannot be made."""

import subprocess
from pathlib import Path

import pytest

from tools.release import reasons_against

CHANGELOG = "# Changelog\n\n## [Unreleased]\n\n## [1.2.3] - 2026-01-02\n\n### Added\n\n- A thing.\n"


def git(root: Path, *words: str) -> None:
    named = ["-c", "user.name=T", "-c", "user.email=t@example.org"]
    subprocess.run(["git", *named, *words], cwd=root, check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "Cargo.toml").write_text('[workspace.package]\nversion = "1.2.3"\n')
    (tmp_path / "python" / "plimsoll").mkdir(parents=True)
    (tmp_path / "python" / "plimsoll" / "__init__.py").write_text('__version__ = "1.2.3"\n')
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    git(tmp_path, "init", "-q")
    commit(tmp_path)
    return tmp_path


def commit(root: Path) -> None:
    git(root, "add", "-A")
    git(root, "commit", "-q", "--allow-empty", "-m", "state")


def test_a_checkout_that_agrees_with_itself_may_be_released(checkout: Path) -> None:
    assert reasons_against("1.2.3", checkout) == []


def test_every_reason_is_told_at_once(checkout: Path) -> None:
    (checkout / "notes").write_text("not committed")
    found = "\n".join(reasons_against("2.0.0", checkout))
    for part in (
        "Cargo.toml says 1.2.3",
        "__version__ is not 2.0.0",
        "no section '## [2.0.0]",
        "not committed",
    ):
        assert part in found


def test_an_empty_section_is_no_changelog(checkout: Path) -> None:
    (checkout / "CHANGELOG.md").write_text(CHANGELOG.replace("- A thing.\n", ""))
    commit(checkout)
    assert reasons_against("1.2.3", checkout) == [
        "the section of 1.2.3 in CHANGELOG.md has no entries; say what changed"
    ]


def test_a_tag_is_never_moved(checkout: Path) -> None:
    git(checkout, "tag", "v1.2.3")
    assert reasons_against("1.2.3", checkout) == []
    commit(checkout)
    assert reasons_against("1.2.3", checkout) == [
        "tag v1.2.3 is on another commit; choose the next version"
    ]


def test_what_is_no_version_is_refused(checkout: Path) -> None:
    assert reasons_against("next", checkout) == [
        "'next' is not a version; write three numbers, as in VERSION=1.2.3"
    ]
