"""The play: services up, a job in training, a rank killed, the job recovered, everything checked.

One thread, one loop that looks twice a second; whatever it waits for has the same deadline. The
moment of the kill is read from the exporter, as a person would read it: training goes on, and a
durable checkpoint lies some seconds behind.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ett_cli.demo import stage as stages
from ett_cli.demo.children import Child, Children
from ett_cli.demo.exporter import get_job, get_text
from ett_cli.demo.processes import rank_process
from ett_cli.demo.stage import MARK, Stage
from ett_cli.demo.words import doing, line, places

LOOK_EVERY_S = 0.5
SAY_EVERY_S = 3.0
UNSAVED_BEFORE_KILL_S = 3.0
VICTIM_RANK = 1

Say = Callable[[str], object]
T = TypeVar("T")


class DemoError(Exception):
    """The demo cannot go on; the message says why and where to read more."""


class Play:
    """One run of the demo, with the processes in `children`.

    Args:
        stage: what to start.
        children: starts the processes; its owner stops them.
        say: takes the lines for the terminal.
    """

    def __init__(
        self,
        stage: Stage,
        children: Children,
        *,
        say: Say,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], object] = time.sleep,
    ) -> None:
        self._stage = stage
        self._children = children
        self._say = say
        self._clock = clock
        self._pause = pause
        self._began_s = clock()
        self._end_s = self._began_s + stage.limit_s
        self._said_s = self._began_s
        self._places = places(stage)
        self._lines = 0
        self._services = ["exporter", "app"] if stage.app else ["exporter"]

    def run(self, allocated_at: float) -> Mapping[str, Any]:
        """Play it to the end; returns the finished job. `allocated_at`: Unix seconds.

        Raises:
            DemoError: a process died early, or the time was up.
        """
        self._start_services()
        trainer = self._start("trainer", stages.trainer_command, allocated_at)
        self._until("training goes on past a durable checkpoint", lambda: self._is_time_to_kill(trainer))
        self._kill()
        self._until("the trainer ends", lambda: self._has_ended(trainer))
        return self._until("the exporter calls the job finished", self._finished_job)

    def _start_services(self) -> None:
        stage = self._stage
        self._serve("exporter", stages.exporter_command, stage.exporter_url, "healthz")
        if stage.app:
            self._serve("app", stages.app_command, stage.app_url, "_stcore/health")

    def _serve(self, name: str, command: Callable[[Stage], list[str]], url: str, health: str) -> None:
        """Start a service and wait for it: ours, which says its address once it has it, not another's."""
        child = self._start(name, command)
        self._until(f"the {name} answers", lambda: url in child.new_output() and get_text(f"{url}/{health}"))

    def _start(
        self, name: str, command: Callable[[Stage], list[str]], allocated_at: float | None = None
    ) -> Child:
        stage = self._stage
        environment = (
            stages.service_environment(stage)
            if allocated_at is None
            else stages.trainer_environment(stage, allocated_at)
        )
        self._line(f"starting the {name}", f"log {stage.log(name)}")
        return self._children.start(name, command(stage), environment, stage.log(name))

    def _job(self) -> Mapping[str, Any] | None:
        return get_job(self._stage.exporter_url, self._stage.job_id)

    def _is_time_to_kill(self, trainer: Child) -> bool:
        if trainer.process.poll() is not None:
            raise DemoError(f"the trainer ended before the kill\n{_tail(trainer)}")
        job = self._job()
        self._line_if_due(doing(job, self._stage.steps))
        if job is None or not job["last_durable_step"]:
            return False
        return bool(job["state"] == "training" and job["unsaved_exposure_s"] >= UNSAVED_BEFORE_KILL_S)

    def _kill(self) -> None:
        pid = rank_process(MARK, self._stage.job_id, VICTIM_RANK)
        if pid is None:
            raise DemoError(f"rank {VICTIM_RANK} is not to be found among the processes")
        os.kill(pid, signal.SIGKILL)
        self._line(f"KILLED rank {VICTIM_RANK} (process {pid}) with SIGKILL")

    def _has_ended(self, trainer: Child) -> bool:
        self._line_if_due(doing(self._job(), self._stage.steps))
        status = trainer.process.poll()
        if status:
            raise DemoError(f"the trainer ended with status {status}\n{_tail(trainer)}")
        return status == 0

    def _finished_job(self) -> Mapping[str, Any] | None:
        job = self._job()
        return job if job is not None and job["finished"] else None

    def _until(self, what: str, look: Callable[[], T | None]) -> T:
        while True:
            found = look()
            dead = self._children.dead(self._services)
            if dead is not None:
                raise DemoError(f"the {dead.name} ended while waiting until {what}\n{_tail(dead)}")
            if found:
                return found
            if self._clock() > self._end_s:
                raise DemoError(
                    f"{self._stage.limit_s:.0f} s were up while waiting until {what}; "
                    f"the logs are in {self._stage.run_dir}"
                )
            self._pause(LOOK_EVERY_S)

    def _line_if_due(self, text: str) -> None:
        if self._clock() - self._said_s >= SAY_EVERY_S:
            self._line(text)

    def _line(self, text: str, where: str | None = None) -> None:
        """Say what goes on and where to look: by default, one after the other, at what is served by now."""
        self._said_s = self._clock()
        if where is None:
            where = self._places[self._lines % len(self._places)]
            self._lines += 1
        self._say(line(self._said_s - self._began_s, text, where))


def _tail(child: Child) -> str:
    return f"last lines of {child.log}:\n{child.tail()}"
