"""How fast a job trains: figures of now and the rate over its life."""

from __future__ import annotations

from ett_dashboard import markup
from ett_dashboard.chart import chart
from ett_dashboard.job.throughput import Pace, between, figure, note, paces, title, unit_of
from ett_dashboard.job.tiles import throughput_tiles
from ett_dashboard.live import shared_reads
from ett_dashboard.prometheus import questions
from ett_dashboard.rows import JobDetail
from ett_dashboard.settings import of_app
from ett_dashboard.views import frame


def show(job: JobDetail) -> None:
    """Draw the figures and, where parts of the job's life are known, the rate in each."""
    is_whole = of_app().source.is_whole
    known = paces(job) if is_whole else _measured(job)
    is_known = any(pace.rate(unit_of(known)) for pace in known)
    nothing = "No stretch of reports is complete so far; the rate over time follows."
    frame.told(
        markup.section("Throughput", "how fast it trains"),
        markup.tiles(throughput_tiles(job)[: None if is_whole else 1]),
        frame.lacking("how long steps take"),
        markup.quiet(note(known) if is_known else nothing),
    )
    if not is_known:
        return
    chart(
        figure(known, job.failure_list, (job.start, job.known_at), frame.zone()),
        title=title(known),
        key="throughput",
        revision=job.job_id,
        zoom=True,
    )


def _measured(job: JobDetail) -> list[Pace]:
    """What a server of metrics saw of it."""
    found = shared_reads().ask(questions.history(job.job_id)).value
    return [] if found is None else between(found.samples_per_s)
