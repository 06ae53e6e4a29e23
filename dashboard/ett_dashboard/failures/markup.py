"""Pieces of HTML about failures. Pure: rows to strings, every word of a job inert."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import tzinfo
from html import escape

from ett_core.colours import DOMAIN_COLOURS
from ett_core.failures.words import DOMAIN_WORDS
from ett_core.fleet.outbreaks import Outbreak
from ett_dashboard.addresses import settings_of, to_failure, to_job, to_page
from ett_dashboard.failures.figures import ROLE_COLOURS, ROLE_SYMBOLS
from ett_dashboard.failures.frames import DOMAINS, EvidenceLine
from ett_dashboard.failures.rows import FailureDetail
from ett_dashboard.failures.words import (
    ROLE_WORDS,
    failure_sentence,
    outbreak_sentence,
    place,
)
from ett_dashboard.markup import heads, link, of_job, said
from ett_dashboard.words import many, moment

MOST_LINES = 400
"""Lines of evidence that are shown; the table to take away holds all."""
EVIDENCE = (
    ("Time", "When it was written, in your time zone."),
    ("After", "Seconds from the first line that explains the failure, else from the failure."),
    ("Where", "The rank, or the launcher, and its node."),
    ("From", "What told of it: a log, an exception, the kernel, the launcher."),
    ("Role", "Root: explains the failure. Cascade: followed from it. Teardown: was stopped in the end."),
    ("Line", "As it was written."),
)
"""Columns: title and definition."""


def mark(text: str, hue: str) -> str:
    """A word with a coloured dot."""
    return f'<span class="ett-chip" style="--hue:{hue}">{escape(text)}</span>'


def domains() -> str:
    """The colours of whose a failure is."""
    return _hues({name: DOMAIN_COLOURS[name] for name in DOMAINS}, DOMAIN_WORDS)


def roles() -> str:
    """The colours of what a line of evidence is to the failure."""
    return _hues({name: ROLE_COLOURS[name] for name in ROLE_SYMBOLS}, ROLE_WORDS)


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


def failure_head(failure: FailureDetail, zone: tzinfo, chosen: Mapping[str, str]) -> str:
    """What failed, where and when; whose it is and what to do.

    The name of the job leads to its page, with what was chosen.
    """
    diagnosis = failure.diagnosis
    job = link(to_job(failure.job_id, chosen), of_job(failure.title, 80))
    facts = [job, f"attempt {failure.attempt}", moment(failure.time, zone)]
    facts += [escape(place(diagnosis.rank, diagnosis.node))]
    facts += [of_job(word, 60) for word in (failure.team, failure.model, failure.cluster) if word]
    marks = mark(diagnosis.domain, DOMAIN_COLOURS.get(diagnosis.domain, DOMAIN_COLOURS["unknown"]))
    marks += mark(
        f"{diagnosis.confidence} {diagnosis.role}", ROLE_COLOURS.get(diagnosis.role, ROLE_COLOURS[""])
    )
    name = _defined(diagnosis.failure_class, chosen)
    return (
        f'<div class="ett-job"><div class="ett-name"><h1>{name}</h1>{marks}</div>'
        f'<div class="ett-facts">{" · ".join(facts)}</div>{said(failure_sentence(failure))}'
        f'<p class="ett-cause">{of_job(failure.cause or "cause unknown", 400)}</p></div>'
    )


def _defined(failure_class: str, chosen: Mapping[str, str]) -> str:
    """The name of a class, which leads to its definition."""
    return link(to_page("definitions", settings_of(chosen), of=failure_class), escape(failure_class))


def evidence_table(lines: Sequence[EvidenceLine], zone: tzinfo, *, most: int = MOST_LINES) -> str:
    """The lines that tell of a failure in order of time, with the role of each."""
    rows = "".join(_line_row(line, zone) for line in lines[:most])
    left = len(lines) - most
    more = f'<p class="ett-quiet">{many(left, "more line")} are left out.</p>' if left > 0 else ""
    table = f"<thead><tr>{heads(EVIDENCE)}</tr></thead><tbody>{rows}</tbody>"
    return f'<table class="ett-list ett-evidence">{table}</table>{more}'


def alike(ids: Sequence[str], chosen: Mapping[str, str]) -> str:
    """The failures of the same job that came before in a row of equal ones."""
    names = [link(to_failure(name, chosen), of_job(name)) for name in ids]
    return f'<p class="ett-quiet">Before it in the row: {", ".join(names)}</p>' if names else ""


def _hues(colours: Mapping[str, str], meanings: Mapping[str, str]) -> str:
    parts = "".join(
        f'<span title="{escape(meanings.get(name, ""))}"><i style="background:{hue}"></i>{name}</span>'
        for name, hue in colours.items()
    )
    return f'<div class="ett-hues">{parts}</div>'


def _line_row(line: EvidenceLine, zone: tzinfo) -> str:
    role = mark(line.role, ROLE_COLOURS.get(line.role, ROLE_COLOURS[""])) if line.role else ""
    return (
        f'<tr class="ett-line" data-role="{escape(line.role)}"><td>{moment(line.time, zone)[11:]}</td>'
        f"<td>{line.after_s:+.1f} s</td><td><bdi>{escape(line.where)}</bdi></td>"
        f"<td><bdi>{escape(line.source)}</bdi></td><td>{role}</td>"
        f'<td class="ett-text"><bdi>{escape(line.text)}</bdi></td></tr>'
    )
