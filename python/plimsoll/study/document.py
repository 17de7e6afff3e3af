"""The document of a study: what was asked and found, how, on what, and every figure behind it.

Chapters follow the shape of published storage studies: executive summary, key findings, method,
environment, results with charts, conclusion, appendices. The words are ours. A finding names the
figures it rests on (`key_findings.py`), and the appendices hold all of them with the study file
itself, so that the study can be carried out again.
"""

from __future__ import annotations

from datetime import date
from pathlib import Path

from plimsoll import __version__
from plimsoll.compare.sides import ComparisonError, RunRead, read_run
from plimsoll.documents.study import StudyFigure, StudyFindings
from plimsoll.pages.tables import Table
from plimsoll.solution.document import (
    Block,
    Document,
    Drawing,
    Heading,
    Lines,
    Paragraph,
    drawings_of_topology,
)
from plimsoll.study.charts import Bar, bars, curve
from plimsoll.study.description import Study, Variant
from plimsoll.study.key_findings import KeyFinding, key_findings
from plimsoll.study.tables import (
    differences_tables,
    figures_table,
    ranking_table,
    variants_table,
)
from plimsoll.study.text import MODELLED, sentences, title_of, warnings_of

CHARTED = (
    "database_iops",
    "total_database_read_latency_ms_mean",
    "total_log_write_latency_ms_mean",
    "headroom",
)
LATENCIES_LIMITED = "total_database_read_latency_ms_mean"
NOT_FINISHED = "No variant is finished, so there is nothing to find."


def document_of(wanted: Study, found: StudyFindings, home: Path) -> Document:
    """Every block of the document.

    Args:
        wanted: the study as it was read.
        found: what it came to.
        home: the folder of the study; the machines of its runs are read there.
    """
    findings = key_findings(found)
    cover = [
        *([found.source] if found.source else []),
        "MODELLED: predictions, nothing was measured" if found.modelled else "Measured",
        f"Written on {date.today().isoformat()} by Plimsoll {__version__}",
    ]
    blocks: list[Block] = [
        *_summary(found, findings),
        *_findings(findings),
        *_method(wanted, found),
        *_environment(wanted, home),
        *drawings_of_topology(wanted.topology),
        *_results(found),
        Heading(1, "Conclusion"),
        Paragraph(" ".join(finding.text for finding in findings[:2]) or NOT_FINISHED),
        *_appendices(found, home),
    ]
    return Document(found.name, cover, blocks)


def _summary(found: StudyFindings, findings: list[KeyFinding]) -> list[Block]:
    asked = [Paragraph(found.description)] if found.description else []
    warning = [Paragraph(MODELLED)] if found.modelled else []
    told = sentences(found)
    return [
        Heading(1, "Executive summary"),
        *asked,
        *warning,
        Paragraph(
            " ".join(text if text.endswith(".") else f"{text}." for text in told)
            if findings
            else NOT_FINISHED
        ),
    ]


def _findings(findings: list[KeyFinding]) -> list[Block]:
    rows = [
        [
            str(number),
            finding.text,
            "; ".join(trace.in_words() for trace in finding.traces) or "appendix A",
        ]
        for number, finding in enumerate(findings, 1)
    ]
    headings = ["", "Finding", "Figures it rests on (study.json)"]
    return [
        Heading(1, "Key findings"),
        *([Table("Table 1: Key findings", headings, rows)] if rows else [Paragraph(NOT_FINISHED)]),
    ]


def _method(wanted: Study, found: StudyFindings) -> list[Block]:
    real = sum(variant.is_real for variant in wanted.variants)
    how = "Some variants ran on real storage, others on modelled arrays."
    if real in (0, len(wanted.variants)):
        how = (
            "Each run put its load on real storage, one run after the other."
            if real
            else "Each run was simulated on a modelled array, with another seed each time."
        )
    others = (
        f" Beside them stand {len(wanted.published)} published results, which print one number for "
        f"each figure."
        if wanted.published
        else ""
    )
    times = "once" if wanted.repeat == 1 else f"{wanted.repeat} times"
    return [
        Heading(1, "Method"),
        Paragraph(
            f"{len(wanted.variants)} variants of one base were carried out {times} each. {how} "
            f"They differ in nothing but the settings of appendix A.{others}"
        ),
        Paragraph(
            f"Variants are ranked by {title_of(_ranked(found))}. Differences are factors against "
            f"{found.baseline}: above 1 is better, more operations or less time. Their intervals "
            f"of 95 % come from whole runs where there are several and from blocks of time within "
            f"one run otherwise. The intervals of the ranking hold together, and so do all others "
            f"of the tables (Bonferroni); what they leave open is called not told apart."
        ),
    ]


def _ranked(found: StudyFindings) -> StudyFigure:
    empty = StudyFigure(
        name=found.rank_by, title=found.rank_by, unit="", better="", sides=[], against_baseline=[]
    )
    return next((row for row in found.figures if row.name == found.rank_by), empty)


