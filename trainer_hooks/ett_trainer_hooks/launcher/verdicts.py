"""What the end of a process was, by what is known of it. Pure."""

from __future__ import annotations

import signal
from collections.abc import Mapping

import msgspec

from ett_trainer_hooks.launcher.ranks import Death


class Verdict(msgspec.Struct, frozen=True):
    """What a death was. `exit_code` and `signal` are None where nobody told them."""

    is_failure: bool
    exit_code: int | None = None
    signal: int | None = None


def judge(
    death: Death, *, told: Mapping[int, int], attempt: int, command_status: int | None
) -> Verdict | None:
    """What a death was, by what else is known; None while that is open.

    Args:
        death: of a rank that did not say that it was over.
        told: exit code by process, from the kernel or the log of who started the ranks.
        attempt: the highest attempt of the job so far.
        command_status: of the command, once it is over (minus the signal that ended it).
    """
    process = death.process
    status = told.get(process.pid)
    if status is not None and (status != 0 or command_status is not None):
        return verdict_of_status(status)
    if attempt > process.attempt:
        return Verdict(is_failure=True, exit_code=status)
    if command_status is not None:
        return Verdict(is_failure=command_status != 0)
    return None


def verdict_of_status(status: int) -> Verdict:
    """The verdict on an exit status (minus the signal where one ended the process).

    >>> verdict_of_status(-9)
    Verdict(is_failure=True, exit_code=None, signal=9)
    """
    if status < 0:
        return Verdict(is_failure=True, signal=-status)
    return Verdict(is_failure=status != 0, exit_code=status)


def in_words(who: str, verdict: Verdict, sender: str = "") -> str:
    """A sentence about the end of a process; `sender` is who sent the signal that ended it, where known.

    >>> in_words("rank 1 (pid 12)", Verdict(is_failure=True, signal=9))
    'rank 1 (pid 12) was ended by signal 9 (SIGKILL)'
    >>> in_words("rank 1 (pid 12)", Verdict(is_failure=True, signal=15), "torchrun")
    'rank 1 (pid 12) was ended by signal 15 (SIGTERM), sent by torchrun'
    """
    if verdict.signal is not None:
        by = f", sent by {sender}" if sender else ""
        return f"{who} was ended by signal {verdict.signal}{_signal_name(verdict.signal)}{by}"
    if verdict.exit_code is not None:
        return f"{who} exited with status {verdict.exit_code}"
    return f"{who} is gone without having reported its end"


def status_of(verdict: Verdict) -> int | None:
    """The exit status that a verdict rests on (minus a signal); None where it is not known."""
    return verdict.exit_code if verdict.signal is None else -verdict.signal


def _signal_name(number: int) -> str:
    try:
        return f" ({signal.Signals(number).name})"
    except ValueError:
        return ""
