"""What the end of a process proves by itself: very little, and never more than likely.

Pure functions of exit codes and signals, and of the lines in which launchers and shells report
them.
"""

from __future__ import annotations

import re
import signal as signals

import msgspec

from ett_core.failures.classes import UNKNOWN
from ett_core.failures.rule import CASCADE, ROOT, TEARDOWN

FROM_SHELL = 128
"""A shell reports the signal n that ended a process as exit code 128 + n."""


class Ending(msgspec.Struct, frozen=True):
    """What an exit code suggests; of class `unknown` where it suggests nothing.

    `by_abort`: the process ended itself, as it does after an error that it has met elsewhere.
    """

    failure_class: str
    role: str
    by_abort: bool = False


_BY_SIGNAL = {
    "SIGKILL": Ending("host_oom", ROOT),
    "SIGSEGV": Ending("native_crash", ROOT),
    "SIGILL": Ending("native_crash", ROOT),
    "SIGFPE": Ending("native_crash", ROOT),
    "SIGBUS": Ending("native_crash", ROOT),
    "SIGABRT": Ending("native_crash", ROOT, by_abort=True),
    "SIGINT": Ending("user_cancelled", ROOT),
    "SIGHUP": Ending("external_stop", ROOT),
    "SIGTERM": Ending("external_stop", TEARDOWN),
}

SENT = "), sent by "
"""Stands behind a signal in a line of the launcher where it knows who sent it."""
OWN_STOP = Ending("external_stop", TEARDOWN)
"""The end of a process that its launcher, or what it heard of, stopped: never where the trouble began."""

_IN_RANKS = re.compile(
    r"exitcode\s{0,4}:\s{0,2}(-?\d{1,3})\)?(?:.{0,40}?local_rank:\s{0,2}(\d{1,6}))?"
    r"|\b(?:exit|return)[ _]?(?:code|status|value)[ :=]{0,12}(-?\d{1,10})\b"
    r"|\bexited with (?:code|status) (\d{1,3})\b|\bcode=exited, status=(\d{1,3})\b"
    r"|\bmake: \*\*\* \[.{1,200}\] Error (\d{1,3})\b",
    re.IGNORECASE | re.ASCII,
)
_BY_SIGNAL_TOLD = re.compile(
    r"\b(?:ended by|exited on|killed by|terminated by|died from|died with) signal:? (\d{1,2})\b"
    r"|\bSignal (\d{1,2}) \(SIG[A-Z]{2,8}\) received by PID\b",  # torchrun, of a rank without an error file
    re.ASCII,
)
_BY_WORD = re.compile(
    r"(segmentation fault|\baborted\b \(core|\bkilled\b(?=\s{2,}\S|\s*$)|(?<!pcie )bus error"
    r"|illegal instruction"
    r"|floating point exception|core dumped|fatal python error|sigsegv|sigabrt|sigbus|sigill)",
    re.IGNORECASE | re.ASCII,
)
_REPORT = re.compile(
    r"\bfailed \(exitcode\b|\bexits? with return code\b"
    r"|\b(?:rank|worker|process|child|task|replica) \S{1,12} (?:has |was )?"
    r"(?:crashed|exited|failed|ended|died|terminated) with\b",
    re.IGNORECASE | re.ASCII,
)
_BY_ABORT = re.compile(r"sigabrt|\babort(?:ed)?\b", re.IGNORECASE | re.ASCII)
EXIT_NEEDLES = (
    "exitcode",
    "exit code",
    "exit_code",
    "exit status",
    "return code",
    "return value",
    "returncode",
    "exited with status",
    "exited with code",
    "code=exited",
    "make: ***",
    "by signal",
    "on signal",
    "from signal",
    "with signal",
    "received by pid",
)
WORD_NEEDLES = (
    "segmentation fault",
    "aborted",
    "killed",
    "bus error",
    "illegal instruction",
    "floating point exception",
    "core dumped",
    "fatal python error",
    "sigsegv",
    "sigabrt",
    "sigbus",
    "sigill",
)


def of_exit(code: int, *, supervised: bool = False) -> Ending | None:
    """What an exit code (minus a signal where one killed the process) suggests; None for success.

    `supervised`: an elastic agent with several ranks reports it; there SIGABRT is what the
    watchdog of a rank that waited does, not where the trouble began.

    >>> of_exit(-9), of_exit(137).failure_class, of_exit(0)
    (Ending(failure_class='host_oom', role='root', by_abort=False), 'host_oom', None)
    >>> of_exit(1).failure_class, of_exit(-6, supervised=True).failure_class
    ('unknown', 'collective_timeout')
    """
    if code == 0:
        return None
    name = _name(-code if code < 0 else code - FROM_SHELL)
    if name == "SIGABRT" and supervised:
        return Ending("collective_timeout", CASCADE)
    return _BY_SIGNAL.get(name, Ending(UNKNOWN, ROOT))


def exit_in(line: str) -> tuple[Ending, int | None] | None:
    """The end of a process that a line tells of, and the local rank where it says so.

    >>> exit_in("failed (exitcode: -9) local_rank: 1 (pid: 1168) of binary: python")
    (Ending(failure_class='host_oom', role='root', by_abort=False), 1)
    >>> exit_in("traceback : Signal 11 (SIGSEGV) received by PID 4321")
    (Ending(failure_class='native_crash', role='root', by_abort=False), None)
    >>> exit_in("exitcode: 0") is None
    True
    """
    if found := _IN_RANKS.search(line):
        code = next(int(text) for text in (found[1], *found.groups()[2:]) if text is not None)
        ending = of_exit(code, supervised=found[2] is not None)
        return None if ending is None else (ending, int(found[2]) if found[2] else None)
    if found := _BY_SIGNAL_TOLD.search(line):
        ending = OWN_STOP if SENT in line else of_exit(-int(found[1] or found[2]), supervised=True)
        return None if ending is None else (ending, None)
    if found := _BY_WORD.search(line):
        word = found[1].lower()
        ending = Ending(
            "host_oom" if word == "killed" else "native_crash",
            ROOT,
            by_abort=_BY_ABORT.search(line) is not None,
        )
        return ending, None
    return None


def is_report(line: str) -> bool:
    """Whether a launcher tells which of its programs ended: its words are names and prove little.

    >>> is_report("failed (exitcode: 1) local_rank: 0 (pid: 11) of binary: /opt/checkpoint-missing/python")
    True
    """
    return _REPORT.search(line) is not None


def _name(number: int) -> str:
    try:
        return signals.Signals(number).name
    except ValueError:
        return ""
