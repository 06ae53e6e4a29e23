r"""The cause of a failure in short, honest words, from what was reported and nothing more.

Pure functions of one failure. They name what is known (an exception, a signal, an exit code,
a status, silence) and say "unknown" for the rest: who sent a signal, for one, no process can
tell of itself, but a launcher that sent it can.

>>> words(Facts(exception="ValueError", message="bad shape\nin layer 3"))
'ValueError: bad shape'
>>> words(Facts(rank=1, signal=9))
'rank 1 was killed by SIGKILL (sender unknown)'
>>> words(Facts(rank=1, signal=15, message="rank 1 (pid 7) was ended by signal 15, sent by torchrun"))
'rank 1 was stopped by SIGTERM (sent by torchrun)'
>>> words(Facts(rank=0, exit_code=137))
'rank 0 exited with code 137 (as after SIGKILL)'
>>> words(Facts())
'unknown'
"""

from __future__ import annotations

import re
import signal as signals
from collections.abc import Iterable, Mapping

import msgspec

from ett_core.accounting.account import FailureAccount
from ett_core.events import Failure

MAX_WORDS = 300
"""Characters of the longest cause that is given; longer messages are cut."""

_CRASH_SIGNALS = frozenset({"SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGTRAP", "SIGSYS"})
_SENDER = re.compile(
    r"(?:local )?rank \d{1,9} \(pid \d{1,9}\) was ended by signal \d{1,3}(?: \(\w{1,20}\))?,"
    r" sent by (.{1,300}?)(?: before it told anything)?$"
)
_SENT = re.compile(r"rank (\d{1,9}) \(pid \d{1,9}\) was sent (SIG[A-Z]{2,8}) by (.{1,300})")
_UNKNOWN_SENDER = re.compile(r"rank (\d{1,9}) was \w{1,10} by (SIG[A-Z]{2,8}) \((sender unknown)\)")
_STATUS_WORDS = {
    "preempted": "preempted",
    "cancelled": "cancelled",
    "timed_out": "reached its time limit",
}


class Facts(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What was reported of one failure; all of it may be missing."""

    rank: int | None = None
    exception: str | None = None
    message: str | None = None
    signal: int | None = None
    exit_code: int | None = None
    status: str | None = None
    silent: bool = False


def cause_of(failure: FailureAccount) -> str:
    """What ended an attempt, in short words."""
    return words(Facts(**{field: getattr(failure, field) for field in Facts.__struct_fields__}))


def cause_of_event(event: Failure) -> str:
    """What one `failure` event says, in short words."""
    rank = event.rank if event.of_rank is None else event.of_rank
    return words(
        Facts(
            rank=rank,
            exception=event.exception,
            message=event.message,
            signal=event.signal,
            exit_code=event.exit_code,
        )
    )


def words(facts: Facts) -> str:
    """The most telling of the facts, in at most `MAX_WORDS` characters.

    What the program itself said (an exception) comes first, then why it was stopped (a
    preemption, a time limit), how it died (signal, exit code), and at last that it fell silent.
    """
    who = f"rank {facts.rank}" if facts.rank is not None and facts.rank >= 0 else "a process"
    return (
        _of_exception(facts.exception, facts.message)
        or _STATUS_WORDS.get(facts.status or "", "")
        or _of_signal(who, _signal_number(facts.signal, facts.exit_code), sender_in(facts.message))
        or _first_line(facts.message)
        or _of_exit_code(who, facts.exit_code)
        or ("fell silent" if facts.silent else "unknown")
    )[:MAX_WORDS]


def signal_name(number: int) -> str:
    """The name of a signal, `signal 77` for a number without one.

    >>> signal_name(15), signal_name(999)
    ('SIGTERM', 'signal 999')
    """
    try:
        return signals.Signals(number).name
    except ValueError:
        return f"signal {number}"


def sender_in(message: str | None) -> str:
    """Who sent the signal of which a launcher tells; empty where it does not know.

    >>> sender_in("rank 1 (pid 7) was ended by signal 9 (SIGKILL), sent by the launcher, as it did not end")
    'the launcher, as it did not end'
    """
    found = _SENDER.match(_first_line(message))
    return found[1] if found else ""


def senders_told(texts: Iterable[str]) -> dict[tuple[str, str], str]:
    """Who sent which signal to which rank, from what launchers told; by rank and name of the signal.

    >>> senders_told(["rank 1 (pid 7) was sent SIGTERM by torchrun", "no space left"])
    {('1', 'SIGTERM'): 'torchrun'}
    """
    found = (_SENT.fullmatch(text) for text in texts)
    return {(match[1], match[2]): match[3] for match in found if match}


def with_sender(text: str, senders: Mapping[tuple[str, str], str]) -> str:
    """What a rank said of its end, with the sender of the signal where somebody else knows it.

    >>> with_sender("rank 1 was stopped by SIGTERM (sender unknown)", {("1", "SIGTERM"): "torchrun"})
    'rank 1 was stopped by SIGTERM (sent by torchrun)'
    >>> with_sender("rank 2 was stopped by SIGTERM (sender unknown)", {("1", "SIGTERM"): "torchrun"})
    'rank 2 was stopped by SIGTERM (sender unknown)'
    """
    found = _UNKNOWN_SENDER.match(text)
    sender = senders.get((found[1], found[2])) if found else None
    return f"{text[: found.start(3)]}{_sent(sender)}{text[found.end(3) :]}" if found and sender else text


def _of_exception(exception: str | None, message: str | None) -> str:
    if not exception:
        return ""
    line = _first_line(message)
    return f"{exception}: {line}" if line and not line.startswith(exception) else line or exception


def _of_signal(who: str, number: int | None, sender: str) -> str:
    if number is None:
        return ""
    name = signal_name(number)
    if name in _CRASH_SIGNALS:
        return f"{who} crashed with {name}"
    return f"{who} was {'killed' if name == 'SIGKILL' else 'stopped'} by {name} ({_sent(sender)})"


def _sent(sender: str) -> str:
    return f"sent by {sender}" if sender else "sender unknown"


def _of_exit_code(who: str, code: int | None) -> str:
    if not code:
        return ""
    hint = f" (as after {signal_name(code - 128)})" if code in (137, 143) else ""
    return f"{who} exited with code {code}{hint}"


def _signal_number(signal: int | None, exit_code: int | None) -> int | None:
    if signal is not None and signal > 0:
        return signal
    return -exit_code if exit_code is not None and exit_code < 0 else None


def _first_line(message: str | None) -> str:
    return next((line.strip() for line in (message or "").splitlines() if line.strip()), "")
