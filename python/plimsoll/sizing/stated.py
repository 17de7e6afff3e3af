"""Requirements as they were stated: in a file, by options, or by options laid over a file."""

from collections.abc import Mapping
from pathlib import Path

from plimsoll.files.paths import StrPath
from plimsoll.inputs.mistakes import InputError, Mistake, nearest_names
from plimsoll.inputs.schema import READERS, require_kind
from plimsoll.inputs.toml_lines import LocatedFile, read_located
from plimsoll.sizing.requirement_fields import KIND
from plimsoll.sizing.requirements import Requirements, check_requirements

EXAMPLE = "plimsoll size --users 5000 --quota-mb 2048 --messages-per-day 150 --copies 2"


def stated_requirements(
    path: StrPath | None = None,
    options: Mapping[str, object] | None = None,
    as_published: str | None = None,
) -> Requirements:
    """Requirements for `size`, with every mistake in them found.

    Args:
        path: a requirements file.
        options: keys and tables of such a file, which are laid over it: `{"users": {"count":
            5000}}`.
        as_published: a paper whose own example is sized when nothing else is given.

    Raises:
        InputError: with every mistake found.
    """
    path = None if path is None else Path(path)
    document, folder = _document(path, dict(options or {}), as_published)
    return check_requirements(document, folder)


def _document(
    path: Path | None, options: dict[str, object], as_published: str | None
) -> tuple[LocatedFile, Path]:
    """The requirements to size.

    The file with the options laid over it, or the paper's own example.
    """
    from plimsoll.sizing.worked_example import EXAMPLE as PAPER_EXAMPLE
    from plimsoll.sizing.worked_example import PAPERS

    if as_published is not None and as_published not in PAPERS:
        hint = nearest_names(as_published, PAPERS)
        raise InputError(
            "options",
            [Mistake(0, "--as-published", f'"{as_published}" is not a known paper', hint)],
        )
    if path is None:
        if not options and as_published is not None:
            return LocatedFile(
                "dell_eql, Tables 18 and 19", {"kind": KIND, **PAPER_EXAMPLE}, {}
            ), Path()
        if not options:
            raise InputError(
                "options",
                [Mistake(0, "", "give a requirements file, or options", f"try `{EXAMPLE}`")],
            )
        return LocatedFile("options", {"kind": KIND, **options}, {}), Path()
    document = read_located(path)
    require_kind(document, (KIND,), READERS)
    data = dict(document.data)
    for table, values in options.items():
        if not isinstance(values, dict):
            data[table] = values
        elif isinstance(data.get(table, {}), dict):
            data[table] = _laid_over(data.get(table, {}), values)
    return LocatedFile(document.name, data, document.lines), path.parent


def _laid_over(table: Mapping[str, object], options: Mapping[str, object]) -> dict[str, object]:
    """A table with options in place of the keys they stand for, however those were spelled."""
    from plimsoll.inputs.quantity import KEY_ENDINGS

    endings = {ending for spellings in KEY_ENDINGS.values() for ending in spellings}
    replaced = set(options)
    for key in options:
        stem, _, ending = key.rpartition("_")
        if ending in endings:
            replaced |= {stem, *(f"{stem}_{other}" for other in endings)}
    return {key: value for key, value in table.items() if key not in replaced} | dict(options)
