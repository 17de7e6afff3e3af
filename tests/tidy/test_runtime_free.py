"""One executor decides when every task runs: no crate brings a second one along.

The crate `tokio` is wanted for its traits alone. Cargo adds up the features that all dependents ask
for, so one careless line in one manifest would link a runtime, its timers and its sockets into
everything."""

import json
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: Features of tokio that bring a runtime, a reactor or what needs one.
REFUSED = {
    "rt",
    "rt-multi-thread",
    "net",
    "time",
    "process",
    "signal",
    "fs",
    "full",
    "macros",
    "test-util",
    "io-std",
}
#: Features of our own crates that are named for a client which cannot be had without.
NAMED_FOR_IT: set[str] = set()


@pytest.mark.parametrize("features", [[], ["--all-features"]], ids=["default", "all"])
@pytest.mark.parametrize("manifest", ["Cargo.toml", "fuzz/Cargo.toml"])
def test_no_crate_enables_a_second_runtime(manifest: str, features: list[str]) -> None:
    """Also not by a feature that nobody has switched on yet."""
    enabled = _features_of_tokio(manifest, features)
    assert enabled & REFUSED <= NAMED_FOR_IT, (
        f"{sorted(enabled & REFUSED)}: see docs/decisions/network.md"
    )


def _features_of_tokio(manifest: str, features: list[str]) -> set[str]:
    command = [
        "cargo",
        "metadata",
        "--format-version",
        "1",
        "--locked",
        "--manifest-path",
        manifest,
        *features,
    ]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    metadata = json.loads(told.stdout)
    names = {package["id"]: package["name"] for package in metadata["packages"]}
    nodes = [node for node in metadata["resolve"]["nodes"] if names[node["id"]] == "tokio"]
    assert nodes, "tokio is not even there: this test looks at nothing"
    return {feature for node in nodes for feature in node["features"]}
