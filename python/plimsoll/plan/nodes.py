"""The nodes of a cluster: who carries what, and whether a survivor holds what comes to it.

    [[node]]
    name = "left"
    memory_mib = 4096
    processors = 4

    [[event]]
    name = "left dies"
    after_s = 600
    do = "node killed"
    node = "left"
    to = "right"

Memory is that of the caches, and what is stated of servers; processors are those that instances
state, one where they state none. Both are added up for each node as it is at first, and for each
survivor as it is after each death, in the order of time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from plimsoll.documents import phase_actions
from plimsoll.documents import run_spec as spec
from plimsoll.documents.document import ABSENT
from plimsoll.documents.staged_events import EventPlan
from plimsoll.inputs.schema import Collector, Field, Given, Number, Text
from plimsoll.units import BYTES_PER_MB

#: What an event does that kills a node.
NODE_KILLED = "node killed"
#: Loads run in these, and nothing else is done to instances.
PHASES = ("measure", "soak")
QUORUMS = ("nodes", "nodes and disk")
#: Nodes of a cluster; Windows Server 2008 R2 has 16, and later ones 64.
NODES_MAX = 64

NODE_FIELDS = {
    "name": Field(Text(), required=True, meaning="what to call the node"),
    "memory_mib": Field(
        Number(1, 1e9),
        required=True,
        meaning="memory for the caches of its instances, and for servers",
    ),
    "processors": Field(
        Number(1, 4096, whole=True),
        required=True,
        meaning="processors; on a modelled array its transactions share them",
    ),
}

INSTANCE_FIELDS = {
    "node": Field(Text(), meaning="the node that carries it at first"),
    "processors": Field(
        Number(1, 4096, whole=True), meaning="processors that it needs on its node; 1 if left out"
    ),
    "memory_mib": Field(
        Number(1, 1e9), meaning="for a server: memory that it needs on its node; 0 if left out"
    ),
}

EVENT_FIELDS = {
    "node": Field(Text(), meaning="node killed: the node that dies"),
    "to": Field(Text(), meaning="node killed: the survivor that takes over what it carried"),
    "fit": Field(
        Text(("required", "reported")),
        meaning="node killed: whether a survivor without room for all of it is a mistake of the "
        "plan, or is reported and gives caches what is left; required if left out",
    ),
}

QUORUM = Field(
    Text(QUORUMS),
    meaning="who votes: the nodes, or a witness disk as well; where a death leaves no majority "
    "the run stops. Nobody votes if left out",
)


@dataclass
class _Need:
    """What an instance needs of its node."""

    name: str
    processors: int
    memory_bytes: int
    is_ours: bool
    is_server: bool = False

    def of(self, key: str) -> float:
        """What it needs of that key of a node."""
        return self.memory_bytes / BYTES_PER_MB if key == "memory_mib" else self.processors


def completed(
    plan: Given,
    run: spec.RunSpec,
    events: Sequence[EventPlan],
    collector: Collector,
) -> tuple[spec.ClusterSpec | None, list[EventPlan]]:
    """The cluster of a checked plan, and its events with what they say of fit and votes.

    Every mistake goes to the collector.
    """
    nodes = {node["name"]: node for node in plan["node"]}
    if nodes and len(plan["host"]) > 1:
        text = "stands in a plan of several hosts, but nodes are parts of one run"
        collector.add(("node", 0, "name"), text, "write a plan of one host")
    placed = _placed(plan, run, nodes, collector)
    for index, node in enumerate(plan["node"]):
        for what, lacking, key in _lacking(node, placed.get(node["name"], ())):
            collector.add(("node", index, key), what, lacking)
    at = {given["name"]: index for index, given in enumerate(plan["event"])}
    order = [phase.name for phase in run.phases]
    first = {name: [need.name for need in needs] for name, needs in placed.items()}
    deaths: list[spec.NodeDeathSpec] = []
    told: dict[str, EventPlan] = {}
    dead: list[str] = []
    for event in sorted(
        (event for event in events if event.node is not None),
        key=lambda event: (
            order.index(event.phase) if event.phase in order else 0,
            event.after_s,
        ),
    ):
        path = ("event", at[event.name])
        given = plan["event"][at[event.name]]
        node, to = str(event.node), str(event.to)
        if not _may_die(node, to, nodes, dead, path, collector):
            continue
        dead.append(node)
        coming = placed.get(node, [])
        _mistakes_of_coming(coming, event, path, collector)
        _mistakes_of_limit(event, coming, run, path, collector)
        own = placed.get(to, [])
        fit = _fits(nodes[to], own, coming)
        if given["fit"] != "reported":
            for sentence in fit.lacking:
                hint = 'give it more, move something, or write fit = "reported"'
                collector.add((*path, "to"), f"is short of room: {sentence}", hint)
        votes = _votes_lost(plan["quorum"], len(nodes), len(dead))
        taken = _taken(nodes[to], own, coming, run, path, collector)
        caches = {item.instance: item.cache_bytes_max for item in taken}
        for need in coming:
            need.memory_bytes = caches.get(need.name, need.memory_bytes)
        placed[to], placed[node] = [*own, *coming], []
        deaths.append(
            spec.NodeDeathSpec(
                event=event.name,
                phase=event.phase,
                after_s=event.after_s,
                node=node,
                to=to,
                taken=taken,
                quorum_lost=votes,
            )
        )
        told[event.name] = event.replace(fit=fit.sums, fit_lacking=fit.lacking or ABSENT)
    _mistakes_of_audit(run.phases, deaths, at, collector)
    found = [told.get(event.name, event) for event in events]
    if not nodes:
        return None, found
    return (
        spec.ClusterSpec(
            nodes=[
                spec.NodeSpec(
                    name=name, processors=node["processors"] or 1, instances=first.get(name, [])
                )
                for name, node in nodes.items()
            ],
            deaths=deaths,
        ),
        found,
    )


def _placed(
    plan: Given, run: spec.RunSpec, nodes: Mapping[str, Given], collector: Collector
) -> dict[str, list[_Need]]:
    """What each node carries at first."""
    placed: dict[str, list[_Need]] = {name: [] for name in nodes}
    known = {instance.name: instance for instance in run.instances}
    for index, given in enumerate(plan["instance"] or []):
        path = ("instance", index)
        if given["node"] is None:
            for key in ("processors", "memory_mib"):
                if given[key] is not None:
                    hint = "write the node that carries it"
                    collector.add((*path, key), "means nothing without `node`", hint)
            continue
        name = collector.named(given["node"], list(nodes), (*path, "node"))
        instance = known.get(given["name"])
        is_ours = isinstance(instance, spec.EngineInstance) and instance.backend != "raw_files"
        if is_ours and given["memory_mib"] is not None:
            hint = "write cache_mib_max"
            collector.add((*path, "memory_mib"), "is for servers, and this has a cache", hint)
        memory_bytes = (
            instance.cache_bytes_max
            if isinstance(instance, spec.EngineInstance)
            else int((given["memory_mib"] or 0) * BYTES_PER_MB)
        )
        if name in placed:
            placed[name].append(
                _Need(
                    str(given["name"]),
                    given["processors"] or 1,
                    memory_bytes,
                    is_ours,
                    instance is not None and not instance.is_ours,
                )
            )
    return placed


@dataclass(frozen=True)
class _Fit:
    """Sums in sentences, and those that say what is lacking."""

    sums: list[str]
    lacking: list[str]


def _lacking(node: Given, needs: Sequence[_Need]) -> list[tuple[str, str, str]]:
    """What a node lacks for what it carries at first: message, hint and key."""
    found = []
    hint = "give it more, or move an instance"
    for key in ("memory_mib", "processors"):
        if node[key] is not None and sum(need.of(key) for need in needs) > node[key]:
            sums = _sum_in_words(needs, key)
            found.append((f"is {node[key]:g}, but its instances need {sums}", hint, key))
    return found


def _sum_in_words(needs: Sequence[_Need], key: str) -> str:
    """What instances need together, with each part.

    >>> _sum_in_words([_Need("a", 1, 2**20, True), _Need("b", 3, 2**21, True)], "memory_mib")
    '3 (a 1, b 2)'
    """
    each = ", ".join(f"{need.name} {need.of(key):g}" for need in needs)
    return f"{sum(need.of(key) for need in needs):g} ({each})"


def _fits(node: Given, own: Sequence[_Need], coming: Sequence[_Need]) -> _Fit:
    """Whether a survivor holds its own and what comes to it, with the arithmetic."""
    sums, lacking = [], []
    for key, unit in (("memory_mib", "MiB of memory"), ("processors", "processors")):
        needs = [*own, *coming]
        there = node[key] or 0
        told = f"{node['name']} needs {_sum_in_words(needs, key)} of {there:g} {unit}"
        sums.append(told)
        if sum(need.of(key) for need in needs) > there:
            lacking.append(told)
    return _Fit(sums, lacking)


def _taken(
    node: Given,
    own: Sequence[_Need],
    coming: Sequence[_Need],
    run: spec.RunSpec,
    path: tuple[str, int],
    collector: Collector,
) -> list[spec.TakenSpec]:
    """The caches of what comes: whole where there is room, otherwise shares of what is left."""
    there = int((node["memory_mib"] or 0) * BYTES_PER_MB)
    fixed = sum(need.memory_bytes for need in [*own, *(n for n in coming if not n.is_ours)])
    caches = [need for need in coming if need.is_ours]
    wanted, left = sum(need.memory_bytes for need in caches), max(there - fixed, 0)
    known = {instance.name: instance for instance in run.engine_instances}
    found = []
    for need in caches:
        whole_mib = need.memory_bytes // BYTES_PER_MB
        share = need.memory_bytes * left // wanted // BYTES_PER_MB if wanted > left else whole_mib
        if share < 1:
            text = f"has {left / BYTES_PER_MB:g} MiB left, no cache at all for {need.name}"
            collector.add((*path, "to"), text, "give the survivor more memory_mib")
        bytes_max = max(share, 1) * BYTES_PER_MB
        smallest = known[need.name].cache_bytes_min
        found.append(
            spec.TakenSpec(
                instance=need.name,
                cache_bytes_min=min(smallest, bytes_max),
                cache_bytes_max=bytes_max,
            )
        )
    return found


def _may_die(
    node: str,
    to: str,
    nodes: Mapping[str, Given],
    dead: Sequence[str],
    path: tuple[str, int],
    collector: Collector,
) -> bool:
    """Whether the two nodes of an event are there and alive."""
    names = list(nodes)
    for key, name in (("node", node), ("to", to)):
        if name not in nodes:
            collector.named(name, names, (*path, key))
        elif name in dead:
            hint = "name a node that is alive"
            collector.add((*path, key), f"names {name}, which an earlier event has killed", hint)
    if node == to:
        collector.add((*path, "to"), f"is {to}, the node that dies", "name a survivor")
    return node in nodes and to in nodes and node != to and not {node, to} & set(dead)


def _mistakes_of_coming(
    coming: Sequence[_Need],
    event: EventPlan,
    path: tuple[str, int],
    collector: Collector,
) -> None:
    """What dies must be able to come back."""
    if not coming:
        hint = f'write node = "{event.node}" in an instance'
        collector.add((*path, "node"), "carries no instance", hint)
    for need in coming:
        if not need.is_ours and not need.is_server:
            text = f"carries {need.name}, which has no log to come back from"
            hint = "put only databases, stores and mail stores on the engine on a node that dies"
            collector.add((*path, "node"), text, hint)
        elif need.is_server and not event.command:
            hint = "write a command that kills it there and starts it on the survivor"
            text = f"carries {need.name}, a server that cannot come back by itself"
            collector.add((*path, "node"), text, hint)


def _mistakes_of_limit(
    event: EventPlan,
    coming: Sequence[_Need],
    run: spec.RunSpec,
    path: tuple[str, int],
    collector: Collector,
) -> None:
    """A failover is over when something is served again: that wants time, and a load that asks."""
    limit_s = event.judge.failover_s_max
    phase = next((phase for phase in run.phases if phase.name == event.phase), None)
    if limit_s is None or phase is None:
        return
    place = (*path, "judge", "failover_s_max")
    lasts_s = getattr(phase.action, "duration_s", None)
    if lasts_s is not None and event.after_s + limit_s > lasts_s:
        text = f"is {limit_s:g}, but its phase ends {lasts_s - event.after_s:g} s after the event"
        collector.add(place, text, "let the phase last longer, or write less")
    loads = [load for load in run.workloads if load.name in phase.workloads]
    for need in coming:
        if not any(need.name in load.instances for load in loads) and need.is_ours:
            text = f"waits for {need.name} to serve again, which no load of the phase works on"
            collector.add(place, text, "give it a load, or leave failover_s_max out")


def _votes_lost(quorum: str | None, node_count: int, dead_count: int) -> str | None:
    """Why the cluster stops, where too few votes are left.

    >>> _votes_lost("nodes and disk", 2, 1)
    >>> _votes_lost("nodes", 2, 1)
    '1 of 2 votes is left, and 2 are needed (quorum = "nodes")'
    """
    if quorum is None:
        return None
    votes = node_count + (quorum == "nodes and disk")
    left, needed = votes - dead_count, votes // 2 + 1
    if left >= needed:
        return None
    verb = "is" if left == 1 else "are"
    return f'{left} of {votes} votes {verb} left, and {needed} are needed (quorum = "{quorum}")'


def _mistakes_of_audit(
    run_phases: Sequence[phase_actions.PhaseSpec],
    deaths: Sequence[spec.NodeDeathSpec],
    at: Mapping[str, int],
    collector: Collector,
) -> None:
    """What was acknowledged before a death is held against what is there after it."""
    names = [phase.name for phase in run_phases]
    for death in deaths:
        behind = run_phases[names.index(death.phase) + 1 :] if death.phase in names else ()
        if not any(phase.action.kind == "audit" for phase in behind) and not death.quorum_lost:
            collector.add(
                ("event", at[death.event], "do"),
                f"is {NODE_KILLED}, but no phase behind {death.phase} audits what was acknowledged",
                'write a phase { kind = "audit" } before the databases are closed',
            )


def event_mistakes(
    given: Given,
    phase: phase_actions.PhaseSpec | None,
    path: tuple[str, int],
    collector: Collector,
    *,
    modelled: bool,
) -> None:
    """Note what is wrong with an event that kills a node, as far as it can be told alone."""
    for key in ("node", "to"):
        if given[key] is None:
            collector.add((*path, key), f"is missing for {NODE_KILLED}", EVENT_FIELDS[key].meaning)
    if given["undo_after_s"] is not None and not given["undo"]:
        text = f"means nothing for {NODE_KILLED}: what came to the survivor stays there"
        collector.add((*path, "undo_after_s"), text, "remove it")
    for key in ("manual", "manual_undo", "action", "hold_writes", "number", "box"):
        if given[key] is not None:
            text = f"cannot be combined with {NODE_KILLED}"
            collector.add((*path, key), text, "write two events")
    if modelled and given["command"] is not None:
        text = "reaches no modelled array, and nothing else of the node is there"
        collector.add((*path, "command"), text, "remove it")
    if phase is not None and phase.action.kind not in PHASES:
        text = f"is {phase.name}, in which nodes do not die"
        collector.add((*path, "phase"), text, "name a phase of kind measure or soak")


def meaningless(given: Given, path: tuple[str, int], collector: Collector) -> None:
    """Note keys of nodes in an event that kills none."""
    for key in EVENT_FIELDS:
        if given[key] is not None:
            hint = f'write do = "{NODE_KILLED}"'
            collector.add((*path, key), f"means nothing without {NODE_KILLED}", hint)
    if (given["judge"] or {}).get("failover_s_max") is not None:
        hint = "write pause_s_max and recover_s_max, which judge every load"
        place = (*path, "judge", "failover_s_max")
        collector.add(place, f"means nothing without {NODE_KILLED}", hint)
