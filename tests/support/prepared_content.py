"""The content of prepared records, computed a second time from
docs/reference/prepared-database.md.
"""

STEP = 0x9E3779B97F4A7C15
MASK = 0xD6E8FEB86659FD93
WORD_MAX = (1 << 64) - 1
CHUNK_BYTES = {4096: 4014, 8192: 8110, 16384: 4050, 32768: 8150}


def word(key: int, index: int) -> int:
    counter = (key + index * STEP) & WORD_MAX
    turned = (counter << 32 | counter >> 32) & WORD_MAX
    product = (counter ^ MASK) * (turned ^ STEP)
    return (product ^ product >> 64) & WORD_MAX


def derive(key: int, number: int) -> int:
    return word(word(key, number), 1)


def random_words(key: int, length: int) -> bytes:
    """Words of a sequence as far as whole words go; what is left is not random."""
    return b"".join(word(key, index).to_bytes(8, "little") for index in range(length // 8))


def tail(key: int, length: int) -> bytes:
    printable = bytes(0x60 | byte & 0x1F for byte in word(key, WORD_MAX).to_bytes(8, "little"))
    return printable[:length]


def filler(key: int, length: int) -> bytes:
    return random_words(key, length) + tail(key, length % 8)


def long_pad(seed: int, database: int, number: int, version: int, length: int) -> bytes:
    database_key = derive(seed, database + 1)
    return filler(derive(derive(derive(database_key, 1), number), version), length)


def long_value(
    seed: int, database: int, number: int, version: int, length: int, page_bytes: int
) -> bytes:
    value_key = derive(derive(seed, database + 1), 3)
    key = derive(derive(value_key, number), version)
    content = bytearray()
    for chunk, start in enumerate(range(0, length, CHUNK_BYTES[page_bytes])):
        chunk_length = min(CHUNK_BYTES[page_bytes], length - start)
        head = (
            b"PV"
            + chunk.to_bytes(2, "little")
            + version.to_bytes(4, "little")
            + number.to_bytes(8, "little")
        )
        content += head[:chunk_length] + filler(
            derive(key, chunk), max(0, chunk_length - len(head))
        )
    return bytes(content)


def check_sum(*pads: bytes) -> int:
    """The Check column: the sum of all 64-bit words, each pad padded with zeros, as a signed
    number.
    """
    total = 0
    for pad in pads:
        padded = pad + bytes(-len(pad) % 8)
        total += sum(
            int.from_bytes(padded[at : at + 8], "little") for at in range(0, len(padded), 8)
        )
    total &= WORD_MAX
    return total - (1 << 64) if total >> 63 else total
