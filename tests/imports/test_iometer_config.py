"""Configurations of Iometer.

Read as leniently as they are written, written as the original writes them, and made plans.
"""

import tomllib
from dataclasses import asdict
from pathlib import Path

import pytest

from plimsoll.imports.files import read_imports
from plimsoll.imports.iometer.icf import Icf, has_unnamed_specifications, read_icf
from plimsoll.imports.iometer.to_plan import access_of_icf, plans_of_icf
from plimsoll.inputs.mistakes import InputError
from plimsoll.plan.complete import read_plan
from tests.support.edb_databases import SHARED
from tests.support.icf_write import write_icf
from tests.support.places import plimsoll

CORPUS = SHARED / "data" / "icf"
FILES = sorted(CORPUS.glob("*.icf"))
SAVED = sorted((CORPUS / "golden").glob("*.save.txt"))
needs_corpus = pytest.mark.skipif(
    len(FILES) != 35,
    reason=f"the 35 published configurations are not in {CORPUS}; set PLIMSOLL_SHARED",
)

SMALL = """Version 1.1.0
'TEST SETUP ====
'Test Description
	two workers
'Run Time
'	hours      minutes    seconds
	0          1          30
'ramp up time (s)
	5
'Queue Depth Cycling
'	start      end        step       step type
	1          8          2          EXPONENTIAL
'Test Type
	NORMAL
'END test setup
'ACCESS SPECIFICATIONS ====
'Access specification name,default assignment
	Mixed,NONE
'size,% of size,% reads,% random,delay,burst,align,reply
	4096,60,67,100,0,1,0,0
	8192,40,100,0,5,4,4096,512
'END access specifications
'MANAGER LIST ====
'Manager ID, manager name
	1,HOST
'Worker
	Worker 1
'Worker type
	DISK
'Default target settings for worker
'Number of outstanding IOs,test connection rate,transactions per connection,use fixed seed,fixed seed value
	16,DISABLED,1,ENABLED,42
'Disk maximum size,starting sector,Data pattern
	20480,0,1
'End default target settings for worker
'Assigned access specs
	Mixed
'End assigned access specs
'Target assignments
'Target
	E:
'Target type
	DISK
'End target
'Target
	F:
'Target type
	DISK
'End target
'End target assignments
'End worker
'End manager
'END manager list
Version 1.1.0
"""  # noqa: E501


def content(icf: Icf) -> dict[str, object]:
    """Everything but lines of the file and its version."""
    found = asdict(icf)
    del found["version"]
    for item in (
        *found["specifications"],
        *(worker for manager in found["managers"] for worker in manager["workers"]),
    ):
        del item["line_number"]
    return found


def plans(text: str):
    return plans_of_icf("x.icf", read_icf("x.icf", text))


def mistakes(text: str) -> list[tuple[int, str]]:
    with pytest.raises(InputError) as found:
        plans(text)
    return [(mistake.line, mistake.message) for mistake in found.value.mistakes]


@needs_corpus
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_IO_09_every_published_configuration_is_read_and_written_again(path: Path):
    read = read_icf(path.name, path.read_text(encoding="cp1252"))
    again = read_icf(path.name, write_icf(read.icf))
    assert content(again.icf) == content(read.icf) and again.warnings == []
    assert all(warning.line > 0 for warning in read.warnings)


@needs_corpus
@pytest.mark.parametrize("path", SAVED, ids=lambda path: path.stem)
def test_IO_09_what_the_original_saved_is_written_byte_for_byte(path: Path):
    """What Iometer 1.1.0 itself wrote after loading each of the files, its own name for the version
    apart.
    """
    text = (
        path.read_text(encoding="utf-8")
        .replace("RUN EXIT=0\n", "")
        .replace("VERSION", "Version 1.1.0 ")
    )
    assert write_icf(read_icf(path.name, text).icf) == text


@needs_corpus
def test_warnings_name_the_lines_of_files_that_strict_readers_reject():
    found = {
        path.name: read_icf(path.name, path.read_text(encoding="cp1252")).warnings for path in FILES
    }
    told = {
        name: [(item.line, item.message) for item in items]
        for name, items in found.items()
        if items
    }
    assert told["tp-qemu__iometer_multi_3disks.icf"] == [(266, "ends a target that was not begun")]
    assert (1, "names no version") in told["vmware_ioanalyzer_4k_100read_loose.icf"]
    assert (123, '"IOA-worker" begins without a tab') in told[
        "vmware_ioanalyzer_4k_100read_loose.icf"
    ]
    assert len(told) == 5


@needs_corpus
def test_every_configuration_that_loads_disks_becomes_plans_that_are_accepted(tmp_path: Path):
    """All but those without a worker, without a specification for one, or for networks only."""
    refused = set()
    for path in FILES:
        found = read_imports([path])
        if found.errors:
            refused.add(path.name.removeprefix("eilerjc_iometer__").removeprefix("fixtures__"))
            continue
        for number, plan in enumerate(found.iometer[0][1].plans):
            target = tmp_path / f"{path.stem}{number}.toml"
            target.write_text(plan.text, encoding="utf-8")
            read_plan(target)
    assert refused == {
        "builtin_specs_fragment.icf",
        "cov_single.icf",
        "icf_compat__nospec_error.icf",
        "kochaika_iSCSI__iometer.icf",
        "minimal.icf",
        "network_worker.icf",
    }


