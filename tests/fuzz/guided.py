"""`make fuzz`: looks with libFuzzer for inputs that make the engine panic, hang or swell, target by
target (`fuzz/targets`).

    python -m tests.fuzz.guided SECONDS SEED [--keep] [--only TARGET]

It begins with the kept inputs (`corpus/TARGET.gz`) and with sound ones. An input that does harm is
left in `fuzz/artifacts/TARGET`, and the search ends; `fuzz/target/.../TARGET FILE` gives it once
more. `--keep` packs the fewest inputs that reach all that was reached. What was built is an
optimized engine with its debug assertions and overflow checks."""

from __future__ import annotations

import argparse
import gzip
import os
import re
import resource
import shutil
import struct
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
CRATE = ROOT / "fuzz"
PLATFORM = "x86_64-unknown-linux-gnu"
SANCOV = "-Cpasses=sancov-module -Ccodegen-units=4 --cfg fuzzing " + " ".join(
    f"-Cllvm-args=-sanitizer-coverage-{option}"
    for option in ("level=4", "inline-8bit-counters", "pc-table")
)
#: Looking into comparisons finds numbers that chance does not, and costs four fifths of the speed
#: where much text is made.
COMPARING = f"{SANCOV} -Cllvm-args=-sanitizer-coverage-trace-compares"
FLAGS = {"decoders": COMPARING, "recovery": COMPARING, "databases": SANCOV}
#: Longest inputs: a large page, a log of some pages, changes to some places.
BYTES_MAX = {"decoders": 33_000, "recovery": 6_000, "databases": 400}
INPUT_SECONDS_MAX = 20
MEMORY_MIB_MAX = 2048
#: Fewer places than this reached means that the engine was built without counters.
REACHED_MIN = 500


def build(target: str) -> Path:
    """The program of a target."""
    folder = CRATE / "target" / ("comparing" if FLAGS[target] == COMPARING else "plain")
    environment = os.environ | {"RUSTFLAGS": FLAGS[target], "CARGO_TARGET_DIR": str(folder)}
    command = ["cargo", "build", "--locked", "--release", "--target", PLATFORM, "--bin", target]
    subprocess.run(command, cwd=CRATE, env=environment, check=True)
    return folder / PLATFORM / "release" / target


def unpack(packed: Path, folder: Path) -> None:
    """Writes the kept inputs into a folder, one file each."""
    content = gzip.decompress(packed.read_bytes()) if packed.exists() else b""
    at = 0
    while at < len(content):
        (length,) = struct.unpack_from("<I", content, at)
        (folder / f"kept-{at:08}").write_bytes(content[at + 4 : at + 4 + length])
        at += 4 + length


def pack(folder: Path, packed: Path) -> int:
    """Packs a folder of inputs, the same bytes for the same inputs; returns how many."""
    inputs = sorted(path.read_bytes() for path in folder.iterdir())
    content = b"".join(struct.pack("<I", len(one)) + one for one in inputs)
    packed.write_bytes(gzip.compress(content, mtime=0))
    return len(inputs)


def search(target: str, seconds: int, seed: int, *, keep: bool) -> None:
    """Looks for inputs to one target for that long.

    Raises:
        SystemExit: one was found, or nothing was looked for.
    """
    program = build(target)
    work = CRATE / "artifacts" / target
    corpus = work / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    packed = Path(__file__).with_name("corpus") / f"{target}.gz"
    unpack(packed, corpus)
    limits = [
        f"-max_len={BYTES_MAX[target]}",
        f"-timeout={INPUT_SECONDS_MAX}",
        f"-rss_limit_mb={MEMORY_MIB_MAX}",
        f"-artifact_prefix={work}/",
    ]
    sound = os.environ | {"PLIMSOLL_FUZZ_SOUND": str(corpus)}
    subprocess.run([program, "-runs=0"], env=sound, check=True, stderr=subprocess.DEVNULL)
    command = [program, f"-max_total_time={seconds}", f"-seed={seed}", *limits, corpus]
    reached = None
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, errors="replace") as process:
        assert process.stderr is not None
        tail: list[str] = []
        for line in process.stderr:
            tail = [*tail[-60:], line]
            reached = re.match(r"#(\d+)\s+DONE\s+cov: (\d+) ft: (\d+)", line) or reached
    if process.returncode != 0 or not reached:
        sys.exit(f"{''.join(tail)}\n{target}: an input does harm; it is in {work}")
    inputs, places, features = map(int, reached.groups())
    if places < REACHED_MIN:
        sys.exit(
            f"{target}: only {places} places were reached: the engine was built without counters"
        )
    print(
        f"{target}: {inputs:,} inputs in {seconds} s reach {places:,} places in {features:,} ways",
        flush=True,
    )
    if keep:
        fewest = work / "fewest"
        shutil.rmtree(fewest, ignore_errors=True)
        fewest.mkdir()
        subprocess.run(
            [program, "-merge=1", *limits, fewest, corpus], check=True, stderr=subprocess.DEVNULL
        )
        print(
            f"{target}: {pack(fewest, packed)} inputs kept, {packed.stat().st_size >> 10} KiB",
            flush=True,
        )


def main() -> None:
    """Searches every target, then tells the processor time."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("seconds", type=int)
    parser.add_argument("seed", type=int)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--only", choices=FLAGS)
    chosen = parser.parse_args()
    if shutil.which("g++") is None:
        sys.exit("libFuzzer is built with g++, which is not here")
    for target in [chosen.only] if chosen.only else FLAGS:
        search(target, chosen.seconds, chosen.seed, keep=chosen.keep)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"{used.ru_utime + used.ru_stime:.0f} s of processor time, building included")


if __name__ == "__main__":
    main()
