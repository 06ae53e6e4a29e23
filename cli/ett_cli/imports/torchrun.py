"""Logs of torchrun (TorchElastic): when the workers of a node were started, failed and succeeded.

One file is the log of one agent, which speaks for its node as a launcher does. Failures are logged
at every level; starts and the end only at INFO (`LOGLEVEL=INFO`). Where starts are not logged, an
attempt begins at the failure of the one before it, and the first one at the first line of torchrun.
The lines in between are the job's own output; of these the last ones before a failure are evidence.
"""

from __future__ import annotations

import datetime as dt
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from ett_cli.imports.runs import writer_of
from ett_cli.imports.times import FIRST, LAST
from ett_core import events
from ett_core.events import LAUNCHER_RANK, AnyEvent
from ett_core.lines import BadLine
from ett_core.redaction import redacted

NAME = "torchrun"
KEPT_LINES = 20
LONGEST_LINE = 4096
DIGITS = 9
"""Of the largest rank or world size that is believed."""
LONGEST_SUMMARY = 400
RULES_OF_SUMMARY = 2
ATTEMPTS_PER_START = 1000
"""Another torchrun in the same log is a restart from outside."""
DAY_S = 86_400.0

_GLOG = re.compile(
    r"(?P<level>[IWEFC])(?P<month>\d\d)(?P<day>\d\d) (?P<clock>\d\d:\d\d:\d\d(?:\.\d{1,6})?)\d* +\d+ "
    r"(?P<module>torch/distributed/\S+?):\d+\] ?(?P<text>.*)"
)
_BRACKETS = re.compile(
    r"\[(?P<date>\d{4}-\d\d-\d\d) (?P<clock>\d\d:\d\d:\d\d),(?P<ms>\d{3})\] "
    r"(?P<module>torch\.distributed\.\S+?): \[(?P<level>[A-Z]+)\] ?(?P<text>.*)"
)
_FAILED = re.compile(r"failed \(exitcode: (-?\d{1,9})\) local_rank: (\d{1,9}) \(pid: (\d{1,9})\)")
_FIELD = re.compile(r"\s+(\w+)\s*[=:]\s*(.*?)\s*")
_NUMBERS = re.compile(r"\[([\d, ]*)\]")
_SIGNALLED = re.compile(r"Received (?:Signals\.)?(SIG[A-Z]+|\d+) death signal|Received Signals\.(SIG[A-Z]+)")
_RUN_ID = re.compile(r"--rdzv-id=(\S+)")
_RANDOM = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_STATED = re.compile(r"time +: (\d{4}-\d\d-\d\d)_(\d\d:\d\d:\d\d)")
_NATIVE = re.compile(r"\[[IW]\d{4} \d\d:")
"""A remark of torch's C++ part, which is no output of the job."""
_RULE = re.compile(r"={20,}")


class Line(msgspec.Struct, frozen=True):
    """A line of the agent: its time in Unix seconds, its module and its text."""

    time: float
    module: str
    text: str


class Years:
    """Times whose lines name no year: the latest that is not after `latest` (Unix seconds) by a day."""

    def __init__(self, latest: float, zone: dt.tzinfo | None) -> None:
        self._latest = latest
        self._zone = zone

    def seconds(self, month: int, day: int, clock: str) -> float:
        """Unix seconds of a day without a year.

        Raises:
            ValueError: there is no such day or time.
        """
        year = dt.datetime.fromtimestamp(self._latest, self._zone or dt.timezone.utc).year + 1
        at = dt.time.fromisoformat(clock if "." not in clock else clock.ljust(15, "0"))
        for candidate in range(year, year - 9, -1):
            try:
                found = dt.datetime.combine(dt.date(candidate, month, day), at)
            except ValueError:
                continue
            seconds = self.of(found)
            if seconds <= self._latest + DAY_S:
                return seconds
        raise ValueError(f"there is no day {month:02}-{day:02}")

    def of(self, found: dt.datetime) -> float:
        """Unix seconds of a time in the zone of the log.

        Raises:
            ValueError: no event can lie there.
        """
        aware = found.replace(tzinfo=self._zone) if self._zone is not None else found.astimezone()
        seconds = aware.timestamp()
        if not FIRST < seconds < LAST:
            raise ValueError(f"{found} is out of range; is the year right?")
        return seconds


def line_of(text: str, years: Years) -> Line | None:
    """What the agent says in a line; None where it is not the agent that speaks.

    Raises:
        ValueError: the agent's time is none.

    >>> line_of("E1129 20:59:04.796000 22723 torch/distributed/elastic/multiprocessing/api.py:1002] failed",
    ...         Years(1796000000.0, dt.timezone.utc))
    Line(time=1795985944.796, module='torch/distributed/elastic/multiprocessing/api.py', text='failed')
    """
    if match := _GLOG.search(text):
        seconds = years.seconds(int(match["month"]), int(match["day"]), match["clock"])
        return Line(seconds, match["module"], match["text"])
    if match := _BRACKETS.search(text):
        found = dt.datetime.fromisoformat(f"{match['date']}T{match['clock']}.{match['ms']}")
        return Line(years.of(found), match["module"].replace(".", "/") + ".py", match["text"])
    return None


