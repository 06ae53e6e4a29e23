"""A slow accounting of one job, written from the numbered rules alone, to check the fast one against.

It takes all events of a job at once and a moment, and follows the rules in the order in which they
are written. Times are whole nanoseconds and shares are fractions, so nothing is ever rounded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise

from ett_core.components import LOOP_COMPONENT_OF_PHASE, init_component
from ett_core.events import AnyEvent, encode

NS = 1_000_000_000
STALL_AFTER, STALL_STEPS = 60 * NS, 10
LOST_AFTER, ABANDON_AFTER = 600 * NS, 6 * 3600 * NS
CLOCK_TOLERANCE = 2 * NS
NEVER = 1 << 62
BY_DECISION = ("cancelled", "timed_out")
CHECKPOINT_KINDS = ("checkpoint", "checkpoint_durable", "checkpoint_failed")
WEAKEST_FIRST = ("unknown", "durable", "reported")


@dataclass(frozen=True)
class Answer:
    """What the scenarios ask for."""

    components: dict[str, float]
    wall_s: float
    ett_percent: float | None
    failures: int
    tts_s: float | None
    ttr_s: list[float | None]
    resume_evidence: str | None


@dataclass(frozen=True)
class Said:
    """An event with its corrected times."""

    at: int
    started: int | None
    event: AnyEvent

    @property
    def kind(self) -> str:
        return self.event.kind

    @property
    def rank(self) -> int:
        return self.event.rank


@dataclass
class Phase:
    """A phase of one rank; `ended` is None while open, `depth` counts the phases around it."""

    name: str
    track: str
    began: int
    depth: int
    order: int
    ended: int | None = None


@dataclass
class Attempt:
    """One attempt, filled in rule by rule."""

    said: list[Said]
    counts: list[Said] = field(default_factory=list)
    silenced: int = NEVER
    start: int = 0
    outcome: str = "running"
    spoke_of_end_at: int = NEVER
    end: int = 0
    heard: list[Said] = field(default_factory=list)
    loop: int | None = None
    critical: int | None = None
    leader: int | None = None
    first_step: int = 0
    fallback: int | None = None
    evidence: str | None = None
    survives_up_to: int | None = None

    @property
    def failed(self) -> bool:
        return self.outcome == "failed"

    @property
    def reports(self) -> list[Said]:
        return [] if self.leader is None else of_kind(self.heard, "progress", self.leader)

    @property
    def last_step(self) -> int:
        return self.reports[-1].event.step if self.reports else self.first_step


@dataclass
class Job:
    """All of a job that the later rules need."""

    attempts: list[Attempt]
    ends: list[Said]
    last_event: int
    now: int
    begin: int = 0
    finish: int = 0
    ends_taken_back: bool = False

    @property
    def ended(self) -> Said | None:
        return self.ends[-1] if self.ends and not self.ends_taken_back else None


def account(events: Sequence[AnyEvent], now: float) -> Answer | None:
    """The accounting of one job at one moment; None where no attempt is known."""
    job = work_out(events, now)
    return answer(job) if job.attempts else None


def work_out(events: Sequence[AnyEvent], now: float) -> Job:
    """The job with all that rules 1 to 6 and 10 say of it."""
    job = read(events, now)
    if not job.attempts:
        return job
    lay_out_starts(job)
    if job.ends and job.ends[-1].at < job.attempts[-1].start:
        job.ends_taken_back = True  # the word that nothing would follow was wrong
    for attempt, following in zip(job.attempts, job.attempts[1:], strict=False):
        attempt.silenced = following.start
    if job.ended is not None:
        job.attempts[-1].silenced = job.ended.at
    for index in range(len(job.attempts)):
        decide_outcome(job, index)
        attempt = job.attempts[index]
        over = min(attempt.spoke_of_end_at, attempt.silenced)
        attempt.counts = [s for s in attempt.said if s.at <= over]
    lay_out_ends(job)
    for attempt in job.attempts:
        over = min(attempt.end, attempt.spoke_of_end_at)
        attempt.heard = [s for s in attempt.said if s.at <= over]
        find_loop(attempt)
    fall_back(job)
    return job


# Rules 1 and 2: which events there are, in which order, at which times.


def read(events: Sequence[AnyEvent], now: float) -> Job:
    said = correct(unique(events))
    of_attempts = [s for s in said if s.kind not in ("job_end", "clock")]
    attempts = [Attempt(part) for part in divide_into_attempts(of_attempts)]
    last_event = max((s.at for s in said if s.kind != "clock"), default=0)
    ends = [s for s in said if s.kind == "job_end"]
    return Job(attempts, ends, last_event, max(in_ns(now), last_event))


def unique(events: Sequence[AnyEvent]) -> list[AnyEvent]:
    """Rule 1: one event under each key."""
    chosen: dict[tuple[str, int], AnyEvent] = {}
    for event in sorted(events, key=lambda e: (e.time, encode(e))):
        chosen.setdefault((event.writer, event.seq), event)
    return list(chosen.values())


def correct(events: Sequence[AnyEvent]) -> list[Said]:
    """Rule 2: clocks; then the order of rule 1."""
    offsets: dict[str, int] = {}
    for event in sorted(events, key=lambda e: (e.time, e.attempt, e.rank, e.writer, e.seq)):
        if event.kind == "clock":
            offsets[event.of_writer] = in_ns(event.offset_s)
    said = []
    for event in events:
        offset = offsets.get(event.writer, 0)
        if abs(offset) <= CLOCK_TOLERANCE:
            offset = 0
        started = getattr(event, "process_started_at", None)
        started = None if started is None else min(in_ns(started), in_ns(event.time)) - offset
        said.append(Said(in_ns(event.time) - offset, started, event))
    return sorted(said, key=lambda s: (s.at, s.event.attempt, s.rank, s.event.writer, s.event.seq))


# Rule 3: attempts and wall time.


def divide_into_attempts(said: list[Said]) -> list[list[Said]]:
    by_number: dict[int, list[Said]] = defaultdict(list)
    for one in said:
        by_number[one.event.attempt].append(one)
    return [part for number in sorted(by_number) for part in divide_reruns(by_number[number])]


def divide_reruns(said: list[Said], whole: list[Said] | None = None) -> list[list[Said]]:
    """A second writer of the lowest rank, after the last word of the first: a restart."""
    ranks = [s.rank for s in said if s.rank >= 0]
    if not ranks:
        return [said]
    of_lowest = [s for s in said if s.rank == min(ranks)]
    last_word: dict[str, int] = {s.event.writer: s.at for s in of_lowest}
    for index, one in enumerate(of_lowest):
        before = {s.event.writer for s in of_lowest[:index]}
        if one.event.writer in before or not before:
            continue
        if all(last_word[writer] < one.at for writer in before):
            whole = said if whole is None else whole
            moment = rerun_moment(whole, max(last_word[writer] for writer in before), one.at)
            first = [s for s in said if s.at < moment]
            return [first, *divide_reruns([s for s in said if s.at >= moment], whole)]
    return [said]


def rerun_moment(said: list[Said], silent: int, moment: int) -> int:
    """Other ranks, and the launcher, may begin again before the lowest one does."""
    for one in said:
        mine = [s for s in said if s.rank == one.rank]
        earlier = {s.event.writer for s in mine if (s.at, s.event.seq) < (one.at, one.event.seq)}
        fresh = one.event.writer not in earlier and earlier
        over = all(s.at < one.at for s in mine if s.event.writer in earlier)
        if silent < one.at < moment and fresh and over:
            return one.at
    return moment


def lay_out_starts(job: Job) -> None:
    """None starts before the one before it."""
    previous = 0
    for attempt in job.attempts:
        bad = earliest_bad_end(attempt)
        attempt.counts = [s for s in attempt.said if bad is None or s.at <= bad.at]
        attempt.start = previous = max(previous, own_start(attempt.counts))


def own_start(said: list[Said]) -> int:
    starts = [s.at if s.started is None else s.started for s in of_kind(said, "attempt_start")]
    return min(starts) if starts else said[0].at


def lay_out_ends(job: Job) -> None:
    """Wall time; no attempt lasts past the start of the next, nothing past the wall time."""
    first, last = job.attempts[0], job.attempts[-1]
    allocated = allocated_at(first)
    job.begin = first.start if allocated is None else min(first.start, allocated)
    job.finish = max(job.begin, wall_finish(job, last))
    nexts = [following.start for following in job.attempts[1:]]
    for attempt, following in zip(job.attempts, [*nexts, NEVER], strict=True):
        attempt.start = min(attempt.start, job.finish)
        attempt.end = max(attempt.start, min(attempt.spoke_of_end_at, following, job.finish))


def wall_finish(job: Job, last: Attempt) -> int:
    if job.ended is not None:
        return job.ended.at
    if last.outcome in ("succeeded", "decided"):
        return max(last.start, last.spoke_of_end_at)
    if last.failed and job.now - job.last_event > ABANDON_AFTER:
        return max(last.start, torn_down(last))
    return job.now


def torn_down(attempt: Attempt) -> int:
    """Rule 11: the latest `attempt_end` of a failed attempt."""
    ends = [s.at for s in of_kind(attempt.said, "attempt_end")]
    return max([attempt.spoke_of_end_at, *ends])


def allocated_at(attempt: Attempt) -> int | None:
    said = [s.event.allocated_at for s in of_kind(attempt.counts, "attempt_start")]
    known = [in_ns(moment) for moment in said if moment is not None]
    return min(known, default=None)


# Rule 4: how an attempt ended.


def decide_outcome(job: Job, index: int) -> None:
    attempt = job.attempts[index]
    is_last = index == len(job.attempts) - 1
    attempt.outcome, attempt.spoke_of_end_at = outcome(job, attempt, index, is_last=is_last)


def outcome(job: Job, attempt: Attempt, index: int, *, is_last: bool) -> tuple[str, int]:
    bad = earliest_bad_end(attempt)
    if bad is not None:
        decided = is_last and bad.kind == "attempt_end" and bad.event.status in BY_DECISION
        return ("decided" if decided else "failed"), bad.at  # (a), (b)
    ends = [s for s in of_kind(attempt.said, "attempt_end") if s.event.status == "succeeded"]
    good = [s.at for s in ends if not survived(attempt, ends[-1])]  # outlived: of a rank, as in (b)
    if not good and is_last and job.ended is not None and job.ended.event.status == "succeeded":
        good = [job.ended.at]
    if not good and not is_last:
        good = successful_job_ends(job, index)
    if good:
        return "succeeded", max(good)  # (c)
    last_word = attempt.said[-1].at
    if not is_last or job.ended is not None or job.now - last_word > LOST_AFTER:
        return "failed", last_word  # (d)
    return "running", NEVER


def successful_job_ends(job: Job, index: int) -> list[int]:
    """Those that came while this attempt was the latest one."""
    start, following = job.attempts[index].start, job.attempts[index + 1].start
    return [s.at for s in job.ends if s.event.status == "succeeded" and start <= s.at < following]


def earliest_bad_end(attempt: Attempt) -> Said | None:
    for one in attempt.said:
        ends = one.kind == "failure" or (one.kind == "attempt_end" and one.event.status != "succeeded")
        if ends and not survived(attempt, one):
            return one
    return None


def survived(attempt: Attempt, bad: Said) -> bool:
    """The leader later sent a report that lies wholly after it and holds new steps."""
    said = [s for s in attempt.said if s.at <= attempt.silenced]
    leader = lowest_reporter(said)
    if leader is None:
        return False
    before, _ = loop_begin(said, 0)
    for report in of_kind(said, "progress", leader):
        if before >= bad.at and report.at > bad.at and report.event.steps > 0:
            return True
        before = report.at
    return False


# Rule 5: unobserved attempts.


def unobserved(attempt: Attempt) -> bool:
    of_ranks = {s.kind for s in attempt.heard if s.rank >= 0}
    if of_ranks & {"phase_begin", "phase_end", "first_batch", "progress"}:
        return False
    return "attempt_start" not in of_ranks or attempt.outcome in ("succeeded", "decided")


# Rule 6: the beginning of the loop.


def find_loop(attempt: Attempt) -> None:
    attempt.leader = lowest_reporter(attempt.heard)
    attempt.loop, attempt.critical = loop_begin(attempt.heard, attempt.start)
    if attempt.loop is not None:
        attempt.loop = min(attempt.loop, attempt.end)


def lowest_reporter(said: list[Said]) -> int | None:
    return min((s.rank for s in said if s.kind == "progress" and s.rank >= 0), default=None)


def loop_begin(said: list[Said], start: int) -> tuple[int | None, int | None]:
    """When the loop began (None: not yet) and the critical rank."""
    ranks = sorted({s.rank for s in said if s.rank >= 0})
    leader = lowest_reporter(said)
    begun = {rank: rank_begun(said, rank) for rank in ranks}
    if leader is None:
        waiting = [rank for rank in ranks if begun[rank] in (None, NEVER)]
        if waiting or not ranks:
            return None, min(waiting, default=None)
    begun = {rank: at for rank, at in begun.items() if at is not None}
    first_report = NEVER if leader is None else of_kind(said, "progress", leader)[0].at
    if not begun:
        return max(start, first_report), leader
    latest = max(begun.values())
    critical = min(rank for rank, at in begun.items() if at == latest)
    return max(start, min(latest, first_report)), critical


def rank_begun(said: list[Said], rank: int) -> int | None:
    """None without a first batch, NEVER while compiling in the first step."""
    first = next((i for i, s in enumerate(said) if s.rank == rank and s.kind == "first_batch"), None)
    if first is None:
        return None
    report = next((i for i, s in enumerate(said) if s.rank == rank and s.kind == "progress"), NEVER)
    compiles = [
        p
        for p in phases_of(said, rank)
        if p.track == "main" and p.name == "compile" and p.began >= said[first].at and p.order < report
    ]
    reported = said[report].at if report != NEVER else NEVER
    ends = [reported if p.ended is None else p.ended for p in compiles]
    return max([said[first].at, *ends])


# Rule 7: phases and the initialisation.


def phases_of(said: list[Said], rank: int) -> list[Phase]:
    phases: list[Phase] = []
    tracks: dict[str, list[Phase]] = defaultdict(list)
    for order, one in enumerate(said):
        if one.rank != rank or one.kind not in ("phase_begin", "phase_end"):
            continue
        stack = tracks[one.event.track]
        if one.kind == "phase_begin":
            stack.append(Phase(one.event.phase, one.event.track, one.at, len(stack), order))
            phases.append(stack[-1])
        elif any(p.name == one.event.phase for p in stack):
            while stack:
                closed = stack.pop()
                closed.ended = one.at
                if closed.name == one.event.phase:
                    break
    return phases


def paint_initialisation(attempt: Attempt, prefix: str) -> Iterator[tuple[str, Fraction]]:
    end = attempt.end if attempt.loop is None else attempt.loop
    phases = [p for p in phases_of(attempt.heard, attempt.critical) if p.began <= end]
    owning = list(phases)
    if attempt.loop is not None:
        owning = [p for p in phases if p.ended is not None and p.ended <= end]
    first_phase = min((p.began for p in phases), default=end)
    moments = [first_phase, *(m for p in owning for m in (p.began, ended_by(p, end)))]
    for low, high in between(attempt.start, end, moments):
        if low < first_phase:
            yield f"{prefix}.process_start", Fraction(high - low)
        else:
            yield init_component(prefix, owner_in_init(owning, low, end)), Fraction(high - low)


def ended_by(phase: Phase, end: int) -> int:
    return end if phase.ended is None else phase.ended


def owner_in_init(owning: list[Phase], moment: int, end: int) -> str:
    open_now = [p for p in owning if p.began <= moment < ended_by(p, end)]
    if not open_now:
        return "other"
    outermost = [p for p in open_now if p.depth == min(q.depth for q in open_now if q.track == p.track)]
    longest = min(outermost, key=lambda p: (-ended_by(p, end), p.began, p.track))
    return max((p for p in open_now if p.track == longest.track), key=lambda p: p.depth).name


# Rules 8 and 9: the loop.


def paint_loop(attempt: Attempt) -> Iterator[tuple[str, Fraction]]:
    phases = loop_phases(attempt)
    before = attempt.loop
    count, total = 0, Fraction(0)
    for report in attempt.reports:
        at = max(report.at, attempt.loop)
        left = Fraction(0)
        for low, high, component in in_loop(before, at, phases):
            if component is None:
                left += high - low
            else:
                yield component, Fraction(high - low)
        wait = min(max(Fraction(in_ns(report.event.data_wait_s)), Fraction(0)), left)
        excess = stall_of(report, limit(count, total))
        stalled = min(excess, left - wait)
        yield "data_wait", wait
        yield "stalled", stalled
        yield from split_by_fate(attempt, report, left - wait - stalled)
        if report.event.step_seconds is not None:
            count += report.event.step_seconds.count
            total += in_ns(report.event.step_seconds.sum) - excess
        before = at
    yield from paint_tail(attempt, before, phases, limit(count, total))


def loop_phases(attempt: Attempt) -> list[Phase]:
    """Those begun in the loop on the leader's main track; a lost end is made by the next report."""
    follows = attempt.leader
    if follows is None:
        follows = min(s.rank for s in attempt.heard if s.rank >= 0)
    phases = [p for p in phases_of(attempt.heard, follows) if p.track == "main" and p.began >= attempt.loop]
    orders = {id(s): order for order, s in enumerate(attempt.heard)}
    for phase in phases:
        if phase.ended is None:
            later = [r.at for r in attempt.reports if orders[id(r)] > phase.order]
            phase.ended = min(later, default=attempt.end)
    return phases


