"""Single facts about a training process: each call is one event, from any thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ett_core import events
from ett_core.redaction import MESSAGE_LIMIT, redacted
from ett_trainer_hooks.clock import Clock
from ett_trainer_hooks.guard import Guard, hook
from ett_trainer_hooks.identity import Identity
from ett_trainer_hooks.journal import Journal, NullJournal
from ett_trainer_hooks.recording.spans import MAIN_TRACK, SaveSpan

BATCHES_SEEN = "hooks.batches_seen"
"""A counter that shows that a pass over the data without steps (an evaluation) goes on."""


class FactRecorder:
    """Sends single events of one identity to a journal. No method raises."""

    def __init__(
        self, identity: Identity, journal: Journal | NullJournal, clock: Clock, guard: Guard
    ) -> None:
        self.identity = identity
        self.guard = guard
        self._journal = journal
        self._clock = clock
        self.caches_told_apart: set[str] = set()
        """Caches whose totals somebody tells who knows more of them than the compiler counts."""

    @property
    def active(self) -> bool:
        """False where the hooks are off, and in a forked child, which is not the process recorded."""
        return bool(self.guard.call(lambda: self._journal.is_open))

    @hook
    def start(
        self,
        *,
        versions: Mapping[str, str] | None = None,
        accelerators: int | None = None,
        accelerator_type: str | None = None,
        config_hash: str = "",
    ) -> None:
        """This attempt exists. `from_env` has said so; call it again to add what it could not know."""
        who = self.identity
        self._emit(
            events.AttemptStart,
            urgent=True,
            world_size=who.world_size,
            accelerators=who.accelerators if accelerators is None else int(accelerators),
            accelerator_type=who.accelerator_type if accelerator_type is None else accelerator_type,
            process_started_at=who.process_started_at,
            allocated_at=who.allocated_at,
            labels=who.labels,
            versions=dict(versions or {}),
            config_hash=config_hash,
        )

    @hook
    def durable(
        self,
        step: int,
        mode: str = "sync",
        bytes: int | None = None,  # noqa: A002 - the name of the field
        duration_s: float | None = None,
    ) -> None:
        """The checkpoint of `step` would now survive the death of the whole job."""
        size = None if bytes is None else int(bytes)
        self._emit(
            events.CheckpointDurable,
            urgent=True,
            step=int(step),
            mode=mode,
            bytes=size,
            duration_s=duration_s,
        )

    @hook
    def save_ended(self, span: SaveSpan) -> None:
        """Called by the span of a checkpoint once its phase is closed."""
        self._emit(
            events.Checkpoint,
            urgent=True,
            step=int(span.saved_step),
            mode=span.mode,
            wait_previous_s=span.wait_previous_s,
            blocking_s=span.blocking_s,
            staging_s=span.staging_s,
            upload_s=span.upload_s,
            bytes=None if span.bytes is None else int(span.bytes),
        )

    @hook
    def checkpoint_failed(self, step: int, message: str, mode: str = "sync") -> None:
        """The checkpoint of `step` will never be durable."""
        self._emit(
            events.CheckpointFailed,
            urgent=True,
            step=int(step),
            mode=mode,
            message=redacted(message)[:MESSAGE_LIMIT],
        )

    @hook
    def cache(  # noqa: PLR0913 - the fields of the event
        self,
        name: str,
        *,
        hits: int = 0,
        misses: int = 0,
        bypasses: int = 0,
        bytes: int | None = None,  # noqa: A002 - the name of the field
        saved_s: float | None = None,
        remote_requests: int | None = None,
        tuned: events.TunedKernel | None = None,
    ) -> None:
        """Totals of a compile cache in this process so far, and the kernel that was just tuned."""
        self._emit(
            events.Cache,
            cache=name,
            hits=int(hits),
            misses=int(misses),
            bypasses=int(bypasses),
            bytes=bytes,
            saved_s=saved_s,
            remote_requests=remote_requests,
            tuned=tuned,
        )

    @hook
    def compile(  # noqa: PLR0913 - the fields of the event
        self,
        *,
        graph: str = "",
        code: str = "",
        stage_seconds: Mapping[str, float] | None = None,
        native_compile_s: float | None = None,
        recompile_reason: str | None = None,
        inputs: Iterable[events.CompileInput] | None = None,
        symbols: Iterable[str] = (),
        remote_requests: int | None = None,
    ) -> None:
        """One compilation is over; seconds by stage, and of the native compiler."""
        self._emit(
            events.Compile,
            graph=graph,
            code=code,
            stage_seconds=dict(stage_seconds or {}),
            native_compile_s=native_compile_s,
            recompile_reason=None if recompile_reason is None else redacted(recompile_reason)[:MESSAGE_LIMIT],
            inputs=None if inputs is None else tuple(inputs),
            symbols=tuple(symbols),
            remote_requests=remote_requests,
        )

    @hook
    def counters(self, values: Mapping[str, float]) -> None:
        """Named totals of this process so far."""
        self._emit(events.Counters, values=dict(values))

    @hook
    def decision(self, what: str, why: str = "", values: Mapping[str, float] | None = None) -> None:
        """Something was decided, in words."""
        self._emit(events.Decision, what=what, why=redacted(why), values=dict(values or {}))

    @hook
    def heartbeat(self) -> None:
        """Alive; the journal says so by itself every ten seconds of silence."""
        self._emit(events.Heartbeat)

    def _tell(self, name: str, began_s: float, ended_s: float) -> None:
        began, ended = self._clock.wall_at(began_s), self._clock.wall_at(ended_s)
        self._emit(events.PhaseBegin, at=began, phase=name, track=MAIN_TRACK)
        self._emit(events.PhaseEnd, at=ended, phase=name, track=MAIN_TRACK)

    def _emit(
        self,
        kind: Callable[..., events.Event],
        *,
        at: float | None = None,
        urgent: bool = False,
        **fields: Any,  # noqa: ANN401 - the fields of the event
    ) -> None:
        """Put an event; a journal that fails costs the event and nothing else."""
        moment = self._clock.now() if at is None else at
        put: Callable[..., None] = self._journal.put
        self.guard.call(put, kind, moment, urgent=urgent, **fields)
