"""Where simulated events go: journals on disk, an exporter, standard output. The only I/O in here.

A sink takes the events of one job after the other, or of many side by side; it holds at most some
megabytes of lines.
"""

from __future__ import annotations

import http
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Protocol

from ett_core.events import Event, encode
from ett_core.reasons import reason_of
from ett_trainer_hooks.shipping.shipper import backoff_s, is_temporary
from ett_trainer_hooks.shipping.transport import Post, Reply, answer_in_words, is_acknowledgement, verdict_of

HELD_BYTES = 8 << 20
SEGMENT_LINES = 5_000
PATIENCE_S = 60.0
"""Seconds without an acknowledgement after which a sender gives up."""


class SinkError(Exception):
    """Events could not be delivered; the message says why."""


class Sink(Protocol):
    """Takes events."""

    def take(self, event: Event) -> None:
        """Take one event."""

    def flush(self) -> None:
        """Deliver everything taken so far."""


class Nowhere:
    """Takes events and forgets them: for those who want the truth alone."""

    def take(self, event: Event) -> None:
        """Forget the event."""

    def flush(self) -> None:
        """Do nothing."""


class Stream:
    """Writes events to a binary stream, one a line."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def take(self, event: Event) -> None:
        """Write the event."""
        self._stream.write(encode(event) + b"\n")

    def flush(self) -> None:
        """Hand over what the stream holds."""
        self._stream.flush()


class Journals:
    """Writes the journal of each writer, `DIR/<job>/<writer>.jsonl`."""

    def __init__(self, directory: Path) -> None:
        """Begin in a directory that holds no journals yet.

        Raises:
            ValueError: it holds some, or cannot be written to.
        """
        try:
            directory.mkdir(parents=True, exist_ok=True)
            if next(directory.rglob("*.jsonl"), None) is not None:
                raise ValueError(f"{directory} holds journals already; name a new directory")
        except OSError as error:
            raise ValueError(f"{directory}: {reason_of(error)}") from error
        self._directory = directory
        self._lines: dict[tuple[str, str], list[bytes]] = {}
        self._held_bytes = 0
        self._written: set[tuple[str, str]] = set()

    @property
    def count(self) -> int:
        """Journals written so far."""
        return len(self._written)

    def take(self, event: Event) -> None:
        """Put the event into the journal of its writer."""
        line = encode(event)
        self._lines.setdefault((event.job_id, event.writer), []).append(line)
        self._held_bytes += len(line)
        if self._held_bytes > HELD_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write what is held.

        Raises:
            SinkError: the disk does not take it.
        """
        try:
            for (job_id, writer), lines in self._lines.items():
                path = self._directory / job_id / f"{writer}.jsonl"
                if (job_id, writer) not in self._written:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    self._written.add((job_id, writer))
                with path.open("ab") as file:
                    file.write(b"\n".join(lines) + b"\n")
        except OSError as error:
            raise SinkError(f"{error.filename or self._directory}: {reason_of(error)}") from error
        self._lines.clear()
        self._held_bytes = 0


class Sender:
    """Sends segments to an exporter and waits for each to be acknowledged."""

    def __init__(
        self,
        post: Post,
        *,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.acknowledged = 0
        """Lines that the exporter holds."""
        self._post = post
        self._wall = wall
        self._monotonic = monotonic
        self._sleep = sleep
        self._lines: dict[tuple[str, str], list[bytes]] = {}
        self._held_bytes = 0

    def take(self, event: Event) -> None:
        """Put the event into the segment of its writer; send that when it is long, all where much is held.

        Each segment is a request: those of many writers side by side are not cut into short ones.
        """
        line = encode(event)
        lines = self._lines.setdefault((event.job_id, event.writer), [])
        lines.append(line)
        self._held_bytes += len(line)
        if self._held_bytes > HELD_BYTES:
            self.flush()
        elif len(lines) >= SEGMENT_LINES:
            self._send(lines)
            self._held_bytes -= sum(map(len, lines))
            lines.clear()

    def flush(self) -> None:
        """Send what is held.

        Raises:
            SinkError: the exporter refuses it, or did not acknowledge it for a minute.
        """
        for lines in filter(None, self._lines.values()):
            self._send(lines)
        self._lines.clear()
        self._held_bytes = 0

    def _send(self, lines: list[bytes]) -> None:
        gives_up_s = self._monotonic() + PATIENCE_S
        failures = 0
        while True:
            answer, wait_s = self._try(lines, failures)
            if answer is None:
                return
            if wait_s is None or self._monotonic() + wait_s > gives_up_s:
                raise SinkError(f"the exporter did not take the events: {answer}")
            failures += 1
            self._sleep(wait_s)

    def _try(self, lines: list[bytes], failures: int) -> tuple[str | None, float | None]:
        """Send once: why it was not taken (None: it was), and how long to wait before the next try."""
        try:
            reply = self._post(b"\n".join(lines) + b"\n", self._wall())
        except OSError as error:
            return reason_of(error), backoff_s(failures, 0.5)
        if is_acknowledgement(reply):
            self._count(reply, len(lines))
            return None, None
        if reply.status == http.HTTPStatus.REQUEST_ENTITY_TOO_LARGE and len(lines) > 1:
            self._send(lines[: len(lines) // 2])
            self._send(lines[len(lines) // 2 :])
            return None, None
        wait_s = max(backoff_s(failures, 0.5), reply.retry_after_s or 0.0)
        return answer_in_words(reply), wait_s if is_temporary(reply.status) else None

    def _count(self, reply: Reply, lines: int) -> None:
        rejected = verdict_of(reply).rejected
        if rejected:
            raise SinkError(f"the exporter rejected {len(rejected):,} lines, the first: {rejected[0].reason}")
        self.acknowledged += lines
