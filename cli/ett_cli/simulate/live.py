"""Playing a fleet as it happens: events are delivered when they are due, by the clock.

What lies before the moment of starting is delivered at once. What comes after it can be hurried:
moments and durations shrink together, so that shares of time stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from msgspec.structs import replace

from ett_cli.simulate.sinks import Sink
from ett_cli.simulate.voices import Told
from ett_core.events import (
    AttemptStart,
    Checkpoint,
    CheckpointDurable,
    Compile,
    Event,
    Evidence,
    Progress,
    StepSeconds,
)

FLUSH_EVERY_S = 1.0

_DURATIONS: Mapping[type[Event], tuple[str, ...]] = {
    Progress: ("data_wait_s",),
    Checkpoint: ("wait_previous_s", "blocking_s", "staging_s", "upload_s"),
    CheckpointDurable: ("duration_s",),
    Compile: ("native_compile_s",),
}
_MOMENTS: Mapping[type[Event], tuple[str, ...]] = {
    AttemptStart: ("process_started_at", "allocated_at"),
    Evidence: ("observed_at",),
}


class Hurry:
    """Shrinks time after a moment, in Unix seconds, by a factor.

    >>> Hurry(1000.0, 60.0).moment(1120.0), Hurry(1000.0, 60.0).moment(900.0)
    (1002.0, 900.0)
    """

    def __init__(self, since: float, speed: float) -> None:
        self._since = since
        self._speed = speed

    def moment(self, at: float) -> float:
        """Where a moment comes to lie."""
        return at if at <= self._since else self._since + (at - self._since) / self._speed

    def event(self, event: Event) -> Event:
        """The event with its moments moved and, where it is moved, its durations shortened."""
        if self._speed == 1.0 or event.time <= self._since:
            return event
        moved = replace(event, time=self.moment(event.time))
        kind = type(event)
        shorter = {name: self._s(getattr(event, name)) for name in _DURATIONS.get(kind, ())}
        earlier = {name: self._moved(getattr(event, name)) for name in _MOMENTS.get(kind, ())}
        if isinstance(event, Progress):
            steps = event.step_seconds
            if steps is not None:
                steps = StepSeconds(steps.count, steps.sum / self._speed, steps.max / self._speed)
            moved = replace(moved, step_seconds=steps)
        elif isinstance(event, Compile):
            stages = {name: seconds / self._speed for name, seconds in event.stage_seconds.items()}
            moved = replace(moved, stage_seconds=stages)
        return replace(moved, **shorter, **earlier)

    def _s(self, seconds: float | None) -> float | None:
        return None if seconds is None else seconds / self._speed

    def _moved(self, at: float | None) -> float | None:
        return None if at is None else self.moment(at)


def play(  # noqa: PLR0913 - the world is injected
    told: Iterable[Told],
    sink: Sink,
    *,
    begin: float,
    now: float,
    speed: float,
    wall: Callable[[], float],
    sleep: Callable[[float], None],
    caught_up: Callable[[int], None] = lambda _: None,
) -> int:
    """Deliver each event when it is due, history at once; returns how many were delivered.

    `begin` is the beginning of the window and `now` the moment at which playing starts, in Unix
    seconds; `wall` is the clock that is played by. `caught_up` is told how many events were history, once
    all of it is delivered.
    """
    hurry = Hurry(now, speed)
    delivered = 0
    flushed_at = wall()
    is_history = True
    try:
        for at_ms, event in told:
            due = hurry.moment(begin + at_ms / 1000)
            if is_history and due > now:
                is_history = False
                sink.flush()
                caught_up(delivered)
                flushed_at = wall()
            while (left_s := due - wall()) > 0:
                if wall() - flushed_at >= FLUSH_EVERY_S:
                    sink.flush()
                    flushed_at = wall()
                sleep(min(left_s, FLUSH_EVERY_S))
            sink.take(hurry.event(event))
            delivered += 1
            if due > now and wall() - flushed_at >= FLUSH_EVERY_S:
                sink.flush()
                flushed_at = wall()
    except KeyboardInterrupt:
        pass
    sink.flush()
    return delivered