def in_loop(low: int, high: int, phases: list[Phase]) -> Iterator[tuple[int, int, str | None]]:
    for begin, end in between(low, high, [m for p in phases for m in (p.began, p.ended)]):
        open_now = [p for p in phases if p.began <= begin < p.ended]
        inner = max(open_now, key=lambda p: p.depth, default=None)
        yield begin, end, None if inner is None else LOOP_COMPONENT_OF_PHASE.get(inner.name, "other")


def limit(count: int, total: Fraction) -> Fraction:
    """Rule 9: how long a step may take."""
    return max(Fraction(STALL_AFTER), STALL_STEPS * total / count) if count else Fraction(STALL_AFTER)


def stall_of(report: Said, allowed: Fraction) -> Fraction:
    steps = report.event.step_seconds
    if steps is None or in_ns(steps.max) <= allowed:
        return Fraction(0)
    others = steps.count - 1
    mean = Fraction(in_ns(steps.sum) - in_ns(steps.max), others) if others > 0 else Fraction(0)
    return max(in_ns(steps.max) - max(mean, Fraction(0)), Fraction(0))


def split_by_fate(attempt: Attempt, report: Said, training: Fraction) -> Iterator[tuple[str, Fraction]]:
    """Rule 10: kept steps first."""
    up_to, step, steps = attempt.survives_up_to, report.event.step, report.event.steps
    if up_to is None:
        kept = Fraction(1)
    elif steps == 0:
        kept = Fraction(step <= up_to)
    else:
        kept = Fraction(min(max(up_to - (step - steps), 0), steps), steps)
    yield "training", training * kept
    yield "unsaved_training", training * (1 - kept)


