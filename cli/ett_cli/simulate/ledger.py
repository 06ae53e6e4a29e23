"""The books of a simulated job, kept by whoever invents its events, not by the accounting.

The story tells the ledger what happens as it happens: how long a step trained, what a save blocked,
when a rank died. Amounts and moments are whole nanoseconds. `close` closes the ledger at a moment:
only what had been told by then counts, and what then is under way is cut off there. Two words of the
accounting are needed for that, and taken from its rules: a silence in the loop is a stall beyond
60 s, and a job is lost that has said nothing for 600 s.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from ett_cli.simulate.shares import shares_of_gap, shares_of_start
from ett_cli.simulate.starts import Start
from ett_cli.simulate.training import Training
from ett_cli.simulate.truth import FailureTruth, JobTruth, SavesTruth, SlowTruth
from ett_cli.simulate.voices import NS, Origin
from ett_core.components import BETWEEN_ATTEMPTS

SILENCE_NS = 60 * NS
LOST_NS = 600 * NS


class Ledger:
    """Books of one job, kept while its story is told. Every method says what was just told."""

    def __init__(self, job_id: str, labels: Mapping[str, str], accelerators: int, origin: Origin) -> None:
        self.job_id, self.labels, self.accelerators, self.origin = job_id, labels, accelerators, origin
        self.components: defaultdict[str, int] = defaultdict(int)
        self.failures: list[FailureTruth] = []
        self.incidents: defaultdict[str, int] = defaultdict(int)
        self.slow_ranks: list[SlowTruth] = []
        self.saves = SavesTruth()
        self.caches: dict[str, dict[str, int]] = {}
        self.compile_s: defaultdict[str, float] = defaultdict(float)
        self.events = self.attempts = self.uncounted = 0
        self.samples = 0.0
        self._training = Training()
        self._begin_ns: int | None = None
        self._start: Start | None = None
        self._start_ns = 0
        self._looping = False
        self._since_ns = 0
        """Since when nothing but training was under way in the loop."""
        self._prev_ns = 0
        self._owned_ns = 0
        self._phase: tuple[str, int] | None = None
        self._saves_spoken = False
        self._failed_ns: int | None = None
        self._torn_ns = 0
        self._to_blame: FailureTruth | None = None
        self._vanished_ns: int | None = None
        self._unsaid: FailureTruth | None = None
        self._tts_ns: int | None = None
        self._pending: list[tuple[FailureTruth, int]] = []
        self._outcome = "running"
        self._ended_ns: int | None = None
        self._over_ns: int | None = None

    # -- attempts ----------------------------------------------------------------------------

    def attempt(self, start: Start, start_ns: int, allocated_ns: int | None) -> None:
        """The first word of an attempt."""
        self.attempts += 1
        if self._begin_ns is None:
            self._begin_ns = start_ns if allocated_ns is None else min(start_ns, allocated_ns)
            self._add("start.allocation", start_ns - self._begin_ns)
        else:
            self._pass_gap(start_ns, allocated_ns)
        self._start, self._start_ns = start, start_ns
        self._failed_ns = self._vanished_ns = None
        self._looping = False

    def _pass_gap(self, until_ns: int, allocated_ns: int | None) -> None:
        """Down from the failure to the next attempt, or to the end."""
        failed_ns = self._failed_ns if self._failed_ns is not None else self._lose_silently()
        self._add_all(shares_of_gap(failed_ns, self._torn_ns, until_ns, allocated_ns))

    def resumed(self, step: int) -> None:
        """A rank says which step it goes on from."""
        self._fall_back(step)

    def loop(self) -> None:
        """The first report: everybody trains."""
        assert self._start is not None  # noqa: S101 - a loop follows a start
        begun_ms = self._start.begun_ms
        loop_ns = self._add_start(begun_ms)
        self._looping = True
        self._prev_ns = self._since_ns = loop_ns
        self._owned_ns = 0
        self._began(loop_ns)

    def _began(self, loop_ns: int) -> None:
        assert self._begin_ns is not None  # noqa: S101 - a loop follows a start
        if self._tts_ns is None:
            self._tts_ns = loop_ns - self._begin_ns
        for failure, failed_ns in self._pending:
            failure.ttr_s = (loop_ns - failed_ns) / NS
        self._pending.clear()

    def _add_start(self, until_ms: int, until_ns: int | None = None) -> int:
        """Share out the start up to a moment, at most until all train; returns when that is."""
        assert self._start is not None  # noqa: S101 - callers are in an attempt
        prefix = "recover" if self.failures else "start"
        shares, end_ns = shares_of_start(
            self._start, self.origin, prefix, self._start_ns, (until_ms, until_ns)
        )
        self._add_all(shares)
        return end_ns

    # -- the loop ----------------------------------------------------------------------------

    def report(self, at_ns: int, wait_ns: int, stall_ns: int, step: int) -> None:
        """The leader reports: since its last report it waited, stood still, and else trained."""
        trained_ns = at_ns - self._prev_ns - self._owned_ns - wait_ns - stall_ns
        self._add("data_wait", wait_ns)
        self._add("stalled", stall_ns)
        self._training.add(trained_ns)
        self._prev_ns = self._since_ns = at_ns
        self._owned_ns = 0
        self._training.step = step

    def began(self, component: str, at_ns: int) -> None:
        """A phase begins in the loop."""
        if component == "checkpoint_blocking":
            self._saves_spoken = True
        self._phase = (component, at_ns)

    def ended(self, at_ns: int) -> None:
        """That phase ends."""
        assert self._phase is not None  # noqa: S101 - a story ends what it began
        component, begin_ns = self._phase
        self._add(component, at_ns - begin_ns)
        self._owned_ns += at_ns - begin_ns
        self._since_ns = at_ns
        self._phase = None

    def save_point(self) -> None:
        """A save of the step that was reported last is about to be tried."""
        self._training.save_point()

    def durable(self, step: int) -> None:
        """The checkpoint of a step is durable."""
        self.saves.durable += 1
        self._training.durable(step)

    def saved(self, blocking_ms: int) -> None:
        """A rank tells what a save cost."""
        self.saves.saved += 1
        self.saves.blocking_s += blocking_ms / 1000

    # -- the end -----------------------------------------------------------------------------

    def fail(self, at_ns: int, at_ms: int, failure: FailureTruth) -> None:
        """The first word of a failure."""
        self._failed_ns = self._torn_ns = at_ns
        if not self._looping:
            self._add_start(at_ms, at_ns)
        else:
            self._add_tail(at_ns)
        self.failures.append(failure)
        self._pending.append((failure, at_ns))
        if self._looping or self._to_blame is None:
            self._to_blame = failure
        self._looping = False
        self._phase = None
        if self._saves_spoken:
            self._fall_back(self._training.last_durable())

    def vanish(self, at_ns: int, failure: FailureTruth) -> None:
        """The last word of an attempt that dies without one; a failure only once that is known."""
        self._vanished_ns = at_ns
        self._unsaid = failure

    def _lose_silently(self) -> int:
        at_ns = self._vanished_ns
        assert at_ns is not None  # noqa: S101 - else somebody told of a failure
        assert self._unsaid is not None  # noqa: S101 - told together
        self._vanished_ns = None
        self.fail(at_ns, 0, self._unsaid)
        return at_ns

    def _add_tail(self, at_ns: int) -> None:
        """What came after the last report of an attempt that failed or was ended."""
        if self._phase is not None:
            component, begin_ns = self._phase
            self._add(component, at_ns - begin_ns)
        elif at_ns - self._since_ns > SILENCE_NS:
            self._add("stalled", at_ns - self._since_ns)
        else:
            self._training.add(at_ns - self._since_ns)

    def torn_down(self, at_ns: int) -> None:
        """A process says that a failed attempt is over."""
        self._torn_ns = max(self._torn_ns, at_ns)

    def decided(self, at_ns: int, outcome: str) -> None:
        """The job is ended by decision; its training is kept."""
        self._add_tail(at_ns)
        self._outcome, self._ended_ns = outcome, at_ns

    def succeeded(self, at_ns: int) -> None:
        """A process says that the attempt succeeded; the latest word counts."""
        self._outcome = "succeeded"
        self._add("shutdown", at_ns - self._since_ns)
        self._since_ns = self._ended_ns = at_ns

    def finish(self, at_ns: int) -> None:
        """Nothing will follow."""
        self._over_ns = at_ns
        if self._ended_ns is not None:
            self._add("other", at_ns - self._ended_ns)
        else:
            self._outcome = "failed"
            self._pass_gap(at_ns, None)

    def _fall_back(self, step: int) -> None:
        """Training on steps after `step` is lost, by the failure that the job recovers from."""
        if not self._pending:
            return
        lost_ns = self._training.fall_back(step)
        self._add("unsaved_training", lost_ns)
        if self._to_blame is not None:
            self._to_blame.unsaved_s += lost_ns / NS

    def _add_all(self, shares: Iterable[tuple[str, int]]) -> None:
        for component, amount_ns in shares:
            self._add(component, amount_ns)

    def _add(self, component: str, amount_ns: int) -> None:
        self.components[component] += amount_ns

    # -- the answer --------------------------------------------------------------------------

    def close(self, now_ms: int) -> JobTruth | None:
        """What is true at a moment that nothing told is later than; None before the first word.

        This ends the books: call it once.
        """
        if self._begin_ns is None:
            return None
        now_ns = self.origin.ns(now_ms)
        exposed_ns: int | None = 0
        if self._over_ns is not None:
            now_ns = self._over_ns
        elif self._ended_ns is not None:
            now_ns = self._ended_ns
        elif self._failed_ns is not None or self._is_lost(now_ns):
            self._outcome = "recovering" if self._failed_ns is not None else "lost"
            self._pass_gap(now_ns, None)
        else:
            exposed_ns = self._cut_off(now_ms, now_ns)
        self._add("training", self._training.kept_ns())
        return self._answer(self._begin_ns, now_ns, exposed_ns)

    def _is_lost(self, now_ns: int) -> bool:
        return self._vanished_ns is not None and now_ns - self._vanished_ns > LOST_NS

    def _cut_off(self, now_ms: int, now_ns: int) -> int | None:
        """An attempt is under way; returns the training that would be lost, where that is known."""
        assert self._start is not None  # noqa: S101 - it has begun
        if not self._looping:
            begun = self._start.has_begun(now_ms)
            since_ns = self._add_start(now_ms, None if begun else now_ns)
            if begun:
                self._began(since_ns)
                self._since_ns = since_ns
        if self._looping or begun:
            self._add_tail(now_ns)
        return self._training.exposed_ns() if self._saves_spoken else None

    def _answer(self, begin_ns: int, end_ns: int, exposed_ns: int | None) -> JobTruth:
        components = {name: ns / NS for name, ns in sorted(self.components.items()) if ns}
        wall_s = (end_ns - begin_ns) / NS
        known = components.keys() - BETWEEN_ATTEMPTS
        return JobTruth(
            job_id=self.job_id,
            labels=self.labels,
            accelerators=self.accelerators,
            start=begin_ns / NS,
            end=end_ns / NS,
            wall_s=wall_s,
            finished=self._over_ns is not None or self._ended_ns is not None,
            outcome=self._outcome,
            components=components,
            ett_percent=100 * components.get("training", 0.0) / wall_s if known - {"unobserved"} else None,
            tts_s=None if self._tts_ns is None else self._tts_ns / NS,
            ttr_s=[failure.ttr_s for failure in self.failures],
            unsaved_exposure_s=None if exposed_ns is None else exposed_ns / NS,
            failures=self.failures,
            incidents=dict(sorted(self.incidents.items())),
            slow_ranks=self.slow_ranks,
            attempts=self.attempts,
            uncounted=self.uncounted,
            step=self._training.step,
            samples=self.samples,
            saves=self.saves,
            caches=dict(sorted(self.caches.items())),
            compile_s=dict(sorted(self.compile_s.items())),
            events=self.events,
        )