class Stated(NamedTuple):
    """What a log says about all of itself, wherever it says it.

    `run_id`: the `--rdzv-id`; nothing where it is random or `none`. `latest`: the latest moment with a
    year, in Unix seconds; None where there is none.
    """

    run_id: str
    latest: float | None


def stated(lines: Iterable[str], zone: dt.tzinfo | None) -> Stated:
    """What the lines of a log say about all of it."""
    run_id, latest = "", None
    for line in lines:
        if not run_id and "--rdzv-id=" in line:
            run_id = _run_id(line)
        if " : " in line and (moments := _moments(line, zone)):
            latest = max(moments) if latest is None else max(latest, *moments)
    return Stated(run_id, latest)


def _run_id(line: str) -> str:
    match = _RUN_ID.search(line)
    return match[1] if match and match[1] != "none" and not _RANDOM.fullmatch(match[1]) else ""


def _moments(line: str, zone: dt.tzinfo | None) -> list[float]:
    found = (_moment(day, clock, zone) for day, clock in _STATED.findall(line))
    return [moment for moment in found if moment]


def _moment(day: str, clock: str, zone: dt.tzinfo | None) -> float | None:
    try:
        return Years(0.0, zone).of(dt.datetime.fromisoformat(f"{day}T{clock}"))
    except (ValueError, OverflowError, OSError):
        return None


