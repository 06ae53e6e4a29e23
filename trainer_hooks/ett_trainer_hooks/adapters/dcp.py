"""Checkpoints by torch.distributed.checkpoint, told as they come about.

`save`, `async_save` and `load` do what torch's functions of these names do, with the same arguments,
results and exceptions, and are called on the training thread of every rank. What an asynchronous
save comes to is told by the thread that completes its future. One save at a time is in flight in a
process: the next one first waits for it, and that wait is told apart. `wait` before
`recorder.close()` lets the last one be told too.

Durable is said by one rank, the coordinator of the save, once its future is complete: by then every
rank has written its part and the metadata, which makes the checkpoint exist, is in its place.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import torch.distributed as dist
import torch.distributed.checkpoint as torch_dcp

from ett_trainer_hooks import Recorder
from ett_trainer_hooks.recording.spans import PhaseSpan, SaveSpan, describe

TRACK = "checkpoint"
"""The track of what goes on beside the training: `checkpoint_staging`, `checkpoint_upload`."""

LATE = "a save was complete only after the recorder was closed; dcp.wait(recorder) before that has it told"

METADATA_FILES = (".metadata", "__0.metadata")
"""What torch's writer for file systems writes last: with collectives, and without."""


def save(
    recorder: Recorder,
    state_dict: dict[str, Any],
    *,
    step: int,
    durable: bool | None = None,
    **arguments: Any,  # noqa: ANN401 - as torch's
) -> Any:  # noqa: ANN401 - as torch's
    """Save together with the other ranks, as `torch.distributed.checkpoint.save`.

    `durable`: this rank says that the checkpoint is durable when the call returns. By default the
    coordinator does; with `no_dist` in a job of several ranks nobody, as none knows of the others.
    Say False where it takes more to make the checkpoint exist, such as a rename.
    """
    with recorder.checkpoint(step) as span:
        _wait_for_previous(recorder, span)
        metadata = torch_dcp.save(state_dict, **arguments)
        span.bytes = recorder.guard.call(bytes_of, metadata)
    fate = Fate(recorder, span, durable, arguments)
    recorder.guard.call(fate.tell, span.blocking_s)
    return metadata


def async_save(
    recorder: Recorder,
    state_dict: dict[str, Any],
    *,
    step: int,
    durable: bool | None = None,
    **arguments: Any,  # noqa: ANN401 - as torch's
) -> Any:  # noqa: ANN401 - as torch's
    """Begin to save together with the other ranks, as `torch.distributed.checkpoint.async_save`.

    Blocked are: the wait for the save before, then the call itself, in which a stager that is not
    asynchronous copies the state. Give the save a gloo `process_group` of its own, so that its
    collectives never meet those of the training.
    """
    with recorder.checkpoint(step, mode="async") as span:
        _wait_for_previous(recorder, span)
        began_s = time.monotonic()
        response = torch_dcp.async_save(state_dict, **arguments)
        staged_s = time.monotonic() - began_s
    recorder.guard.call(follow, Flight(Fate(recorder, span, durable, arguments), began_s), response, staged_s)
    return response


def load(
    recorder: Recorder,
    state_dict: dict[str, Any],
    *,
    step: int | Callable[[], int] | None = None,
    **arguments: Any,  # noqa: ANN401 - as torch's
) -> None:
    """Load together with the other ranks, as `torch.distributed.checkpoint.load`.

    `step` is the step that training resumes from, or a function that tells it after loading, such
    as `lambda: state["step"]`.
    """
    with recorder.phase("checkpoint_load") as span:
        torch_dcp.load(state_dict, **arguments)
        told = recorder.guard.call(step) if callable(step) else step
        span.resumed_step = None if told is None else recorder.guard.call(int, told)


def wait(recorder: Recorder) -> None:
    """Wait until the save in flight, if there is one, is complete and told; its error is not raised here."""
    flight = _flights.get(recorder)
    if flight is not None and not flight.over.is_set():
        with recorder.phase("checkpoint", step=flight.step):
            flight.over.wait()


def wait_for_staging(recorder: Recorder) -> None:
    """Wait until the state is copied: call it before the weights change, where the stager is asynchronous."""
    flight = _flights.get(recorder)
    if flight is not None and not flight.staged.is_set():
        with recorder.phase("checkpoint", step=flight.step):
            flight.staged.wait()


class Fate:
    """What is to be said of a save once all its ranks are through, and whether this rank says it.

    `arguments` are those that torch got; `then` is called once the save was called durable here.
    """

    def __init__(
        self,
        recorder: Recorder,
        span: SaveSpan,
        durable: bool | None,  # noqa: FBT001 - as in `save`
        arguments: Mapping[str, Any],
        then: Callable[[], None] = lambda: None,
    ) -> None:
        self.recorder = recorder
        self.span = span
        self.spoken_here = recorder.guard.call(coordinates, arguments) if durable is None else durable
        self.place = recorder.guard.call(place_of, arguments)
        self._then = then

    def tell(self, duration_s: float) -> None:
        """The save returned after `duration_s`: it is durable, unless what makes it exist is missing."""
        if not self.spoken_here:
            return
        step, mode = self.span.saved_step, self.span.mode
        if self.place is None or has_metadata(self.place):
            self.recorder.durable(step, mode=mode, bytes=self.span.bytes, duration_s=duration_s)
            self._then()
        else:
            self.fail(f"the save returned, but there is no metadata in {self.place}")

    def fail(self, message: str) -> None:
        """The checkpoint will never exist."""
        self.recorder.checkpoint_failed(self.span.saved_step, message, mode=self.span.mode)


