"""The document as a text file of the Office Open XML form, for makers who edit before they publish.

The form is a zip of XML parts; this writes the few that a document needs (ECMA-376 part 1:
document, styles, relations, content types), so no further package is needed. Reports of the
appendices stand in a section of landscape pages. Drawings are embedded as pixels, because older
programs show no SVG. Limit: no table of contents; programs make one of the headings.
"""

from __future__ import annotations

import re
import struct
import zipfile
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

import vl_convert

from plimsoll.pages.tables import Table
from plimsoll.solution.document import Document, Drawing, Heading, Lines, Paragraph

EMU_PER_PIXEL, PAGE_EMU = 9525, 5_900_000
SCALE = 2
#: The moment in every entry of the zip, so that the same document is the same bytes.
MOMENT = (2020, 1, 1, 0, 0, 0)
_W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_NAMES = (
    f'xmlns:w="{_W}" xmlns:r="{_R}" '
    f'xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing" '
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" '
    'xmlns:pic="http://schemas.openxmlformats.org/drawingml/2006/picture"'
)
_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
TYPES = (
    f'{_HEAD}<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="rels" '
    'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Default Extension="xml" ContentType="application/xml"/><Default Extension="png" '
    'ContentType="image/png"/>'
    '<Override PartName="/word/document.xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/>'
    '<Override PartName="/word/styles.xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.styles+xml"/></Types>'
)
_PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
RELATIONS = (
    f'{_HEAD}<Relationships xmlns="{_PACKAGE}"><Relationship Id="rId1" Type="{_R}/officeDocument" '
    f'Target="word/document.xml"/></Relationships>'
)


def _style(
    name: str,
    title: str,
    size: int,
    *,
    bold: bool = False,
    kind: str = "paragraph",
    extra: str = "",
) -> str:
    weight = "<w:b/>" if bold else ""
    return (
        f'<w:style w:type="{kind}" w:styleId="{name}"><w:name w:val="{title}"/><w:basedOn '
        f'w:val="Normal"/><w:qFormat/>'
        f'<w:pPr>{extra}<w:spacing w:before="120" w:after="80"/></w:pPr><w:rPr>{weight}<w:sz '
        f'w:val="{size}"/></w:rPr></w:style>'
    )


STYLES = (
    f'{_HEAD}<w:styles {_NAMES}><w:docDefaults><w:rPrDefault><w:rPr><w:rFonts w:ascii="Arial" '
    f'w:hAnsi="Arial" w:cs="Arial"/><w:sz w:val="20"/></w:rPr></w:rPrDefault></w:docDefaults>'
    '<w:style w:type="paragraph" w:default="1" w:styleId="Normal"><w:name '
    'w:val="Normal"/><w:qFormat/></w:style>'
    + _style("Title", "Title", 44, bold=True)
    + "".join(
        _style(
            f"Heading{level}",
            f"heading {level}",
            size,
            bold=True,
            extra=f'<w:keepNext/><w:outlineLvl w:val="{level - 1}"/>',
        )
        for level, size in ((1, 32), (2, 26), (3, 22))
    )
    + _style("Caption", "caption", 18, bold=True)
    + _style("Log", "Log", 14)
    + '<w:style w:type="table" w:default="1" w:styleId="Grid"><w:name w:val="Table '
    'Grid"/><w:tblPr><w:tblBorders>'
    + "".join(
        f'<w:{side} w:val="single" w:sz="4" w:color="B9C2C9"/>'
        for side in ("top", "left", "bottom", "right", "insideH", "insideV")
    )
    + "</w:tblBorders></w:tblPr></w:style></w:styles>"
)


