"""JSONL files of torchtitan's structured logger: one file a process, one record a line.

The k-th process of a rank is its k-th attempt. Spans become phases, steps become progress, as the
adapter inside a trainer does it (`ett_core.torchtitan_names`). Whether a save is durable is not
logged; as torchtitan waits for one save before it begins the next, a save counts as durable when the
next one is over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from ett_cli.imports.runs import writer_of
from ett_core import events, torchtitan_names
from ett_core.events import AnyEvent, Name, Step, StepSeconds
from ett_core.lines import BadLine
from ett_core.torchtitan_names import BEGIN, DATA_WAIT, END, ERROR, PHASE, STEP

NAME = "torchtitan"
TEARDOWN = "torch_distributed_teardown"
SAVE = "checkpoint"
LARGEST_US = 4e15
LAST_SEQ = 2**40
"""Number of what is known only at the end of a file, which may grow."""


class Record(msgspec.Struct, frozen=True):
    """What is read of a record. `time_us` is in microseconds of Unix time."""

    log_type_name: Name
    time_us: int
    rank: int = 0
    pid: int = 0
    tid: int = 0
    host_name: str = ""
    log_type: str = "event"
    step: Step | None = None
    relative_step: Step | None = None
    step_tags: list[str] = []
    task_name: str | None = None
    message: str = ""

    @property
    def time(self) -> float:
        """Unix seconds."""
        return self.time_us / 1e6


Key = tuple[int, str, int]
"""Rank, host and pid: a process."""

_decode = msgspec.json.Decoder(Record).decode


def records(lines: Iterable[bytes], source: str) -> Iterator[Record | BadLine]:
    """The records of a file, and the lines that are none."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = _decode(line)
            if not 0 < record.time_us < LARGEST_US or not 0 <= record.rank < 2**31:
                raise ValueError("its time or its rank is out of range")  # noqa: TRY301
        except (ValueError, RecursionError) as error:
            yield BadLine(source, number, str(error))
        else:
            yield record


def events_of(job_id: str, records: Callable[[], Iterable[Record | BadLine]]) -> Iterator[AnyEvent | BadLine]:
    """The events of all processes of a job, and the lines that are no records, each told once.

    `records` gives the records from the first; it is called twice, as which attempt a process is depends on
    the beginnings of all.
    """
    began: dict[Key, int] = {}
    for record in records():
        if isinstance(record, Record):
            key = _key(record)
            began[key] = min(record.time_us, began.get(key, record.time_us))
    processes = _processes(job_id, began)
    for record in records():
        if isinstance(record, BadLine):
            yield record
        elif (process := processes.get(_key(record))) is not None:
            yield from process.take(record)
    for process in processes.values():
        yield from process.end()


def _key(record: Record) -> Key:
    return record.rank, record.host_name, record.pid


def _processes(job_id: str, began: Mapping[Key, int]) -> dict[Key, Process]:
    """The processes, each with the number of its attempt; `began` in microseconds."""
    starts: dict[int, list[Key]] = {}
    for key in sorted(began, key=lambda key: began[key]):
        starts.setdefault(key[0], []).append(key)
    return {
        key: Process(job_id, key, attempt, world_size=len(starts))
        for rank in sorted(starts)
        for attempt, key in enumerate(starts[rank])
    }


