"""The field's own terms in the documents: words that were replaced by one do not come back.

`docs/glossary.md` has the terms.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: Words and what to say instead.
INSTEAD = {
    r"anew": "again",
    r"beside": "next to",
    r"nobody|nobody's": "no one",
    r"somebody|somebody's": "a person, a user, another process",
    r"mend|mends|mended|mending": "repair",
    r"guilty|guilt": "bottleneck, attributed to",
    r"premises": "preflight",
    r"hard times": "randomised fault scenarios",
    r"comes to a stand": "livelocks",
    r"steers? (?:a|the) terminal": "terminal control characters",
}
#: Pages that programs write, and history, whose words stay as they were.
LEFT_OUT = {
    "docs/papers.md",
    "docs/benchmarks.md",
    "docs/reference/plan.md",
    "docs/reference/samples.md",
    "docs/reference/solution.md",
}
PAGES = sorted(
    path
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    if str(path.relative_to(ROOT)) not in LEFT_OUT
)


def prose(text: str) -> str:
    """A page without its code: names of programs and files are what they are."""
    return re.sub(r"```.*?```|`[^`\n]*`|^    [^\n]*", "", text, flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_uses_the_terms_of_the_field(page: Path) -> None:
    """Most readers know fio, and English as a second language."""
    lines = prose(page.read_text(encoding="utf-8")).lower().splitlines()
    found = [
        f"line with {match.group()!r}: say {instead}: {line.strip()[:80]}"
        for line in lines
        for word, instead in INSTEAD.items()
        for match in re.finditer(rf"\b(?:{word})\b", line)
    ]
    assert found == []
