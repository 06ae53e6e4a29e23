"""What the pipeline of a job decided, and what it compiled again, on its page."""

from __future__ import annotations

from ett_dashboard import markup
from ett_dashboard.job import questions, told
from ett_dashboard.live import shared_reads
from ett_dashboard.rows import JobDetail
from ett_dashboard.settings import of_app
from ett_dashboard.views import frame
from ett_dashboard.words import many

MOST_DECISIONS = 12
MOST_REASONS = 8


def decisions(job: JobDetail) -> list[str]:
    """The latest decisions, as pieces of HTML."""
    head = markup.section("Decisions", "what its pipeline decided, and why; the latest first")
    if lacking := frame.lacking("what the pipeline of a job decided"):
        return [head, lacking]
    answer = shared_reads().ask(questions.decisions(job.job_id, is_over=job.finished)).value
    if answer is None:
        return [head, markup.quiet("The decisions of this job cannot be read now.")]
    if not answer.decisions:
        return [head, markup.quiet("None so far: no part of the optimised pipeline told of one.")]
    parts = [head, told.decisions_table(answer.decisions[:MOST_DECISIONS], frame.zone())]
    if answer.total > MOST_DECISIONS:
        latest = f"The latest {MOST_DECISIONS} of {many(answer.total, 'decision')}; all of them in the CSV."
        parts.append(markup.quiet(latest))
    return [*parts, markup.csv_link("decisions", id=job.job_id)]


def compiled_again(job: JobDetail) -> list[str]:
    """What was compiled again, and the setting that spares it; nothing where nothing was."""
    if not job.compile or not of_app().source.is_whole:
        return []
    answer = shared_reads().ask(questions.compilations(job.job_id, is_over=job.finished)).value
    rows = told.again(answer.compilations) if answer else []
    if answer is None or not rows:
        return []
    rank = told.latest(answer.compilations)[0].rank
    of_all = f"{answer.again:,} of {many(answer.count, 'compilation')} of the job were made again"
    parts = [
        markup.quiet(f"{of_all}. In its latest attempt, on rank {rank}:"),
        told.again_table(rows[:MOST_REASONS]),
    ]
    if len(rows) > MOST_REASONS:
        parts.append(markup.quiet(f"And {many(len(rows) - MOST_REASONS, 'reason')} more."))
    parts.append(markup.csv_link("compilations", id=job.job_id))
    said, line = told.setting(answer.compilations, answer.torch)
    return [*parts, markup.quiet(said) + markup.lines(line, "Setting")] if line else parts
