"""The stages after a run as tests ask them: plain data in, plain data out.

What a test does not say is neutral.
"""

import collections.abc
import types
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from plimsoll import verdict
from plimsoll.documents.document import Document, hints_of
from plimsoll.documents.outcome import Outcome
from plimsoll.documents.plan import Plan
from plimsoll.documents.summary import Summary
from plimsoll.documents.verdict import Verdict
from plimsoll.results import summary as measurements
from plimsoll.verdict import qualification, summary_fields

NEUTRAL: dict[Any, Any] = {int: 0, float: 0.0, str: "", bool: False}


def summarize(run_folder: Path) -> dict[str, Any]:
    """The summary of a run folder."""
    return measurements.summarize(run_folder).plain()


def judge(plan: Any, summary: Any, environment: dict[str, Any]) -> dict[str, Any]:
    """The verdict on a plan and a summary of which only what matters is given."""
    return verdict.judge(plan_of(plan), summary_of(summary), environment).plain()


def warnings_of(summary: Any) -> list[str]:
    """What the measurements say against themselves."""
    return qualification.warnings_of(summary_of(summary))


def every_field(summary: Any) -> list[tuple[str, str, Any]]:
    """Every field that can be limited."""
    return list(summary_fields.every_field(summary_of(summary)))


def plan_of(plan: Any) -> Plan:
    """A plan of which only what matters is given."""
    return plan if isinstance(plan, Plan) else Plan.from_plain(filled(Plan, plan))


def summary_of(summary: Any) -> Summary:
    """A summary of which only what matters is given."""
    return summary if isinstance(summary, Summary) else Summary.from_plain(filled(Summary, summary))


def verdict_of(found: Any) -> Verdict:
    """A verdict of which only what matters is given."""
    return found if isinstance(found, Verdict) else Verdict.from_plain(filled(Verdict, found))


def outcome_of(outcome: dict[str, Any]) -> Outcome:
    """An outcome of which only what matters is given."""
    return Outcome.from_plain(filled(Outcome, outcome))


def filled(kind: Any, given: Any) -> Any:
    """Plain data with everything that a document must have and that was not given."""
    if isinstance(kind, type) and issubclass(kind, Document):
        if not isinstance(given, dict):
            return given
        missing = {
            name: neutral(hint)
            for name, hint in hints_of(kind).items()
            if name in kind._required - given.keys()
        }
        hints = hints_of(kind)
        return {
            **{
                name: filled(hints[name], item) if name in hints else item
                for name, item in given.items()
            },
            **missing,
        }
    arguments = get_args(kind)
    if isinstance(given, (list, tuple)) and get_origin(kind) is collections.abc.Sequence:
        return [filled(arguments[0], item) for item in given]
    if isinstance(given, dict) and get_origin(kind) is collections.abc.Mapping:
        return {key: filled(arguments[1], item) for key, item in given.items()}
    if get_origin(kind) in (Union, types.UnionType):
        documents = [
            item for item in arguments if isinstance(item, type) and issubclass(item, Document)
        ]
        if isinstance(given, dict):
            documents = [item for item in documents if given.keys() <= hints_of(item).keys()]
        return filled(documents[0], given) if documents else given
    return given


def neutral(kind: Any) -> Any:
    """A value of a type that says nothing."""
    arguments, origin = get_args(kind), get_origin(kind)
    if isinstance(kind, type) and issubclass(kind, Document):
        return filled(kind, {})
    if origin is Literal:
        return arguments[0]
    if origin in (Union, types.UnionType):
        return None if type(None) in arguments else neutral(arguments[0])
    if origin in (collections.abc.Sequence, tuple):
        return []
    return {} if origin is collections.abc.Mapping else NEUTRAL[kind]


def whole_outcome(outcome: dict[str, Any]) -> dict[str, Any]:
    """An outcome as plain data of which only what matters is given."""
    found: dict[str, Any] = filled(Outcome, outcome)
    return found
