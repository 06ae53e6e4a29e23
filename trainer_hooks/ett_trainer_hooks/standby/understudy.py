"""The standby itself: prepares, waits, and then runs the program in the place of a rank.

Forked by the keeper before anything was imported. While it waits, the hooks are off, and the signals
that stop a job are ignored: it is no part of that yet, and dies with its keeper. When it takes over,
environment, arguments, working directory, standard streams and signals become those of the rank that
torchrun has started, and the program runs as `__main__` from its first line, in this process.
"""

from __future__ import annotations

import builtins
import ctypes
import importlib
import json
import os
import runpy
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from ett_trainer_hooks.standby.handing_over import PASSED_ON, STANDARD, by_number, parted
from ett_trainer_hooks.standby.wanted import OURS, Wanted

STANDS_FOR = "ETT_STANDS_FOR"
"""`standby:rank`, the processes; for a standby that has taken over, and whoever asks when it was started."""
_PR_SET_PDEATHSIG = 1
READY, FAILED = b"ready", b"failed "
MESSAGE_BYTES = 4096


class State:
    """What this process has prepared, and with what the rank was started in whose place it runs."""

    result: Any = None
    started_with: Mapping[str, str] | None = None


def stand_by(link: socket.socket, wanted: Wanted, keeper: int) -> Callable[[], None]:
    """Prepare, tell the keeper, wait; returns what runs the program once a rank has come for it."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != keeper:
        os._exit(0)
    policy, first_to_go = run_when_idle(), offer_memory()
    _, module, program, arguments = parted(wanted.argv) or ([], "", "", [])
    sys.path[0] = wanted.cwd if module else str(Path(program).resolve().parent)
    try:
        State.result = function_of(wanted.function)(*wanted.arguments)
        check_devices()
    except BaseException as error:  # noqa: BLE001 - of the trainer's function; told, and the end of this
        traceback.print_exc()
        link.send((FAILED + f"{type(error).__name__}: {error}".encode())[:MESSAGE_BYTES])
        os._exit(1)
    link.send(READY)
    told, streams, _, _ = socket.recv_fds(link, MESSAGE_BYTES, 1 + len(STANDARD))
    if not told:
        os._exit(0)
    link.close()
    offer_memory(first_to_go)
    take_over(json.loads(told_in(streams[0])), streams[1:], int(told), policy, wanted)
    return lambda: run(module, program, arguments)


def function_of(name: str) -> Callable[..., Any]:
    """The function that `module:name` stands for."""
    module, _, path = name.partition(":")
    found: Any = importlib.import_module(module)
    for word in path.split("."):
        found = getattr(found, word)
    function: Callable[..., Any] = found
    return function


def check_devices() -> None:
    """RuntimeError where preparing has begun to use an accelerator, whose memory the rank needs."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        raise RuntimeError("what was prepared uses the GPU, which belongs to the rank that trains")


def take_over(
    asked: Mapping[str, Any], streams: Sequence[int], rank_pid: int, policy: int, wanted: Wanted
) -> None:
    """Become what the rank would have been; `rank_pid` is its process, `policy` how it is scheduled."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    for given, standard in zip(streams, STANDARD, strict=True):
        os.dup2(given, standard)
        os.close(given)
    for text in (sys.stdout, sys.stderr):
        text.reconfigure(line_buffering=text.isatty())  # type: ignore[union-attr]
    os.setsid()
    os.chdir(asked["cwd"])
    os.umask(asked["umask"])
    become(asked["environ"], wanted.environ)
    sys.orig_argv[:] = asked["argv"]
    State.started_with = asked["started_with"]
    os.environ[STANDS_FOR] = f"{os.getpid()}:{rank_pid}"
    for thread in threads_below(os.getpid()):
        with suppress(ProcessLookupError):  # it has ended
            if os.sched_getscheduler(thread) == os.SCHED_IDLE:
                os.sched_setscheduler(thread, policy, os.sched_param(0))
    restore_random_numbers()
    for number in by_number(PASSED_ON):
        signal.signal(number, handler(number, ignored=number in asked["ignored"]))


def become(environ: Mapping[str, str], before: Mapping[str, str]) -> None:
    """Have the variables of the rank, and those that preparing has set besides the ones of `before`."""
    set_since = {name: text for name, text in os.environ.items() if name not in before and name not in OURS}
    os.environ.clear()
    os.environ.update({**set_since, **environ})


def handler(number: int, *, ignored: bool) -> Any:  # noqa: ANN401 - as `signal`
    """What Python does with a signal when it starts."""
    if ignored:
        return signal.SIG_IGN
    return signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL


def restore_random_numbers() -> None:
    """Torch draws the numbers that it draws in a process that has just started."""
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.default_generator.set_state(torch.Generator().get_state())


def run(module: str, program: str, arguments: Sequence[str]) -> None:
    """Run a program as `python program` or, where `module` is `-m`, as `python -m program` does."""
    main = ModuleType("__main__")
    main.__builtins__ = builtins  # type: ignore[attr-defined]
    sys.modules["__main__"] = main
    sys.argv = [program, *arguments]
    if module:
        runpy._run_module_as_main(program)  # type: ignore[attr-defined]  # noqa: SLF001 - what `python -m` calls
        return
    main.__file__ = program
    main.__loader__ = SourceFileLoader("__main__", program)
    code = compile(Path(program).read_bytes(), program, "exec", dont_inherit=True)
    exec(code, main.__dict__)  # noqa: S102 - the program of the rank


def run_when_idle() -> int:
    """Run only where the trainer leaves a processor idle, if that can be taken back later; the policy so far.

    A low priority is not enough: a process that has a processor keeps it for some milliseconds when a
    rank wakes up, which waits for others many times a step. From one that runs when idle it is taken at once.
    """
    before = os.sched_getscheduler(0)
    if before not in (os.SCHED_OTHER, os.SCHED_BATCH):
        return before
    child = os.fork()
    if child == 0:
        try:
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
            os.sched_setscheduler(0, before, os.sched_param(0))
        except OSError:
            os._exit(1)
        os._exit(0)
    if os.waitpid(child, 0)[1] == 0:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    return before


def threads_below(process: int) -> Iterator[int]:
    """The threads of a process and of all that it has started, such as workers of a loader."""
    with suppress(OSError):  # it has ended, or the kernel does not tell of children
        for thread in Path(f"/proc/{process}/task").iterdir():
            yield int(thread.name)
            for child in (thread / "children").read_text().split():
                yield from threads_below(int(child))


def offer_memory(score: str = "1000") -> str:
    """Where memory runs out, have the kernel end this process first, or as before; the score so far."""
    path = Path("/proc/self/oom_score_adj")
    try:
        before = path.read_text().strip()
        path.write_text(score)
    except OSError:  # no such file, or not allowed
        return "0"
    return before


def told_in(descriptor: int) -> bytes:
    """All that lies in a file in memory, which is closed."""
    with open(descriptor, "rb") as file:
        file.seek(0)
        return file.read()
