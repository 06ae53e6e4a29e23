"""What a launcher says about the job beside it: attempts, deaths, evidence, the end.

Used by the launcher's main thread. It reads files that the job writes (journals, output, the
error files of torchrun) and speaks through a journal of its own, as rank -1; it holds nothing
that the job waits for.
"""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ett_core import events
from ett_core.redaction import MESSAGE_LIMIT, TEXT_LIMIT, redacted, redacted_parts, without_secrets
from ett_trainer_hooks.clock import Clock
from ett_trainer_hooks.identity import Identity
from ett_trainer_hooks.journal import Journal
from ett_trainer_hooks.launcher.output.listener import Listener, last_bytes
from ett_trainer_hooks.launcher.output.streams import TAIL_BYTES
from ett_trainer_hooks.launcher.output.tails import shortened
from ett_trainer_hooks.launcher.ranks import Death, RankProcess, RankWatch
from ett_trainer_hooks.launcher.senders import Senders
from ett_trainer_hooks.launcher.torchrun import (
    AgentEvent,
    WorkerError,
    WorkerExit,
    agent_event,
    error_in_words,
    exits_told,
    first_failed,
    read_error,
)
from ett_trainer_hooks.launcher.verdicts import Verdict, in_words, judge, status_of, verdict_of_status

EVIDENCE_PER_ATTEMPT = 50
"""Findings in each stream of output, and lines of the kernel, that are told of one attempt."""
TAIL_PARTS_PER_ATTEMPT = 16


