"""A sizing as text for a terminal.

The answer first, then every step with its arithmetic and source.

Colour is only weight (bold headings, dim sources); nothing is said by it alone. Numbers are rounded
for reading here and nowhere else.
"""

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from plimsoll.sizing.design import Sizing
from plimsoll.sizing.output_json import cited_sources
from plimsoll.sizing.traced import Step, plain_number
from plimsoll.units import SIZE_NOTE

TITLE_WIDTH = 42
VALUE_WIDTH = 20
DETAIL_WIDTH_MIN = 38


def shown(value: float) -> str:
    """Round a number for reading."""
    if value == int(value):
        return f"{int(value):,}"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    if abs(value) >= 100:
        return f"{value:,.1f}"
    return f"{value:,.2f}" if abs(value) >= 1 else f"{value:.3g}"


def precise(value: float) -> str:
    """Round less, to tell close figures apart."""
    return f"{value:,.2f}".rstrip("0").rstrip(".")


def shown_step(step: Step) -> str:
    """Write a figure with its unit; a count and a ratio need none."""
    return (
        shown(step.value) if step.unit in ("count", "ratio") else f"{shown(step.value)} {step.unit}"
    )


def drives_line(sizing: Sizing) -> str:
    """The RAID level used and the drive class proposed, with the reason."""
    proposal, used = sizing.proposal, sizing.volumes[0].raid
    asked = "" if used == proposal.raid else f" (asked for; {proposal.raid} would be proposed)"
    return f"{used}{asked} on {proposal.drive_class} drives: {proposal.reason}"


