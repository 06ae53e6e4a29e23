"""A stage in a process of its own, for work that holds the interpreter: decoding, parsing, making data.

Execution: the thread of the stage starts a fresh interpreter and waits for its answer; what the
function takes and gives is pickled, and the function must be importable. Once the start is
cancelled the process is ended.
"""

from __future__ import annotations

import multiprocessing
import pickle
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from ett_trainer_hooks.pipeline.stages import Here
from ett_trainer_hooks.recording.spans import describe

_LOOK_S = 0.1


def apart(function: Callable[..., Any]) -> Callable[..., Any]:
    """The work of a stage that calls `function` with the results it needs, in a process of its own.

    The work returns None where the start was cancelled. It raises what the function raised
    (`RuntimeError` with its words where that cannot be pickled), or `RuntimeError` where the
    process ended without an answer.

    >>> import threading
    >>> here = Here(None, threading.Event())
    >>> apart(sum)(here, [1, 2, 3])
    6
    """

    def work(here: Here, *given: object) -> object:
        context = multiprocessing.get_context("spawn")
        receiving, sending = context.Pipe(duplex=False)
        process = context.Process(target=_answer, args=(sending, function, given), daemon=True)
        process.start()
        sending.close()
        try:
            while not receiving.poll(_LOOK_S):
                if here.cancelled.is_set():
                    process.kill()
                    return None
            well, result = receiving.recv()
        except EOFError:
            process.join()
            raise RuntimeError(f"the process of a stage ended with {process.exitcode}") from None
        finally:
            process.join()
            receiving.close()
        if not well:
            raise result
        return result

    return work


def _answer(sending: Connection, function: Callable[..., Any], given: tuple[object, ...]) -> None:
    try:
        answer = (True, function(*given))
    except Exception as error:  # noqa: BLE001 - raised where the stage runs
        answer = (False, _portable(error))
    sending.send(answer)


def _portable(error: Exception) -> Exception:
    """The error itself where it survives the way to another process, else its words."""
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 - written the moment before
    except Exception:  # noqa: BLE001 - an exception can fail in any way at this
        return RuntimeError(describe(error))
    return error