def paint_tail(
    attempt: Attempt, begin: int, phases: list[Phase], allowed: Fraction
) -> Iterator[tuple[str, Fraction]]:
    lost = attempt.survives_up_to is not None and attempt.survives_up_to <= attempt.last_step
    quiet = list(join_quiet(in_loop(begin, attempt.end, phases)))
    for low, high, component in quiet:
        if component is not None:
            yield component, Fraction(high - low)
        elif attempt.outcome == "succeeded":
            yield "shutdown", Fraction(high - low)
        elif high - low > allowed:
            yield "stalled", Fraction(high - low)
        else:
            yield "unsaved_training" if lost else "training", Fraction(high - low)


def join_quiet(pieces: Iterator[tuple[int, int, str | None]]) -> list[tuple[int, int, str | None]]:
    """Neighbouring pieces of one owner as one: a stretch is measured as a whole."""
    joined: list[tuple[int, int, str | None]] = []
    for low, high, component in pieces:
        if joined and joined[-1][2] == component:
            joined[-1] = (joined[-1][0], high, component)
        else:
            joined.append((low, high, component))
    return joined


# Rule 10: which steps survive.


def fall_back(job: Job) -> None:
    for index, attempt in enumerate(job.attempts):
        attempt.first_step = first_step(job, index)
        if attempt.failed:
            attempt.fallback, attempt.evidence = fallback_of(job, index)
    lowest: int | None = None
    for attempt in reversed(job.attempts):
        if attempt.fallback is not None:
            lowest = attempt.fallback if lowest is None else min(lowest, attempt.fallback)
        attempt.survives_up_to = lowest


