"""Example programs of the crates, on crates that `cargo test --workspace` has built already."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def example(name: str, *further: str) -> Path:
    """The program of an example, built if it is not; the test is skipped where cargo is absent.

    All of the workspace takes part, so that crates have the features, and therefore the build,
    that they have in the other tests.
    """
    cargo = shutil.which("cargo")
    if cargo is None:
        pytest.skip("cargo is not installed, so there is nothing to make a database with")
    command = [cargo, "build", "--workspace", "--locked", "--quiet", "--example", name, *further]
    done = subprocess.run(
        [*command, "--message-format=json"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    for line in done.stdout.splitlines():
        said = json.loads(line)
        if said.get("executable") and said["target"]["name"] == name:
            return Path(said["executable"])
    raise AssertionError(f"cargo built no example {name}")
