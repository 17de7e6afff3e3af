"""House rules that no linter knows.

File lengths, forbidden names, locks without addresses, one door to the disk.
"""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINES_MAX = 700
FORBIDDEN_NAMES = {"utils", "util", "common", "helpers", "helper", "manager", "misc"}


def tracked() -> list[Path]:
    """The files under version control; what a build leaves behind does not count."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode != 0:
        pytest.skip("not a checkout: the files under version control are not known")
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_source_files_stay_short() -> None:
    """A file nobody can read in one sitting hides its faults."""
    too_long = {
        str(path.relative_to(ROOT)): count
        for path in tracked()
        if path.suffix in {".py", ".rs"}
        and (count := len(path.read_text().splitlines())) > LINES_MAX
    }
    assert too_long == {}


def test_no_file_has_a_name_that_says_nothing() -> None:
    """A drawer called `utils` fills with everything."""
    named = [str(path.relative_to(ROOT)) for path in tracked() if path.stem in FORBIDDEN_NAMES]
    assert named == []


def test_no_module_lies_flat() -> None:
    """What has no room has no layer of its own, and whatever comes next to it is put down there
    too.
    """
    flat = {path.stem for path in (ROOT / "python" / "plimsoll").glob("*.py")}
    assert flat == {"__init__", "settings", "units"}


def test_no_two_test_files_share_a_name() -> None:
    """pytest takes the second for the first and refuses to run any test at all.

    Alone, each of them runs.
    """
    names = [
        path.name for path in tracked() if (ROOT / "tests") in path.parents and path.suffix == ".py"
    ]
    twice = {name for name in names if names.count(name) > 1} - {
        "conftest.py",
        "__init__.py",
        "__main__.py",
    }
    assert twice == set()


def test_no_file_tells_where_this_checkout_lies() -> None:
    """What measures and what writes pages runs here.

    A path of one machine is of no use to anybody else.
    """
    place = f"{ROOT}/".encode()
    assert [str(path.relative_to(ROOT)) for path in tracked() if place in path.read_bytes()] == []


@pytest.mark.parametrize("pattern", ["requirements*.txt", "Cargo.lock", "fuzz/Cargo.lock"])
def test_locks_name_no_host(pattern: str) -> None:
    """Locks work with whatever index a site uses only while they name none.

    Cargo names its registry's public alias.
    """
    address = re.compile(r"https?://\S+|--index-url|--find-links|--extra-index-url")
    alias = "registry+https://github.com/rust-lang/crates.io-index"
    for path in ROOT.glob(pattern):
        found = address.findall(path.read_text().replace(alias, ""))
        assert found == [], path.name


def test_requirements_are_hashed() -> None:
    """A version alone does not say which bytes were tested."""
    for path in ROOT.glob("requirements*.txt"):
        text = path.read_text()
        pinned = re.findall(r"^[a-z0-9][^\s;=]*==", text, flags=re.MULTILINE)
        hashed = re.findall(r"^[a-z0-9][^\n]*\\\n    --hash=sha256:", text, flags=re.MULTILINE)
        assert pinned
        assert len(pinned) == len(hashed), path.name


@pytest.mark.parametrize(
    ("called", "door"),
    [
        ("read_parquet(", "files/parquet.py"),
        ("FORMAT parquet", "files/parquet.py"),
        ("json.loads(path", "files/sanitize.py"),
    ],
)
def test_files_of_strangers_have_one_door(called: str, door: str) -> None:
    """A path in SQL is a pattern, and JSON from strangers steers terminals.

    Both are seen to in one place.
    """
    own = ROOT / "python" / "plimsoll"
    # The results of the model's own test are ours.
    allowed = {own / door, own / "arrays" / "papers" / "error_band.py"}
    assert [
        path
        for path in sorted(own.rglob("*.py"))
        if path not in allowed and called in path.read_text()
    ] == []


def test_sources_hold_no_marker_of_unfinished_work() -> None:
    """Half-built things do not land; a marker is a confession."""
    marker = re.compile(r"\b(TODO|FIXME|XXX|todo!|unimplemented!)")
    found = [
        f"{path.relative_to(ROOT)}: {match.group()}"
        for path in tracked()
        if path.suffix in {".py", ".rs"} and path != Path(__file__)
        for match in marker.finditer(path.read_text())
    ]
    assert found == []
