"""The iSCSI set-up of `deploy/iscsi`: four sessions on loopback, or one clear line why not."""

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "deploy/iscsi/loopback.sh"
LACKS = 77


def script(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(SCRIPT), *arguments], capture_output=True, text=True, check=False, timeout=120
    )


def test_what_is_missing_is_said_and_nothing_is_made(tmp_path: Path) -> None:
    checked = script("check")
    if checked.returncode == 0:
        pytest.skip("nothing is missing on this machine")
    assert checked.returncode == LACKS
    assert all(": " in line for line in checked.stderr.splitlines())
    refused = script("up", str(tmp_path / "image"), "64")
    assert refused.returncode == LACKS and not (tmp_path / "image").exists()


def test_the_script_says_how_it_is_used() -> None:
    for arguments in ((), ("up",), ("down",), ("sideways",)):
        found = script(*arguments)
        assert found.returncode == 2 and "usage: loopback.sh" in found.stderr


def test_STO_07_four_sessions_on_a_loopback_target(tmp_path: Path) -> None:
    checked = script("check")
    if checked.returncode == LACKS:
        pytest.skip("; ".join(checked.stderr.splitlines()))
    image = tmp_path / "image"
    try:
        made = script("up", str(image), "64")
        assert made.returncode == 0, made.stderr
        assert made.stdout.count("iqn.2026-01.example.plimsoll:loopback") == 4
    finally:
        script("down", str(image))
    assert image.exists()


def test_the_script_is_sound_for_a_shell() -> None:
    checker = shutil.which("shellcheck")
    if checker is None:
        assert subprocess.run(["sh", "-n", str(SCRIPT)], check=False).returncode == 0
    else:
        subprocess.run([checker, str(SCRIPT)], check=True)
