"""Pieces of HTML that the app draws itself. Pure: rows to strings.

Every word that does not stand in this file goes through `escape`, and what comes from a job
through `plain` before. `<bdi>` keeps a right-to-left name from turning its neighbours round.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from ett_core.colours import state_group
from ett_core.components import GROUP_COLOURS
from ett_core.purposes import LABEL, no_training
from ett_dashboard.addresses import changed, to_csv, to_job, to_page
from ett_dashboard.rows import Job, JobDetail
from ett_dashboard.states import sentence
from ett_dashboard.words import Sentence, duration, many, plain

GROUP_TITLES = {
    "effective": ("Effective", "training whose effect survives"),
    "idleness": ("Idleness", "no failure was needed to lose these seconds"),
    "failure": ("Failure", "lost to failures and what follows them"),
    "unknown": ("Unknown", "nobody observed these seconds; they are not called idle or lost"),
}


def of_job(text: str, limit: int = 120) -> str:
    """A word that comes from a job, inert."""
    return f"<bdi>{escape(plain(text, limit))}</bdi>"


def chip(state: str) -> str:
    """The state of a job as a coloured mark."""
    colour = GROUP_COLOURS[state_group(state)]
    return f'<span class="ett-chip" style="--hue:{colour}">{escape(state.replace("_", " "))}</span>'


def page_head(title: str, aside: str) -> str:
    """Title of a page with what stands at its right."""
    return (
        f'<div class="ett-head"><h1>{escape(title)}</h1><span class="ett-aside">{escape(aside)}</span></div>'
    )


def job_head(job: Job, now: float) -> str:
    """Name, state and describing words of a job, and the sentence that says how it is."""
    words = sentence(job, now)
    facts = [word for word in (job.team, job.model, job.cluster, job.scheduler) if word]
    facts += [f"{many(job.accelerators, 'accelerator')} ({job.accelerator_type})"] if job.accelerators else []
    facts += [many(job.world_size, "rank")] if job.world_size else []
    identity = [job.job_id] if job.job_name and job.job_name != job.job_id else []
    small = " · ".join(of_job(word, 60) for word in [*identity, *facts])
    return (
        f'<div class="ett-job"><div class="ett-name"><h1>{of_job(job.title)}</h1>{chip(job.state)}</div>'
        f'<div class="ett-facts">{small}</div>{said(words)}</div>'
    )


def purpose_of_job(job: JobDetail) -> str:
    """What a job does that is not there to train; nothing of one that is."""
    text = no_training({LABEL: job.purpose, **job.labels})
    return f'<p class="ett-said">{of_job(text, 400)}</p>' if text else ""


def said(words: Sentence) -> str:
    """A sentence with its advice."""
    do = f'<span class="ett-do">{escape(words.do)}</span>' if words.do else ""
    return f'<p class="ett-said">{escape(words.how[:1].upper() + words.how[1:])}. {do}</p>'


def attention(jobs: Sequence[Job], now: float, asked: Mapping[str, str] | None = None) -> str:
    """The jobs in trouble, one line each, with a way to them that keeps what was asked for."""
    rows = "".join(
        f'<a class="ett-alarm ett-go" href="{escape(to_job(job.job_id, asked))}" target="_self">'
        f"{chip(job.state)}<b>{of_job(job.title, 48)}</b>"
        f"<span>{escape(sentence(job, now).how)}</span></a>"
        for job in jobs
    )
    return f'<div class="ett-alarms">{rows}</div>'


def tiles(items: Iterable[tuple[str, str, str]], *, lead: bool = False) -> str:
    """Figures side by side: label, value, and the definition that shows on hover.

    With `lead` the first one stands out.
    """
    cells = "".join(
        f'<div class="ett-tile" data-name="{escape(label)}" title="{escape(meaning)}" tabindex="0">'
        f"<span>{escape(label)}</span><strong>{escape(value)}</strong></div>"
        for label, value, meaning in items
    )
    return f'<div class="ett-tiles{" ett-lead" if lead else ""}">{cells}</div>'


def stacked(*pieces: str) -> str:
    """Pieces one below the other, at the distance that parts of a page keep; without the empty ones."""
    shown = [f"<div>{piece}</div>" for piece in pieces if piece]
    return f'<div class="ett-stack">{"".join(shown)}</div>' if shown else ""


def heads(columns: Sequence[tuple[str, str]]) -> str:
    """The heads of columns: the title of each, and the definition that shows on hover."""
    return "".join(f'<th title="{escape(meaning)}">{escape(title)}</th>' for title, meaning in columns)


def section(title: str, note: str = "", *, legend: bool = False) -> str:
    """Heading of a part of a page; with `legend` it says the colours of the groups."""
    hues = "".join(
        f'<span title="{meaning}"><i style="background:{GROUP_COLOURS[group]}"></i>{name}</span>'
        for group, (name, meaning) in GROUP_TITLES.items()
    )
    colours = f'<span class="ett-legend">{hues}</span>' if legend else ""
    return f'<div class="ett-section"><h2>{escape(title)}</h2><span>{escape(note)}</span>{colours}</div>'


def unreachable(source: str, error: str, age_s: float | None) -> str:
    """The banner that says that what is shown of a source is old."""
    kept = "Nothing was read so far." if age_s is None else f"What you see is {duration(age_s)} old."
    why = f"<b>{escape(source)} cannot be read:</b> {of_job(error, 200)}."
    return f'<div class="ett-banner" role="alert">{why} {kept}</div>'


def from_metrics(url: str) -> str:
    """The banner that says that the figures are those of metrics."""
    what = "what only the API of an exporter knows is marked where it would stand."
    return (
        f'<div class="ett-note" role="note"><b>Metrics only</b>, read from {of_job(url, 120)}: {what}</div>'
    )


def lacking(said: str) -> str:
    """What stands in the place of what the source does not have."""
    return f'<p class="ett-quiet ett-lacking">{escape(said[:1].upper() + said[1:])}.</p>'


def navigation(pages: Sequence[tuple[str, str]], here: str, asked: Mapping[str, str]) -> str:
    """The bar on top: title and address of each page; shared choices of the address go along."""
    mark = {here: ' aria-current="page"'}
    ways = "".join(
        f'<a class="ett-go" href="{escape(to_page(path, asked))}" target="_self"{mark.get(path, "")}>'
        f"{escape(title)}</a>"
        for title, path in pages
    )
    return f'<nav class="ett-nav" aria-label="Pages"><b>ettwatch</b>{ways}</nav>'


def board_link(url: str) -> str:
    """The way to the board in Grafana that shows the same."""
    title = "The same as a board in Grafana, in a new tab"
    return (
        f'<nav class="ett-nav" aria-label="Grafana"><a href="{escape(url)}" target="_blank" rel="noopener"'
        f' title="{title}">Board ↗</a></nav>'
    )


def under_table(
    shown: int,
    total: int,
    more: bool,  # noqa: FBT001 - as told
    asked: Mapping[str, str],
    others: Sequence[str] = (),
) -> str:
    """How much of the jobs is shown, the way to more, to all of them as a file, and to other files."""
    count = f"{shown:,} of {total:,} jobs shown. " if shown < total else ""
    way = link(changed("", asked, rows="more"), "Show more") + " · " if count and more else ""
    table = to_keep(to_csv("jobs", **asked), "Download as CSV")
    return f'<p class="ett-take">{count}{way}{" · ".join([table, *others])}</p>'


def csv_link(name: str, label: str = "Download as CSV", **asked: str) -> str:
    """The way to a table as a file, of what is asked for."""
    return f'<p class="ett-take">{to_keep(to_csv(name, **asked), label)}</p>'


def to_keep(address: str, label: str) -> str:
    """The way to a file."""
    return f'<a href="{escape(address)}" download>{escape(label)}</a>'


def scrolled(html: str, title: str) -> str:
    """A wide piece that scrolls by itself, by keyboard too; `title` says what it is."""
    return f'<div class="ett-scroll" tabindex="0" role="region" aria-label="{escape(title)}">{html}</div>'


def lines(text: str, title: str) -> str:
    """Lines as they were told, in a box of a bounded height; `title` says what they are.

    The button copies all of them (`assets/copy.js`).
    """
    button = f'<button type="button" class="ett-copy" aria-label="Copy: {escape(title)}">Copy</button>'
    box = scrolled(f'<pre class="ett-lines">{escape(text)}</pre>', title)
    return f'<div class="ett-copied">{button}{box}</div>'


def link(address: str, html: str) -> str:
    """A way to a page of the app."""
    return f'<a class="ett-go" href="{escape(address)}" target="_self">{html}</a>'


def choices(groups: Sequence[tuple[str, Sequence[tuple[str, str, bool]]]]) -> str:
    """Links in groups with a title; of each link title, address, and whether it is chosen."""
    told = "".join(
        f'<span class="ett-choice"><i>{escape(title)}</i>{"".join(_choice(*link) for link in links)}</span>'
        for title, links in groups
    )
    title = ", ".join(title for title, _ in groups)
    return f'<nav class="ett-choices" aria-label="{escape(title)}">{told}</nav>'


def _choice(title: str, address: str, chosen: bool) -> str:  # noqa: FBT001 - a part of a link
    current = ' aria-current="true"' if chosen else ""
    return f'<a class="ett-go" href="{escape(address)}" target="_self"{current}>{of_job(title, 60)}</a>'


def quiet(text: str) -> str:
    """A short word where there is nothing to show."""
    return f'<p class="ett-quiet">{escape(text)}</p>'


def empty(title: str, lines: Sequence[str], code: str = "") -> str:
    """What a page without data says: what to do next."""
    said_lines = "".join(f"<p>{escape(line)}</p>" for line in lines)
    block = f"<pre>{escape(code)}</pre>" if code else ""
    return f'<div class="ett-empty"><h2>{escape(title)}</h2>{said_lines}{block}</div>'


def versions(job: JobDetail) -> str:
    """Versions and labels of a job as words."""
    pairs = [*job.versions.items(), *job.labels.items()]
    cells = "".join(f"<span><i>{of_job(name, 40)}</i> {of_job(value, 80)}</span>" for name, value in pairs)
    return f'<div class="ett-pairs">{cells}</div>'