class Process:
    """Folds the records of one process of a rank, in their order, into its events."""

    def __init__(self, job_id: str, key: Key, attempt: int, *, world_size: int) -> None:
        self._job_id, self._attempt, self._world_size = job_id, attempt, world_size
        self._rank, self._node, self._pid = key
        self._writer = writer_of(NAME, job_id, attempt, *key)
        self._seq = 0
        self._main: tuple[int, str | None] | None = None
        self._open: dict[tuple[int, str | None], list[tuple[str, float, bool]]] = {}
        self._step_began: float | None = None
        self._wait_s = 0.0
        self._phases_s = 0.0
        self._has_begun = False
        self._step_failed = False
        self._saved: int | None = None
        self._error: tuple[float, tuple[str, str]] | None = None

    def take(self, record: Record) -> Iterator[AnyEvent]:
        """The events that the next record of the process brings."""
        if self._main is None:
            self._main = (record.tid, record.task_name)
            yield self._event(events.AttemptStart, record.time, world_size=self._world_size)
        span, edge = torchtitan_names.edge_of(record.log_type_name, record.log_type)
        if edge == BEGIN:
            yield from self._begin(record, span)
        elif edge == ERROR:
            self._fail(record)
        elif edge == END:
            yield from self._end(record, span)

    def end(self) -> Iterator[AnyEvent]:
        """What is known once there are no more records."""
        if self._error is not None:
            moment, (exception, message) = self._error
            self._seq = LAST_SEQ
            yield self._event(events.Failure, moment, exception=exception, message=message)

    def _begin(self, record: Record, span: str) -> Iterator[AnyEvent]:
        track = (record.tid, record.task_name)
        in_step = self._step_began is not None and track == self._main
        phase = torchtitan_names.phase_of(span, in_step=in_step)
        self._open.setdefault(track, []).append((span, record.time, in_step))
        meaning = torchtitan_names.meaning_of(span).role
        if meaning == STEP and track == self._main and self._step_began is None:
            self._error = None
            self._step_began, self._wait_s, self._phases_s, self._step_failed = record.time, 0.0, 0.0, False
        elif phase is not None and not in_step:
            yield self._event(events.PhaseBegin, record.time, phase=phase, track=self._track(track))

    def _end(self, record: Record, span: str) -> Iterator[AnyEvent]:
        track = (record.tid, record.task_name)
        opened = self._open.get(track, [])
        place = next((n for n in range(len(opened) - 1, -1, -1) if opened[n][0] == span), None)
        if place is None:
            return
        _, began, in_step = opened[place]
        is_outermost = not any(in_phase(name) for name, _, inside in opened[:place] if inside)
        del opened[place:]
        role = torchtitan_names.meaning_of(span).role
        phase = torchtitan_names.phase_of(span, in_step=in_step)
        if role == STEP and track == self._main and not in_step:
            yield from self._end_step(record)
        elif role == DATA_WAIT and in_step and is_outermost:
            yield from self._end_wait(record, began)
        elif phase is not None and in_step:
            if is_outermost and torchtitan_names.did_work(span, record.step_tags):
                yield from self._phase_in_step(record, phase, began)
        elif phase is not None:
            yield from self._end_phase(record, span, phase, self._track(track))

    def _end_wait(self, record: Record, began: float) -> Iterator[AnyEvent]:
        if self._has_begun:
            self._wait_s += max(record.time - began, 0.0)
        elif not self._step_failed:
            yield from self._first_batch(record, record.time)

    def _first_batch(self, record: Record, moment: float) -> Iterator[AnyEvent]:
        self._has_begun = True
        self._step_began = moment
        step = torchtitan_names.resumed_step(record.step, record.relative_step)
        yield self._event(events.FirstBatch, moment, step=step)

    def _end_step(self, record: Record) -> Iterator[AnyEvent]:
        began, self._step_began = self._step_began, None
        if began is None or self._step_failed or record.step is None:
            return
        if not self._has_begun:
            yield from self._first_batch(record, began)
            self._step_began = None
        lasted = max(record.time - began - self._wait_s - self._phases_s, 0.0)
        yield self._event(
            events.Progress,
            record.time,
            step=record.step,
            steps=1,
            data_wait_s=self._wait_s,
            step_seconds=StepSeconds(count=1, sum=lasted, max=lasted),
        )

    def _phase_in_step(self, record: Record, phase: str, began: float) -> Iterator[AnyEvent]:
        if not self._has_begun:
            yield from self._first_batch(record, began)
        self._phases_s += max(record.time - began, 0.0)
        yield self._event(events.PhaseBegin, began, phase=phase, step=record.step)
        yield self._event(events.PhaseEnd, record.time, phase=phase, step=record.step)
        if phase == SAVE and not self._step_failed:
            if self._saved is not None:
                yield self._event(events.CheckpointDurable, record.time, step=self._saved, mode="")
            self._saved = record.step

    def _end_phase(self, record: Record, span: str, phase: str, track: str) -> Iterator[AnyEvent]:
        yield self._event(events.PhaseEnd, record.time, phase=phase, track=track)
        if span == TEARDOWN and self._error is None:
            yield self._event(events.AttemptEnd, record.time, status="succeeded")

    def _fail(self, record: Record) -> None:
        if (record.tid, record.task_name) == self._main:
            self._step_failed = True
        found = torchtitan_names.error_of(record.message)
        if self._error is None and found is not None and found[0] != "DataloaderExhaustedError":
            self._error = record.time, found

    def _track(self, track: tuple[int, str | None]) -> str:
        return "main" if track == self._main else (track[1] or f"thread {track[0]}")[:256]

    def _event(self, kind: Callable[..., AnyEvent], moment: float, **fields: Any) -> AnyEvent:  # noqa: ANN401 - the fields of the event
        self._seq += 1
        return kind(
            job_id=self._job_id,
            writer=self._writer,
            seq=self._seq - 1,
            attempt=self._attempt,
            rank=self._rank,
            node=self._node[:256],
            time=moment,
            **fields,
        )


def in_phase(span: str) -> bool:
    """Whether a span inside a step owns its time."""
    return torchtitan_names.meaning_of(span).role == PHASE and not span.endswith(".build")