@needs_corpus
@pytest.mark.parametrize(("name", "depth"), [("200", 1), ("500", 2)])
def test_IO_02_IO_03_the_published_file_servers_are_what_their_paper_says(
    tmp_path: Path, name: str, depth: int
):
    """5 GiB, half an hour, no ramp, and the built-in pattern line by line."""
    found = read_imports([CORPUS / f"seed004_fileserver_{name}users.icf"])
    plan = tomllib.loads(found.iometer[0][1].plans[0].text)
    target = tmp_path / "plan.toml"
    target.write_text(found.iometer[0][1].plans[0].text)
    completed, known = read_plan(target), tmp_path / "known.toml"
    known.write_text(target.read_text().split("access = [")[0] + 'pattern = "file-server"\n')
    assert (
        completed.run.workloads[0].plain()["access"]
        == read_plan(known).run.workloads[0].plain()["access"]
    )
    assert plan["instance"][0]["file_mib"] == 5120 and plan["workload"][0]["outstanding"] == depth
    assert [phase["kind"] for phase in plan["phase"]] == ["prepare", "measure", "stop"]
    assert plan["phase"][1]["duration_s"] == 1800


def test_a_worker_becomes_a_workload_on_its_targets():
    found = tomllib.loads(plans(SMALL).plans[0].text)
    assert found["seed"] == 42
    assert [item["path"] for item in found["target"]] == ["/mnt/E", "/mnt/F"]
    assert [(item["file_mib"], item["data_pattern"]) for item in found["instance"]] == [
        (10, 1),
        (10, 1),
    ]
    workload = found["workload"][0]
    assert workload["instances"] == ["E", "F"] and workload["outstanding"] == 16
    assert workload["access"][1] == {
        "size_bytes": 8192,
        "share_percent": 40,
        "read_percent": 100,
        "random_percent": 0,
        "delay_ms": 5,
        "burst": 4,
        "align_bytes": 4096,
        "reply_bytes": 512,
    }
    assert [(phase["kind"], phase.get("duration_s")) for phase in found["phase"]] == [
        ("prepare", None),
        ("soak", 5),
        ("measure", 90),
        ("stop", None),
    ]


@pytest.mark.parametrize(
    ("test_type", "names"),
    [
        ("CYCLE_OUTSTANDING_IOS", ["depth 1", "depth 2", "depth 4", "depth 8"]),
        ("CYCLE_TARGETS", ["1 targets", "2 targets"]),
        (
            "CYCLE_OUTSTANDING_IOS_AND_TARGETS",
            [f"{t} targets, depth {d}" for t in (1, 2) for d in (1, 2, 4, 8)],
        ),
    ],
)
def test_cycles_are_nested_as_in_the_original(test_type: str, names: list[str]):
    """Targets outside, depth inside; a step multiplies where it is exponential."""
    found = plans(SMALL.replace("\tNORMAL", f"\t{test_type}"))
    assert [plan.name for plan in found.plans] == [f"Mixed, {name}" for name in names]
    last = tomllib.loads(found.plans[-1].text)
    assert len(last["target"]) == 2 and last["workload"][0]["outstanding"] in (8, 16)


def test_what_cannot_mean_anything_is_reported_at_once_with_its_line():
    broken = (
        SMALL.replace("8192,40", "8192,30")
        .replace("\t16,DISABLED", "\t0,DISABLED")
        .replace("\tNORMAL", "\tODD")
    )
    found = mistakes(broken)
    assert [line for line, _ in found] == [14, 18, 32]
    assert "has shares that make 90 %" in found[1][1]
    assert mistakes(SMALL.replace("\tMixed\n'End assigned", "\tOther\n'End assigned"))[0][
        1
    ].endswith('is given "Other", which is no specification of the file')
    assert mistakes(SMALL.replace("two", "t\0wo")) == [(4, "contains a NUL byte")]


def test_old_files_had_six_numbers_and_no_names():
    """Before 1998.05.21; transfers were aligned to their size, as the original does when it reads
    them.
    """
    assert has_unnamed_specifications("1998.02.01") and not has_unnamed_specifications("3.26.97")
    text = (
        "Version 1998.02.01\n'ACCESS SPECIFICATIONS\n'size, % of size, % reads, % random, delay, "
        "burst\n2048 100 67 100 0 1\n"
    )
    specification = read_icf("x.icf", text).icf.specifications[0]
    assert (
        specification.name == "2 KiB random 67% reads"
        and specification.lines[0].align_bytes == 2048
    )


