"""Databases with traits that the golden ones lack.

A page changed in place and given the checksum that its new content has.

The checksum is written after the description of the format and shares no code with the product,
which must agree with it."""

from __future__ import annotations

import struct
from pathlib import Path

CODE_PAGE, COLUMN_ROW = 22, 2


def block_checksum(block: bytes, page: int, is_first: bool) -> int:
    """The checksum of one block.

    Dwords folded, and the exclusive-or of the numbers of the bits that are set.
    """
    words = list(struct.unpack(f"<{len(block) // 4}I", block))
    if is_first:
        words[:2] = [0, 0]
    folded, low = 0, 0
    for index, word in enumerate(words):
        folded ^= word
        if word.bit_count() % 2:
            low ^= index << 5
    for bit, mask in enumerate((0xAAAAAAAA, 0xCCCCCCCC, 0xF0F0F0F0, 0xFF00FF00, 0xFFFF0000)):
        low ^= ((folded & mask).bit_count() % 2) << bit
    high = low if folded.bit_count() % 2 == 0 else low ^ (8 * len(block) - 1)
    return (high << 16 | low) << 32 | (folded ^ page)


def set_page_checksum(page: bytearray, number: int) -> None:
    """Give a page the checksum of its content; of large pages the three later blocks come first."""
    if len(page) > 8192:
        size = len(page) // 4
        for block, slot in ((1, 40), (2, 48), (3, 56)):
            content = bytes(page[block * size : (block + 1) * size])
            struct.pack_into("<Q", page, slot, block_checksum(content, number, False))
        struct.pack_into("<Q", page, 0, block_checksum(bytes(page[:size]), number, True))
    else:
        struct.pack_into("<Q", page, 0, block_checksum(bytes(page), number, True))


def edit_column_rows(
    path: Path, page_bytes: int, table: int, column: int, field: int, value: int
) -> int:
    """Change a number in the catalog's rows of a column, in the catalog and in its shadow.

    How many rows there were.
    """
    content = bytearray(path.read_bytes())
    wanted = struct.pack("<IHI", table, COLUMN_ROW, column)
    changed, place = 0, content.find(wanted)
    while place >= 0:
        struct.pack_into("<I", content, place + field, value)
        number = place // page_bytes - 1
        start = (number + 1) * page_bytes
        page = bytearray(content[start : start + page_bytes])
        set_page_checksum(page, number)
        content[start : start + page_bytes] = page
        changed, place = changed + 1, content.find(wanted, place + 1)
    path.write_bytes(content)
    return changed