class SizingTerminal:
    """How wide lines are and whether they are weighted."""

    def __init__(self, width: int = 100, *, weighted: bool = False) -> None:
        self.width = max(width, 60)
        self.weighted = weighted

    def bold(self, text: str) -> str:
        """A heading."""
        return f"\033[1m{text}\033[0m" if self.weighted else text

    def dim(self, text: str) -> str:
        """Something to look up."""
        return f"\033[2m{text}\033[0m" if self.weighted else text

    def wrapped(self, text: str, indent: str, first: str | None = None) -> str:
        """A paragraph."""
        return textwrap.fill(
            text,
            self.width,
            initial_indent=indent if first is None else first,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        )

    def table(self, header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
        """Columns as wide as they need, numbers to the right."""
        lines = [list(header), *(list(row) for row in rows)]
        widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
        for number, line in enumerate(lines):
            cells = [
                cell.ljust(width)
                if column == 0 or not _numeric(lines, column)
                else cell.rjust(width)
                for column, (cell, width) in enumerate(zip(line, widths, strict=True))
            ]
            text = "  " + "  ".join(cells).rstrip()
            yield self.dim(text) if number == 0 else text


def _numeric(lines: Sequence[Sequence[str]], column: int) -> bool:
    return all(line[column][:1].isdigit() or line[column][:1] == "-" for line in lines[1:])


def sizing_text(sizing: Sizing, terminal: SizingTerminal) -> str:
    """Write a whole sizing.

    Args:
        sizing: What `size` returned.
        terminal: Width and weight.

    Returns:
        The text, without a line end at its end.
    """
    blocks = [
        _head(sizing, terminal),
        _answer(sizing, terminal),
        _findings(sizing, terminal),
        *(_section(section.title, section.steps, terminal) for section in sizing.sections),
        _givens(sizing, terminal),
        _volumes(sizing, terminal),
        _users(sizing, terminal),
        _editions(sizing, terminal),
        _differences(sizing, terminal),
        _sources(sizing, terminal),
    ]
    return "\n\n".join("\n".join(lines) for lines in (list(block) for block in blocks) if lines)


def _head(sizing: Sizing, terminal: SizingTerminal) -> Iterator[str]:
    requirements = sizing.requirements
    yield terminal.bold(f"Sizing: {requirements.title or requirements.name}")
    reading = (
        "formulas as printed"
        if sizing.reading == "formulas"
        else f"as published by {sizing.reading}"
    )
    copies = requirements.copies
    number = f"{copies.count} {'copy' if copies.count == 1 else 'copies'}"
    servers = f"{copies.servers} {'server' if copies.servers == 1 else 'servers'}"
    yield terminal.wrapped(
        f"{requirements.guidance.title}; {reading}; {copies.mode}, {number} on {servers}", ""
    )
    yield terminal.dim(terminal.wrapped(SIZE_NOTE, ""))


def _answer(sizing: Sizing, terminal: SizingTerminal) -> Iterator[str]:
    figures = sizing.results
    count, volume = figures["database_count"], figures["database_volume_size_gb"]
    log, total = figures["log_volume_size_gb"], figures["total_capacity_gb"]
    every = figures["total_capacity_all_copies_gb"]
    size = figures["database_size_gb"]
    many = "s" if count.value != 1 else ""
    yield (
        f"  {shown(count.value)} database{many} of {shown(size.value)} GB on {shown(volume.value)} "
        f"GB of volume each"
    )
    yield f"  {shown(count.value)} log volume{many} of {shown(log.value)} GB"
    yield (
        f"  {shown(total.value)} GB for one copy of everything, {shown(every.value)} GB for all "
        f"copies"
    )
    yield (
        f"  {shown(figures['database_iops'].value)} database IOPS; "
        f"{shown(figures['log_iops'].value)} log IOPS next to it"
    )
    yield terminal.wrapped(drives_line(sizing), "  ")


def _findings(sizing: Sizing, terminal: SizingTerminal) -> Iterator[str]:
    if sizing.findings:
        yield terminal.bold("Findings")
    for finding in sizing.findings:
        text = f"{finding.message}: {finding.advice}" if finding.advice else finding.message
        yield terminal.wrapped(
            f"{finding.subject}: {text} [{finding.source}]", "           ", f"  {finding.level:7}  "
        )
    unstated = [rule.name for rule in sizing.network_rules if rule.holds is None]
    if unstated:
        yield terminal.wrapped(
            f"not stated, not checked: {', '.join(unstated)}", "           ", "  open     "
        )


def _section(title: str, steps: Sequence[Step], terminal: SizingTerminal) -> Iterator[str]:
    if steps:
        yield terminal.bold(title)
    for step in steps:
        if (
            step.value or step.definition is None
        ):  # a reserve that was not asked for is seen in the sum
            yield from _step(step, terminal)


def _step(step: Step, terminal: SizingTerminal) -> Iterator[str]:
    head = f"  {step.title[:TITLE_WIDTH]:{TITLE_WIDTH}} {shown_step(step):>{VALUE_WIDTH}}  "
    plain = plain_number(step.value)
    how = f"= {step.arithmetic}" if step.arithmetic not in ("", plain) else ""
    note = f"({step.note})" if step.note else ""
    text = " ".join(part for part in (how, note, f"[{step.source}]") if part)
    if terminal.width - len(head) < DETAIL_WIDTH_MIN:
        yield head.rstrip()
        yield terminal.dim(terminal.wrapped(text, "      "))
        return
    first, *rest = textwrap.wrap(
        text, terminal.width - len(head), break_long_words=False, break_on_hyphens=False
    )
    yield head + terminal.dim(first)
    for line in rest:
        yield " " * len(head) + terminal.dim(line)


def _givens(sizing: Sizing, terminal: SizingTerminal) -> Iterator[str]:
    yield terminal.bold("Given: answers, defaults and published figures")
    for step in sizing.steps:
        if step.definition is None:
            yield from _step(step, terminal)


def _volumes(sizing: Sizing, terminal: SizingTerminal) -> Iterator[str]:
    first = sizing.volumes[0]
    yield terminal.bold(f"Provisioning plan: {len(sizing.volumes)} volumes")
    yield terminal.wrapped(
        f"{first.partition_table}, {first.file_system} with {first.allocation_unit_kb:g} KB units, "
        f"partitions at "
        f"{first.partition_offset_kb:g} KB, {first.raid}, {first.multipath_policy}; the whole list "
        f"is in --json, "
        "--xlsx and --html",
        "  ",
    )
    groups: dict[tuple[str, str, str], list[int]] = {}
    for volume in sizing.volumes:
        groups.setdefault((volume.server, volume.pool, volume.role), []).append(volume.size_gb)
    rows = [
        (server, pool, role, str(len(sizes)), f"{sizes[0]:,}", f"{sum(sizes):,}")
        for (server, pool, role), sizes in sorted(groups.items())
    ]
    yield from terminal.table(("server", "pool", "role", "volumes", "GB each", "GB in all"), rows)
    yield "  paths of server 1: " + "; ".join(" > ".join(path) for path in first.paths)


def _users(sizing: Sizing, terminal: SizingTerminal) -> Iterator[str]:
    if sizing.users_table is None:
        return
    yield terminal.bold("Users for each mailbox size")
    yield terminal.dim(terminal.wrapped(sizing.users_table.basis, "  "))
    rows = [
        (
            shown(row.mailbox_size_gb),
            f"{row.users_by_capacity:,}",
            f"{row.users_by_iops:,}",
            f"{row.users:,}",
            row.limit,
        )
        for row in sizing.users_table.rows
    ]
    yield from terminal.table(
        ("mailbox GB", "users that fit", "users by IOPS", "users", "limit"), rows
    )


def _editions(sizing: Sizing, terminal: SizingTerminal) -> Iterator[str]:
    if not sizing.editions:
        return
    yield terminal.bold("The same requirements under each edition's guidance")
    rows = [
        (
            row.edition + (" *" if {"recalled", "assumed"} & set(row.bases) else ""),
            f"{row.iops_per_user:.3f}",
            shown(row.database_iops),
            str(row.database_count),
            shown(row.database_volume_size_gb),
            shown(row.log_volume_size_gb),
            shown(row.total_capacity_gb),
            shown(row.cache_mb_per_user),
        )
        for row in sizing.editions
    ]
    header = (
        "edition",
        "IOPS/user",
        "IOPS",
        "databases",
        "volume GB",
        "log GB",
        "copy GB",
        "cache MB/user",
    )
    yield from terminal.table(header, rows)
    if any(row[0].endswith("*") for row in rows):
        yield terminal.dim(
            "  * rests in part on figures recalled or assumed, not read from their source"
        )


def _differences(sizing: Sizing, terminal: SizingTerminal) -> Iterator[str]:
    if not sizing.differences:
        return
    other = "its formulas give" if sizing.reading != "formulas" else "the formulas above give"
    yield terminal.bold(f"Where the Dell paper's own example differs from what {other}")
    rows = [
        (
            difference.name,
            precise(difference.published),
            precise(difference.formulas),
            difference.reason,
        )
        for difference in sizing.differences
    ]
    yield from terminal.table(("figure", "dell_2010", "formulas", "why"), rows)


def _sources(sizing: Sizing, terminal: SizingTerminal) -> Iterator[str]:
    yield terminal.bold("Sources")
    for key, document in cited_sources(sizing).items():
        yield terminal.wrapped(document, " " * 22, f"  {key:18}  ")
