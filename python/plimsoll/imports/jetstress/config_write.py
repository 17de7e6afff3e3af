"""A plan to a JetstressConfig.xml.

What the plan says, and the fields it kept from the file it was made of.

Any plan can be written, not only an imported one: fields nobody stated get the values of the
published files. Limits: the tool knows one load, one mix and one page size for all instances, so a
plan with several is refused; a rate in transactions has no field; directories are written as they
are, because only the user knows the drive letters.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from plimsoll import settings
from plimsoll.documents import phase_actions
from plimsoll.documents import run_spec as spec
from plimsoll.documents.plan import Plan
from plimsoll.files.paths import StrPath
from plimsoll.imports.jetstress.config_fields import Fields, parse_field_lines, to_xml
from plimsoll.imports.jetstress.config_read import DESIGN, JET, LOADED, MIX, PROFILE
from plimsoll.inputs.mistakes import InputError, Mistake
from plimsoll.inputs.schema import READERS, require_kind
from plimsoll.inputs.toml_lines import LocatedFile, read_located
from plimsoll.plan.complete import complete_plan
from plimsoll.plan.load import has_stages

#: What the published files of 2013 say where a plan has nothing to say.
USUAL: Fields = {
    f"{DESIGN}/MultiHostBreak": "false",
    f"{DESIGN}/BinaryPerfLog": "true",
    f"{DESIGN}/RunDatabaseMaintenanceSoftRecovery": "false",
    f"{DESIGN}/ContinueOnErrors": "false",
    f"{DESIGN}/UseEseCounters": "true",
    f"{DESIGN}/BackupToDisk": "false",
    f"{DESIGN}/LogFilesToReplay": "500",
    f"{DESIGN}/LogFilesToChecksum": "500",
    f"{DESIGN}/LogInterval": "15000",
    f"{DESIGN}/LogInterval2": "5000",
    f"{DESIGN}/OperationMix/@LockOps": "true",
    f"{DESIGN}/OutputPath": ".",
    f"{DESIGN}/MaximumLatencyErrors": "6",
    f"{PROFILE}/TransPerSec": "0",
    f"{PROFILE}/ThroughputPercentage": "100",
    f"{PROFILE}/CapacityPercentage": "100",
    f"{PROFILE}/DatabaseSource": "New",
    f"{PROFILE}/LongPadLength": "2000",
    f"{PROFILE}/ShortPadLength": "200",
    f"{PROFILE}/DatabaseSpaceReserved": "25",
    f"{JET}/LogFileSize": "1024",
    f"{JET}/MaxVerPages": "8192",
}

#: The tool's kind of each test; a test for the highest rate is a performance test that tunes, a
#: checksum follows any test.
TYPES = {
    "performance": "Performance",
    "stress": "Stress",
    "maximum": "Performance",
    "backup": "DatabaseBackup",
    "recovery": "SoftRecovery",
    "checksum": "Performance",
}
OF_LOADS = ("Duration", "VerifyChecksum", "PreloadJetCache", "SuppressTuning")


def export_config(path: StrPath) -> tuple[str, list[str]]:
    """The configuration file of a plan file, and what it could not say.

    Raises:
        InputError: the plan has mistakes, or the tool has no words for it.
    """
    path = Path(path)
    document = read_located(path)
    require_kind(document, ("plan",), READERS)
    plan = complete_plan(document)
    run = plan.run
    _refuse_several(document, run)
    kept = parse_field_lines(
        document.data.get("jetstress_fields", []),
        document.name,
        document.line_of(("jetstress_fields",)),
    )
    remarks: list[str] = []
    margin = {f"{PROFILE}/MarginIops": f"{plan.judgement.margin_percent / 100:g}"}
    fields: Fields = {} if kept else {**USUAL, **margin}
    fields |= kept
    fields |= _where_it_means_something(_design(plan, kept), kept, plan)
    stated: Mapping[str, float] = next(iter(document.data.get("workload", [{}]))).get("load", {})
    fields |= _where_it_means_something(
        _load(run.record_workloads[0].load, stated, fields, remarks), kept, plan
    )
    fields |= _profile(run, fields, remarks)
    fields |= _jet(run.record_instances[0], kept)
    return to_xml(fields), remarks


def _where_it_means_something(found: Fields, kept: Fields, plan: Plan) -> Fields:
    """Fields of a load that is measured for a time.

    A test that runs until it is done has them as the file had them.
    """
    if plan.judgement.test in LOADED:
        return found
    return {
        path: value
        for path, value in found.items()
        if not (path in kept and path.rpartition("/")[2] in OF_LOADS)
    }


def _refuse_several(document: LocatedFile, run: spec.RunSpec) -> None:
    mistakes = []
    if len(run.record_instances) != len(run.instances):
        text, hint = "holds files", "the tool knows databases; export a plan of these"
        raise InputError(
            document.name, [Mistake(document.line_of(("instance",)), "backend", text, hint)]
        )
    if len(run.workloads) != 1:
        mistakes.append(
            Mistake(
                document.line_of(("workload",)),
                "workload",
                f"stands {len(run.workloads)} times",
                "the tool knows one load; export a plan with one",
            )
        )
    for key in ("page_bytes", "copies_count", "circular_log"):
        if len({getattr(instance, key) for instance in run.instances}) > 1:
            mistakes.append(
                Mistake(
                    document.line_of(("instance",)),
                    key,
                    "differs between instances",
                    "the tool has one value for all",
                )
            )
    if isinstance(run.record_workloads[0].load, spec.RateLoad):
        mistakes.append(
            Mistake(
                document.line_of(("workload",)),
                "load",
                "is a rate of transactions",
                "the tool has no such field; write sessions or users",
            )
        )
    elif has_stages(run.record_workloads[0]):
        mistakes.append(
            Mistake(
                document.line_of(("workload",)),
                "load",
                "goes through stages",
                "the tool has one rate for the whole test; leave the stages out",
            )
        )
    if mistakes:
        raise InputError(document.name, mistakes)


def _design(plan: Plan, kept: Fields) -> Fields:
    run, workload = plan.run, plan.run.record_workloads[0]
    duration_s: float = settings.QUALIFYING_DURATION_S
    cache_percent = settings.CACHE_WARM_PERCENT
    found: Fields = {}
    for phase in run.phases:
        match phase.action:
            case phase_actions.Measure():
                duration_s = phase.action.duration_s
            case phase_actions.WarmUp():
                cache_percent = phase.action.cache_percent
            case phase_actions.GenerateLogs():
                found[f"{DESIGN}/LogFilesToReplay"] = str(phase.action.logs_count)
    found[f"{DESIGN}/Duration"] = duration_text(duration_s)
    found[f"{DESIGN}/Description"] = plan.description or ""
    found[f"{DESIGN}/VerifyChecksum"] = _flag(
        any(phase.action.kind == "checksum" for phase in run.phases)
    )
    found[f"{DESIGN}/RunDatabaseMaintenancePerformance"] = _flag(
        any(item.maintenance for item in run.record_instances)
    )
    found[f"{DESIGN}/PreloadJetCache"] = f"{cache_percent / 100:g}"
    found[f"{DESIGN}/SluggishSessions"] = f"{workload.sluggish:g}"
    if workload.locality:
        found[f"{DESIGN}/BatchUpdates"] = f"{workload.locality.batch_operations}"
    if f"{DESIGN}/Type" not in kept:
        # A kind of test that was kept, because there is none of it here, stays what it was.
        found[f"{DESIGN}/Type"] = TYPES[plan.judgement.test]
    return found | {
        f"{DESIGN}/OperationMix/{name}": f"{getattr(workload.mix, key):g}"
        for key, name in MIX.items()
    }


def duration_text(seconds: float) -> str:
    """A duration as the tool writes it.

    >>> duration_text(7200), duration_text(90061)
    ('P0Y0M0DT2H0M0S', 'P0Y0M1DT1H1M1S')
    """
    days, rest = divmod(round(seconds), 86400)
    return f"P0Y0M{days}DT{rest // 3600}H{rest // 60 % 60}M{rest % 60}S"


def _load(
    load: spec.LoadSpec, stated: Mapping[str, float], fields: Fields, remarks: list[str]
) -> Fields:
    """How hard it presses; what the plan leaves to the edition stays as the file had it."""
    found: Fields = {}
    found[f"{DESIGN}/SuppressTuning"] = _flag(isinstance(load, spec.SessionsLoad))
    if isinstance(load, (spec.SessionsLoad, spec.SearchLoad)):
        if "sessions" in stated or f"{PROFILE}/ThreadCount" not in fields:
            found[f"{PROFILE}/ThreadCount"] = str(load.sessions)
        return found
    users, rate = stated.get("users"), stated.get("iops_per_user")
    if users is None:
        users = 1
        remarks.append(
            "the plan's rate is written as that of one mailbox, because the tool asks for mailboxes"
        )
    if rate is None and isinstance(load, spec.TargetIopsLoad):
        rate = load.target_iops / users
    found |= {f"{PROFILE}/MailboxCount": f"{users:g}", f"{PROFILE}/MailboxIops": f"{rate:g}"}
    found[f"{PROFILE}/ThroughputPercentage"] = f"{stated.get('throughput_percent', 100):g}"
    return found | {f"{PROFILE}/DatabaseSizing": "Profile"}


def _profile(run: spec.RunSpec, fields: Fields, remarks: list[str]) -> Fields:
    databases, size_mib = (
        sum(len(item.databases) for item in run.instances),
        run.stored_bytes() / 2**20,
    )
    found: Fields = {f"{PROFILE}/DatabaseCopyCount": str(run.record_instances[0].copies_count)}
    count, quota = (
        float(fields.get(f"{PROFILE}/{name}") or 0) for name in ("MailboxCount", "MailboxQuota")
    )
    # Sizes are rounded to whole MiB on the way in, so a quota that agrees within that is left as it
    # was.
    if count and abs(quota * count - size_mib) > databases:
        found[f"{PROFILE}/MailboxQuota"] = f"{size_mib / count:g}"
    elif not count:
        remarks.append(
            "the file does not say how large the databases are: the tool sizes them by mailboxes "
            "or by a percentage"
        )
    base = f"{PROFILE}/EseInstances/EseInstance"
    for number, item in enumerate(run.instances, 1):
        kept_bias = fields.get(f"{base}[{number}]/@IopsBias")
        is_number = (
            kept_bias is not None
            and kept_bias.replace(".", "", 1).isascii()
            and kept_bias.replace(".", "", 1).isdigit()
        )
        # The file's own digits stay as long as they say the same.
        if kept_bias is not None and not (is_number and float(kept_bias) == (item.weight or 1)):
            found[f"{base}[{number}]/@IopsBias"] = f"{item.weight or 1:g}"
    kept_count = len({path.split("]")[0] for path in fields if path.startswith(base)})
    if kept_count != len(run.instances):
        if kept_count:
            remarks.append(
                "the plan has another number of instances than the file it was made of; its own "
                "paths are written"
            )
            for path in [path for path in fields if path.startswith(base)]:
                del fields[path]
        for number, item in enumerate(run.instances, 1):
            found[f"{base}[{number}]/@IopsBias"] = f"{item.weight or 1:g}"
            for index in range(1, len(item.databases) + 1):
                found[f"{base}[{number}]/DatabasePaths/Path[{index}]"] = item.directory
            found[f"{base}[{number}]/LogPath"] = item.log_directory
        remarks.append("paths are those of this machine; write the drive letters of the other one")
    return found


def _jet(instance: spec.RecordsInstance, kept: Fields) -> Fields:
    found = {
        f"{JET}/DatabasePageSize": str(instance.page_bytes),
        f"{JET}/CircularLog": str(int(instance.circular_log)),
    }
    if instance.maintenance and not (kept.get("JetstressVersionGenerated") or "15").startswith(
        "14"
    ):
        found[f"{JET}/DBMThrottling"] = f"{instance.maintenance.throttle_ms:g}"
    return found


def _flag(value: bool) -> str:
    return "true" if value else "false"
