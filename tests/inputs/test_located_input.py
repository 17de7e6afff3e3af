"""Input files are read with the line of every key, and every mistake in one is reported at once."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import plimsoll
from plimsoll.inputs.mistakes import InputError
from plimsoll.inputs.schema import Field, Flag, ListOf, Number, Table, Tables, Text, check_file
from plimsoll.inputs.toml_lines import parse_located, read_located

FIELDS = {
    "name": Field(Text(), required=True, meaning="what to call it"),
    "drive_capacity_gb": Field(Number(1, 100_000)),
    "mirrored": Field(Flag(), default=False),
    "labels": Field(ListOf(Text()), default=[]),
    "room": Field(Table({"height_u": Field(Number(1, 60, whole=True), required=True)})),
    "rows": Field(
        Tables({"id": Field(Text(), required=True), "watts": Field(Number(0, 1e4))}, unique="id"),
        default=[],
    ),
}


def mistakes_of(text: str) -> list[tuple[int, str, str]]:
    """Line, key and message plus hint of every mistake in a file read against FIELDS."""
    with pytest.raises(InputError) as caught:
        check_file(parse_located("file.toml", text), "thing", FIELDS, {"plan": "plimsoll run"})
    return [
        (mistake.line, mistake.where, f"{mistake.message}; {mistake.hint}")
        for mistake in caught.value.mistakes
    ]


def test_every_key_has_the_line_it_stands_on() -> None:
    """A hint without a line makes the reader search.

    Strings and comments that look like keys must not mislead.
    """
    text = (
        'a.b = 1\nx = """\n[[no]]\n"" y = 1\n""""\n[t]\nk = [ 1,\n 2, # hi ]\n {z=1, y = '
        '"a]"},\n]\n[[r.s]]\nn = 1\n[[r.s]]\nn = ""\n'
    )
    lines = parse_located("file.toml", text).lines
    assert lines[("a", "b")] == 1
    assert lines[("t", "k", 1)] == 8
    assert lines[("t", "k", 2, "y")] == 9
    assert lines[("r", "s", 0, "n")] == 12
    assert lines[("r", "s", 1, "n")] == 14
    assert ("no", 0) not in lines


def test_all_mistakes_are_reported_at_once_with_their_lines() -> None:
    """Five slips must cost one round of correction, not five."""
    text = (
        'kind = "thing"\ndrive_capacity = 600\nmirrored = "yes"\n[room]\nheight_u = '
        '-2\n[[rows]]\nid = "a"\n[[rows]]\nid = "a"\nwatts = 1e9\n'
    )
    found = mistakes_of(text)
    assert [line for line, _, _ in found] == [0, 2, 3, 5, 9, 10]
    by_key = {where: message for _, where, message in found}
    assert "is missing; what to call it" in by_key["name"]
    assert "write `drive_capacity_gb`" in by_key["drive_capacity"]
    assert "must be true or false" in by_key["mirrored"]
    assert "never negative" in by_key["room.height_u"]
    assert "first used on line 6" in by_key["rows[2].id"]
    assert "between 0 and 10,000" in by_key["rows[2].watts"]


def test_another_unit_of_a_known_quantity_is_named() -> None:
    """`_tb` for `_gb` is the likeliest slip with units in keys."""
    found = mistakes_of('kind = "thing"\nname = "x"\ndrive_capacity_tb = 1\n')
    assert found == [
        (
            3,
            "drive_capacity_tb",
            "is not a key of this table; this quantity is written as `drive_capacity_gb`",
        )
    ]


def test_a_file_of_another_kind_names_the_command_that_reads_it() -> None:
    """A wrong kind makes every other complaint meaningless, so it stands alone."""
    found = mistakes_of('kind = "plan"\nnonsense = 1\n')
    assert found == [
        (1, "kind", 'is "plan", but "thing" was expected; `plimsoll run` reads files of this kind')
    ]
    assert mistakes_of("name = 1")[0][1:] == (
        "kind",
        'is missing; begin the file with kind = "thing"',
    )


def test_a_study_given_as_a_plan_names_its_command(tmp_path: Path) -> None:
    """The other way round it was named already."""
    (tmp_path / "users.toml").write_text('kind = "study"\n')
    with pytest.raises(InputError, match="`plimsoll study` reads files of this kind"):
        plimsoll.read_plan(tmp_path / "users.toml")


def test_an_unknown_list_of_tables_has_the_line_of_its_first_entry() -> None:
    """A misspelt `[[row]]` is looked for where it was written."""
    found = mistakes_of('kind = "thing"\nname = "x"\n\n[[row]]\nid = "a"\n[[row]]\nid = "b"\n')
    assert [(line, where) for line, where, _ in found] == [(4, "row")]


def test_the_version_of_the_form_may_be_said_and_must_be_known() -> None:
    """A file of a later form would be misread silently.

    One habit has to serve for every kind of file.
    """
    right = parse_located("file.toml", 'kind = "thing"\nschema_version = 1\nname = "x"\n')
    assert "schema_version" not in check_file(right, "thing", FIELDS, {})
    found = mistakes_of('kind = "thing"\nschema_version = 2\nnam = "x"\n')
    assert [(line, where) for line, where, _ in found] == [
        (2, "schema_version"),
        (3, "nam"),
    ]
    assert "schema_version = 1" in found[0][2]


def test_a_misspelt_key_is_not_also_missing() -> None:
    """Who has written `nam` has not left the name out."""
    assert mistakes_of('kind = "thing"\nnam = "x"\n') == [
        (2, "nam", "is not a key of this table; did you mean `name`?")
    ]
    found = mistakes_of('kind = "thing"\nnonsense = "x"\n')
    assert [where for _, where, _ in found] == ["name", "nonsense"]


def test_unreadable_files_are_mistakes_not_tracebacks(tmp_path: Path) -> None:
    """Missing, binary and broken files come from ordinary typing errors."""
    with pytest.raises(InputError, match="cannot be read: no such file"):
        read_located(tmp_path / "none.toml")
    (tmp_path / "binary.toml").write_bytes(b"a = 1\nb = '\xff'\n")
    with pytest.raises(InputError, match=r"binary.toml:2: is not UTF-8"):
        read_located(tmp_path / "binary.toml")
    (tmp_path / "broken.toml").write_text("a = 1\nb = \n")
    with pytest.raises(InputError, match=r"broken.toml:2: is not valid TOML"):
        read_located(tmp_path / "broken.toml")
    (tmp_path / "deep.toml").write_text("a = " + "[" * 100_000)
    with pytest.raises(InputError, match=r"not valid TOML|too deeply|more than 5,000 tables"):
        read_located(tmp_path / "deep.toml")


def test_files_of_other_editors_and_tools_are_told_apart(tmp_path: Path) -> None:
    """Notepad marks UTF-8 at the begin, people write JSON and paths of Windows."""
    marked = tmp_path / "marked.toml"
    marked.write_bytes(b"\xef\xbb\xbfa = 1\r\nb = 2\r\n")
    found = read_located(marked)
    assert (found.data, found.line_of(("b",))) == ({"a": 1, "b": 2}, 2)
    with pytest.raises(InputError, match="is JSON, not TOML"):
        parse_located("plan.toml", '{\n  "kind": "plan"\n}\n')
    with pytest.raises(InputError, match="in 'single quotes'"):
        parse_located("plan.toml", 'a = 1\npath = "D:\\data"\n')


def test_hints_lead_to_the_key_that_is_meant() -> None:
    """`sessions` of a workload belongs into its load, and has no unit."""
    fields = FIELDS | {
        "room": Field(Table({"load": Field(Table({"sessions": Field(Number(1, 9))}))})),
        "sessions_max": Field(Number(1, 9)),
    }
    text = 'kind = "thing"\nname = ""\nsessions = 3\n[room]\nsessions = 3\n'
    document = parse_located("file.toml", text)
    with pytest.raises(InputError) as raised:
        check_file(document, "thing", fields, {})
    told = {mistake.where: mistake.hint for mistake in raised.value.mistakes}
    assert told["room.sessions"] == "it belongs into `load`: write load = { sessions = ... }"
    assert "unit" not in told["sessions"]
    assert raised.value.mistakes[0].message == "is empty, but must be a text"


def test_limits_of_numbers_are_written_out() -> None:
    """Nobody compares 8000000000 with 6.71089e+07."""
    fields = FIELDS | {"size_mib": Field(Number(64, 2**26))}
    document = parse_located("file.toml", 'kind = "thing"\nname = "x"\nsize_mib = 8000000000\n')
    with pytest.raises(InputError, match="must lie between 64 and 67,108,864"):
        check_file(document, "thing", fields, {})


def _paths(value: object, path: tuple[str | int, ...] = ()) -> set[tuple[str | int, ...]]:
    found = {path} if path else set()
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, item in items:
        found |= _paths(item, (*path, key))
    return found


_keys = st.from_regex(r"[a-z]{1,3}", fullmatch=True)
_scalars = st.one_of(
    st.integers(-9, 9).map(str),
    st.sampled_from(['"#"', '"]}"', "'\"'", '"""a\n[b]\n"""', "true", "''"]),
)
_values = st.recursive(
    _scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: "[\n" + ", # ]\n".join([*items, ""]) + "]"),
        st.dictionaries(_keys, _scalars.filter(lambda text: "\n" not in text), max_size=3).map(
            lambda table: "{" + ", ".join(f"{key} = {value}" for key, value in table.items()) + "}"
        ),
    ),
    max_leaves=6,
)


@given(
    st.lists(
        st.tuples(st.sampled_from(["", "[{}]\n", "[[{}]]\n"]), _keys, _keys, _values), max_size=6
    )
)
def test_the_scanner_finds_exactly_the_keys_the_parser_finds(
    parts: list[tuple[str, str, str, str]],
) -> None:
    """The two readings of a file must never disagree about which keys exist."""
    text = "".join(
        header.format(table) + f"{key} = {value} # = [x]\n" for header, table, key, value in parts
    )
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    lines = parse_located("file.toml", text).lines
    assert set(lines) == _paths(data)
    assert all(1 <= line <= text.count("\n") + 1 for line in lines.values())
