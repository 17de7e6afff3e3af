"""`python -m tools.release VERSION`: whether this checkout may be released as VERSION.

A release needs one version in Cargo.toml, the package and the changelog, a dated section of the
changelog with entries, a clean tree, and no tag of that name on another commit. Every reason
against it is printed; the exit code is 1 when there is one.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def git(*words: str, root: Path = ROOT) -> str:
    """What git prints."""
    return subprocess.run(
        ["git", *words], cwd=root, capture_output=True, text=True, check=True
    ).stdout.strip()


def reasons_against(version: str, root: Path = ROOT) -> list[str]:
    """Every reason why the checkout at `root` cannot be released as `version`; empty when it can.

    Args:
        version: as in `1.2.3`.
        root: the checkout.
    """
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        return [f"{version!r} is not a version; write three numbers, as in VERSION=1.2.3"]
    found = []
    cargo = tomllib.loads((root / "Cargo.toml").read_text(encoding="utf-8"))["workspace"][
        "package"
    ]["version"]
    if cargo != version:
        found.append(f"Cargo.toml says {cargo}, not {version}; set [workspace.package] version")
    package = (root / "python" / "plimsoll" / "__init__.py").read_text(encoding="utf-8")
    if f'__version__ = "{version}"' not in package:
        found.append(
            f"plimsoll.__version__ is not {version}; set it in python/plimsoll/__init__.py"
        )
    found += _against_changelog((root / "CHANGELOG.md").read_text(encoding="utf-8"), version)
    if git("status", "--porcelain", root=root):
        found.append("the tree has changes that are not committed; commit them first")
    tag = f"v{version}"
    if git("tag", "--list", tag, root=root) and git("rev-list", "-1", tag, root=root) != git(
        "rev-parse", "HEAD", root=root
    ):
        found.append(f"tag {tag} is on another commit; choose the next version")
    return found


def _against_changelog(text: str, version: str) -> list[str]:
    section = re.search(
        rf"^## \[{re.escape(version)}\] - \d{{4}}-\d{{2}}-\d{{2}}\n(.*?)(?=^## \[|\Z)",
        text,
        re.M | re.S,
    )
    if section is None:
        return [
            f"CHANGELOG.md has no section '## [{version}] - YYYY-MM-DD'; rename Unreleased and "
            f"begin a new one"
        ]
    return (
        []
        if "\n- " in section[1]
        else [f"the section of {version} in CHANGELOG.md has no entries; say what changed"]
    )


def main() -> int:
    """Print the reasons, or how to tag."""
    if len(sys.argv) != 2:
        print("usage: make release VERSION=1.2.3", file=sys.stderr)
        return 2
    found = reasons_against(sys.argv[1])
    for reason in found:
        print(f"error: {reason}", file=sys.stderr)
    if not found:
        print(
            f"version, changelog and tree agree on {sys.argv[1]}; tag it with: git tag -a "
            f"v{sys.argv[1]}"
        )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
