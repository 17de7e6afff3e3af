"""Tests in another order and on other examples: `make test SHUFFLE=7`.

Tests are dealt to several processes, in an order that differs from run to run. A test that needs
another one to have run before it fails only sometimes; shuffled within its file it fails soon.
Files are kept together, since some share what took long to prepare. Without it properties are tried
on the same examples each time: what fails on one machine fails on the next.

Tests work in temporary directories, which usually lie on the system disk, and let the program make
its targets there: both are agreed to here for every test and every program that one starts;
`databases/test_consent.py` takes it back."""

import os
import random
import signal
from collections.abc import MutableSequence
from itertools import groupby

import pytest
from hypothesis import settings

from plimsoll.databases.consent import CREATE_VARIABLE, SYSTEM_DISK_VARIABLE


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--shuffle", type=int, default=None, metavar="SEED", help="shuffle the tests of each file"
    )


def shuffle_within_files(items: MutableSequence[pytest.Item], seed: int) -> None:
    """Shuffle `items` in place, those of one file among themselves."""
    chance = random.Random(seed)
    shuffled: list[pytest.Item] = []
    for _, of_one_file in groupby(items, key=lambda item: item.path):
        tests = list(of_one_file)
        chance.shuffle(tests)
        shuffled.extend(tests)
    items[:] = shuffled


def pytest_configure(config: pytest.Config) -> None:
    # Under nohup SIGHUP is ignored, and whatever a test starts would inherit that.
    for number, handler in (
        (signal.SIGHUP, signal.SIG_DFL),
        (signal.SIGINT, signal.default_int_handler),
    ):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)
    os.environ |= {CREATE_VARIABLE: "1", SYSTEM_DISK_VARIABLE: "1"}
    settings.register_profile("same examples", derandomize=True)
    settings.register_profile("new examples")
    settings.load_profile(
        "same examples" if config.getoption("--shuffle") is None else "new examples"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    seed = config.getoption("--shuffle")
    if seed is not None:
        shuffle_within_files(items, seed)
