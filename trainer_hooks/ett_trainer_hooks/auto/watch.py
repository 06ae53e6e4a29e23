"""What a training program does, seen from the seams of torch and told to a recorder.

The seams call in from the program's own threads; only the thread that trains (the one that made
the first optimizer, until then the one that imported torch) is followed. A process is a rank once
it makes an optimizer or joins a process group, unless one that it descends from is a rank already.
Nothing here raises into the program.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from threading import get_ident
from typing import Any

from ett_trainer_hooks.auto.passes import Passes, nothing
from ett_trainer_hooks.auto.recorder import AutomaticRecorder
from ett_trainer_hooks.recording.compiling import track_of_this_thread
from ett_trainer_hooks.recording.spans import PhaseSpan
from ett_trainer_hooks.torch_private import tensor_version

RANK_PID = "ETT_AUTO_RANK_PID"
"""Set in a rank for the processes that it starts, which are none."""

GRADIENTS_SEEN = 8
CYCLE_LIMIT = 64
SETTLED_STEPS = 10
"""Steps after which all that steps need is there, imports too."""


class Watch:
    """Follows one process; see the module. `on` is False once it stands back for good."""

    def __init__(self, recorder: AutomaticRecorder, environ: MutableMapping[str, str] = os.environ) -> None:
        self.recorder = recorder
        self.on = True
        self.thread = get_ident()
        self.inside = False
        """The thread that trains is inside a call that is told as a whole."""
        self.exit_status: object = None
        self.settled: Callable[[], object] = nothing
        """Called once, when the first steps are done."""
        self.passes = Passes(recorder, self.gradients, self.look_for_steps)
        self._environ = environ
        self._optimizers: list[weakref.ref[Any]] = []
        self._cycle: set[int] = set()
        self._batches = 0
        self._steps = 0
        self._aside = False
        self._changes: int | None = None

    @property
    def here(self) -> bool:
        """This call is of the thread that trains, and not inside one that is told already."""
        return self.on and not self.inside and get_ident() == self.thread

    @contextmanager
    def whole(self) -> Iterator[None]:
        """What happens inside is told as a whole by whoever is around it."""
        before, self.inside = self.inside, True
        try:
            yield
        finally:
            self.inside = before

    @contextmanager
    def without_steps(self) -> Iterator[None]:
        """Steps that the training thread makes inside train nothing."""
        before, self._aside = self._aside, self._aside or get_ident() == self.thread
        try:
            yield
        finally:
            self._aside = before

    def rank(self, rank: int | None = None, world_size: int = 0) -> None:
        """This process is a rank; it stands back where it descends from one."""
        if not self.on or self.recorder.declared:
            return
        if self._environ.get(RANK_PID, self._pid()) != self._pid():
            self.on = False
            return
        self._environ[RANK_PID] = self._pid()
        self.recorder.declare(self._environ, rank=rank, world_size=world_size)

    def optimizer_made(self, optimizer: object) -> None:
        """A process that makes an optimizer is going to train."""
        if not self.on:
            return
        if not self._optimizers:
            self.thread = get_ident()
        if len(self._optimizers) < GRADIENTS_SEEN:
            self._optimizers.append(weakref.ref(optimizer))
        self.rank()

    def stepped(self, optimizer: Any) -> None:  # noqa: ANN401
        """An optimizer stepped. Several ones of one batch are one step, one that repeats begins the next."""
        if not self.on or self._aside or get_ident() != self.thread:
            return
        self.passes.before = nothing
        key, batches, cycle = id(optimizer), self.passes.batches, self._cycle
        if cycle and key not in cycle and batches == self._batches:
            if len(cycle) < CYCLE_LIMIT:
                cycle.add(key)
            return
        cycle.clear()
        cycle.add(key)
        self._batches = batches
        if not self.recorder.begun:
            self.recorder.guard.call(self._first_step, optimizer)
        wait_s, self.passes.wait_s = self.passes.wait_s, 0.0
        self.recorder.step_seen(wait_s)
        self._steps += 1
        if self._steps == SETTLED_STEPS:
            self.recorder.guard.call(self.settled)

    def look_for_steps(self) -> None:
        """Count a step that no hook told of: a compiled one changes the parameters all the same."""
        self.recorder.guard.call(self._look_for_steps)

    def _look_for_steps(self) -> None:
        optimizer = next((alive for seen in self._optimizers if (alive := seen()) is not None), None)
        if optimizer is None:
            return
        parameters = optimizer.param_groups[0]["params"][:GRADIENTS_SEEN]
        changes = sum(map(tensor_version, parameters))
        before, self._changes = self._changes, changes
        if before is not None and changes != before and self.recorder.has_compiled:
            self.stepped(optimizer)
            self.passes.before = self.look_for_steps  # this step was none of a hook

    def phase(self, name: str) -> PhaseSpan:
        """A phase of the thread that calls: the main track where it trains, else one of its own."""
        return self.recorder.phase(name, track=track_of_this_thread(self.thread))

    def gradients(self) -> object:
        """A mark that changes with every backward that reaches an optimizer's first parameters."""
        return self.recorder.guard.call(self._gradients)

    def stand_back(self) -> AutomaticRecorder | None:
        """The program records by itself; what was said so far, it goes on with."""
        self.on = False
        self._environ[RANK_PID] = self._pid()
        return self.recorder if self.recorder.declared else None

    def forked(self) -> None:
        """This is a forked child: none of a rank, and one that may still become one otherwise."""
        self.on = self.on and not self.recorder.declared
        self.recorder.forget()
        self.thread = get_ident()

    def finish(self) -> None:
        """The interpreter ends: a success where nothing says otherwise."""
        if not self.on or not self.recorder.declared:
            return
        self.passes.before()
        if not self.recorder.failed:
            self.recorder.settle()
        self.recorder.guard.call(self.passes.finish)
        if not self.recorder.failed and not self.exit_status:
            self.recorder.close("succeeded")

    def noting_exit(self, leave: Callable[..., Any]) -> Callable[..., Any]:
        """`sys.exit` with a note of its status."""

        def exit(status: object = None, /) -> Any:  # noqa: ANN401, A001 - as sys.exit
            self.exit_status = status
            return leave(status)

        return exit

    def _first_step(self, optimizer: Any) -> None:  # noqa: ANN401 - torch's
        self.rank()
        batch = self.passes.current
        now_s = self.recorder.monotonic()
        resumed_step = self.recorder.guard.call(steps_before, optimizer)
        if batch is None or not batch.batches:
            self.recorder.loop_began(now_s, None, resumed_step)
        else:
            self.recorder.loop_began(batch.first_s, batch.asked_s, resumed_step)

    def _gradients(self) -> object:
        marks = []
        for optimizer in (alive for seen in self._optimizers if (alive := seen()) is not None):
            for parameter in optimizer.param_groups[0]["params"][:GRADIENTS_SEEN]:
                gradient = parameter.grad
                marks.append(None if gradient is None else (id(gradient), tensor_version(gradient)))
        return marks

    @staticmethod
    def _pid() -> str:
        return str(os.getpid())


def steps_before(optimizer: Any) -> int | None:  # noqa: ANN401 - torch's
    """Steps that an optimizer had made before its first one here, by its own count.

    Read after that first step. None where it keeps no count, or starts at nothing: a fresh
    optimizer proves no fresh start.
    """
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            count = optimizer.state.get(parameter, {}).get("step")
            if count is not None:
                before = int(count) - 1
                return before if before > 0 else None
    return None