class Agent:
    """Folds the lines of one agent's log into events; `node` names the node where the log does not.

    Feed `take` the lines in their order.
    """

    def __init__(self, job_id: str, source: str, years: Years, *, node: str, key: str) -> None:
        self._job_id = job_id
        self._source = source
        self._years = years
        self._node = node
        self._writer = writer_of(NAME, job_id, key)
        self._seq = 0
        self._attempt = -1
        self._started: float | None = None
        self._is_open = False
        self._is_over = False
        self._rendezvous: dict[str, str] | None = None
        self._group_rank = 0
        self._local_ranks: dict[int, int] = {}
        self._world_size = 0
        self._last: deque[str] = deque(maxlen=KEPT_LINES)
        self._summary: list[str] | None = None
        self._stopped = ""

    def take(self, number: int, text: str) -> Iterator[AnyEvent | BadLine]:
        """The events that line `number` brings, or why it could not be used."""
        text = text.rstrip("\r\n")[:LONGEST_LINE]
        try:
            line = line_of(text, self._years)
        except (ValueError, OverflowError, OSError) as error:
            yield BadLine(self._source, number, str(error))
            return
        if line is None:
            yield from self._of_the_job(text)
        else:
            yield from self._of_the_agent(line)

    def _of_the_agent(self, line: Line) -> Iterator[AnyEvent]:
        said = line.text
        if self._rendezvous is not None and not self._read_field(said):
            self._settle_rendezvous()
        if line.module.endswith("/run.py") or "starting workers for entrypoint" in said:
            self._see_start(line.time)
        if "Starting elastic_operator" in said:
            self._see_torchrun(line.time)
        elif "Rendezvous complete for workers" in said:
            self._rendezvous = {}
        elif "Starting worker group" in said:
            yield from self._begin(line.time)
        elif failed := _FAILED.match(said):
            yield from self._fail(line.time, int(failed[1]), int(failed[2]), int(failed[3]))
        elif "worker group successfully finished" in said:
            yield from self._succeed(line.time)
        elif signalled := _SIGNALLED.search(said):
            yield from self._stop(line.time, signalled[1] or signalled[2])
        elif "new nodes from group_rank" in said and self._is_open:
            yield self._event(events.Evidence, line.time, source="elastic", text=redacted(said))
            yield from self._end(line.time, "failed")

    def _of_the_job(self, text: str) -> Iterator[AnyEvent]:
        if "ChildFailedError" in text:
            self._summary = []
        if self._summary is None:
            if text.strip() and not _NATIVE.match(text):
                self._last.append(text)
            return
        self._summary.append(text)
        if sum(1 for line in self._summary if _RULE.fullmatch(line.strip())) == RULES_OF_SUMMARY:
            yield from self._summarise("\n".join(self._summary))
            self._summary = None
        elif len(self._summary) > LONGEST_SUMMARY:
            self._summary = None

    def _see_start(self, moment: float) -> None:
        """The first line of a torchrun: its attempt began, where nothing else says when."""
        if self._started is None and not self._is_open:
            self._started = moment

    def _see_torchrun(self, moment: float) -> None:
        if self._attempt >= 0:
            self._attempt = (self._attempt // ATTEMPTS_PER_START + 1) * ATTEMPTS_PER_START - 1
        self._started, self._is_open, self._is_over, self._stopped = moment, False, False, ""

    def _read_field(self, said: str) -> bool:
        match = _FIELD.fullmatch(said)
        if match and self._rendezvous is not None:
            self._rendezvous[match[1]] = match[2]
        return match is not None

    def _settle_rendezvous(self) -> None:
        found, self._rendezvous = self._rendezvous or {}, None
        local, globally = _numbers(found.get("local_ranks", "")), _numbers(found.get("global_ranks", ""))
        self._local_ranks = dict(zip(local, globally, strict=False))
        self._world_size = next(iter(_numbers(found.get("global_world_sizes", ""))), 0)
        self._group_rank = next(iter(_numbers(f"[{found.get('group_rank', '')}]")), 0)

    def _begin(self, moment: float) -> Iterator[AnyEvent]:
        """The workers are started anew."""
        if self._is_open:
            yield from self._end(moment, "failed")
        self._attempt += 1
        self._is_open, self._is_over = True, False
        began = (
            self._started if self._started is not None and self._attempt % ATTEMPTS_PER_START == 0 else None
        )
        self._started = moment
        yield self._event(
            events.AttemptStart, moment, world_size=self._world_size, process_started_at=began,
        )  # fmt: skip

    def _fail(self, moment: float, status: int, local_rank: int, pid: int) -> Iterator[AnyEvent]:
        if not self._is_open:
            self._attempt += 1
            self._is_open = True
            if self._started is not None:
                yield self._event(events.AttemptStart, self._started)
        if self._last:
            yield self._event(events.Evidence, moment, source="stderr", text=redacted("\n".join(self._last)))
            self._last.clear()
        rank = self._local_ranks.get(local_rank)
        who = f"rank {rank}" if rank is not None else f"local rank {local_rank}"
        signal, code = (-status, None) if status < 0 else (None, status)
        how = f"was ended by signal {signal}" if signal else f"exited with status {code}"
        message = f"{who} (pid {pid}) {how}"
        yield self._event(
            events.Failure, moment, of_rank=rank, exit_code=code, signal=signal, message=message
        )  # fmt: skip
        yield from self._end(moment, "failed", exit_code=code)
        self._started = moment

    def _succeed(self, moment: float) -> Iterator[AnyEvent]:
        yield from self._end(moment, "succeeded")
        yield from self._finish(moment, "succeeded")

    def _stop(self, moment: float, signal: str) -> Iterator[AnyEvent]:
        if self._stopped or self._is_over:
            return
        self._stopped = signal
        status = "cancelled" if signal in ("SIGINT", "2") else "preempted"
        yield self._event(events.Evidence, moment, source="elastic", text=f"torchrun received {signal}")
        yield from self._end(moment, status)
        yield from self._finish(moment, status)

    def _summarise(self, text: str) -> Iterator[AnyEvent]:
        """The block that ends the log of a torchrun whose restarts are used up."""
        if self._attempt < 0 or self._started is None:
            return
        yield self._event(events.Evidence, self._started, source="elastic", text=redacted(text))
        yield from self._finish(self._started, "failed")

    def _end(self, moment: float, status: str, exit_code: int | None = None) -> Iterator[AnyEvent]:
        if self._is_open:
            self._is_open = False
            yield self._event(events.AttemptEnd, moment, status=status, exit_code=exit_code)

    def _finish(self, moment: float, status: str) -> Iterator[AnyEvent]:
        if not self._is_over and self._attempt >= 0:
            self._is_over = True
            self._started = None
            if self._group_rank == 0:
                yield self._event(events.JobEnd, moment, status=status)

    def _event(self, kind: Callable[..., AnyEvent], moment: float, **fields: Any) -> AnyEvent:  # noqa: ANN401 - the fields of the event
        self._seq += 1
        return kind(
            job_id=self._job_id,
            writer=self._writer,
            seq=self._seq - 1,
            attempt=max(self._attempt, 0),
            rank=LAUNCHER_RANK,
            node=self._node[:256],
            time=moment,
            **fields,
        )


def _numbers(text: str) -> list[int]:
    """The numbers of a list in text.

    >>> _numbers("[0, 1]"), _numbers("[]"), _numbers("?")
    ([0, 1], [], [])
    """
    match = _NUMBERS.fullmatch(text.strip())
    parts = [part.strip() for part in match[1].split(",")] if match else []
    return [int(part) for part in parts if part.isdecimal() and len(part) <= DIGITS]
