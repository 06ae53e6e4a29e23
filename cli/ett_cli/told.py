"""A journal read as a log: what the ranks and the launcher said in words, a line each. Pure.

`ett diagnose` is given the directory of a run as often as one of logs; its journals hold the last
words of ranks that left no log of their own, and say whether the job ended well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timezone

from ett_core.accounting import JobFold
from ett_core.events import AnyEvent, Evidence, Failure, decode

OUTPUT = frozenset({"stdout", "stderr"})
"""Sources of evidence that copies what `ett run` keeps in files beside the journal."""


def is_journal(data: bytes) -> bool:
    """Whether this is a journal: its first line is an event.

    >>> is_journal(b"KeyError: 1"), is_journal(b'{"kind": "train", "loss": 0.3}')
    (False, False)
    """
    return data.startswith(b"{") and _decoded(data.partition(b"\n")[0]) is not None


def events_of(data: bytes) -> list[AnyEvent]:
    """The events of a journal; lines that are none are left out."""
    return [event for line in data.splitlines() if (event := _decoded(line)) is not None]


def ended_well(jobs: Mapping[str, Iterable[AnyEvent]], now: float) -> float | None:
    """When all of these jobs had succeeded, in Unix seconds; None where one has not, or there is none.

    `jobs` are the events of each, in any order, `now` Unix seconds. A job succeeds as in its account.
    """
    ends = []
    for job_id, events in jobs.items():
        fold = JobFold(job_id)
        fold.add(list(events))
        account = fold.account(now)
        if account is None or not account.finished or account.state != "succeeded":
            return None
        ends.append(account.end)
    return max(ends, default=None)


def as_log(events: Iterable[AnyEvent], *, has_output: bool) -> bytes:
    r"""The words of a journal as lines with their time and rank.

    Where its launcher `has_output` in files of its own, copies of that are left out.

    >>> head = b'"v":1,"job_id":"j","writer":"w","attempt":0,"rank":1,"node":"n"'
    >>> first = b'{"kind":"heartbeat","seq":0,"time":1.0,' + head + b"}"
    >>> said = b'{"kind":"failure","seq":1,"time":2.0,"message":"ValueError: bad",' + head + b"}"
    >>> as_log(events_of(first + b"\n" + said + b"\n"), has_output=False)
    b'1970-01-01 00:00:02.000000 [rank1]: ValueError: bad'
    """
    return b"\n".join(line.encode() for event in events for line in _lines(event, has_output))


def _lines(event: AnyEvent, has_output: bool) -> Iterator[str]:  # noqa: FBT001 - passed on
    text = ""
    if isinstance(event, Evidence) and not (has_output and event.source in OUTPUT):
        text = event.text
    elif isinstance(event, Failure):
        text = event.message or ""
    at = datetime.fromtimestamp(event.time, timezone.utc).strftime("%Y-%m-%d %H:%M:%S.%f")
    rank = f"[rank{event.rank}]: " if event.rank >= 0 else ""
    for line in text.splitlines():
        yield f"{at} {line}" if line.startswith("[rank") else f"{at} {rank}{line}"


def _decoded(line: bytes) -> AnyEvent | None:
    try:
        return decode(line)
    except ValueError:
        return None
