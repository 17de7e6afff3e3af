"""Servers for Python tests: one for each test, or the skip that says how to install it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.servers.server import Kind, NotInstalledError, check_installed, is_required, running


@contextmanager
def at_hand(server: type[Kind], place: Path | None = None) -> Iterator[Kind]:
    """A running server of a test."""
    try:
        check_installed(server)
    except NotInstalledError as missing:
        if is_required(server.KIND):
            pytest.fail(str(missing))
        pytest.skip(str(missing))
    with running(server, place) as made:
        yield made
