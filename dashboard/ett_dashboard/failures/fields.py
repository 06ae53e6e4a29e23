"""What the tables of failures say: one description for columns, order and CSV of each. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import tzinfo
from operator import attrgetter
from typing import Any

from ett_core.colours import DOMAIN_COLOURS
from ett_core.components import FAILURE, GROUP_COLOURS
from ett_core.fleet.nodes import Node
from ett_dashboard.addresses import to_failure, to_job
from ett_dashboard.failures.frames import EvidenceLine, classes_of
from ett_dashboard.failures.rows import FailureGroup, FailureOfJob
from ett_dashboard.failures.words import meaning, node_sentence, place, recurrence, when
from ett_dashboard.frames import moment
from ett_dashboard.listing import Field, Value
from ett_dashboard.words import compact, duration, many, plain, whole

HOUR_S = 3600.0
SUSPECT, GOOD = "suspect", "no more than chance"


def failures(zone: tzinfo, chosen: Mapping[str, str] | None = None) -> list[Field[FailureOfJob]]:
    """The columns of the list of failures; the class leads to the failure, the job to its page."""
    return [
        Field(
            name="failure_class",
            title="Class",
            help="Why the attempt ended, as far as it is known.",
            value=lambda failure: failure.diagnosis.failure_class,
            href=lambda failure: to_failure(failure.id, chosen),
            hint=lambda failure: meaning(failure.diagnosis.failure_class),
            end=False,
        ),
        Field(
            name="time",
            title="Time",
            help="When the attempt failed, in your time zone.",
            value=lambda failure: failure.time,
            show=lambda value: "" if value is None else when(float(value), zone),
            hint=lambda failure: moment(failure.time, zone),
            end=False,
        ),
        Field(
            name="job_id",
            title="Job",
            help="The job that failed.",
            value=lambda failure: failure.title,
            href=lambda failure: to_job(failure.job_id, chosen),
            hint=lambda failure: plain(failure.job_id),
            end=False,
        ),
        Field(
            name="domain",
            title="Whose",
            help="Whose the failure is: the job's own, the infrastructure's, the platform's, or not known.",
            value=lambda failure: failure.diagnosis.domain,
            hue=lambda failure: DOMAIN_COLOURS.get(failure.diagnosis.domain, DOMAIN_COLOURS["unknown"]),
            hint=lambda failure: f"{failure.diagnosis.confidence} {failure.diagnosis.role}",
            end=False,
        ),
        Field(
            name="where",
            title="Where",
            help="The rank and the node that the diagnosis points at.",
            value=lambda failure: place(failure.diagnosis.rank, failure.diagnosis.node),
            end=False,
        ),
        Field(
            name="lost_accelerator_h",
            title="Lost",
            help="Accelerator-hours unsaved, stalled and in recovery; queueing counts nothing.",
            value=lambda failure: failure.lost_accelerator_s / HOUR_S,
            show=hours,
        ),
        Field(
            name="ttr_s",
            title="Back after",
            help="Time to recover: from the failure to the next loop.",
            value=lambda failure: failure.ttr_s,
            show=lambda value: "not so far" if value is None else duration(float(value)),
        ),
        Field(
            name="in_a_row",
            title="In a row",
            help="Failures of this job by the same class, one after the other.",
            value=lambda failure: failure.recurrence.count,
            show=lambda value: "new" if value == 1 else whole(None if value is None else float(value)),
            hue=_loop_hue,
            hint=recurrence,
            end=False,
        ),
        Field(
            name="cause",
            title="Cause",
            help="What was reported, in short words.",
            value=lambda failure: plain(failure.cause, 160),
            show=lambda value: plain(str(value or ""), 56),
            hint=lambda failure: plain(failure.cause, 400),
            end=False,
        ),
    ]


def failures_taken_away(zone: tzinfo) -> list[Field[FailureOfJob]]:
    """The columns of the CSV: those of the list, and all that a failure is known by, exact."""
    plainly = ("id", "job_name", "attempt", "cluster", "team", "model", "retry", "ending", "cost")
    of_losses = ("unsaved_s", "stalled_s", "recovery_s", "queue_s", "accelerators")
    more: list[Field[FailureOfJob]] = [
        *(_exact(name, attrgetter(name)) for name in plainly),
        *(_exact(name, attrgetter(f"losses.{name}")) for name in of_losses),
        _exact("lost_accelerator_s", attrgetter("lost_accelerator_s")),
        _exact("role", attrgetter("diagnosis.role")),
        _exact("confidence", attrgetter("diagnosis.confidence")),
        _exact("crash_loop", lambda failure: "yes" if failure.recurrence.crash_loop else "no"),
    ]
    return [*failures(zone), *more]


def groups() -> list[Field[FailureGroup]]:
    """The columns of the CSV of classes of failures, exact."""
    return [_exact(name, attrgetter(name)) for name in FailureGroup.__struct_fields__]


def nodes(zone: tzinfo) -> list[Field[Node]]:
    """The columns of the table of nodes at which failures point."""
    return [
        Field(
            name="node",
            title="Node",
            help="The node at which the diagnoses point.",
            value=lambda node: node.node,
            hint=lambda node: plain(node.cluster),
            end=False,
        ),
        Field(
            name="verdict",
            title="Verdict",
            help="Suspect: two failures or more that may be its own, with a probability below 0.01.",
            value=lambda node: SUSPECT if node.suspect else GOOD,
            hue=lambda node: GROUP_COLOURS[FAILURE] if node.suspect else "",
            end=False,
        ),
        Field(
            name="failures",
            title="Failures",
            help="All that point at it, and of how many jobs.",
            value=lambda node: node.failures,
            hint=lambda node: many(node.jobs, "job"),
        ),
        Field(
            name="figure",
            title="Against chance",
            help="How many may be its own, against those that its time in use lets expect.",
            value=node_sentence,
            show=str,
            end=False,
        ),
        Field(
            name="classes",
            title="Classes",
            help="Its failures by class.",
            value=classes_of,
            end=False,
        ),
        Field(
            name="lost_accelerator_h",
            title="Lost",
            help="Accelerator-hours that its failures cost.",
            value=lambda node: node.lost_accelerator_s / HOUR_S,
            show=hours,
        ),
        Field(
            name="last_failure",
            title="Last",
            help="The last failure that points at it.",
            value=lambda node: node.last_failure,
            show=lambda value: "" if value is None else when(float(value), zone),
        ),
    ]


def nodes_taken_away(zone: tzinfo) -> list[Field[Node]]:
    """The columns of the CSV of nodes: those of the table, and the figures behind the verdict."""
    names = ("cluster", "counted", "jobs", "node_hours", "expected", "probability")
    return [*nodes(zone), *(_exact(name, attrgetter(name)) for name in names)]


def evidence() -> list[Field[EvidenceLine]]:
    """The columns of the CSV of a failure's evidence."""
    return [_exact(name, attrgetter(name)) for name in EvidenceLine.__struct_fields__]


def hours(value: Value) -> str:
    """Accelerator-hours in a table.

    >>> hours(1234.0), hours(None)
    ('1.2 k h', 'n/a')
    """
    return f"{compact(None if value is None else float(value))}{'' if value is None else ' h'}"


def _exact(name: str, value: Callable[..., Value]) -> Field[Any]:
    return Field(name=name, title="", help="", value=value)


def _loop_hue(failure: FailureOfJob) -> str:
    return GROUP_COLOURS[FAILURE] if failure.recurrence.crash_loop else ""
