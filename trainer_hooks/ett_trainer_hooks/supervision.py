"""What a launcher says about the job beside it: attempts, deaths, evidence, the end.

Used by the launcher's main thread. It reads files that the job writes (journals, output) and
speaks through a journal of its own, as rank -1; it holds nothing that the job waits for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from ett_core import events
from ett_trainer_hooks.clock import Clock
from ett_trainer_hooks.evidence import TAIL_LINES, exits_told, redacted, telling_lines
from ett_trainer_hooks.follow import Lines, Tail
from ett_trainer_hooks.identity import Identity
from ett_trainer_hooks.journal import Journal
from ett_trainer_hooks.ranks import Death, RankWatch, Verdict, in_words, judge, verdict_of_status

EVIDENCE_PER_ATTEMPT = 50


class Supervision:
    """Speaks for a job through `journal`; every event is about the attempt that is current.

    Of several nodes only the first `tells_job_end`: another may be done before training is.
    """

    def __init__(
        self, journal: Journal, watch: RankWatch, stderr: Path, clock: Clock, *, tells_job_end: bool = True
    ) -> None:
        self._tells_job_end = tells_job_end
        self._journal = journal
        self._base = journal.identity
        self._watch = watch
        self._stderr = Tail(stderr)
        self._lines = Lines(keep=TAIL_LINES)
        self._clock = clock
        self._open: list[Death] = []
        self._told: dict[int, int] = {}
        self._evidence: Counter[int] = Counter()

    @property
    def attempt(self) -> int:
        """The latest attempt that any rank has begun, else the one that the launcher began."""
        return max(self._base.attempt, self._watch.attempt or 0)

    @property
    def rank_pids(self) -> list[int]:
        """The processes of the ranks that live."""
        return [process.pid for process in self._watch.alive]

    def begin(self) -> None:
        """The launcher is there, and so is the attempt that it begins."""
        who = self._base
        self._say(
            events.AttemptStart,
            accelerators=who.accelerators,
            accelerator_type=who.accelerator_type,
            process_started_at=who.process_started_at,
            allocated_at=who.allocated_at,
            labels=who.labels,
        )

    def look(self, command_status: int | None = None) -> None:
        """One round: new ranks, new lines, deaths; `command_status` once the command is over."""
        self._open += self._watch.look()
        self._journal.identity = self._as_of(self.attempt)
        self._read_output(at_end=command_status is not None)
        verdicts = [(death, self._judged(death, command_status)) for death in self._open]
        self._open = [death for death, verdict in verdicts if verdict is None]
        failures = [(death, verdict) for death, verdict in verdicts if verdict and verdict.is_failure]
        for death, verdict in failures:
            self._tell_death(death, verdict)
        if failures:
            self._tell_tail()

    def fact(self, source: str, text: str) -> None:
        """Something that may explain a failure, observed now."""
        self._say(events.Evidence, source=source, text=redacted(text))

    def end(self, command_pid: int, command_status: int, decided: tuple[str, float] | None) -> None:
        """The command is over; `decided` is the status and moment where somebody stopped it."""
        self._told[command_pid] = command_status
        self.look(command_status)
        if decided is None and command_status != 0:
            self._tell_tail()
            self._tell_command(verdict_of_status(command_status))
        status, moment = decided or ("failed" if command_status else "succeeded", self._clock.now())
        at = moment if status == "cancelled" else self._clock.now()
        self._say(events.AttemptEnd, at=at, status=status, exit_code=command_status)
        if self._tells_job_end:
            self._say(events.JobEnd, status=status)

    def end_unstarted(self, why: str) -> None:
        """The command could not be started."""
        self._say(events.Failure, message=why)
        self._say(events.AttemptEnd, status="failed")
        if self._tells_job_end:
            self._say(events.JobEnd, status="failed")

    def _judged(self, death: Death, command_status: int | None) -> Verdict | None:
        return judge(death, told=self._told, attempt=self.attempt, command_status=command_status)

    def _tell_death(self, death: Death, verdict: Verdict) -> None:
        process = death.process
        self._say(
            events.Failure,
            at=death.seen_at,
            attempt=process.attempt,
            of_rank=process.rank,
            message=in_words(f"rank {process.rank} (pid {process.pid})", verdict),
            exit_code=verdict.exit_code,
            signal=verdict.signal,
        )

    def _tell_command(self, verdict: Verdict) -> None:
        self._say(
            events.Failure,
            message=in_words("the command", verdict),
            exit_code=verdict.exit_code,
            signal=verdict.signal,
        )

    def _read_output(self, *, at_end: bool) -> None:
        while data := self._stderr.read():
            self._take_lines(self._lines.feed(data))
        if at_end:
            self._take_lines(self._lines.finish())

    def _take_lines(self, lines: Iterable[str]) -> None:
        lines = list(lines)
        self._told.update(exits_told(lines))
        for line in telling_lines(lines):
            self._tell_line(line)

    def _tell_tail(self) -> None:
        if self._lines.last:
            self.fact("stderr", "\n".join(self._lines.last))

    def _tell_line(self, text: str) -> None:
        self._evidence[self.attempt] += 1
        if self._evidence[self.attempt] <= EVIDENCE_PER_ATTEMPT:
            self.fact("stderr", text)

    def _as_of(self, attempt: int) -> Identity:
        return msgspec.structs.replace(self._base, attempt=attempt)

    def _say(
        self,
        kind: Any,  # noqa: ANN401 - a type of event
        *,
        at: float | None = None,
        attempt: int | None = None,
        **fields: Any,  # noqa: ANN401 - the fields of the event
    ) -> None:
        who = self._as_of(self.attempt if attempt is None else attempt)
        moment = self._clock.now() if at is None else at
        self._journal.put(kind, moment, urgent=True, identity=who, **fields)
