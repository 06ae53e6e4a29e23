"""Stages of a start: declared with what they need, run side by side where none needs the other.

Execution: `run` is called on the thread that trains and returns when all stages are done. Stages
with `main=True` run on that thread, one after another in the order in which they are declared, so
that collectives come in the same order on all ranks; every other stage runs on a thread of its own
as soon as what it needs is there. Each is a phase of its track. The first failure cancels the
rest: what has not begun never begins, what runs sees `cancelled` set.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ett_core.waits import LONGEST_WAIT_S
from ett_trainer_hooks.pipeline.critical_path import Ran, critical_path, hidden_s, worked_s
from ett_trainer_hooks.recording.compiling import track_of_this_thread
from ett_trainer_hooks.recording.recorder import Recorder
from ett_trainer_hooks.recording.spans import MAIN_TRACK, PhaseSpan, describe

PATIENCE_S = 5.0
"""Seconds that a failure waits for the stages that run to see it."""


@dataclass(frozen=True)
class Here:
    """What a stage is given beside the results that it needs."""

    span: PhaseSpan
    """The phase under way; set `resumed_step` on it where it is known."""
    cancelled: threading.Event
    """Set once another stage has failed: what takes long looks at it and returns early."""


@dataclass(frozen=True)
class Stage:
    """One piece of a start: `work(here, *results of needs)`, whose result is that of the stage.

    Raises:
        ValueError: it needs itself, or something twice.
    """

    name: str
    work: Callable[..., Any]
    needs: tuple[str, ...] = ()
    """Names of stages declared before."""
    phase: str = ""
    """What the recorder calls it; its name where nothing is given."""
    main: bool = False
    """On the calling thread: for collectives, and for work that leaves no time to other threads."""

    def __post_init__(self) -> None:
        """Refuse what can never begin."""
        if self.name in self.needs or len(set(self.needs)) < len(self.needs):
            raise ValueError(f"stage {self.name!r} needs itself, or a stage twice: {', '.join(self.needs)}")


def run(
    stages: Sequence[Stage], recorder: Recorder, *, side_by_side: bool = True, patience_s: float = PATIENCE_S
) -> dict[str, Any]:
    """Run all stages; returns their results by name.

    Without `side_by_side` they run one after another on the calling thread, in the order declared.
    With it, a `decision` tells the critical path and the seconds hidden behind it.

    Raises:
        ValueError: a name is taken twice, or a need is not declared before the stage.
        BaseException: what the first stage to fail raised. A stage on another thread that does not
            look at `cancelled` may still be running after `patience_s`; its thread is a daemon.
    """
    check(stages)
    start = _Start(stages, recorder, side_by_side)
    threads = [threading.Thread(target=start.take, args=(s,), name=s.name, daemon=True) for s in start.sides]
    for thread in threads:
        thread.start()
    try:
        for stage in start.mains:
            start.take(stage)
        start.wait()
    except BaseException as error:  # noqa: BLE001 - of a signal handler; raised again below
        start.fail("a signal", error)
    if start.failed:
        deadline_s = recorder.monotonic() + patience_s
        for thread in threads:
            thread.join(timeout=min(max(0.0, deadline_s - recorder.monotonic()), LONGEST_WAIT_S))
        start.tell_failures()
        raise start.failed[0][1]
    if side_by_side:
        start.tell_path()
    return start.results


def check(stages: Sequence[Stage]) -> None:
    """ValueError where the declaration cannot be run: a name twice, or a need not declared before."""
    known: set[str] = set()
    for stage in stages:
        if stage.name in known:
            raise ValueError(f"two stages are called {stage.name!r}")
        if missing := [name for name in stage.needs if name not in known]:
            raise ValueError(
                f"stage {stage.name!r} needs {', '.join(missing)}, which no stage before it is called"
            )
        known.add(stage.name)


class _Start:
    """The state that the threads of one `run` share; changes are told through one condition."""

    def __init__(self, stages: Sequence[Stage], recorder: Recorder, side_by_side: bool) -> None:  # noqa: FBT001
        self.mains = [stage for stage in stages if stage.main or not side_by_side]
        self.sides = [stage for stage in stages if not (stage.main or not side_by_side)]
        self.results: dict[str, Any] = {}
        self.failed: list[tuple[str, BaseException]] = []
        self._recorder = recorder
        self._training = threading.get_ident()
        self._cancelled = threading.Event()
        self._changed = threading.Condition()
        self._ran: list[Ran] = []
        self._last_on_main: tuple[str, ...] = ()

    def take(self, stage: Stage) -> None:
        """Run a stage once what it needs is there, unless the start is cancelled before."""
        with self._changed:
            self._changed.wait_for(lambda: self.failed or all(name in self.results for name in stage.needs))
            if self.failed:
                return
            given = [self.results[name] for name in stage.needs]
        began_s = self._recorder.monotonic()
        track = track_of_this_thread(self._training)
        try:
            with self._recorder.phase(stage.phase or stage.name, track=track) as span:
                result = stage.work(Here(span, self._cancelled), *given)
        except BaseException as error:  # noqa: BLE001 - raised again by `run`
            self.fail(stage.name, error)
            return
        after = stage.needs
        if track == MAIN_TRACK:
            after, self._last_on_main = (*after, *self._last_on_main), (stage.name,)
        with self._changed:
            self._ran.append(Ran(stage.name, after, began_s, self._recorder.monotonic()))
            self.results[stage.name] = result
            self._changed.notify_all()

    def fail(self, name: str, error: BaseException) -> None:
        """Cancel what has not begun, and let what runs see it."""
        with self._changed:
            self.failed.append((name, error))
            self._cancelled.set()
            self._changed.notify_all()

    def wait(self) -> None:
        """Wait until all stages are done, or one has failed."""
        expected = len(self.mains) + len(self.sides)
        with self._changed:
            self._changed.wait_for(lambda: self.failed or len(self.results) == expected)

    def tell_failures(self) -> None:
        """One decision about a start that was cancelled."""
        (first, error), *others = self.failed
        also = "".join(f"; {name} then failed too: {describe(other)}" for name, other in others)
        done = {*self.results, *(name for name, _ in self.failed)}
        left = [stage.name for stage in (*self.mains, *self.sides) if stage.name not in done]
        rest = f"; never completed: {', '.join(left)}" if left else ""
        self._recorder.decision("start cancelled", f"{first} failed: {describe(error)}{also}{rest}")

    def tell_path(self) -> None:
        """One decision about what the start waited for."""
        hidden = hidden_s(self._ran)
        worked = worked_s(self._ran)
        path = ", ".join(critical_path(self._ran))
        self._recorder.decision(
            "start stages",
            f"critical path: {path}; {hidden:.1f} s of {worked:.1f} s of work hidden by work beside it",
            {"worked_s": worked, "hidden_s": hidden},
        )