class Supervision:
    """Speaks for a job through `journal`; every event is about the attempt that is current.

    `listeners` hear the output of the command, whose own error file is `error_file`. Of several
    nodes only the first `tells_job_end`: another may be done before training is.
    """

    def __init__(  # noqa: PLR0913 - the world is injected
        self,
        journal: Journal,
        watch: RankWatch,
        listeners: Sequence[Listener],
        clock: Clock,
        *,
        error_file: Path | None = None,
        tells_job_end: bool = True,
        memory_denial: Callable[[], str] = lambda: "",
    ) -> None:
        self._tells_job_end = tells_job_end
        self._memory_denial = memory_denial
        self._journal = journal
        self._base = journal.identity
        self.watch = watch
        """What sees the rank processes."""
        self._listeners = listeners
        self._clock = clock
        self._error_file = error_file
        self._open: list[Death] = []
        self._over: list[RankProcess] = []
        """Ranks that told of their end themselves."""
        self._told: dict[int, int] = {}
        self._errors: dict[Path, WorkerError] = {}
        self._evidence: Counter[tuple[str, int]] = Counter()
        self._has_told_command = False
        self._told_workers: set[int] = set()
        self.senders = Senders()
        """Who sent which signal to the processes of the job."""
        self._job_status = "failed"
        self.failed_statuses: list[int] = []
        """Exit statuses of the ranks that failed in this attempt, as far as they are known."""

    @property
    def attempt(self) -> int:
        """The latest attempt that any rank has begun, else the one that the launcher began."""
        return max(self._base.attempt, self.watch.attempt or 0)

    @property
    def rank_pids(self) -> list[int]:
        """The processes of the ranks that live."""
        return [process.pid for process in self.watch.alive]

    def begin(self) -> None:
        """The launcher is there, and so is the attempt that it begins."""
        who = self._base
        if self._error_file is not None and self._error_file.parent == self._journal.path.parent:
            self._error_file.unlink(missing_ok=True)
        self._say(
            events.AttemptStart,
            accelerators=who.accelerators,
            accelerator_type=who.accelerator_type,
            process_started_at=who.process_started_at,
            allocated_at=who.allocated_at,
            labels=who.labels,
        )

    def start_again(self, attempt: int) -> None:
        """The command will be started once more, as attempt number `attempt`; what was told is forgotten."""
        self._base = msgspec.structs.replace(self._base, attempt=attempt, process_started_at=None)
        self._told.clear()
        self._open.clear()
        self._over.clear()
        self._errors.clear()
        self.senders.clear()
        self.failed_statuses.clear()
        self._has_told_command = False

    def heard(self, statuses: Mapping[int, int]) -> None:
        """Exit statuses by pid, told by the kernel (minus the signal that ended a process)."""
        self._told.update(statuses)

    def look(self, command_status: int | None = None) -> None:
        """One round: new ranks, new lines, deaths; `command_status` once the command is over."""
        at_end = command_status is not None
        self._open += self.watch.look(self._told, at_end=at_end)
        self._journal.identity = self._as_of(self.attempt)
        for listener in self._listeners:
            self._listen(listener, at_end=at_end)
        for process in self.watch.departed:
            self._read_error_of(process)
        for process in self.watch.fallen_silent:
            self._tell_silence(process)
        died = {death.process.pid for death in self._open}
        self._over += (process for process in self.watch.departed if process.pid not in died)
        self._tell_senders()
        verdicts = [(death, self._judged(death, command_status)) for death in self._open]
        self._open = [death for death, verdict in verdicts if verdict is None]
        failures = [(death, verdict) for death, verdict in verdicts if verdict and verdict.is_failure]
        for death, verdict in failures:
            self._tell_death(death, verdict)
        if failures:
            self._tell_tails([death.process for death, _ in failures])

    def fact(self, source: str, text: str, at: float | None = None) -> None:
        """Something that may explain a failure, observed at Unix seconds `at`, else now."""
        self._say(events.Evidence, source=source, text=redacted(text), observed_at=at)

    def kernel_line(self, text: str, at: float) -> None:
        """A line of the kernel's log that may explain a failure; the first ones of an attempt are told."""
        if self._may_tell("kernel", EVIDENCE_PER_ATTEMPT):
            self.fact("kernel", text, at)

    def output_given_up(self, path: Path) -> None:
        """The file of a stream of output does not hold all of it any more."""
        words = "for want of room on the disk its oldest output, which was passed on, is not kept there"
        self.fact("launcher", f"{path}: {words}")

    def failed(self, message: str) -> None:
        """The attempt has failed, as somebody beside it has found."""
        self._say(events.Failure, message=redacted(message))

    def decision(self, what: str, why: str, values: Mapping[str, float]) -> None:
        """The launcher decided something."""
        self._say(events.Decision, what=what, why=why, values=dict(values))

    def tell_command(self, pid: int, status: int, decided: tuple[str, float] | None) -> None:
        """The command is over; where it failed, and nobody stopped it, that is a failure. Told once."""
        self._told[pid] = status
        if self._has_told_command or decided is not None or status == 0:
            return
        self._has_told_command = True
        self._tell_tails([])
        self._tell_command(verdict_of_status(status))

    def end_attempt(self, pid: int, status: int, decided: tuple[str, float] | None) -> None:
        """Nothing is left of the command; `decided` is how and since when somebody stopped it."""
        self._told[pid] = status
        self.look(status)
        self._tell_skipped()
        self.tell_command(pid, status, decided)
        word, moment = decided or ("failed" if status else "succeeded", self._clock.now())
        at = moment if word == "cancelled" else self._clock.now()
        self._say(events.AttemptEnd, at=at, status=word, exit_code=status)
        self._job_status = word

    def stopped_between(self, decided: tuple[str, float] | None) -> None:
        """Somebody stopped the job while nothing of it ran."""
        self._job_status = decided[0] if decided else self._job_status
        self.fact("launcher", "the job was stopped while it waited to be started again")

    def end_job(self) -> None:
        """Nothing will follow."""
        if self._tells_job_end:
            self._say(events.JobEnd, status=self._job_status)

    def end_unstarted(self, why: str) -> None:
        """The command could not be started."""
        self._say(events.Failure, message=why)
        self._say(events.AttemptEnd, status="failed")
        self._job_status = "failed"
        self.end_job()

    def _judged(self, death: Death, command_status: int | None) -> Verdict | None:
        return judge(death, told=self._told, attempt=self.attempt, command_status=command_status)

    def _tell_death(self, death: Death, verdict: Verdict) -> None:
        process = death.process
        if (status := status_of(verdict)) is not None:
            self.failed_statuses.append(status)
        sender = self.senders.of(verdict.signal, process.pid)
        words = in_words(f"rank {process.rank} (pid {process.pid})", verdict, sender)
        self._tell_failure(
            verdict,
            words,
            self._errors.get(process.error_file) if process.error_file else None,
            at=death.seen_at,
            attempt=process.attempt,
            of_rank=process.rank,
        )

    def _tell_senders(self) -> None:
        """Who sent SIGTERM to ranks that told of it themselves: they cannot know."""
        open_still = []
        for process in self._over:
            if sender := self.senders.of(signal.SIGTERM, process.pid):
                if self._may_tell("sender", EVIDENCE_PER_ATTEMPT):
                    who = f"rank {process.rank} (pid {process.pid})"
                    self.fact("launcher", f"{who} was sent SIGTERM by {sender}")
            elif process.attempt == self.attempt:
                open_still.append(process)
        self._over = open_still

    def _tell_command(self, verdict: Verdict) -> None:
        error = self._read_error(self._error_file, "the command") if self._error_file else None
        self._tell_failure(verdict, in_words("the command", verdict), error)

    def _tell_failure(
        self,
        verdict: Verdict,
        words: str,
        error: WorkerError | None,
        **more: Any,  # noqa: ANN401 - the fields of the event
    ) -> None:
        """A failure, with the error that the process wrote down itself where it did."""
        told = redacted(error.message)[:MESSAGE_LIMIT] if error else ""
        self._say(
            events.Failure,
            exception=(redacted(error.exception)[:MESSAGE_LIMIT] if error else "") or None,
            message=told or words,
            exit_code=verdict.exit_code,
            signal=verdict.signal,
            first_error_at=error.at if error else None,
            **more,
        )
        if verdict.signal == signal.SIGKILL and (denial := self._memory_denial()):
            self._tell_denial(denial)

    def _tell_denial(self, denial: str) -> None:
        if self._may_tell("memory", 1):
            self.fact("kernel", denial)

    def _listen(self, listener: Listener, *, at_end: bool) -> None:
        heard = listener.listen(self.watch.rank_of_local, at_end=at_end)
        self.senders.heard(heard.lines)
        for pid, status in exits_told(heard.lines).items():
            self._told.setdefault(pid, status)
        for worker in first_failed(heard.lines):
            self._tell_worker(worker)
        for line in heard.lines:
            event = agent_event(line)
            if event is not None and event.state == "FAILED":
                self._take_agent_event(event)
        for text in heard.findings:
            if self._may_tell(listener.name, EVIDENCE_PER_ATTEMPT):
                self.fact(listener.name, shortened(without_secrets(text), TEXT_LIMIT))

    def _tell_worker(self, worker: WorkerExit) -> None:
        """A rank failed of which nothing was known, as it had not come to its journal. Told once."""
        if worker.pid in self.watch.met or worker.pid in self._told_workers:
            return
        self._told_workers.add(worker.pid)
        verdict = verdict_of_status(worker.status)
        self.failed_statuses.append(worker.status)
        sender = self.senders.of(verdict.signal, worker.pid)
        words = in_words(f"local rank {worker.local_rank} (pid {worker.pid})", verdict, sender)
        self._tell_failure(verdict, f"{words} before it told anything", None)

    def _take_agent_event(self, event: AgentEvent) -> None:
        """Torchrun's event log tells of a rank that failed."""
        if event.pid is not None and event.exit_code:
            self._told.setdefault(event.pid, event.exit_code)
        if event.error and event.rank is not None:
            self.fact("elastic", f"torchrun: rank {event.rank} (pid {event.pid}) failed: {event.error}")

    def _read_error_of(self, process: RankProcess) -> None:
        """The error file of a rank, where it has one of its own."""
        if process.error_file not in (None, self._error_file):
            self._read_error(process.error_file, f"rank {process.rank} (pid {process.pid})")

    def _read_error(self, path: Path, who: str) -> WorkerError | None:
        """The error that a process wrote down, which is told once."""
        if path not in self._errors and (error := read_error(path)) is not None:
            self._errors[path] = error
            self.fact("elastic", shortened(without_secrets(error_in_words(who, error)), TEXT_LIMIT), error.at)
        return self._errors.get(path)

    def _tell_silence(self, process: RankProcess) -> None:
        self.fact(
            "launcher",
            f"rank {process.rank} has said nothing for a minute; its process (pid {process.pid} of another "
            "pid namespace) cannot be seen from here, so whether it lives is unknown",
        )

    def _tell_tails(self, dead: Sequence[RankProcess]) -> None:
        """The last output of the ranks that died, then that of nobody in particular."""
        for process in dead:
            for listener in self._listeners:
                tail = listener.take_tail(process.rank) or _redirected(process, listener.name)
                self._tell_tail(listener.name, f"last output of rank {process.rank}:", tail)
        for listener in self._listeners:
            self._tell_tail(listener.name, "", listener.take_tail(None))

    def _tell_tail(self, source: str, title: str, tail: str) -> None:
        if not tail.strip():
            return
        for part in redacted_parts(f"{title}\n{tail}" if title else tail):
            if self._may_tell("tail", TAIL_PARTS_PER_ATTEMPT):
                self._say(events.Evidence, source=source, text=part)

    def _tell_skipped(self) -> None:
        """Output that came too fast to be searched is told of; it is all in the file."""
        for listener in self._listeners:
            if listener.skipped > 0:
                self.fact(
                    "launcher",
                    f"{listener.skipped} bytes of {listener.name} came too fast to be searched for causes; "
                    f"they are in {listener.path}",
                )
                listener.skipped = 0

    def _may_tell(self, kind: str, most: int) -> bool:
        """Count one more of a kind in this attempt; False where these were enough."""
        self._evidence[kind, self.attempt] += 1
        return self._evidence[kind, self.attempt] <= most

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


def _redirected(process: RankProcess, stream: str) -> str:
    """The last output of a rank whose output torchrun sends to a file beside its error file."""
    if process.error_file is None:
        return ""
    return last_bytes(process.error_file.with_name(f"{stream}.log"), TAIL_BYTES[stream])
