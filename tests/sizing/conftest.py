"""The figures most tables are stated for."""

import pytest

from plimsoll.sizing.guidance import Guidance, editions


@pytest.fixture
def exchange_2010() -> Guidance:
    return editions()["exchange_2010"]
