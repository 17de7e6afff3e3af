"""Readers of plans and of every other file meet damaged ones: each ends in an answer or in words, never in a traceback."""

from pathlib import Path

import pytest
from decoders import FILES, IMPORTS, NAMES, corpus, survives

from plimsoll.sizing.mistakes import InputError
from plimsoll.study.description import read_study


@pytest.mark.parametrize("name", [name for name in NAMES if name not in IMPORTS])
def test_a_damaged_input_is_read_or_refused(name: str) -> None:
    """Plans come by mail. `make fuzz` goes on with this for as long as told; importers have a test of their own."""
    for seed in range(12):
        survives(name, seed)


@pytest.mark.parametrize("name", sorted(FILES.keys() - {"solution"}))
def test_the_corpus_is_sound(name: str, tmp_path: Path) -> None:
    """Damage to what is not read anyway shows nothing. The description of a solution names runs, which are made by another test."""
    for number, content in enumerate(corpus(name)):
        path = tmp_path / f"{number}.toml"
        path.write_bytes(content)
        FILES[name](path)


@pytest.mark.parametrize("base", ["light = 3", "plan = 3", "plan_file = 3", "light = []", 'light = { mix = "abc" }'])
def test_a_study_whose_base_is_no_table_is_refused_in_words(base: str, tmp_path: Path) -> None:
    """What stands in the wrong form is told with its line, whichever way the base is given."""
    path = tmp_path / "study.toml"
    path.write_text(f'kind = "study"\nname = "base"\n{base}\n[[variants]]\nname = "one"\n')
    with pytest.raises(InputError, match=r"must be|exactly one"):
        read_study(path)


@pytest.mark.parametrize(
    "rest",
    [
        '[[variants]]\nname = "one"\nset = 1.5\n[[variants]]\nname = "two"\nset = { "light.sessions" = -1 }\n',
        'variants = 3\n[[axes]]\nkey = "light.sessions"\nvalues = [-1, 2]\n',
        '[[variants]]\nname = "one"\nset = { "light.changes.sets.\u00b2.a" = 1 }\n',
        '[[variants]]\nname = "one"\nset = { "light.changes.sets.' + 5000 * "1" + '.a" = 1 }\n',
    ],
)
def test_a_study_whose_variants_are_written_wrongly_is_refused_in_words(rest: str, tmp_path: Path) -> None:
    """One wrong variant must not keep the mistakes of the others from being told."""
    path = tmp_path / "study.toml"
    base = 'light = { array = "emc-vnxe3300", changes = { sets = [6] } }'
    path.write_text(f'kind = "study"\nname = "variants"\n{base}\n{rest}', encoding="utf-8")
    with pytest.raises(InputError):
        read_study(path)