def test_the_command_writes_plans_and_overwrites_nothing(tmp_path: Path):
    (tmp_path / "x.icf").write_bytes(SMALL.encode("utf-16"))
    done = plimsoll("import", tmp_path / "x.icf", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "note: paths were made of the names of targets" in done.stdout
    assert read_plan(tmp_path / "x.plan.toml").run.workloads[0].family == "files"
    again = plimsoll("import", tmp_path / "x.icf", cwd=tmp_path)
    assert again.returncode == 2 and "nothing is overwritten" in again.stderr


def worker(name: str, specifications: list[str], target: str = "E:", depth: int = 4) -> str:
    """A worker of a manager list."""
    lines = ["'Worker", f"\t{name}", "'Worker type", "\tDISK"]
    lines += ["'Default target settings for worker", "'Number of outstanding IOs", f"\t{depth}"]
    lines += ["'Disk maximum size,starting sector,Data pattern", "\t20480,0,1"]
    lines += ["'Assigned access specs", *(f"\t{item}" for item in specifications)]
    lines += ["'End assigned access specs", "'Target assignments", "'Target", f"\t{target}"]
    return "\n".join([*lines, "'Target type", "\tDISK", "'End target", "'End worker"]) + "\n"


def with_workers(*workers: str) -> str:
    """The small configuration with a second specification, and these workers."""
    log = "'Access specification name,default assignment\n\tLog,NONE\n'size,% of size\n"
    text = SMALL.replace("'END access", f"{log}\t65536,100,0,0,0,1,0,0\n'END access")
    start, end = text.index("'Worker\n"), text.index("'End manager\n")
    return text[:start] + "".join(workers) + text[end:]


def loaded(plan: str) -> list[tuple[list[str], int]]:
    """The instances of each workload of a plan, and the size of its first line."""
    found = tomllib.loads(plan)["workload"]
    return [(item["instances"], item["access"][0]["size_bytes"]) for item in found]


def test_workers_go_through_their_specifications_side_by_side():
    """As the original does (`Worker::SetAccess`): in each test every worker has the next one of its
    own list, and rests where there is none or it is Idle.

    Why: a log on one disk next to a database on another was made two tests of half the load each.
    """
    text = with_workers(
        worker("database", ["Mixed", "idle", "Mixed"]), worker("log", ["Log", "Log"], "F:")
    )
    found = plans(text).plans
    assert [plan.name for plan in found] == ["Mixed and Log", "Log", "Mixed"]
    assert [loaded(plan.text) for plan in found] == [
        [(["E"], 4096), (["F"], 65536)],
        [(["F"], 65536)],
        [(["E"], 4096)],
    ]


def test_specifications_are_named_in_any_case():
    """As the original compares them."""
    assert [plan.name for plan in plans(with_workers(worker("w", ["MIXED"]))).plans] == ["Mixed"]


def test_targets_whose_names_have_no_letters_of_ours_stay_apart():
    """Why: two disks became one file, with the load of both."""
    found = plans(
        with_workers(worker("a", ["Mixed"], "\u78c1\u76d8"), worker("b", ["Mixed"], "\u5377"))
    )
    assert loaded(found.plans[0].text) == [(["target"], 4096), (["target-2"], 4096)]


def test_workers_that_share_a_target_and_differ_are_told():
    text = with_workers(
        worker("a", ["Mixed"]), worker("b", ["Mixed"]).replace("20480,0,1", "40960,0,2")
    )
    found = plans(text)
    assert 'workers of "E:" differ in maximum size and data pattern' in " ".join(found.remarks)


def test_a_specification_alone_brings_what_one_target_sees(tmp_path: Path):
    """Why: three workers of depth 4 on one disk became a depth of 4."""
    three = [worker(name, ["Mixed"]) for name in "abc"]
    (tmp_path / "x.icf").write_text(with_workers(*three, worker("d", ["Mixed"], "F:")))
    found = access_of_icf(tmp_path / "x.icf")
    assert (found["outstanding"], found["workers"]) == (4, 3)


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_a_configuration_that_is_cut_off_is_told(share: float):
    """Why: without its last workers it is another load, and nothing said so."""
    lines = with_workers(worker("a", ["Mixed"]), worker("b", ["Log"])).splitlines(keepends=True)
    cut = "".join(lines[: int(len(lines) * share)])
    warnings = [item.message for item in read_icf("x.icf", cut).warnings]
    assert "ends in the middle of a section" in warnings
    whole = read_icf("x.icf", "".join(lines)).warnings
    assert whole == []


@pytest.mark.parametrize("number", ["\u00b2", "9" * 5000, "4096\u00b2", "-1", "1.5", ""])
@pytest.mark.parametrize(
    "place", ["4096,60,67,100", "0          1          30", "16,DISABLED", "20480,0,1"]
)
def test_what_is_no_number_is_a_mistake_of_the_file(place: str, number: str):
    """Why: digits above the line, and numbers of thousands of digits, ended the import."""
    first = place.replace(",", " ").split()[0]
    text = SMALL.replace(place, place.replace(first, number, 1), 1)
    if number != "" or "," in place:
        assert mistakes(text)
