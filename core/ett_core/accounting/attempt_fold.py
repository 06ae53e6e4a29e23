"""One attempt, folded in the order of its events.

The events of an attempt are consumed once each, by ascending time; the fold can be marked and
taken back to a mark, which is how late events find their place. After something that may have
ended the attempt, events are held back: if the leader then goes on training (or, after a success,
another rank ends), it was the end of a single rank and they are consumed after all; else they
are what its processes said after the end, and count for nothing but the teardown.
"""

from __future__ import annotations

from collections.abc import Callable

from ett_core.accounting.attempt_events import HANDLERS, AttemptEvents
from ett_core.accounting.attempt_state import SUCCEEDED, AttemptMark
from ett_core.events import AnyEvent, AttemptEnd, AttemptStart, Event, Failure, Progress
from ett_core.refusals import HeldBackError

_FRAMING = frozenset({AttemptStart, AttemptEnd, Failure})


class AttemptFold(AttemptEvents):
    """The fold of one attempt: `consume` its events, `mark` it, `restore` a mark."""

    __slots__ = ()

    def consume(self, at_ns: int, event: AnyEvent) -> None:
        """Fold the next event, which is not earlier than any before it."""
        self.version += 1
        self.last_ns = at_ns
        if self.first_ns is None or type(event) in _FRAMING:
            self._frame(at_ns, event)
        if self._over_ns is not None and at_ns > self._over_ns:
            self._hold_back(at_ns, event)
        else:
            self._take(at_ns, event)

    def consume_late(self, at_ns: int, event: AnyEvent) -> None:
        """Fold an event that came after the next attempt had started, or the job had ended.

        It can tell when the attempt started and how it ended, and nothing else.
        """
        self.version += 1
        self.last_ns = at_ns
        self._frame(at_ns, event)
        if not isinstance(event, (AttemptEnd, Failure)):
            return
        if self._over_ns is not None and at_ns > self._over_ns:
            self._hold_back(at_ns, event)
        else:
            HANDLERS[type(event)](self, at_ns, event)

    def _frame(self, at_ns: int, event: Event) -> None:
        """Learn when the attempt began and when, at the earliest, it ended.

        Its start counts only from what came before its first end, survived or not.
        """
        if self.first_ns is None:
            self.first_ns = at_ns
        if isinstance(event, AttemptStart):
            if self._first_bad_ns is None or at_ns <= self._first_bad_ns:
                self._started(at_ns, event)
        elif isinstance(event, Failure) or (isinstance(event, AttemptEnd) and event.status != SUCCEEDED):
            self._first_bad_ns = at_ns if self._first_bad_ns is None else self._first_bad_ns

    def _hold_back(self, at_ns: int, event: AnyEvent) -> None:
        """Something came after what may have been the end."""
        if type(event) not in HANDLERS:
            return
        self._held_back.append((at_ns, event))
        if isinstance(event, (AttemptEnd, Failure)):
            if self.ender is None:
                self._go_on()
            elif isinstance(event, AttemptEnd):
                self.teardown_ns = at_ns
        elif isinstance(event, Progress) and event.rank >= 0 and self._trained_since(at_ns, event):
            self._go_on()

    def _trained_since(self, at_ns: int, report: Progress) -> bool:
        """Whether this is a report of the leader with new steps, all of them after the end."""
        leader = min((r for r in (self.leader, self._late_leader) if r is not None), default=None)
        if leader is not None and report.rank > leader:
            return False
        if report.rank == self._late_leader:
            begin_ns = self._late_report_ns
        elif report.rank == self.leader and self.loop is not None:
            begin_ns = self.loop.prev_ns
        else:
            begin_ns = self._loop_begin_if_taken(at_ns)
        self._late_leader, self._late_report_ns = report.rank, at_ns
        return report.steps > 0 and self._over_ns is not None and begin_ns >= self._over_ns

    def _loop_begin_if_taken(self, at_ns: int) -> int:
        """When the loop would begin if what was held back had been taken, the ends apart."""
        mark = self.mark()
        for held_ns, event in self._held_back:
            if not isinstance(event, (AttemptEnd, Failure)):
                _fold_held(self._take, held_ns, event)
        begin_ns = self.entered().loop_ns
        self.restore(mark)
        return at_ns if begin_ns is None else begin_ns

    def _go_on(self) -> None:
        """It was not the end: take what was held back."""
        held_back, self._held_back = self._held_back, []
        if self.ender is not None:
            self.survived += 1
        self.ender = self.succeeded_ns = self.teardown_ns = self._over_ns = None
        self._late_leader, self._late_report_ns = None, 0
        for at_ns, event in held_back:
            _fold_held(self.consume, at_ns, event)

    def mark(self) -> AttemptMark:
        """What `restore` needs to come back to this point."""
        return AttemptMark(
            self._values(),
            tuple(self._held_back),
            self.resumed,
            len(self.durable),
            None if self.loop is None else (self.loop, self.loop.mark()),
            self.ranks.mark(),
        )

    def restore(self, mark: AttemptMark) -> None:
        """Forget every event consumed after `mark`."""
        self.version += 1
        self._told_anew(0 if mark.loop is None else mark.loop[1].prev_ns)
        self._set_values(mark.values)
        self._held_back = list(mark.held_back)
        self.resumed = mark.resumed
        self.durable.cut(mark.durable)
        self.loop = None
        if mark.loop is not None:
            self.loop, loop_mark = mark.loop
            self.loop.restore(loop_mark)
        self.ranks.restore(mark.ranks)


def _fold_held(fold: Callable[[int, AnyEvent], None], at_ns: int, event: AnyEvent) -> None:
    """Fold an event that was held back; what goes wrong with it is not laid to the one that came last."""
    try:
        fold(at_ns, event)
    except HeldBackError:
        raise
    except Exception as error:
        raise HeldBackError(at_ns, event) from error
