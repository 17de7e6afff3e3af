"""What a run will take before anything is written.

Files, space, bytes written, share of the drive's endurance, time.

What depends on the storage is estimated at a stated rate and called "about"; a phase that waits for
a condition gets its longest time. What cannot be known is "unknown". A run beyond ten minutes, or
one that takes more than a tenth of the free space, needs a yes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from plimsoll import settings
from plimsoll.arrays import text as words
from plimsoll.databases import kept_backups, preflight
from plimsoll.databases.consent import Consent
from plimsoll.documents import phase_actions
from plimsoll.documents import run_spec as spec
from plimsoll.documents.plan import Plan, Source
from plimsoll.documents.run_spec import EngineInstance, MailInstance
from plimsoll.files import folder
from plimsoll.files.paths import StrPath
from plimsoll.host.probe import describe
from plimsoll.live.listener import Listener
from plimsoll.live.progress import duration_in_words
from plimsoll.pipeline.plans import require_plan
from plimsoll.plan.capacity_search import stated_ceilings
from plimsoll.plan.fill_level import far_below_design
from plimsoll.plan.threads import threads_of
from plimsoll.plan.windows import figure_of
from plimsoll.run.before_run import commands_of
from plimsoll.run.left_degraded import require_nothing_degraded
from plimsoll.run.staging import commands_in_words, obstacles, targets_of
from plimsoll.workloads.mail.fields import account_names, is_storage, mean_bytes, messages_filled
from plimsoll.workloads.mail.moves import MovesForecast, forecast_moves

LARGE_S = 600
LARGE_SHARE = 0.1
#: Only for the forecast; while the run goes on the measured rate takes its place.
ASSUMED_MIB_PER_S = 150
#: Mails that a small server takes in from several sessions.
ASSUMED_MAILS_PER_S = 200
STOP_S = 5.0
#: A target of database I/O is aimed at in windows, until two that follow each other agree.
CALIBRATION_WINDOWS = 2
TB = 1000**4


@dataclass(frozen=True)
class PhaseForecast:
    """One phase before it begins.

    Attributes:
        name: as in the plan.
        seconds: how long it takes, or at most takes.
        how: "exactly", "about" or "at most".
        bytes_written: what is written for certain; load writes what the storage lets it.
        calibrating_s: how long, behind these seconds, the I/O of a transaction is likely measured.
        is_search: whether it looks for a rate.
    """

    name: str
    seconds: float
    how: str
    bytes_written: int | None
    calibrating_s: float = 0.0
    is_search: bool = False

    @property
    def likely_s(self) -> float:
        """What it is likely to take.

        A phase that waits usually need not wait; how soon a search ends, no one knows.
        """
        is_counted = self.how != "at most" or self.is_search
        return self.calibrating_s + (self.seconds if is_counted else 0.0)

    def in_words(self) -> str:
        """Its time for people."""
        told = f"{self.how} {duration_in_words(self.seconds)}"
        if not self.calibrating_s:
            return told
        calibrating = duration_in_words(self.calibrating_s)
        return f"{told}, then about {calibrating} to measure the I/O of a transaction"


def phases(plan: Plan, expected: preflight.Preflight) -> list[PhaseForecast]:
    """Every phase with its time and what it writes."""
    run = plan.run
    mib_per_s = min(ASSUMED_MIB_PER_S, run.max_mib_per_s or ASSUMED_MIB_PER_S)
    found = []
    to_calibrate = calibrated_s(run)
    for phase in run.phases:
        action = phase.action
        calibrating_s = 0.0
        seconds: float
        written: int | None = None
        match action:
            case phase_actions.Prepare():
                written = expected.bytes_to_prepare
                filled = sum(messages_filled(server) for server in run.mail_instances)
                seconds, how = written / 2**20 / mib_per_s + filled / ASSUMED_MAILS_PER_S, "about"
            case phase_actions.WarmUp():
                seconds, how = action.timeout_s, "at most"
                # Once measured, it stays.
                calibrating_s = sum(to_calibrate.pop(name, 0.0) for name in phase.workloads)
            case phase_actions.Precondition():
                seconds, how = action.round_s * action.rounds_max, "at most"
            case phase_actions.GenerateLogs():
                seconds, how = action.logs_count * settings.GENERATE_S_PER_LOG, "about"
            case phase_actions.Recover():
                seconds, how = run.logs_count() * settings.REPLAY_S_PER_LOG, "about"
            case phase_actions.Backup():
                seconds, how = run.stored_bytes() / 2**20 / mib_per_s, "about"
                written = run.stored_bytes() if action.to else 0
            case phase_actions.Checksum() | phase_actions.Restore():
                seconds, how, written = run.stored_bytes() / 2**20 / mib_per_s, "about", 0
            case phase_actions.Stop() | phase_actions.Audit():
                seconds, how = STOP_S, "about"
            case phase_actions.Soak() if action.until_utc_s:
                # However long the phases before it take, it ends at its moment.
                seconds, how = max(0.0, action.until_utc_s - time.time()), "at most"
            case phase_actions.Search():
                seconds, how = action.duration_s, "at most"
            case phase_actions.Soak() | phase_actions.Measure():
                seconds, how = action.duration_s, "exactly"
        searches = isinstance(action, phase_actions.Search)
        found.append(
            PhaseForecast(phase.name, float(seconds), how, written, calibrating_s, searches)
        )
    return found


def calibrated_s(run: spec.RunSpec) -> dict[str, float]:
    """How long the I/O of a transaction is likely measured for each load that aims at database
    I/O, one load after the other, by their names.
    """
    aiming = {
        workload.name: workload.load.calibrate_s
        for workload in run.workloads
        if isinstance(workload.load, spec.TargetIopsLoad)
    }
    return dict.fromkeys(aiming, CALIBRATION_WINDOWS * max(aiming.values(), default=0.0))


def total_s(plan: Plan, expected: preflight.Preflight) -> float:
    """What the run is likely to take.

    Waiting for a warm cache is left out, because it usually takes seconds.
    """
    return sum(phase.likely_s for phase in phases(plan, expected))


def series_s(plan: Plan, expected: preflight.Preflight, times: int) -> float:
    """What so many runs are likely to take, with the rest before each of them.

    Databases are prepared for the first, and for all where the plan wants new ones.
    """
    once = total_s(plan, expected)
    again = (
        0.0
        if (plan.source or Source(kind="any", from_=None)).kind == "new"
        else sum(
            forecast.likely_s
            for forecast, phase in zip(phases(plan, expected), plan.run.phases, strict=True)
            if phase.action.kind == "prepare"
        )
    )
    settle_s = 0.0 if plan.repeat is None else plan.repeat.settle_s
    return times * (once + settle_s) - (times - 1) * again


def total_in_words(plan: Plan, expected: preflight.Preflight, times: int = 1) -> str:
    """What so many runs are likely to take, and what is not counted in it."""
    warm = any(phase.action.kind == "warm_up" for phase in plan.run.phases)
    more = ", waiting for warm caches not counted" if warm else " in all"
    return f"about {duration_in_words(series_s(plan, expected, times))}{more}"


def never_warm(run: spec.RunSpec) -> list[str]:
    """A sentence where warming up may take all of its time, because databases do not fill their
    caches.
    """
    warm_up = next(
        (phase.action for phase in run.phases if isinstance(phase.action, phase_actions.WarmUp)),
        None,
    )
    if warm_up is None:
        return []
    share = (warm_up.cache_percent or 0) / 100
    small = [
        f"{instance.name} ({size >> 20} of {instance.cache_bytes_max >> 20} MiB)"
        for instance in run.instances
        if isinstance(instance, EngineInstance)
        and (size := sum(database.size_bytes for database in instance.databases))
        < share * instance.cache_bytes_max
    ]
    if not small:
        return []
    return [
        f"databases smaller than their cache: {', '.join(small)}; warm_up waits for full caches, "
        f"up to {duration_in_words(warm_up.timeout_s)}, and the storage is hardly read; make the "
        f"databases larger, or the cache smaller (--cache-mib, `cache_mib_max`)"
    ]


def later_s(plan: Plan, expected: preflight.Preflight) -> dict[str, float]:
    """For each phase, what the phases after it are likely to take."""
    found, total = {}, 0.0
    for phase in reversed(phases(plan, expected)):
        found[phase.name] = total
        total += phase.likely_s
    return found


def endurance(plan: Plan, expected: preflight.Preflight) -> list[str]:
    """The share of the rated endurance that preparing takes, for each target that states one."""
    rated, run, lines = plan.judgement.rated_endurance_tb, plan.run, list[str]()
    for target in run.targets:
        name = target.name
        if run.modelled is not None or not is_storage(target.path):
            continue
        if name not in rated:
            lines.append(
                f"{name}: unknown; state `rated_endurance_tb` of its drives in the plan to have it "
                f"computed"
            )
            continue
        names = [item.name for item in run.instances if item.target == name]
        share = expected.bytes_to_prepare / (rated[name] * TB)
        what = (
            "preparing"
            if len(run.targets) == 1
            else f"preparing {', '.join(names)} (all targets counted)"
        )
        lines.append(
            f"{name}: {what} takes {share:.3%} of {rated[name]:g} TB; the load adds what the "
            f"storage lets it"
        )
    return lines


def bounds(plan: Plan) -> list[str]:
    """What keeps the run from pressing harder or longer, if anything does."""
    lines = [f"  at most {ceiling}" for ceiling in stated_ceilings(plan)]
    lines += [f"  stops when {condition}" for condition in plan.stop_if]
    return ["", "bounds", *lines] if lines else []


def windows(plan: Plan) -> list[str]:
    """What each load must make to be the one that was planned; nothing where none is judged."""
    of_loads = plan.judgement.load_windows
    lines = [
        f"  {load.name}: {window.least:g} to {window.most:g} {figure_of(load, window).words} in "
        f"every {window.over_s:g} s"
        for load in plan.run.workloads
        if (window := of_loads.get(load.name)) is not None
    ]
    return ["", "windows of loads", *lines] if lines else []


def threads(plan: Plan) -> list[str]:
    """How many threads carry the instances, and what that cannot be helped by."""
    run, usable = plan.run, len(os.sched_getaffinity(0))
    if run.modelled:
        return ["1, in virtual time"]
    count, places = run.thread_count, threads_of(run.instances, run.thread_count)
    if count == 1:
        lines = [
            f"1 carries {_instances_in_words(len(run.instances))}; this machine has {usable} "
            f"processors"
        ]
    else:
        parts = sorted({places.count(thread) for thread in range(count)})
        each = " to ".join(dict.fromkeys((str(parts[0]), str(parts[-1]))))
        lines = [
            f"{count} carry {_instances_in_words(len(run.instances))}, {each} each; this machine "
            f"has {usable} processors"
        ]
    if (run.threads or 1) > count:
        lines.append(
            f"{run.threads} were asked for, but one instance is carried by one thread: use as many "
            f"instances"
        )
    elif len(run.instances) == 1:
        lines.append(
            "one instance is carried by one thread: use several where one thread is too slow for "
            "the storage"
        )
    if count > usable:
        lines.append(
            f"{count} threads on {usable} processors wait for each other; the load generator may "
            f"be the limit"
        )
    return lines


def _moves_in_words(moves: MovesForecast) -> str:
    return (
        f"{moves.workload}: about {moves.count:,} mailboxes, {moves.size_bytes >> 20:,} MiB read, "
        f"written again and deleted, with about {moves.log_bytes >> 20:,} MiB of log"
    )


def _instances_in_words(count: int) -> str:
    return "1 instance" if count == 1 else f"{count} instances"


def as_lines(plan: Plan, expected: preflight.Preflight, times: int = 1) -> list[str]:
    """The whole forecast of so many runs for people."""
    lines = [f"plan {plan.name}", "", "files"]
    for instance in plan.run.instances:
        if isinstance(instance, MailInstance):
            lines += [f"  {line}" for line in mail_server(instance)]
            continue
        if not instance.is_ours:
            lines.append(f"  {instance.name}: kept by its own program; made there if nothing is")
            continue
        state = "to be prepared"
        if instance.name in expected.recovered:
            state = "to be recovered"
        elif instance.name in expected.restored:
            state = "to be restored"
        elif instance.name in expected.reused:
            state = "there already"
        for database in instance.databases:
            path = preflight.database_path(instance, database)
            lines.append(f"  {path}  {database.size_bytes >> 20} MiB, {state}")
        if isinstance(instance, EngineInstance):
            reserve = f"logs and checkpoint, about {preflight.LOG_RESERVE_BYTES >> 20} MiB"
            lines.append(f"  {instance.log_directory}/  {reserve}")
    kept = kept_backups.folder_of(plan.run)
    if kept is not None:
        lines.append(f"  {kept}/  copies of all databases, and their log")
    lines += ["", "space"]
    lines += [
        f"  {mount}: {needed >> 20:,} MiB needed with room for growth, "
        f"{expected.bytes_free[mount] >> 20:,} MiB free "
        f"({needed / max(expected.bytes_free[mount], 1):.0%})"
        for mount, needed in expected.bytes_needed.items()
    ] or ["  nothing new"]
    lines += ["", "bytes written"]
    certain = sum(phase.bytes_written or 0 for phase in phases(plan, expected))
    by = "preparing" if kept is None else "preparing and by the backup"
    lines.append(
        f"  {certain >> 20:,} MiB for certain, by {by}; the load writes what the storage lets it"
    )
    moves = list(forecast_moves(plan.run))
    if moves:
        lines += ["", "mailbox moves", *(f"  {line}" for line in map(_moves_in_words, moves))]
    lines += [*windows(plan), *bounds(plan)]
    lines += ["", "threads", *(f"  {line}" for line in threads(plan))]
    if plan.events:
        lines += ["", "staged events", *commands_in_words(plan.events, targets_of(plan))]
    if plan.repeat is not None:
        settles = plan.repeat.settle_s
        rest = f"; before each it settles for {settles:g} s" if settles else ""
        lines += ["", f"repeated {times} times{rest}", *commands_of(plan.repeat)]
    if worn := endurance(plan, expected):
        lines += ["", "share of the rated endurance", *(f"  {line}" for line in worn)]
    lines += ["", "time"]
    lines += [f"  {phase.name:<12}{phase.in_words()}" for phase in phases(plan, expected)]
    lines.append(f"  {'total':<12}{total_in_words(plan, expected)}")
    if times > 1:
        lines.append(f"  {f'{times} runs':<12}{total_in_words(plan, expected, times)}")
    return lines


def mail_server(server: MailInstance) -> list[str]:
    """What happens to a mail server, in sentences."""
    places = ", ".join(f"{item.imap} (mail to {item.deliver})" for item in server.databases)
    lines = [f"{server.name}: {server.backend} at {places}; accounts {account_names(server)}"]
    if filled := messages_filled(server):
        size = filled * mean_bytes(server) / 2**20
        lines.append(
            f"{server.name}: empty accounts are marked as ours and filled: {filled:,} messages, "
            f"about {size:,.0f} MiB"
        )
    else:
        lines.append(
            f"{server.name}: only accounts with our marker are used; --init marks and fills empty "
            f"ones"
        )
    return lines


def _kept_in(plan: Plan, directory: str) -> str:
    """What a directory of ours holds."""
    homes = [item for item in plan.run.instances if isinstance(item, spec.HomesInstance)]
    return "homes" if directory in [item.directory for item in homes] else "databases"


def deletions_in_words(plan: Plan, found: preflight.Preflight) -> list[str]:
    """What is deleted before the run, and why."""
    kind = (plan.source or Source(kind="any", from_=None)).kind
    why = {
        "homes": ": every run makes its own",
        "databases": f", because the source of databases is {kind}",
    }
    kept = [(directory, _kept_in(plan, directory)) for directory in found.deleted]
    return [f"the {what} in {place} will be deleted first{why[what]}" for place, what in kept]


def reasons_to_ask(
    plan: Plan, expected: preflight.Preflight, times: int = 1, *, time_agreed: bool = False
) -> list[str]:
    """Why this run needs a yes; none for a small one, and none where nothing is real."""
    if plan.run.modelled:
        return []
    reasons = []
    seconds = series_s(plan, expected, times)
    if seconds > LARGE_S and not time_agreed:
        reasons.append(
            f"it takes about {duration_in_words(seconds)}"
            + (f" in {times} runs" if times > 1 else "")
        )
    for what in ("homes", "databases"):
        if places := [place for place in expected.deleted if _kept_in(plan, place) == what]:
            reasons.append(f"it deletes the {what} in {', '.join(places)}")
    for logs, names in expected.held.items():
        reasons.append(f"it deletes log in {logs} that is held for {', '.join(names)}")
    for server in plan.run.mail_instances:
        if filled := messages_filled(server):
            reasons.append(
                f"it marks and fills the empty ones of {server.accounts} accounts "
                f"({account_names(server)}) with {filled:,} messages"
            )
    for mount, needed in expected.bytes_needed.items():
        share = needed / max(expected.bytes_free[mount], 1)
        if share > LARGE_SHARE:
            reasons.append(f"it takes {share:.0%} of the free space on {mount}")
    return reasons


@dataclass(frozen=True)
class Forecast:
    """What a run will take.

    Attributes:
        plan: the plan, as it was given.
        found: what preflight found.
    """

    plan: Plan
    found: preflight.Preflight

    @property
    def seconds(self) -> float:
        """How long it is likely to take; waiting for warm caches is not counted."""
        return total_s(self.plan, self.found)

    @property
    def phases(self) -> list[PhaseForecast]:
        """Every phase with its time and what it writes."""
        return phases(self.plan, self.found)

    def lines(self, times: int | None = None) -> list[str]:
        """Files, space, bytes written, endurance and time, for people.

        Args:
            times: how often the plan is carried out; as it says itself if left out.
        """
        return as_lines(self.plan, self.found, times or _times_of(self.plan))

    def series_s(self, times: int | None = None) -> float:
        """How long so many runs are likely to take, with the rest before each of them.

        Args:
            times: how often the plan is carried out; as it says itself if left out.
        """
        return series_s(self.plan, self.found, times or _times_of(self.plan))

    def reasons_to_ask(self, times: int = 1, *, time_agreed: bool = False) -> list[str]:
        """Why the user should agree before it starts.

        It takes long or much space, or deletes databases. None for a small run.

        Args:
            times: how often the plan is carried out.
            time_agreed: whether the time it takes is agreed to already.
        """
        return reasons_to_ask(self.plan, self.found, times, time_agreed=time_agreed)


def _times_of(plan: Plan) -> int:
    """How often a plan wants to be carried out."""
    return 1 if plan.repeat is None else plan.repeat.runs


def check(
    plan: Plan,
    *,
    destroy: Sequence[str] = (),
    create: bool = False,
    allow_system_disk: bool = False,
    allow_commands: bool = False,
    out: StrPath | None = None,
    listener: Listener | None = None,
) -> preflight.Preflight:
    """Look at the places a plan works in, without writing anything, and tell what the run will do
    there.

    Args:
        plan: a completed plan.
        destroy: serials of the block devices that may be overwritten.
        create: make the directories of targets that do not exist; they are refused otherwise.
        allow_system_disk: let targets lie on the root file system; they are refused otherwise.
        allow_commands: carry out the commands of the plan's events; they are refused otherwise.
        out: the folder of the run, as in `make_run_folder`: what a run next to it left degraded is
            refused.
        listener: told what will be prepared, reused, recovered and deleted.

    Returns:
        What was found. Its `run` is the run spec: the plan's, with what is there already.

    Raises:
        RefusedError: what was given is no plan.
        PreflightError: the run cannot start; with every reason.
    """
    require_plan(plan)
    hears = listener or Listener()
    require_commands_allowed(plan, allowed=allow_commands)
    _require_possible(plan, hears)
    try:
        require_nothing_degraded(
            plan, folder.DEFAULT_PARENT / plan.name if out is None else Path(out)
        )
    except folder.FolderError as error:
        raise preflight.PreflightError([str(error)]) from error
    found = preflight.inspect(
        plan.run, plan.source, Consent(tuple(destroy), create, allow_system_disk)
    )
    found = replace(found, commands_allowed=allow_commands)
    _tell(plan, found, hears)
    return found


def require_commands_allowed(plan: Plan, *, allowed: bool) -> None:
    """Refuse a plan that starts commands, unless whoever runs it agrees.

    Consent is never read from a file.

    Raises:
        PreflightError: it does; with each command.
    """
    repeated = [] if plan.repeat is None else commands_of(plan.repeat)
    commands = [f"  {line}" for line in repeated] + commands_in_words(
        [event for event in plan.events if event.starts_commands], targets_of(plan)
    )
    if commands and not allowed:
        hint = "look at them, then give --allow-commands"
        raise preflight.PreflightError(
            ["\n".join([f"the plan starts commands; {hint}", *commands])]
        )


def _require_possible(plan: Plan, listener: Listener) -> None:
    """Refuse a plan whose events this machine, or whoever is there, cannot carry out.

    Raises:
        PreflightError: with what is missing for each.
    """
    problems = obstacles(plan.events, targets_of(plan))
    for event in plan.events:
        if event.manual is not None and event.confirm_file is None and not listener.can_confirm:
            hint = "run it at a terminal, or write confirm_file"
            text = f'event "{event.name}" wants a person who does "{event.manual}" and says so'
            problems.append(f"{text}; {hint}")
    if problems:
        raise preflight.PreflightError(problems)


def forecast(plan: Plan, found: preflight.Preflight | None = None) -> Forecast:
    """What a run will take: files, space, bytes written, endurance and time.

    Args:
        plan: a completed plan.
        found: as from `check`, which is asked when left out.

    Raises:
        RefusedError: what was given is no plan.
        PreflightError: the run cannot start.
    """
    require_plan(plan)
    return Forecast(plan, found or check(plan))


def _tell(plan: Plan, found: preflight.Preflight, listener: Listener) -> None:
    """What will happen, before it does."""
    if plan.run.modelled:
        listener.say(
            f"plan {plan.name}: {words.WARNING}: {words.array_title(plan.judgement.modelled or {})}"
        )
        return
    reused = f", {', '.join(found.reused)} reused" if found.reused else ""
    servers = plan.run.mail_instances
    prepared = f"{found.bytes_to_prepare >> 20} MiB of databases to prepare{reused}; "
    only_servers = len(servers) == len(plan.run.instances)
    listener.say(
        f"plan {plan.name}: {'' if only_servers else prepared}{total_in_words(plan, found)}"
    )
    for line in (line for server in servers for line in mail_server(server)):
        listener.say(line)
    for name in found.recovered:
        listener.note(
            f"instance {name} was not closed by its last run; it will be recovered from its log"
        )
    for line in deletions_in_words(plan, found):
        listener.note(line)
    source = plan.source or Source(kind="any", from_=None)
    for name in found.restored:
        listener.note(f"{name} will be restored from {source.from_}")
    for path in found.prepared_anew:
        listener.note(
            f"{path} was begun by an earlier run and not finished; it will be prepared again"
        )
    facts = [
        describe(Path(target.path)).facts for target in found.run.targets if is_storage(target.path)
    ]
    for warning in [*found.warnings, *never_warm(found.run), *far_below_design(plan, facts)]:
        listener.warning(warning)
