"""Saves and loads of torch, safetensors and Lightning, and of distributed checkpoints, as phases.

Wrappers around public functions, on the thread that trains. Durable is said only where it is known:
of files that are closed, once the program has gone on to its next step (so that a checkpoint of
several files, which may wait for other ranks, is whole), by rank 0, dated to the end of the save; of
distributed saves as by the adapter for them (`adapters.dcp`), by the coordinator.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any

from ett_trainer_hooks.auto.recorder import AutomaticRecorder
from ett_trainer_hooks.auto.state import holds_optimizer, is_state
from ett_trainer_hooks.auto.watch import Watch
from ett_trainer_hooks.recording.spans import SaveSpan

if TYPE_CHECKING:
    from ett_trainer_hooks.adapters.dcp import Fate

Function = Callable[..., Any]


def saving(watch: Watch, save: Function) -> Function:
    """`torch.save`: a checkpoint where it is of state, else another piece of work.

    In memory only where the state is also an optimizer's; nobody knows where that goes.
    """

    @wraps(save)
    def observed(obj: object, f: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as torch.save
        if not watch.here:
            return save(obj, f, *args, **kwargs)
        guard, recorder = watch.recorder.guard, watch.recorder
        on_disk = is_path(f) or is_file(f)
        if not guard.call(is_state if on_disk else holds_optimizer, obj):
            if not on_disk:
                return save(obj, f, *args, **kwargs)
            with watch.whole(), recorder.phase("torch_save"):
                return save(obj, f, *args, **kwargs)
        step = recorder.step
        with watch.whole(), recorder.checkpoint(step) as span, telling_why(recorder, f):
            result = save(obj, f, *args, **kwargs)
            span.bytes = size_of(f) if on_disk else None
        if on_disk:
            recorder.saved(step, f, size=span.bytes)
        return result

    return observed


def saving_to(place: int, name: str) -> Callable[[Watch, Function], Function]:
    """A wrapper of a function that saves state to a path, its argument number `place`, called `name`."""

    def wrapper(watch: Watch, save: Function) -> Function:
        @wraps(save)
        def observed(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as theirs
            if not watch.here:
                return save(*args, **kwargs)
            path = kwargs.get(name, args[place] if len(args) > place else None)
            step = watch.recorder.step
            with watch.whole(), watch.recorder.checkpoint(step) as span, telling_why(watch.recorder, path):
                result = save(*args, **kwargs)
                span.bytes = size_of(path)
            watch.recorder.saved(step, path, size=span.bytes)
            return result

        return observed

    return wrapper


def loading(watch: Watch, load: Function) -> Function:
    """`torch.load`: it is known afterwards what was in there."""

    @wraps(load)
    def observed(f: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as torch.load
        if not watch.here or not (is_path(f) or is_file(f)):
            return load(f, *args, **kwargs)
        recorder = watch.recorder
        began_s = recorder.monotonic()
        with watch.whole():
            result = load(f, *args, **kwargs)
        is_checkpoint = recorder.guard.call(is_state, result)
        recorder.past_phase(
            "checkpoint_load" if is_checkpoint else "torch_load", began_s, recorder.monotonic()
        )
        if is_checkpoint:
            recorder.loaded(f)
        return result

    return observed


def saving_together(watch: Watch, save: Function) -> Function:
    """`torch.distributed.checkpoint.save`: durable when it returns, on all ranks."""

    @wraps(save)
    def observed(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as torch's
        if not watch.here:
            return save(*args, **kwargs)
        recorder = watch.recorder
        place = kwargs.get("checkpoint_id")
        with watch.whole(), recorder.checkpoint(recorder.step) as span, telling_why(recorder, place):
            result = save(*args, **kwargs)
            span.bytes = recorder.guard.call(_bytes_of, result)
        recorder.guard.call(_tell, recorder, span, kwargs)
        return result

    return observed


def saving_asynchronously(watch: Watch, save: Function) -> Function:
    """`torch.distributed.checkpoint.async_save`: durable when its future says so."""

    @wraps(save)
    def observed(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as torch's
        if not watch.here:
            return save(*args, **kwargs)
        recorder = watch.recorder
        began_s = recorder.monotonic()
        with watch.whole(), recorder.checkpoint(recorder.step, mode="async") as span:
            result = save(*args, **kwargs)
        recorder.guard.call(_follow, recorder, span, kwargs, result, began_s)
        return result

    return observed


def loading_together(watch: Watch, load: Function) -> Function:
    """`torch.distributed.checkpoint.load`."""

    @wraps(load)
    def observed(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as torch's
        if not watch.here:
            return load(*args, **kwargs)
        with watch.whole(), watch.recorder.phase("checkpoint_load"):
            result = load(*args, **kwargs)
        watch.recorder.loaded(place_of(kwargs))
        return result

    return observed


def loading_caches(watch: Watch, load: Function) -> Function:
    """`torch.compiler.load_cache_artifacts`: what was compiled elsewhere comes in."""

    @wraps(load)
    def observed(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as torch's
        if not watch.here:
            return load(*args, **kwargs)
        with watch.whole(), watch.recorder.phase("cache_load"):
            return load(*args, **kwargs)

    return observed


def _tell(recorder: AutomaticRecorder, span: SaveSpan, arguments: Mapping[str, Any]) -> None:
    """A save is complete on all ranks: one of them says so."""
    _fate(recorder, span, arguments).tell(span.blocking_s)


def _follow(
    recorder: AutomaticRecorder,
    span: SaveSpan,
    arguments: Mapping[str, Any],
    response: Any,  # noqa: ANN401 - torch's
    began_s: float,
) -> None:
    """Have told what becomes of an upload."""
    from ett_trainer_hooks.adapters.dcp import Flight, follow  # noqa: PLC0415 - it imports torch

    follow(Flight(_fate(recorder, span, arguments), began_s), response, span.blocking_s)


def _fate(recorder: AutomaticRecorder, span: SaveSpan, arguments: Mapping[str, Any]) -> Fate:
    from ett_trainer_hooks.adapters.dcp import Fate  # noqa: PLC0415 - it imports torch

    def note() -> None:
        recorder.note_save(span.saved_step, place_of(arguments))

    return Fate(recorder, span, None, arguments, note)


def _bytes_of(metadata: object) -> int | None:
    """Bytes that all ranks wrote, None where the storage does not say."""
    from ett_trainer_hooks.adapters.dcp import bytes_of  # noqa: PLC0415 - it imports torch

    return bytes_of(metadata)


def place_of(arguments: Mapping[str, Any]) -> object:
    """Where a distributed checkpoint lies: its id, else the path of the storage that was given.

    >>> place_of({"checkpoint_id": "saves/8"}), place_of({"storage_reader": object()})
    ('saves/8', None)
    """
    if (place := arguments.get("checkpoint_id")) is not None:
        return place
    storage = arguments.get("storage_writer") or arguments.get("storage_reader")
    return getattr(storage, "path", None)


@contextmanager
def telling_why(recorder: AutomaticRecorder, target: object) -> Iterator[None]:
    """What may explain why the save inside raised is told before the exception goes on.

    An error of the operating system says so itself; nobody asks a file system that is in trouble.
    """
    try:
        yield
    except OSError:
        raise
    except Exception:
        recorder.save_broke(target)
        raise


def is_path(target: object) -> bool:
    """A file that the function opens and closes itself."""
    return isinstance(target, str | os.PathLike)


def is_file(target: object) -> bool:
    """An open file of the operating system, not one in memory."""
    try:
        return isinstance(target.fileno(), int)  # type: ignore[attr-defined]
    except (AttributeError, OSError, ValueError):
        return False


def size_of(target: Any) -> int | None:  # noqa: ANN401 - a path or an open file
    """Bytes of what was written, None where nobody can say."""
    try:
        return os.stat(target if is_path(target) else target.fileno()).st_size  # noqa: PTH116 - or a descriptor
    except (AttributeError, OSError, TypeError, ValueError):
        return None