def first_step(job: Job, index: int) -> int:
    """The step an attempt continues from: what it says, else where the one before left the job."""
    declared = declared_step(job.attempts[index])
    if declared is not None:
        return declared
    if index == 0:
        return 0
    before = job.attempts[index - 1]
    if not before.failed:
        return reached(before)
    return before.fallback if before.fallback is not None else 0


def declared_step(attempt: Attempt) -> int | None:
    """What the lowest rank that says one says of its resumed step, else of its first batch."""
    resumed = [(s.rank, getattr(s.event, "resumed_step", None)) for s in attempt.heard]
    resumed = [(rank, step) for rank, step in resumed if step is not None]
    if resumed:
        lowest = min(rank for rank, _ in resumed)
        return [step for rank, step in resumed if rank == lowest][-1]
    for rank in sorted({s.rank for s in attempt.heard if s.rank >= 0}):
        first_batches = of_kind(attempt.heard, "first_batch", rank)
        if first_batches and first_batches[0].event.step is not None:
            return first_batches[0].event.step
    return None


def fallback_of(job: Job, index: int) -> tuple[int | None, str]:
    for following in job.attempts[index + 1 :]:
        declared = declared_step(following)
        if declared is not None:
            return declared, "reported"
        if following.leader is not None:
            break
    failed = job.attempts[index]
    by_then = [s for attempt in job.attempts for s in attempt.heard if s.at <= failed.end]
    if not any(s.kind in CHECKPOINT_KINDS or is_checkpoint_phase(s) for s in by_then):
        return None, "unknown"
    so_far = [s for attempt in job.attempts[: index + 1] for s in attempt.heard if s.at <= failed.end]
    durable = [s.event.step for s in of_kind(so_far, "checkpoint_durable")]
    return max((step for step in durable if step <= reached(failed)), default=0), "durable"


