"""Saves and loads of torch, safetensors and Lightning, and of distributed checkpoints, as phases.

Wrappers around public functions, on the thread that trains. Durable is said only where it is known:
of files that are closed, once the program has gone on to its next step (so that a checkpoint of
several files, which may wait for other ranks, is whole), by rank 0; of a distributed save that
returned; of an asynchronous one whose upload is complete. It is dated to the end of the save.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from ett_trainer_hooks.auto.state import holds_optimizer, is_state
from ett_trainer_hooks.auto.watch import Watch
from ett_trainer_hooks.recording.spans import describe

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
        with watch.whole(), recorder.checkpoint(step) as span:
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
            with watch.whole(), watch.recorder.checkpoint(step) as span:
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
        step = watch.recorder.step
        with watch.whole(), watch.recorder.checkpoint(step) as span:
            result = save(*args, **kwargs)
            span.bytes = watch.recorder.guard.call(_bytes_of, result)
        if watch.recorder.identity.rank == 0:
            watch.recorder.durable(step, bytes=span.bytes)
            watch.recorder.note_save(step, place_of(kwargs))
        return result

    return observed


def saving_asynchronously(watch: Watch, save: Function) -> Function:
    """`torch.distributed.checkpoint.async_save`: durable when its future says so."""

    @wraps(save)
    def observed(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as torch's
        if not watch.here:
            return save(*args, **kwargs)
        step = watch.recorder.step
        began_s = watch.recorder.monotonic()
        with watch.whole(), watch.recorder.checkpoint(step, mode="async"):
            result = save(*args, **kwargs)
        watch.recorder.guard.call(_follow, watch, result, step, began_s, place_of(kwargs))
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


def _follow(watch: Watch, result: Any, step: int, began_s: float, place: object) -> None:  # noqa: ANN401 - torch's
    """Say what becomes of an upload; every rank hears of it, one tells."""
    recorder = watch.recorder

    def over(future: Any) -> None:  # noqa: ANN401 - torch's
        error = future.exception()
        if error is not None:
            recorder.checkpoint_failed(step, describe(error), mode="async")
        elif recorder.identity.rank == 0:
            recorder.durable(step, mode="async", duration_s=recorder.monotonic() - began_s)
            recorder.note_save(step, place)

    getattr(result, "upload_completion", result).add_done_callback(
        lambda future: recorder.guard.call(over, future)
    )


def _bytes_of(metadata: object) -> int | None:
    """Bytes that all ranks wrote, None where the storage does not say."""
    from ett_trainer_hooks.adapters.dcp import bytes_of  # noqa: PLC0415 - it imports torch, which is there

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
