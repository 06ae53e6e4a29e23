"""What the tables of failures say: one description for columns, order and CSV of each. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import tzinfo
from operator import attrgetter

from ett_core.colours import DOMAIN_COLOURS
from ett_core.components import FAILURE, GROUP_COLOURS
from ett_core.fleet.nodes import Node
from ett_dashboard.addresses import to_failure, to_job
from ett_dashboard.columns import Kind, accelerator_seconds, count, exact, exactly, moments, text
from ett_dashboard.failures.frames import EvidenceLine, classes_of
from ett_dashboard.failures.rows import FailureGroup, FailureOfJob
from ett_dashboard.failures.words import meaning, node_sentence, place, recurrence
from ett_dashboard.listing import Field
from ett_dashboard.words import duration, many, moment, plain, whole

SUSPECT, GOOD = "suspect", "no more than chance"
BACK = Kind(lambda value: "not so far" if value is None else duration(float(value)))
IN_A_ROW = Kind(
    lambda value: "new" if value == 1 else whole(None if value is None else float(value)), end=False
)
CAUSE = Kind(lambda value: plain(str(value or ""), 56), end=False)
SENTENCE = Kind(str, end=False)


def failures(zone: tzinfo, chosen: Mapping[str, str] | None = None) -> list[Field[FailureOfJob]]:
    """The columns of the list of failures; the class leads to the failure, the job to its page."""
    return [
        text(
            "failure_class",
            "Class",
            "Why the attempt ended, as far as it is known.",
            attrgetter("diagnosis.failure_class"),
            href=lambda failure: to_failure(failure.id, chosen),
            hint=lambda failure: meaning(failure.diagnosis.failure_class),
        ),
        Kind(moments(zone).show, end=False)(
            "time",
            "Time",
            "When the attempt failed, in your time zone.",
            hint=lambda failure: moment(failure.time, zone),
        ),
        text(
            "job_id",
            "Job",
            "The job that failed.",
            lambda failure: failure.title,
            href=lambda failure: to_job(failure.job_id, chosen),
            hint=lambda failure: plain(failure.job_id),
        ),
        *_who_and_what(),
    ]


def _who_and_what() -> list[Field[FailureOfJob]]:
    """The columns of the list of failures that lead nowhere."""
    return [
        text(
            "domain",
            "Whose",
            "Whose the failure is: the job's own, the infrastructure's, the platform's, or not known.",
            attrgetter("diagnosis.domain"),
            hue=lambda failure: DOMAIN_COLOURS.get(failure.diagnosis.domain, DOMAIN_COLOURS["unknown"]),
            hint=lambda failure: f"{failure.diagnosis.confidence} {failure.diagnosis.role}",
        ),
        text(
            "where",
            "Where",
            "The rank and the node that the diagnosis points at.",
            lambda failure: place(failure.diagnosis.rank, failure.diagnosis.node),
        ),
        accelerator_seconds(
            "lost_accelerator_s",
            "Lost",
            "Accelerator-hours unsaved, stalled and in recovery; queueing counts nothing.",
        ),
        BACK("ttr_s", "Back after", "Time to recover: from the failure to the next loop."),
        IN_A_ROW(
            "in_a_row",
            "In a row",
            "Failures of this job by the same class, one after the other.",
            attrgetter("recurrence.count"),
            hue=lambda failure: GROUP_COLOURS[FAILURE] if failure.recurrence.crash_loop else "",
            hint=recurrence,
        ),
        CAUSE(
            "cause",
            "Cause",
            "What was reported, in short words.",
            lambda failure: plain(failure.cause, 160),
            hint=lambda failure: plain(failure.cause, 400),
        ),
    ]


def failures_taken_away(zone: tzinfo) -> list[Field[FailureOfJob]]:
    """The columns of the CSV: those of the list, and all that a failure is known by, exact."""
    of_losses = ("unsaved_s", "stalled_s", "recovery_s", "queue_s", "accelerators")
    return [
        *failures(zone),
        *exact("id", "job_name", "attempt", "cluster", "team", "model", "retry", "ending", "cost"),
        *(exactly(name, attrgetter(f"losses.{name}")) for name in of_losses),
        exactly("role", attrgetter("diagnosis.role")),
        exactly("confidence", attrgetter("diagnosis.confidence")),
        exactly("crash_loop", lambda failure: "yes" if failure.recurrence.crash_loop else "no"),
    ]


def groups() -> list[Field[FailureGroup]]:
    """The columns of the CSV of classes of failures, exact."""
    return exact(*FailureGroup.__struct_fields__)


def nodes(zone: tzinfo) -> list[Field[Node]]:
    """The columns of the table of nodes at which failures point."""
    return [
        text("node", "Node", "The node at which the diagnoses point.", hint=lambda node: plain(node.cluster)),
        text(
            "verdict",
            "Verdict",
            "Suspect: two failures or more that may be its own, with a probability below 0.01.",
            lambda node: SUSPECT if node.suspect else GOOD,
            hue=lambda node: GROUP_COLOURS[FAILURE] if node.suspect else "",
        ),
        count(
            "failures",
            "Failures",
            "All that point at it, and of how many jobs.",
            hint=lambda node: many(node.jobs, "job"),
        ),
        SENTENCE(
            "figure",
            "Against chance",
            "How many may be its own, against those that its time in use lets expect.",
            node_sentence,
        ),
        text("classes", "Classes", "Its failures by class.", classes_of),
        accelerator_seconds("lost_accelerator_s", "Lost", "Accelerator-hours that its failures cost."),
        moments(zone)("last_failure", "Last", "The last failure that points at it."),
    ]


def nodes_taken_away(zone: tzinfo) -> list[Field[Node]]:
    """The columns of the CSV of nodes: those of the table, and the figures behind the verdict."""
    return [
        *nodes(zone),
        *exact("cluster", "counted", "jobs", "node_hours", "expected", "probability"),
    ]


def evidence() -> list[Field[EvidenceLine]]:
    """The columns of the CSV of a failure's evidence."""
    return exact(*EvidenceLine.__struct_fields__)