def is_checkpoint_phase(one: Said) -> bool:
    return one.kind == "phase_begin" and one.event.phase == "checkpoint" and one.rank >= 0


def reached(attempt: Attempt) -> int:
    said = [s.event.step for s in attempt.heard if s.kind in ("progress", "checkpoint_durable")]
    return max([attempt.first_step, *said])


# Rule 11 and the answer.


def paint(job: Job) -> Iterator[tuple[str, Fraction]]:
    yield "start.allocation", Fraction(job.attempts[0].start - job.begin)
    prefix = "start"
    for index, attempt in enumerate(job.attempts):
        if unobserved(attempt):
            yield "unobserved", Fraction(attempt.end - attempt.start)
        else:
            yield from paint_initialisation(attempt, prefix)
            if attempt.loop is not None:
                yield from paint_loop(attempt)
        prefix = "recover" if attempt.failed else prefix
        following = job.attempts[index + 1] if index + 1 < len(job.attempts) else None
        yield from paint_gap(job, attempt, following)


def paint_gap(job: Job, attempt: Attempt, following: Attempt | None) -> Iterator[tuple[str, Fraction]]:
    until = job.finish if following is None else following.start
    if not attempt.failed:
        yield "other", Fraction(until - attempt.end)
        return
    down = min(max(torn_down(attempt), attempt.end), until)
    yield "recover.teardown", Fraction(down - attempt.end)
    allocated = None if following is None else allocated_at(following)
    if allocated is None or allocated <= attempt.end:
        yield "recover.restart", Fraction(until - down)
        return
    allocated = min(max(allocated, down), until)
    yield "recover.queue", Fraction(allocated - down)
    yield "recover.allocation", Fraction(until - allocated)