class Flight:
    """An asynchronous save on its way; `staged` and `over` are set once that is so and told."""

    def __init__(self, fate: Fate, began_s: float) -> None:
        self.fate = fate
        self.recorder = fate.recorder
        self.step = fate.span.saved_step
        self.staged = threading.Event()
        self.over = threading.Event()
        self._heard = fate.recorder.active
        self._began_s = began_s
        self._upload_began_s = began_s
        self._beside: PhaseSpan | None = None

    def begin_staging(self) -> None:
        """The stager goes on beside the training."""
        self._begin("checkpoint_staging")

    def begin_upload(self, staging_s: float) -> None:
        """The copy, which took `staging_s` to make, is on its way to the storage."""
        self.fate.span.staging_s = staging_s
        self._upload_began_s = time.monotonic()
        self._begin("checkpoint_upload")

    def staging_done(self, future: Any) -> None:  # noqa: ANN401 - a future
        """A stager that goes on beside the training has copied the state, or failed to."""
        try:
            self.recorder.guard.call(self._staging_done, future.exception())
        finally:
            self.staged.set()

    def upload_done(self, future: Any) -> None:  # noqa: ANN401 - a future
        """The save is complete, on all ranks, or has failed."""
        try:
            self.recorder.guard.call(self._upload_done, future)
        finally:
            self._leave()

    def give_up(self, error: BaseException) -> None:
        """Nobody can tell what becomes of the save."""
        self._end(error)
        self._leave()

    def _leave(self) -> None:
        """Nothing more is told of the save, and nobody waits for it."""
        if _flights.get(self.recorder) is self:
            del _flights[self.recorder]
            self.recorder.last_words = None
        self.staged.set()
        self.over.set()

    def cut_short(self) -> None:
        """The process ends before the save is complete."""
        self.fate.fail("the process ended before the save was complete")

    def _begin(self, name: str) -> None:
        self._beside = self.recorder.phase(name, track=TRACK, step=self.step).__enter__()

    def _end(self, error: BaseException | None) -> None:
        if self._beside is not None:
            self._beside.__exit__(None if error is None else type(error), error, None)
            self._beside = None

    def _staging_done(self, error: BaseException | None) -> None:
        self._end(error)
        if error is None:
            self.begin_upload(time.monotonic() - self._began_s)

    def _upload_done(self, future: Any) -> None:  # noqa: ANN401 - a future
        error = future.exception()
        self._end(error)
        if self._heard and not self.recorder.active:
            self.recorder.guard.say_once("late", LATE)
        elif error is not None:
            self.fate.fail(describe(error))
        else:
            now_s = time.monotonic()
            span = self.fate.span
            span.upload_s = now_s - self._upload_began_s
            span.bytes = self.recorder.guard.call(bytes_of, future.result())
            self.recorder.save_ended(span)
            self.fate.tell(now_s - self._began_s)


_flights: WeakKeyDictionary[Recorder, Flight] = WeakKeyDictionary()


def follow(flight: Flight, response: Any, staged_s: float) -> None:  # noqa: ANN401 - torch's
    """Have what becomes of a save told by the futures that torch gave.

    Raises:
        Exception: they are none that tell; nobody waits for the save then.
    """
    _flights[flight.recorder] = flight
    flight.recorder.last_words = flight.cut_short
    try:
        _attach(flight, response, staged_s)
    except BaseException as error:
        flight.give_up(error)
        raise


def _attach(flight: Flight, response: Any, staged_s: float) -> None:  # noqa: ANN401 - torch's
    staging = getattr(response, "staging_completion", None)
    if staging is None:
        flight.staged.set()
        flight.begin_upload(staged_s)
    else:
        flight.begin_staging()
        staging.add_done_callback(flight.staging_done)
    getattr(response, "upload_completion", response).add_done_callback(flight.upload_done)


def _wait_for_previous(recorder: Recorder, span: SaveSpan) -> None:
    flight = _flights.get(recorder)
    if flight is not None:
        began_s = time.monotonic()
        flight.over.wait()
        span.wait_previous_s = time.monotonic() - began_s


def coordinates(arguments: Mapping[str, Any]) -> bool:
    """Whether this rank knows of all others that a save with these arguments is complete."""
    if not (dist.is_available() and dist.is_initialized()):
        return True
    if arguments.get("no_dist"):
        return bool(dist.get_world_size() == 1)
    return bool(dist.get_rank(arguments.get("process_group")) == 0)


def bytes_of(metadata: Any) -> int | None:  # noqa: ANN401 - torch's
    """Bytes of tensors and objects that all ranks wrote, None where the storage does not say."""
    parts = (getattr(metadata, "storage_data", None) or {}).values()
    return sum(int(part.length) for part in parts) if parts else None


def place_of(arguments: Mapping[str, Any]) -> Path | None:
    """The directory that torch's own writer for file systems writes to; None for other storage."""
    writer, place = arguments.get("storage_writer"), arguments.get("checkpoint_id")
    if writer is None:
        return Path(place)  # type: ignore[arg-type] # a save without both has raised
    if type(writer) is not torch_dcp.FileSystemWriter:
        return None
    return Path(writer.path if place is None else place)


def has_metadata(place: Path) -> bool:
    """Whether the metadata is there, or the place is none of this machine's directories."""
    return not place.is_dir() or any((place / name).is_file() for name in METADATA_FILES)
