"""Pieces of HTML about failures. Pure: rows to strings, every word of a job inert."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import tzinfo
from html import escape
from urllib.parse import quote

from ett_core.colours import DOMAIN_COLOURS
from ett_core.fleet.nodes import Node
from ett_core.fleet.outbreaks import Outbreak
from ett_dashboard.failures.figures import ROLE_COLOURS
from ett_dashboard.failures.frames import DOMAINS, EvidenceLine, classes_of
from ett_dashboard.failures.rows import FailureDetail
from ett_dashboard.failures.words import (
    failure_sentence,
    node_sentence,
    outbreak_sentence,
    place,
    when,
)
from ett_dashboard.frames import moment
from ett_dashboard.markup import of_job, said
from ett_dashboard.words import accelerator_hours, many

MOST_LINES = 400
"""Lines of evidence that are shown; the table to take away holds all."""


def failure_address(failure_id: str) -> str:
    """The address of a failure's page, relative to the app.

    >>> failure_address("a/b~0")
    'failures?id=a%2Fb~0'
    """
    return f"failures?id={quote(failure_id, safe='')}"


def job_address(job_id: str) -> str:
    """The address of a job's page, relative to the app."""
    return f"job?id={quote(job_id, safe='')}"


def mark(text: str, hue: str) -> str:
    """A word with a coloured dot."""
    return f'<span class="ett-chip" style="--hue:{hue}">{escape(text)}</span>'


def domains() -> str:
    """The colours of whose a failure is."""
    hues = "".join(f'<i style="background:{DOMAIN_COLOURS[name]}"></i>{name}' for name in DOMAINS)
    return f'<div class="ett-hues">{hues}</div>'


def outbreaks(found: Sequence[Outbreak], zone: tzinfo) -> str:
    """What struck many, one card each."""
    cards = []
    for outbreak in found:
        words = outbreak_sentence(outbreak, zone)
        state = "goes on" if outbreak.until is None else "over"
        cards.append(
            f'<div class="ett-alarm">{mark(state, ROLE_COLOURS["root" if outbreak.until is None else ""])}'
            f"<span>{escape(words.how)}. <span class='ett-do'>{escape(words.do)}</span></span></div>"
        )
    return f'<div class="ett-alarms">{"".join(cards)}</div>'


def suspects(nodes: Iterable[Node], zone: tzinfo) -> str:
    """Nodes that failures point at with the figure that says why, suspects marked."""
    rows = "".join(_node_row(node, zone) for node in nodes)
    heads = ("Node", "Verdict", "Failures", "Figure", "Classes", "Lost", "Last")
    head = "".join(f"<th>{name}</th>" for name in heads)
    return f'<table class="ett-list"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'


def failure_head(failure: FailureDetail, zone: tzinfo, *, linked: bool = True) -> str:
    """What failed, where and when; whose it is and what to do.

    `linked`: the name of the job leads to its page.
    """
    diagnosis = failure.diagnosis
    job = of_job(failure.title, 80)
    if linked:
        job = f'<a href="{job_address(failure.job_id)}" target="_self">{job}</a>'
    facts = [job, f"attempt {failure.attempt}", moment(failure.time, zone)]
    facts += [escape(place(diagnosis.rank, diagnosis.node))]
    facts += [of_job(word, 60) for word in (failure.team, failure.model, failure.cluster) if word]
    marks = mark(diagnosis.domain, DOMAIN_COLOURS.get(diagnosis.domain, DOMAIN_COLOURS["unknown"]))
    marks += mark(
        f"{diagnosis.confidence} {diagnosis.role}", ROLE_COLOURS.get(diagnosis.role, ROLE_COLOURS[""])
    )
    return (
        f'<div class="ett-job"><div class="ett-name"><h1>{escape(diagnosis.failure_class)}</h1>{marks}</div>'
        f'<div class="ett-facts">{" · ".join(facts)}</div>{said(failure_sentence(failure))}'
        f'<p class="ett-cause">{of_job(failure.cause or "cause unknown", 400)}</p></div>'
    )


def evidence_table(lines: Sequence[EvidenceLine], zone: tzinfo, *, most: int = MOST_LINES) -> str:
    """The lines that tell of a failure in order of time, with the role of each."""
    rows = "".join(_line_row(line, zone) for line in lines[:most])
    left = len(lines) - most
    more = f'<p class="ett-quiet">{many(left, "more line")} are left out.</p>' if left > 0 else ""
    head = "".join(f"<th>{name}</th>" for name in ("Time", "After", "Where", "From", "Role", "Line"))
    table = f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody>"
    return f'<table class="ett-list ett-evidence">{table}</table>{more}'


def alike(ids: Sequence[str], *, linked: bool = True) -> str:
    """The failures of the same job that came before in a row of equal ones."""
    names = [
        f'<a href="{failure_address(name)}" target="_self">{of_job(name)}</a>' if linked else of_job(name)
        for name in ids
    ]
    return f'<p class="ett-quiet">Before it in the row: {", ".join(names)}</p>' if names else ""


def _node_row(node: Node, zone: tzinfo) -> str:
    verdict = mark("suspect", ROLE_COLOURS["root"]) if node.suspect else "no more than chance"
    kind = "ett-suspect" if node.suspect else ""
    return (
        f'<tr class="{kind}"><td>{of_job(node.node, 60)}</td><td>{verdict}</td>'
        f"<td>{many(node.failures, 'failure')} of {many(node.jobs, 'job')}</td>"
        f"<td>{escape(node_sentence(node))}</td><td>{of_job(classes_of(node))}</td>"
        f"<td>{accelerator_hours(node.lost_accelerator_s)}</td><td>{when(node.last_failure, zone)}</td></tr>"
    )


def _line_row(line: EvidenceLine, zone: tzinfo) -> str:
    role = mark(line.role, ROLE_COLOURS.get(line.role, ROLE_COLOURS[""])) if line.role else ""
    return (
        f'<tr class="ett-line" data-role="{escape(line.role)}"><td>{moment(line.time, zone)[11:]}</td>'
        f"<td>{line.after_s:+.1f} s</td><td><bdi>{escape(line.where)}</bdi></td>"
        f"<td><bdi>{escape(line.source)}</bdi></td><td>{role}</td>"
        f'<td class="ett-text"><bdi>{escape(line.text)}</bdi></td></tr>'
    )
