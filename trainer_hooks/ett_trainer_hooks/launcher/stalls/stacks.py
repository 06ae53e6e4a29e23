"""What a process that makes no progress is doing, seen from outside and put into bounded text.

Nothing here changes the process. Its Python stacks come from py-spy, which reads its memory
without stopping it; where py-spy is missing or refused, the process is asked by a signal that it
has agreed to (`stack_signal`). What the kernel tells of its threads stands beside them.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from ett_core.reasons import reason_of
from ett_trainer_hooks import stack_signal
from ett_trainer_hooks.launcher.stalls.flight_recorder import dump_of
from ett_trainer_hooks.procfs import PROC

PY_SPY_S = 10.0
STACK_CHARACTERS = 7000
PLACES_TOLD = 5
OWN_THREADS = '"ett-'
STATES = {"R": "running", "S": "sleeping", "D": "waiting inside the kernel, where no signal reaches it",
          "T": "stopped", "t": "stopped by a debugger", "Z": "ended", "X": "ended"}  # fmt: skip
REFUSALS = ("permission denied", "operation not permitted")
REFUSED = (
    "py-spy was refused: it needs the right to trace the process (CAP_SYS_PTRACE, in a container "
    "`--cap-add SYS_PTRACE`, or kernel.yama.ptrace_scope=0)"
)


class Output(msgspec.Struct, frozen=True):
    """What a program wrote, and its exit status; None where it had to be ended."""

    status: int | None
    out: str
    err: str


Runner = Callable[[Sequence[str], float], Output]


def run_program(words: Sequence[str], timeout_s: float) -> Output:
    """Run a program to its end, which comes after `timeout_s` seconds at the latest."""
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, errors="replace", timeout=timeout_s, check=False
        )
    except subprocess.TimeoutExpired:
        return Output(None, "", f"no answer within {timeout_s:g} s")
    except OSError as error:
        return Output(None, "", reason_of(error))
    return Output(done.returncode, done.stdout, done.stderr)


def py_spy_path() -> str | None:
    """The py-spy of this Python, else the one on the path; None where there is none."""
    beside = Path(sys.executable).with_name("py-spy")
    return str(beside) if beside.exists() else shutil.which("py-spy")


def snapshot(  # noqa: PLR0913 - the world is injected
    pid: int,
    rank: int,
    *,
    proc: Path = PROC,
    py_spy: str | None = None,
    run: Runner = run_program,
    ask: Callable[[int], str | None] = stack_signal.ask,
) -> str:
    """All that can be said of a rank: the kernel's view, its flight recorder, its Python stacks."""
    parts = (kernel_view(pid, proc), dump_of(pid, rank, proc=proc), python_stacks(pid, py_spy, run, ask))
    return "\n".join(part for part in parts if part)


def python_stacks(pid: int, py_spy: str | None, run: Runner, ask: Callable[[int], str | None]) -> str:
    """The Python stacks of a process, or why there are none."""
    refusal = "py-spy is not installed beside ett"
    if py_spy is not None:
        seen = run([py_spy, "dump", "--nonblocking", "--pid", str(pid)], PY_SPY_S)
        if seen.status == 0:
            return f"stacks, by py-spy:\n{cut(arranged(seen.out))}"
        refusal = why_not(seen)
    if answer := ask(pid):
        return f"stacks, by faulthandler ({refusal}):\n{cut(turned(answer))}"
    return f"no stacks: {refusal}, and the process did not answer a signal for them"


def why_not(seen: Output) -> str:
    """Why py-spy gave nothing, for a person who can change it."""
    if any(word in seen.err.lower() for word in REFUSALS):
        return REFUSED
    lines = seen.err.strip().splitlines()
    return f"py-spy failed: {lines[0] if lines else f'status {seen.status}'}"


def arranged(text: str) -> str:
    r"""What py-spy wrote, the main thread first and without the threads of the hooks.

    >>> print(arranged('Process 7: python\n\nThread 9 (idle): "ett-journal"\n    a\n\n'
    ...                'Thread 8 (idle): "x"\n    b\n\nThread 7 (idle): "MainThread"\n    c\n'))
    Thread 7 (idle): "MainThread"
        c
    Thread 8 (idle): "x"
        b
    """
    _, *threads = text.split("\nThread ")
    shown = [thread.rstrip() for thread in threads if OWN_THREADS not in thread.partition("\n")[0]]
    shown.sort(key=lambda thread: '"MainThread"' not in thread.partition("\n")[0])
    return "\n".join(f"Thread {thread}" for thread in shown)


def turned(text: str) -> str:
    r"""What faulthandler wrote, the main thread first, which it writes last.

    >>> turned("Thread 0x2:\n  File b\n\nCurrent thread 0x1:\n  File a\n")
    'Current thread 0x1:\n  File a\nThread 0x2:\n  File b'
    """
    return "\n".join(thread.strip() for thread in reversed(text.strip().split("\n\n")))


def cut(text: str, limit: int = STACK_CHARACTERS) -> str:
    r"""The beginning of a text, with a word on what is left out.

    >>> cut("abcdef", 4)
    'abcd\n... (2 more characters)'
    """
    left = len(text) - limit
    return text if left <= 0 else f"{text[:limit]}\n... ({left} more characters)"


def kernel_view(pid: int, proc: Path = PROC) -> str:
    """State and threads of a process as the kernel sees them."""
    main, *others = _threads(pid, proc) or [("", "")]
    if not main[0]:
        return "the process is gone"
    state, where = main
    text = f"process: {state} ({STATES.get(state, 'unknown')})"
    if where:
        text += f", its main thread in {where}"
    if others:
        counts = Counter(f"{state} in {where}" if where else state for state, where in others)
        places = ", ".join(f"{count} {what}" for what, count in counts.most_common(PLACES_TOLD))
        text += f"; {len(others)} more {'thread' if len(others) == 1 else 'threads'}: {places}"
    return f"{text}\n{stack}" if state == "D" and (stack := _kernel_stack(pid, proc)) else text


def _threads(pid: int, proc: Path) -> list[tuple[str, str]]:
    """State and place inside the kernel of each thread, the main one first."""
    try:
        tasks = sorted((proc / str(pid) / "task").iterdir(), key=lambda path: int(path.name))
    except OSError:
        return []
    return [(_state(task), _text(task / "wchan").removeprefix("0")) for task in tasks]


def _state(task: Path) -> str:
    return _text(task / "stat").rpartition(")")[2].strip()[:1]


def _kernel_stack(pid: int, proc: Path) -> str:
    return "\n".join(_text(proc / str(pid) / "stack").splitlines()[:20])


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""
