"""Every capability of the simulator that is built is borne by a test, in Rust or in Python; what is not built is listed.

A test bears an id by carrying it in its doc comment. An id leaves `NOT_BUILT` in the change that builds it.
"""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
WANTED = (
    {f"SIM-{number:02d}" for number in range(1, 19)}
    | {f"STU-{number:02d}" for number in (3, 4, 6, 7, 11, 15, 16, 17)}
    | {"HA-04", "MON-02", "STO-03", "STO-11"}
)
NOT_BUILT: set[str] = set()


def test_every_built_capability_is_borne_by_a_test() -> None:
    """A capability nobody tests is one nobody can rely on."""
    files = {*ROOT.glob("crates/plimsoll-array/tests/*.rs"), *ROOT.glob("tests/modelled/test_*.py")} - {Path(__file__)}
    borne = {name for file in files for name in re.findall(r"[A-Z]{2,3}[-_]\d{2}", file.read_text(encoding="utf-8"))}
    borne = {name.replace("_", "-") for name in borne}
    assert borne >= WANTED - NOT_BUILT
    assert not NOT_BUILT & borne
