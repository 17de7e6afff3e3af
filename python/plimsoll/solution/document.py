"""The solution document as a list of blocks, the same for every format.

Headings, paragraphs, tables, drawings, lines.

Chapters follow the published template: cover, disclaimer, features, description, profile, tested
deployment, practices, results, conclusion, appendices A to F. The words between the figures are
ours; what the maker says comes from the description. An appendix of an imported run has the
published titles and labels, so that an import reads it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date

from plimsoll import __version__
from plimsoll.advice.drawings import TopologyDrawing
from plimsoll.documents.plan import Plan
from plimsoll.documents.summary import Summary
from plimsoll.documents.verdict import verdict_of
from plimsoll.imports.report_model import sections_of
from plimsoll.pages.tables import Table
from plimsoll.report.backup_recovery import backup_sections, recovery_sections
from plimsoll.report.checksums import checksum_sections
from plimsoll.report.integrity import integrity_sections, integrity_sentences
from plimsoll.report.run_log import lines_of_folder
from plimsoll.report.sections import published_sections
from plimsoll.report.verdicts import check_table
from plimsoll.solution import drawings, tables
from plimsoll.solution.solution import Run, Solution
from plimsoll.units import NS_PER_S


@dataclass(frozen=True)
class Heading:
    """A heading; level 1 is a chapter, a chapter called appendix begins a page."""

    level: int
    text: str
    id: str = ""


@dataclass(frozen=True)
class Paragraph:
    """Running text."""

    text: str


@dataclass(frozen=True)
class Lines:
    """Lines below each other, as a log has them."""

    lines: list[str]


@dataclass(frozen=True)
class Drawing:
    """An SVG picture with its caption."""

    name: str
    svg: str
    caption: str


Block = Heading | Paragraph | Lines | Drawing | Table


@dataclass
class Document:
    """Everything that any format shows."""

    title: str
    cover: list[str]
    blocks: list[Block] = field(default_factory=list)


DISCLAIMER = (
    "This document was put together by Plimsoll in the shape of a storage solution review. It was "
    "not reviewed, approved or certified by "
    "the maker of the mail server or by anybody else. Its tests show how the storage behaved under "
    "a simulated load; they are no benchmark "
    "and not meant to compare makers. Processors, memory, networks, directories and other work of "
    "an installation were not tested. Whoever "
    "builds on it must test the design with the own load."
)


def document_of(solution: Solution) -> Document:
    """Every block of the document."""
    content = solution.content
    cover = [
        content["vendor"],
        f"Tested: {content['tested']}",
        f"Written on {date.today().isoformat()} by Plimsoll {__version__}",
    ]
    blocks: list[Block] = [
        Heading(1, "Disclaimer"),
        Paragraph(DISCLAIMER),
        Heading(1, "Overview"),
        Paragraph(content["overview"]),
        *_features(solution),
        *_description(solution),
        *_profile(solution),
        *_deployment(solution),
        *_practices(solution),
        Heading(1, "Contact"),
        Paragraph(content["contact"]),
        *_results(solution),
        *_conclusion(solution),
        *_appendix_a(solution),
    ]
    for letter, place, title in APPENDICES:
        blocks += _appendix(solution, letter, place, title)
    return Document(content["title"], cover, blocks)


#: Appendices with a report each; the replay and the load that wrote its logs stand together.
APPENDICES = (
    ("B", "stress", "Stress test"),
    ("C", "performance", "Performance test"),
    ("D", "max_iops", "Test for the highest rate"),
    ("E", "backup", "Database backup test"),
    ("F", "recovery", "Soft recovery test"),
)


def _features(solution: Solution) -> list[Block]:
    items = solution.content["feature"]
    blocks: list[Block] = [Heading(1, "Features")] if items else []
    for item in items:
        blocks += [Heading(2, item["title"]), Paragraph(item["text"])]
    return blocks


def _description(solution: Solution) -> list[Block]:
    return [
        Heading(1, "Solution description"),
        *(Paragraph(text) for text in solution.content["description"]),
        Drawing("architecture", drawings.architecture(solution), "Figure 1: Architecture"),
        Drawing("disk-layout", drawings.disk_layout(solution), "Figure 2: Disk layout"),
        *drawings_of_topology(solution.topology),
    ]


def drawings_of_topology(topology: Sequence[TopologyDrawing]) -> list[Block]:
    """The drawings of a topology file under a heading of their own; those left out say why."""
    if not topology:
        return []
    return [
        Heading(2, "Topology"),
        *(
            Drawing(f"topology-{number}", found.svg, found.caption)
            if found.svg
            else Paragraph(f"{found.caption}.")
            for number, found in enumerate(topology, 1)
        ),
    ]


def _profile(solution: Solution) -> list[Block]:
    profile = solution.content["profile"]
    base = profile["iops_per_user"] / (1 + profile["headroom_percent"] / 100)
    rows = [
        ["Users", profile["users"]],
        ["Servers in the group", profile["servers_per_dag"]],
        [
            "I/O per second of a user",
            f"{base:.2f}, {profile['iops_per_user']:g} with {profile['headroom_percent']:g} % "
            f"headroom",
        ],
        [
            "Messages of a user each day",
            None if profile["messages_per_day"] is None else f"{profile['messages_per_day']:g}",
        ],
        ["Mailbox size (GB)", f"{profile['mailbox_gb']:g}"],
        ["Copies of each database", profile["copies_per_database"]],
    ]
    return [Heading(1, "Targeted customer profile"), Table("Customer profile", [], rows)]


def _deployment(solution: Solution) -> list[Block]:
    return [
        Heading(1, "Tested deployment"),
        Paragraph(
            "Tables 1 to 5 say what was tested and on what. Results change with the share of the "
            "capacity that is used: runs on nearly empty storage show more than it can hold."
        ),
        tables.table_1(solution),
        tables.table_2(solution),
        tables.table_3(solution),
        tables.table_4(solution),
        tables.table_5(solution),
    ]


def _practices(solution: Solution) -> list[Block]:
    items = solution.content["best_practice"]
    blocks: list[Block] = [Heading(1, "Best practices")] if items else []
    for item in items:
        blocks += [Heading(2, item["title"]), Paragraph(item["text"])]
    return blocks


def _results(solution: Solution) -> list[Block]:
    stress = solution.runs["stress"]
    hours = " and ".join(
        f"{(run.summary['window']['seconds'] or 0) / 3600:.0f} h" for run in stress
    )
    damaged = [run.summary["total"]["pages_damaged"] for run in stress]
    pages = (
        "no damaged page was found"
        if damaged and all(count == 0 for count in damaged)
        else "whether pages were damaged is not known of every server"
    )
    if any(damaged_count for damaged_count in damaged):
        pages = f"{sum(count or 0 for count in damaged)} damaged pages were found"
    best = _increase(solution)
    return [
        Heading(1, "Test result summary"),
        Heading(2, "Reliability"),
        Paragraph(
            f"The stress test ran for {hours} and ended with the result "
            f"{' and '.join(run.verdict['result'] for run in stress)}; when every page was read "
            f"back, {pages}. Appendix B has its report."
        ),
        *(Paragraph(text) for run in stress for text in _integrity(run)),
        Heading(2, "Storage performance"),
        Paragraph(
            "The performance test carries the load of the customer profile, headroom included. "
            "Appendix C has its report."
        ),
        tables.table_6(solution),
        *([Paragraph(best)] if best else []),
        Heading(2, "Database backup and recovery"),
        Paragraph(
            "How fast databases can be read bounds every backup that reads them; how fast logs are "
            "replayed bounds every recovery. Appendices E and F have their reports."
        ),
        tables.table_7(solution),
        tables.table_8(solution),
        Heading(2, "Evidence"),
        tables.evidence_table(solution),
        *(Paragraph(text) for text in tables.reservations(solution)),
    ]


def _increase(solution: Solution) -> str:
    """The highest rate against that of the performance test."""
    rates = [
        tables.total([run.summary["total"]["database_iops"] for run in solution.runs[place]])
        for place in ("performance", "max_iops")
    ]
    if not solution.runs["max_iops"] or rates[0] is None or rates[1] is None or not rates[0]:
        return ""
    change = (rates[1] / rates[0] - 1) * 100
    words = (
        f"{tables.rounded(abs(change), 1)} % {'above' if change >= 0 else 'below'} that of the "
        f"performance test"
    )
    return (
        f"The highest rate was {tables.plain(rates[1], 3)} I/O per second, {words}; appendix D has "
        f"its report."
    )


def _conclusion(solution: Solution) -> list[Block]:
    profile, content = solution.content["profile"], solution.content
    rate = tables.total(
        [run.summary["total"]["database_iops"] for run in solution.runs["performance"]]
    )
    required = profile["users"] * profile["iops_per_user"]
    verdict = "more than" if rate is not None and float(rate) >= required else "less than"
    text = (
        f"The storage carried {tables.plain(rate, 3)} I/O per second, {verdict} the {required:g} "
        f"that {profile['users']:,} users with {profile['iops_per_user']:g} each ask for."
    )
    return [
        Heading(1, "Conclusion"),
        Paragraph(text),
        *([Paragraph(content["conclusion"])] if content["conclusion"] else []),
    ]


def _appendix_a(solution: Solution) -> list[Block]:
    _, arithmetic = tables.users_by_iops(solution)
    profile = solution.content["profile"]
    return [
        Heading(1, "Appendix A: Mailbox sizing", "appendix-a"),
        Paragraph(
            f"Capacity and I/O bound the number of users. The capacity of the solution is "
            f"{profile['users'] * profile['mailbox_gb']:,.0f} GB of mailboxes. "
            f"{arithmetic[0].upper() + arithmetic[1:]}."
        ),
        tables.table_9(solution),
        Drawing(
            "mailbox-sizing",
            drawings.mailbox_chart(solution),
            "Figure 3: Users over the size of their mailboxes",
        ),
    ]


def _integrity(run: Run) -> list[str]:
    """What a run of our own claims of checksums and system log.

    An imported report speaks for itself.
    """
    if run.reported is not None:
        return []
    name = run.path.absolute().name
    where = f"{run.machine}: " if run.machine else ""
    return [
        f"{where}{text}"
        for text in integrity_sentences(Summary.from_plain(run.summary, f"the summary of {name}"))
    ]


def _appendix(solution: Solution, letter: str, place: str, title: str) -> list[Block]:
    runs = solution.runs[place]
    blocks: list[Block] = [Heading(1, f"Appendix {letter}: {title}", f"appendix-{letter.lower()}")]
    if not runs:
        return [*blocks, Paragraph("No run of this kind belongs to the solution.")]
    for run in runs:
        blocks += _report(run, several=len(runs) > 1)
    for run in solution.runs["log_generation"] if place == "recovery" else ():
        blocks += [
            Heading(2, "The load that wrote the replayed logs"),
            *_report(run, several=False),
        ]
    return blocks


def _report(run: Run, *, several: bool) -> list[Block]:
    blocks: list[Block] = [Heading(2, run.machine or "Server")] if several else []
    return [*blocks, *(_imported(run) if run.reported else _own(run))]


def _imported(run: Run) -> list[Block]:
    """An imported report with the titles and labels it had, what does not add up before it."""
    assert run.reported is not None
    blocks: list[Block] = [
        Paragraph(f"{run.verdict['headline']}. The figures below are those of the original report.")
    ]
    wrong = [
        f"{finding['where']}: {finding['text']}"
        for finding in run.findings
        if finding["kind"] == "contradiction"
    ]
    if wrong:
        blocks.append(
            Paragraph("What contradicts itself in the original: " + "; ".join(wrong) + ".")
        )
    for section in sections_of(run.reported):
        headed = bool(section.rows) and len(section.rows[0].cells) > 2
        blocks.append(Heading(3, section.title))
        if section.rows:
            rows = [[*row.cells] for row in section.rows]
            blocks.append(Table("", rows[0] if headed else [], rows[1:] if headed else rows))
        if section.lines:
            blocks.append(Lines([text for _, text in section.lines]))
    return blocks


def _own(run: Run) -> list[Block]:
    """The report of a run of our own, in the order of the published sections."""
    name = run.path.absolute().name
    found: list[Table] = []
    summary = Summary.from_plain(run.summary, f"the summary of {name}")
    if summary.window.seconds:
        found += published_sections(
            Plan.from_plain(run.plan, f"the plan of {name}"), summary, run.environment, name
        )
    found += [
        *checksum_sections(summary),
        *integrity_sections(summary),
        *backup_sections(summary),
        *recovery_sections(summary),
        check_table(verdict_of(run.verdict)),
    ]
    blocks: list[Block] = [
        Paragraph(f"{run.verdict['headline']}. {' '.join(run.verdict['reasons'])}")
    ]
    for table in found:
        blocks.extend([Heading(3, table.title), table])
    log = [f"{line.time_ns / NS_PER_S:.1f} s  {line.text}" for line in lines_of_folder(run.path)]
    if log:
        blocks.extend([Heading(3, "Test Log"), Lines(log)])
    return blocks