def answer(job: Job) -> Answer:
    amounts: dict[str, Fraction] = defaultdict(Fraction)
    for component, amount in paint(job):
        amounts[component] += amount
    wall = job.finish - job.begin
    assert sum(amounts.values()) == wall, "the components are no partition"
    assert all(amount >= 0 for amount in amounts.values())
    loops = [attempt.loop for attempt in job.attempts]
    ttr = [
        next((loop - attempt.end for loop in loops[index + 1 :] if loop is not None), None)
        for index, attempt in enumerate(job.attempts)
        if attempt.failed
    ]
    tts = next((loop - job.begin for loop in loops if loop is not None), None)
    evidences = [attempt.evidence for attempt in job.attempts if attempt.failed]
    observed = wall - amounts["unobserved"]
    return Answer(
        components={name: float(amount / NS) for name, amount in amounts.items() if amount},
        wall_s=wall / NS,
        ett_percent=float(100 * amounts["training"] / wall) if observed > 0 else None,
        failures=len(ttr),
        tts_s=None if tts is None else tts / NS,
        ttr_s=[None if one is None else one / NS for one in ttr],
        resume_evidence=min(evidences, key=WEAKEST_FIRST.index, default=None),
    )


# Small things.


def in_ns(seconds: float) -> int:
    return round(seconds * NS)


def of_kind(said: Sequence[Said], kind: str, rank: int | None = None) -> list[Said]:
    return [s for s in said if s.kind == kind and (rank is None or s.rank == rank)]


def between(low: int, high: int, moments: Sequence[int]) -> list[tuple[int, int]]:
    """The span from `low` to `high` cut at every moment inside it."""
    cuts = sorted({low, high, *(m for m in moments if low < m < high)})
    return [(a, b) for a, b in pairwise(cuts)]
