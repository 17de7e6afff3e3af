"""Every command line that the documents, the help and the messages show is one that the program
takes.

Lines of a document that begin with `plimsoll` are parsed as typed: unknown options, missing
arguments and values of a wrong kind fail. Commands named within a sentence may leave arguments out,
so only their options are looked at."""

import re
import shlex
from pathlib import Path
from typing import Any

import click
import pytest

from plimsoll.cli import COMMANDS, _with_default_address, load

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SOURCES = sorted((ROOT / "python").rglob("*.py"))
_LINE = re.compile(r"^(?:    |\$ )(?:\.venv/bin/)?plimsoll ((?:.*\\\n)*.*)$", re.MULTILINE)
_SENTENCE = re.compile(r"`plimsoll ([^`\n]*)`")
_EXAMPLE = re.compile(r"Example: plimsoll (.*?)(?:\n\n|\Z)", re.DOTALL)


def words_of(text: str) -> list[str]:
    """The words of a command line up to a comment, a pipe or a redirection."""
    words = shlex.split(text, comments=True)
    ends = [
        position for position, word in enumerate(words) if word in ("|", ">", ">>", "&&", ";", "&")
    ]
    return words[: ends[0]] if ends else words


def command_of(words: list[str]) -> tuple[Any, list[str]]:
    """The command that the first words name, and the words after them."""
    command, rest = load(words[0]), words[1:]
    while isinstance(command, click.Group) or hasattr(command, "commands"):
        if not rest or rest[0] not in command.commands:
            break
        command, rest = command.commands[rest[0]], rest[1:]
    return command, rest


def unknown_options(words: list[str]) -> list[str]:
    """The options among the words that the command does not have."""
    command, rest = command_of(words)
    known = {
        name
        for parameter in command.params
        for name in (*parameter.opts, *parameter.secondary_opts)
    }
    known |= {"-h", "--help"}
    return [word for word in rest if re.match(r"--[a-z]", word) and word.split("=")[0] not in known]


def mistake_in(words: list[str]) -> str | None:
    """What the program would say to these words, without carrying anything out."""
    if words and words[0].startswith("-"):
        return None
    if not words or words[0] not in COMMANDS:
        return f"there is no command {words[:1]}"
    command, rest = command_of(words)
    try:
        command.make_context(words[0], _with_default_address(rest))
    except click.exceptions.Exit:
        return None
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        return str(error.format_message())
    return None


def shown_in(pages: list[Path]) -> list[tuple[str, str]]:
    """Where each line stands, and the line."""
    return [
        (str(page.relative_to(ROOT)), re.sub(r"\\\n\s*", " ", line))
        for page in pages
        for line in _LINE.findall(page.read_text(encoding="utf-8"))
    ]


def each_help(command: Any, name: str) -> list[tuple[str, str]]:
    """The help of a command and of those below it."""
    found = [(name, command.help or "")]
    for below, inner in getattr(command, "commands", {}).items():
        found += each_help(inner, f"{name} {below}")
    return found


def test_every_line_of_the_documents_can_be_typed() -> None:
    """A reader who types what a page shows and gets a usage error stops reading."""
    shown = shown_in(PAGES)
    assert len(shown) > 50, (
        "the pages show fewer commands than they did: is the pattern still right?"
    )
    wrong = [
        f"{page}: plimsoll {line}: {mistake}"
        for page, line in shown
        if (mistake := mistake_in(words_of(line)))
    ]
    assert wrong == []


def test_every_example_of_the_help_can_be_typed() -> None:
    """The example is what people copy first."""
    examples = [
        (name, " ".join(example.split()))
        for command in COMMANDS
        for name, text in each_help(load(command), command)
        for example in _EXAMPLE.findall(text)
    ]
    assert len(examples) > 10
    wrong = [
        f"{name}: {line}: {mistake}"
        for name, line in examples
        if (mistake := mistake_in(words_of(line)))
    ]
    assert wrong == []


def test_commands_named_in_sentences_exist_with_their_options() -> None:
    """Hints in messages are read by those who are stuck already."""
    wrong = []
    for page in [*PAGES, *SOURCES]:
        for sentence in _SENTENCE.findall(page.read_text(encoding="utf-8")):
            if re.search(r"[{}|\[\]]|\.\.\.", sentence):
                continue  # a pattern, not a command
            words = words_of(sentence)
            if not words or words[0].startswith("-"):
                continue
            if words[0] not in COMMANDS:
                wrong.append(f"{page.relative_to(ROOT)}: {sentence}: no such command")
            elif unknown := unknown_options(words):
                wrong.append(f"{page.relative_to(ROOT)}: {sentence}: {unknown}")
    assert wrong == []


@pytest.mark.parametrize(
    ("line", "phrase"),
    [
        ("siez --users 5", "no command"),
        ("size --usres 5", "No such option"),
        ("run", "Missing argument"),
        ("test performance /mnt --minutes soon", "not a valid float"),
    ],
)
def test_a_wrong_line_is_noticed(line: str, phrase: str) -> None:
    """A check that accepts everything would pass every page."""
    assert phrase in str(mistake_in(words_of(line)))
