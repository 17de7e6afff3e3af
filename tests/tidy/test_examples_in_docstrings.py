"""Examples in docstrings are read as promises, so each is carried out."""

import doctest
import importlib
import pkgutil

import plimsoll

EXAMPLES_MIN = 100


def test_every_example_gives_what_it_says() -> None:
    """Nobody else carries them out."""
    names = [module.name for module in pkgutil.walk_packages(plimsoll.__path__, "plimsoll.")]
    modules = [importlib.import_module(name) for name in names if not name.endswith("__main__")]
    results = {module.__name__: doctest.testmod(module) for module in modules}
    assert [name for name, result in results.items() if result.failed] == []
    assert sum(result.attempted for result in results.values()) > EXAMPLES_MIN
