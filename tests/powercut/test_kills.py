"""Kills of a process on a disk whose power is cut.

An honest disk loses nothing acknowledged, and one that lies about flushes is found out.
"""

import pytest

from tests.powercut.kills import KIND, kill
from tests.support.power_cut_lab import needs

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("behaviour", "keeps"), [("honest", True), ("drops_flushes", False)])
def test_a_power_cut_after_every_fifth_kill(behaviour: str, keeps: bool) -> None:
    """A kill alone shows no sync that is missing.

    A cut that never takes anything shows none either.
    """
    needs(KIND)
    passed, met = kill(10, 7, behaviour, release=False)
    assert passed == keeps
    assert met.cuts >= 1
