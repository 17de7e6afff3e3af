"""What the keys of a plan may be: its top level, hosts, targets, instances and loads.

Phases, events and the ways of a load stand with what becomes of them.
"""

from __future__ import annotations

from plimsoll import settings
from plimsoll.arrays.presets import CHANGES
from plimsoll.inputs.schema import Field, Flag, ListOf, Number, Table, Tables, Text
from plimsoll.plan import events, lagged_copies, nodes, phases, repeats, scenarios, watch, windows
from plimsoll.plan import load as loads
from plimsoll.plan.threads import THREADS_MAX
from plimsoll.workloads import records
from plimsoll.workloads.families import BACKENDS
from plimsoll.workloads.files import fields as files
from plimsoll.workloads.homes import fields as homes
from plimsoll.workloads.mail import fields as mail
from plimsoll.workloads.store import fields as store

IO_METHODS = ("auto", "io_uring", "libaio", "threads")
DURABLE_WRITES = ("faster", "dsync", "fdatasync")

HOST_FIELDS = {"name": Field(Text(), required=True, meaning="what to call the machine")}

TARGET_FIELDS = {
    "name": Field(Text(), required=True, meaning="what to call the storage"),
    "path": Field(
        Text(),
        meaning="the directory that is put to the test, or a whole block device; missing only "
        "beside `modelled`",
    ),
    "data_path": Field(
        Text(),
        meaning="for a mail server or the server of a store: where its storage is mounted on this "
        "machine, to watch its device; nothing is written there",
    ),
    "modelled": Field(
        Text(),
        meaning="in the place of `path`, an array to be simulated: a preset, FILE.toml or "
        "FILE.toml#NAME; every figure is "
        "then MODELLED",
    ),
    "changes": Field(
        Table(CHANGES),
        meaning='figures of the modelled array to change: { level = "RAID 10", sets = [8] }',
    ),
    "log_path": Field(
        Text(), meaning="a directory for the logs, if they lie elsewhere; a block device needs one"
    ),
    "host": Field(Text(), meaning="the machine it is attached to; the first one if left out"),
    "design_used_percent": Field(
        Number(1, 100),
        meaning="how full the design fills the storage; a test far below it is warned of",
    ),
    "rated_endurance_tb": Field(
        Number(0.001, 1e9),
        meaning="TB its drives may be written in their life, for the share a run takes",
    ),
}

INSTANCE_FIELDS = {
    "name": Field(
        Text(), required=True, meaning="what to call the instance; also the name of its directory"
    ),
    "target": Field(Text(), meaning="the storage it lies on; the first one if left out"),
    "edition": Field(
        Text(tuple(settings.editions())), meaning="which Exchange generation's defaults to use"
    ),
    "backend": Field(Text(BACKENDS), meaning="what stands behind it"),
    "weight": Field(
        Number(0.001, 1000),
        meaning="its share of a load that works on several instances; 1 if left out",
    ),
    **nodes.INSTANCE_FIELDS,
    **records.INSTANCE_FIELDS,
    "page_kib": Field(Number(4, 32, whole=True), meaning="page size: 4, 8, 16 or 32"),
    "record_bytes": Field(Number(300, 8000, whole=True), meaning="bytes of a record"),
    "vacancy_percent": Field(
        Number(0, 90, whole=True),
        meaning="share of leaf pages with room for another record when prepared",
    ),
    "compressible_percent": Field(
        Number(0, 100, whole=True), meaning="share of the content a compressor could remove"
    ),
    "duplicate_percent": Field(
        Number(0, 99, whole=True),
        meaning="share of the prepared pages that are duplicates: each is the same in all "
        "databases of the plan that state this",
    ),
    "cache_mib_min": Field(
        Number(1, 1024 * 1024, whole=True), meaning="the cache never shrinks below this"
    ),
    "cache_mib_max": Field(
        Number(1, 1024 * 1024, whole=True),
        meaning="the cache of the instance never grows above this; the edition's for each database "
        "if left out",
    ),
    "log_framing": Field(
        Text(("sector_512", "segment_4096")), meaning="how log records are framed on disk"
    ),
    "checkpoint_depth_mib": Field(
        Number(1, 65536, whole=True), meaning="log that recovery may need"
    ),
    "circular_log": Field(Flag(), meaning="whether logs before the checkpoint are deleted"),
    "copies": Field(
        Number(1, 16, whole=True),
        meaning="copies of each database; each further one reads the log back",
    ),
    "maintenance": Field(Flag(), meaning="whether background maintenance runs"),
    "maintenance_throttle_ms": Field(
        Number(0, 60_000, whole=True), meaning="its pause before each read"
    ),
    "maintenance_read_kib": Field(Number(4, 4096, whole=True), meaning="length of its reads"),
    "page_images": Field(Flag(), meaning="whether torn pages can be repaired from the log"),
    "hold_checkpoint": Field(
        Flag(),
        meaning="whether the checkpoint stays, so that a crash leaves all the log; yes where a "
        "phase recovers",
    ),
    "long_reader_s": Field(
        Number(1, 86400, whole=True),
        meaning="for how long a transaction stays open next to the load, and reads the same rows "
        "again and again; none does if left out",
    ),
    "version_store_mib": Field(
        Number(1, 65536, whole=True),
        meaning="old versions of rows kept for open transactions; changes wait where it is full",
    ),
    **lagged_copies.INSTANCE_FIELDS,
    **files.INSTANCE_FIELDS,
    **homes.INSTANCE_FIELDS,
    **store.INSTANCE_FIELDS,
    **mail.INSTANCE_FIELDS,
}

