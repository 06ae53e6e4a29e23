"""Saves and loads of torch and of its distributed checkpoints, as phases.

Wrappers around the public functions, on the thread that trains. Durable is said only where it is
known: of a file that `torch.save` opened and closed itself, of a distributed save that returned,
of an asynchronous one whose upload is complete.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from typing import Any

from ett_trainer_hooks.auto.state import is_state
from ett_trainer_hooks.auto.watch import Watch
from ett_trainer_hooks.spans import describe

Function = Callable[..., Any]


def saving(watch: Watch, save: Function) -> Function:
    """`torch.save`: a checkpoint where it is of state and goes to a file, else another piece of work."""

    @wraps(save)
    def observed(obj: object, f: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as torch.save
        if not watch.here or not (is_path(f) or is_file(f)):
            return save(obj, f, *args, **kwargs)
        recorder = watch.recorder
        if not watch.recorder.guard.call(is_state, obj):
            with watch.whole(), recorder.phase("torch_save"):
                return save(obj, f, *args, **kwargs)
        step = recorder.step
        with watch.whole(), recorder.checkpoint(step) as span:
            result = save(obj, f, *args, **kwargs)
            span.bytes = size_of(f)
        if is_path(f):
            recorder.durable(step, bytes=span.bytes)
        return result

    return observed


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
        name = "checkpoint_load" if recorder.guard.call(is_state, result) else "torch_load"
        recorder.past_phase(name, began_s, recorder.monotonic())
        return result

    return observed


def saving_together(watch: Watch, save: Function) -> Function:
    """`torch.distributed.checkpoint.save`: durable when it returns, on all ranks."""

    @wraps(save)
    def observed(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as torch's
        if not watch.here:
            return save(*args, **kwargs)
        step = watch.recorder.step
        with watch.whole(), watch.recorder.checkpoint(step):
            result = save(*args, **kwargs)
        if watch.recorder.identity.rank == 0:
            watch.recorder.durable(step)
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
        watch.recorder.guard.call(_follow, watch, result, step, began_s)
        return result

    return observed


def loading_together(watch: Watch, load: Function) -> Function:
    """`torch.distributed.checkpoint.load`."""

    @wraps(load)
    def observed(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as torch's
        if not watch.here:
            return load(*args, **kwargs)
        with watch.whole(), watch.recorder.phase("checkpoint_load"):
            return load(*args, **kwargs)

    return observed


def _follow(watch: Watch, result: Any, step: int, began_s: float) -> None:  # noqa: ANN401 - torch's
    """Say what becomes of an upload; every rank hears of it, one tells."""
    recorder = watch.recorder

    def over(future: Any) -> None:  # noqa: ANN401 - torch's
        error = future.exception()
        if error is not None:
            recorder.checkpoint_failed(step, describe(error), mode="async")
        elif recorder.identity.rank == 0:
            recorder.durable(step, mode="async", duration_s=recorder.monotonic() - began_s)

    getattr(result, "upload_completion", result).add_done_callback(
        lambda future: recorder.guard.call(over, future)
    )


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
    except (OSError, ValueError):
        return None