def write_docx(document: Document, path: Path) -> None:
    """Write the document."""
    pictures: list[bytes] = []
    body = [_paragraph(document.title, "Title"), *(_paragraph(line) for line in document.cover)]
    wide = False
    for block in document.blocks:
        begins_reports = isinstance(block, Heading) and block.id > "appendix-a"
        if begins_reports and not wide:
            body.append(f"<w:p><w:pPr>{_page(wide=False)}</w:pPr></w:p>")
            wide = True
        body.append(_block(block, pictures, wide=wide))
    content = (
        f"{_HEAD}<w:document "
        f"{_NAMES}><w:body>{''.join(body)}{_page(wide=wide)}</w:body></w:document>"
    )
    links = [f'<Relationship Id="rId1" Type="{_R}/styles" Target="styles.xml"/>']
    links += [
        f'<Relationship Id="rIdPicture{number}" Type="{_R}/image" '
        f'Target="media/picture{number}.png"/>'
        for number in range(1, len(pictures) + 1)
    ]
    relations = f'{_HEAD}<Relationships xmlns="{_PACKAGE}">{"".join(links)}</Relationships>'
    parts: dict[str, str | bytes] = {
        "[Content_Types].xml": TYPES,
        "_rels/.rels": RELATIONS,
        "word/document.xml": content,
        "word/styles.xml": STYLES,
        "word/_rels/document.xml.rels": relations,
    }
    parts |= {
        f"word/media/picture{number}.png": picture for number, picture in enumerate(pictures, 1)
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, part in parts.items():
            file.writestr(zipfile.ZipInfo(name, MOMENT), part, zipfile.ZIP_DEFLATED)


def _page(*, wide: bool) -> str:
    size = (
        '<w:pgSz w:w="16838" w:h="11906" w:orient="landscape"/>'
        if wide
        else '<w:pgSz w:w="11906" w:h="16838"/>'
    )
    return (
        f'<w:sectPr>{size}<w:pgMar w:top="900" w:right="850" w:bottom="900" w:left="850" '
        f'w:header="450" w:footer="450" w:gutter="0"/></w:sectPr>'
    )


def _clean(text: str) -> str:
    """Text without the control characters that XML has no way to hold."""
    return escape(re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]", "", text))


def _run(text: str, properties: str = "") -> str:
    lines = '</w:t><w:br/><w:t xml:space="preserve">'.join(
        _clean(line) for line in text.split("\n")
    )
    return (
        f"<w:r>{f'<w:rPr>{properties}</w:rPr>' if properties else ''}<w:t "
        f'xml:space="preserve">{lines}</w:t></w:r>'
    )


def _paragraph(text: str, style: str = "", properties: str = "") -> str:
    named = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{named}{_run(text, properties)}</w:p>"


def _block(block: object, pictures: list[bytes], *, wide: bool) -> str:
    match block:
        case Heading(level, text):
            return _paragraph(text, f"Heading{level}")
        case Paragraph(text):
            return _paragraph(text)
        case Lines(lines):
            return "".join(_paragraph(line, "Log") for line in lines)
        case Drawing(name, svg, caption):
            pictures.append(vl_convert.svg_to_png(svg, scale=SCALE))
            return _picture(name, caption, len(pictures), pictures[-1]) + _paragraph(
                caption, "Caption"
            )
        case Table():
            return _table(block, small=wide)
    raise AssertionError(f"a block of a kind that no text has: {block!r}")


def _table(table: Table, *, small: bool) -> str:
    size = 12 if small and len(table.headings) > 6 else 17
    width = max([len(table.headings), *(len(row) for row in table.rows)])
    rows = [_row(table.headings, f'<w:b/><w:sz w:val="{size}"/>')] if table.headings else []
    rows += [
        _row(
            [table.shown(cell, place) for place, cell in enumerate(row)], f'<w:sz w:val="{size}"/>'
        )
        for row in table.rows
    ]
    caption = _paragraph(table.title, "Caption") if table.title.startswith("Table") else ""
    note = _paragraph(table.note, "", '<w:i/><w:sz w:val="16"/>') if table.note else "<w:p/>"
    grid = "<w:gridCol/>" * width
    return (
        f'{caption}<w:tbl><w:tblPr><w:tblStyle w:val="Grid"/><w:tblW w:w="0" '
        f'w:type="auto"/></w:tblPr><w:tblGrid>{grid}</w:tblGrid>{"".join(rows)}</w:tbl>{note}'
    )


def _row(cells: list[str], properties: str) -> str:
    return (
        "<w:tr>"
        + "".join(f"<w:tc><w:tcPr/><w:p>{_run(cell, properties)}</w:p></w:tc>" for cell in cells)
        + "</w:tr>"
    )


def _picture(name: str, caption: str, number: int, png: bytes) -> str:
    pixels = struct.unpack(">II", png[16:24])
    across, down = (value * EMU_PER_PIXEL // SCALE for value in pixels)
    if across > PAGE_EMU:
        across, down = PAGE_EMU, down * PAGE_EMU // across
    words = f'id="{number}" name={quoteattr(name)} descr={quoteattr(caption)}'
    return (
        f'<w:p><w:r><w:drawing><wp:inline><wp:extent cx="{across}" cy="{down}"/><wp:docPr '
        f"{words}/><a:graphic>"
        '<a:graphicData uri="http://schemas.openxmlformats.org/drawingml/2006/picture"><pic:pic>'
        f"<pic:nvPicPr><pic:cNvPr {words}/><pic:cNvPicPr/></pic:nvPicPr><pic:blipFill><a:blip "
        f'r:embed="rIdPicture{number}"/><a:stretch><a:fillRect/></a:stretch></pic:blipFill>'
        f'<pic:spPr><a:xfrm><a:off x="0" y="0"/><a:ext cx="{across}" '
        f'cy="{down}"/></a:xfrm><a:prstGeom prst="rect"><a:avLst/></a:prstGeom></pic:spPr>'
        "</pic:pic></a:graphicData></a:graphic></wp:inline></w:drawing></w:r></w:p>"
    )