WORKLOAD_FIELDS = {
    "name": Field(Text(), required=True, meaning="what to call the load"),
    "instances": Field(
        ListOf(Text(), 1), meaning="the instances it works on; all of them if left out"
    ),
    "load": Field(
        Table(loads.LOAD_FIELDS),
        meaning="how hard it presses, in exactly one way: { sessions = 3 }",
    ),
    "start_after_s": Field(
        Number(0, 86400),
        meaning="how long after the first of the loads it begins; what is measured counts from the "
        "last",
    ),
    "window": Field(
        Table(windows.WINDOW_FIELDS),
        meaning="what it makes at least and at most in every window of the measured time; outside "
        "of it the load was not as planned: { iops_per_user = [0.60, 0.75] }",
    ),
    **records.WORKLOAD_FIELDS,
    **files.WORKLOAD_FIELDS,
    **homes.WORKLOAD_FIELDS,
    **store.WORKLOAD_FIELDS,
    **mail.WORKLOAD_FIELDS,
}

PLAN_FIELDS = {
    "schema_version": Field(
        Number(1, 1, whole=True), required=True, meaning="write schema_version = 1"
    ),
    "name": Field(Text(), default="run", meaning="what to call the run"),
    "description": Field(Text(), default=None, meaning="a sentence for the report"),
    "test": Field(
        Text(tuple(settings.QUALIFYING_S)),
        default=settings.RUN_DEFAULTS["test"],
        meaning="kind of test",
    ),
    "limits": Field(
        Text(tuple(settings.limits()["sets"])),
        default=settings.RUN_DEFAULTS["limits"],
        meaning="limit set",
    ),
    "required_iops": Field(
        Number(0, 1e9), default=None, meaning="database IOPS that must be reached"
    ),
    "margin_percent": Field(
        Number(0, 50),
        default=0,
        meaning="how much of `required_iops` may be lacking; stands in the headline",
    ),
    "stated_limits": Field(
        ListOf(Text()),
        default=[],
        meaning='further limits on fields of the summary: ["log_write_latency_ms_p99<5"]',
    ),
    "mailbox_profile": Field(
        Table(scenarios.MAILBOX_FIELDS),
        meaning="sizes and load from users, quota and IOPS of a user",
    ),
    "disk_throughput": Field(
        Table(scenarios.THROUGHPUT_FIELDS), meaning="sizes and load from shares of the volumes"
    ),
    "source": Field(
        Text(("any", "new", "existing", "restored")),
        meaning="databases that are there, or new ones where none are (any); always new ones; only "
        "those that are there; a saved set",
    ),
    "restore_from": Field(
        Text(),
        meaning="the saved set that is restored before the run; see `plimsoll prepare --save`",
    ),
    "published": Field(
        Text(tuple(row["id"] for row in settings.published_results()["result"])),
        meaning="the result of a paper that stands next to this run in the report",
    ),
    "seed": Field(
        Number(0, 2**53, whole=True),
        default=settings.RUN_DEFAULTS["seed"],
        meaning="decides keys and content",
    ),
    "max_iops": Field(
        Number(1, 1e9),
        meaning="reads and writes per second the run does at most, on shared storage",
    ),
    "max_mib_per_s": Field(
        Number(1, 1e9), meaning="MiB per second the run reads and writes at most"
    ),
    "stop_if": Field(
        ListOf(Text()),
        default=[],
        meaning="conditions that stop the run, as in the command's --stop-if",
    ),
    "io_method": Field(
        Text(IO_METHODS), default=settings.RUN_DEFAULTS["io_method"], meaning="how I/O is done"
    ),
    "threads": Field(
        Number(1, THREADS_MAX, whole=True, words=("auto",)),
        default=settings.RUN_DEFAULTS["threads"],
        meaning="threads that carry the instances; auto: one for each, at most the processors less "
        "one",
    ),
    "pin": Field(Flag(), default=False, meaning="keep each thread on a processor of its own"),
    "durable_writes": Field(
        Text(DURABLE_WRITES),
        default=settings.RUN_DEFAULTS["durable_writes"],
        meaning="how a durable write reaches stable storage: with RWF_DSYNC, by a fdatasync after "
        "it, or the faster of both",
    ),
    "sample_interval_ms": Field(
        Number(10, 60_000, whole=True), default=settings.RUN_DEFAULTS["sample_interval_ms"]
    ),
    "hung_after_ms": Field(
        Number(100, 3_600_000, whole=True), default=settings.RUN_DEFAULTS["hung_after_ms"]
    ),
    "sessions_max": Field(
        Number(1, 1_000_000, whole=True),
        default=settings.ARRIVALS["sessions_max"],
        meaning="open transactions at once, over all loads that arrive by a schedule",
    ),
    "jetstress_fields": Field(
        ListOf(Text()),
        default=[],
        meaning="fields of a JetstressConfig.xml that mean nothing here, kept for its export",
    ),
    "host": Field(Tables(HOST_FIELDS, unique="name"), default=[], meaning="machines"),
    "node": Field(
        Tables(nodes.NODE_FIELDS, unique="name", count_maximum=nodes.NODES_MAX),
        default=[],
        meaning="nodes of a cluster that carry instances and can die",
    ),
    "quorum": nodes.QUORUM,
    "target": Field(
        Tables(TARGET_FIELDS, 1, unique="name"), required=True, meaning="storage under test"
    ),
    "instance": Field(
        Tables(INSTANCE_FIELDS, 1, unique="name", count_maximum=settings.INSTANCES_MAX),
        required=True,
        meaning="engine instances",
    ),
    "workload": Field(Tables(WORKLOAD_FIELDS, unique="name"), default=[], meaning="loads"),
    "phase": Field(Tables(phases.PHASE_FIELDS), default=[], meaning="what happens, in order"),
    "watch": Field(
        Tables(watch.WATCH_FIELDS, unique="name", count_maximum=watch.SERVERS_MAX),
        default=[],
        meaning="servers on this machine whose processors and memory are watched; those that the "
        "plan speaks to are watched by themselves",
    ),
    "repeat": Field(
        Table(repeats.REPEAT_FIELDS),
        meaning="how often it is carried out, and what is done before each run: { runs = 3 }",
    ),
    "event": Field(
        Tables(events.EVENT_FIELDS, unique="name", count_maximum=events.EVENTS_MAX),
        default=[],
        meaning="what is degraded while it runs, and undone",
    ),
}
