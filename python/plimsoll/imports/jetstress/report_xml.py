"""Result files of the test tool in XML: to the same sections as its pages.

The root is `output`; below it stand `test-summary`, `test-issues`, `database-sizing` and
`jetstress-system` with `element name= value=`, and `disk-subsystem-…` and `host-…` with objects,
instances and their `counter name= average=`. Source: scripts that people published to read such
files. Limit: only the averages that the file holds; it has no log.
"""

from __future__ import annotations

from plimsoll.documents.reported import ReportedTest
from plimsoll.imports.jetstress import report_labels
from plimsoll.imports.jetstress.report_labels import Part
from plimsoll.imports.report_model import Row, Section, part_of, reported_of
from plimsoll.inputs.mistakes import InputError, Mistake
from plimsoll.inputs.safe_xml import Element, parse_xml


def read_xml(name: str, content: bytes) -> ReportedTest:
    """The report in a result file.

    Raises:
        InputError: the file is damaged or holds no results.
    """
    return reported_of(name, sections_of_file(name, parse_xml(name, content)))


def sections_of_file(name: str, root: Element) -> list[Section]:
    """Every section of a result file."""
    if root.name != "output":
        hint = "results have <output> as their root, a configuration has <configuration>"
        raise InputError(
            name, [Mistake(root.line, root.name[:40], "is not the root of a result file", hint)]
        )
    return [_section(child) for child in root.children]


def _section(element: Element) -> Section:
    part = part_of(element.name)
    section = Section(part.title if part else element.name, element.line)
    instances = list(_instances(element))
    if instances and part is not None and part.shape == report_labels.ROWS:
        section.rows = _table(part, instances)
    elif instances and part is not None and part.shape == report_labels.LEVELS:
        section.rows = _levels(instances)
    else:
        section.rows = [
            Row(
                child.line,
                [child.attributes["name"], child.attributes.get("value", child.text).strip()],
            )
            for child in _named(element)
        ]
        section.lines = [
            (child.line, text)
            for child in element.children
            if not child.children
            and "name" not in child.attributes
            and (text := child.text.strip())
        ]
    return section


def _named(element: Element) -> list[Element]:
    return [child for child in element.children if child.attributes.get("name")]


def _instances(element: Element) -> list[tuple[str, Element]]:
    """Every element with counters, by its own name or that of what it lies in."""
    found = []
    for child in element.children:
        if child.all("counter"):
            found.append((child.attributes.get("name", child.name), child))
        else:
            found += [
                (name if name != "instance" else child.attributes.get("name", name), inner)
                for name, inner in _instances(child)
            ]
    return found


def _table(part: Part, instances: list[tuple[str, Element]]) -> list[Row]:
    rows = [Row(0, [part.first, *(label.label for label in part.labels)])]
    for name, instance in instances:
        averages = {
            report_labels.bare(counter.attributes.get("name", "")): counter.attributes.get(
                "average", ""
            )
            for counter in instance.all("counter")
        }
        rows.append(
            Row(
                instance.line,
                [
                    name,
                    *(averages.get(report_labels.bare(label.label), "") for label in part.labels),
                ],
            )
        )
    return rows


def _levels(instances: list[tuple[str, Element]]) -> list[Row]:
    rows = [Row(0, ["Counter", *(column.label for column in report_labels.LEVEL_COLUMNS)])]
    for _, instance in instances:
        for counter in instance.all("counter"):
            values = [
                counter.attributes.get(column.name, "") for column in report_labels.LEVEL_COLUMNS
            ]
            rows.append(Row(counter.line, [counter.attributes.get("name", ""), *values]))
    return rows