def _environment(wanted: Study, home: Path) -> list[Block]:
    rows = [_machine_row(variant, home) for variant in wanted.variants]
    headings = ["Variant", "Storage", "Machine", "System", "Databases"]
    return [
        Heading(1, "Environment"),
        Table("Table 2: What the variants ran on", headings, rows),
    ]


def _machine_row(variant: Variant, home: Path) -> list[str | None]:
    if variant.light is not None:
        array = f"modelled array {variant.light.array}"
        changed = "; ".join(f"{key} = {value}" for key, value in variant.light.changes.items())
        databases = f"{variant.light.databases} of {variant.light.database_gb:g} GB"
        return [variant.name, f"{array} ({changed})" if changed else array, None, None, databases]
    run = _first_run(variant, home)
    if run is None:
        return [variant.name, "not carried out yet", None, None, None]
    if not variant.is_real:
        array = str((run.plan.get("judgement", {}).get("modelled") or {}).get("name", "an array"))
        return [variant.name, f"modelled array {array}", None, None, _databases(run)]
    machine = run.environment.get("machine", {})
    memory_kib = machine.get("memory_kib")
    words = [
        f"{machine.get('cpus_usable') or '?'} x {machine.get('cpu_model') or 'unknown processor'}",
        f"{memory_kib / 1024**2:.1f} GiB of memory" if memory_kib else "",
    ]
    system = " ".join(str(machine.get(key) or "") for key in ("distribution", "kernel")).strip()
    return [
        variant.name,
        "; ".join(_storage(target) for target in run.environment.get("targets", ())) or None,
        ", ".join(word for word in words if word),
        system or None,
        _databases(run),
    ]


def _first_run(variant: Variant, home: Path) -> RunRead | None:
    try:
        return read_run(home / "variants" / variant.slug / "run-1")
    except ComparisonError:
        return None


def _storage(target: dict[str, object]) -> str:
    """What a target is, as far as the machine tells."""
    known = target.get("storage_class")
    kind = known.get("title") if isinstance(known, dict) else None
    system = target.get("file_system")
    form = system.get("type") if isinstance(system, dict) else None
    words = [str(word) for word in (target.get("path"), kind, form) if word]
    return ", ".join(words)


def _databases(run: RunRead) -> str:
    sizes = [
        int(database["size_bytes"])
        for instance in run.plan["run"]["instances"]
        for database in instance.get("databases", ())
    ]
    return f"{len(sizes)} of {sum(sizes) / 2**30 / max(len(sizes), 1):.3g} GiB"


def _results(found: StudyFindings) -> list[Block]:
    titles = {row.name: title_of(row) for row in found.figures}
    blocks: list[Block] = [Heading(1, "Results")]
    if not found.ranking:
        return [*blocks, Paragraph(NOT_FINISHED)]
    ranking = ranking_table(found, titles)
    blocks.append(Table(f"Table 3: {ranking.title}", ranking.headings, ranking.rows, ranking.note))
    wanted = dict.fromkeys((found.rank_by, *CHARTED))
    rows = [row for name in wanted for row in found.figures if row.name == name]
    number = 0
    for row in rows:
        for svg, words in _charts(found, row):
            number += 1
            blocks.append(Drawing(f"chart-{number}", svg, f"Figure {number}: {words}"))
    return blocks


def _charts(found: StudyFindings, row: StudyFigure) -> list[tuple[str, str]]:
    names = [side.name for side in found.sides]
    rows = [
        Bar(name, side.value, side.relative_error)
        for name, side in zip(names, row.sides, strict=True)
    ]
    drawn = [(bars(row.title, row.unit, rows), f"{row.title} of each variant")]
    if found.axis:
        points = [
            (value, side.value)
            for value, side in zip(found.axis.values, row.sides, strict=False)
            if side.value is not None
        ]
        limit = found.axis.limit_ms if row.name == LATENCIES_LIMITED else None
        if len(points) > 1:
            title = f"{row.title} by {found.axis.title}"
            axes = (found.axis.title, title_of(row))
            drawn.append((curve(title, axes, sorted(points), limit), title))
    return drawn


def _appendices(found: StudyFindings, home: Path) -> list[Block]:
    figures = figures_table(found)
    blocks: list[Block] = [
        Heading(1, "Appendix A: Variants", "appendix-a"),
        variants_table(found),
        Heading(1, "Appendix B: Every figure", "appendix-b"),
        *Table("Values", figures.headings, figures.rows, figures.note).parts(),
        Heading(1, "Appendix C: Every difference", "appendix-c"),
    ]
    tables = differences_tables(found)
    for table in tables:
        blocks += [Heading(3, table.title), table]
    if not tables:
        blocks.append(Paragraph("There is nothing to compare."))
    warned = warnings_of(found)
    blocks += [
        Heading(1, "Appendix D: What must be known first", "appendix-d"),
        *([Lines(warned)] if warned else [Paragraph("Nothing was warned of.")]),
        Heading(1, "Appendix E: The study file", "appendix-e"),
        Lines(_file_of(home)),
    ]
    return blocks


def _file_of(home: Path) -> list[str]:
    """The study file as its folder keeps it."""
    try:
        return (home / "study.toml").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ["the folder of the study has no copy of its file"]
