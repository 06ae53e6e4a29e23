"""Hand-overs of trainers as `ett publish` treats them: found, published under the launcher, told of."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ett_cli.job_settings import default_journal_dir
from ett_core.purposes import LABEL, PUBLISHES, PUBLISHES_STEP, PUBLISHING, handed_on
from ett_core.waits import check_wait
from ett_trainer_hooks.launcher import LaunchSettings, launch
from ett_trainer_hooks.launcher.output.passing import stream_sink
from ett_trainer_hooks.launcher.restarts import RestartPolicy
from ett_trainer_hooks.pipeline.publishing import handover as handovers
from ett_trainer_hooks.pipeline.publishing.handover import HandOver
from ett_trainer_hooks.pipeline.publishing.statuses import AGAIN

MODULE = "ett_trainer_hooks.pipeline.publishing"
STOPPED = tuple(128 + number for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
"""How a publishing process ends that somebody has stopped."""
DEPTHS = tuple("*/" * levels + handovers.FOLDER for levels in range(4))
"""Where folders of hand-overs are looked for below a directory, such as the `run_dir` of `ett train`."""


@dataclass(frozen=True, kw_only=True)
class Order:
    """How hand-overs are published."""

    address: str
    """Directory or URL that they go to."""
    tables: str = "plain"
    """Form of the tables: plain or int8."""
    tolerance: float | None = None
    """Largest difference to the recorded predictions; None: that of the form."""
    tries: int = 5
    """Starts of a publishing process, one after another, as long as trying again may help."""
    delay_s: float = 5.0
    """Seconds before the second; twice as long before each further one."""
    exporter_url: str | None = None
    """Exporter that hears of the publishing job."""
    token_file: Path | None = None
    """Of the exporter."""
    journal_dir: Path | None = None
    """Where the publishing job's events go; None: as those of `ett run`."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Words that describe the publishing job; they go before those that its trainer has handed over."""

    def __post_init__(self) -> None:
        """Refuse what cannot be.

        Raises:
            ValueError: a setting is wrong; the message names it.
        """
        if self.tries < 1:
            raise ValueError(f"tries={self.tries} is not at least 1")
        check_wait("delay", self.delay_s)
        if self.tolerance is not None and not self.tolerance >= 0:
            raise ValueError(f"tolerance={self.tolerance} is not 0 or more")


def publish(
    handover: HandOver, order: Order, environ: Mapping[str, str], say: Callable[[str], object]
) -> int:
    """Publish one hand-over, in a process and a job of its own; returns how that process ended.

    Raises:
        ValueError: a setting is wrong.
        OSError: the process cannot be started.
    """
    record = handover.record()
    trainer = record.job_id if record else ""
    job_id = job_id_of(trainer or handover.anchor.parent.name, handover.step)
    purpose = {LABEL: PUBLISHING, PUBLISHES: trainer, PUBLISHES_STEP: str(handover.step)}
    tolerance = [] if order.tolerance is None else ["--tolerance", str(order.tolerance)]
    words = [str(handover.folder), "--to", order.address, "--tables", order.tables, *tolerance]
    settings = LaunchSettings(
        command=[sys.executable, "-m", MODULE, *words],
        job_id=job_id,
        journal_dir=order.journal_dir or default_journal_dir(job_id, environ),
        exporter_url=order.exporter_url,
        token_file=order.token_file,
        labels={**handed_on(record.labels if record else {}), **order.labels, **purpose},
        restarts=RestartPolicy(
            max_restarts=order.tries - 1,
            delay_s=order.delay_s,
            on=("killed", "oom", "crashed", str(AGAIN)),
        ),
    )
    ranks_own = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "ETT_ATTEMPT")
    alone = {name: text for name, text in environ.items() if name not in ranks_own}
    return launch(settings, alone, out=stream_sink(sys.stderr), say=say)


def publish_all(
    found: Sequence[HandOver], order: Order, environ: Mapping[str, str], say: Callable[[str], object]
) -> bool:
    """Publish what is pending of these, from the last to the first; False where somebody has stopped it.

    As `found_in` gives the newest first, that one is published last, and is the latest of its place.

    Raises:
        ValueError: a setting is wrong.
        OSError: a process cannot be started, or the disk cannot be asked.
    """
    for handover in reversed(found):
        if handover.state() == "pending" and publish(handover, order, environ, say) in STOPPED:
            return False
    return True


def job_id_of(trainer: str, step: int) -> str:
    """The job that publishes what another one has trained.

    >>> job_id_of("dlrm-17", 400)
    'dlrm-17.publish-400'
    """
    ending = f".publish-{step}"
    return f"{trainer[: 128 - len(ending)]}{ending}"


def found_in(directory: Path) -> list[HandOver]:
    """What is handed over from directories of checkpoints: this one, and those up to three levels below.

    Of a directory of one checkpoint: what belongs to it.

    Raises:
        OSError: the disk cannot be asked.
    """
    if directory.name.startswith("step_"):
        return [each for each in handovers.find(directory.parent) if each.anchor.name == directory.name]
    folders = sorted({folder.parent for depth in DEPTHS for folder in directory.glob(depth)})
    return [each for folder in folders for each in handovers.find(folder)]


def as_json(handover: HandOver) -> dict[str, Any]:
    """Where a hand-over stands, by the names that `--json` shows."""
    record, outcome = handover.record(), handover.outcome()
    return {
        "step": handover.step,
        "job_id": record.job_id if record else "",
        "state": handover.state(),
        "place": outcome.place if outcome else "",
        "reason": outcome.reason if outcome else "",
        "by": outcome.by if outcome else "",
        "largest_difference": outcome.largest_difference if outcome else None,
        "bytes": outcome.size if outcome else None,
        "checkpoint": str(handover.anchor),
        "folder": str(handover.folder),
    }


def sentences(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Where hand-overs stand, for people.

    >>> sentences([{"step": 400, "job_id": "dlrm", "state": "failed", "reason": "it is damaged"}])
    ['step 400 of dlrm: failed, it is damaged']
    """
    return [f"step {row['step']} of {row['job_id'] or 'a job'}: {_stands(row)}" for row in rows]


def _stands(row: Mapping[str, Any]) -> str:
    if row["state"] == "done":
        agrees = row["largest_difference"]
        figures = (
            "" if agrees is None else f" ({row['bytes'] / 1e6:,.1f} MB, largest difference {agrees:.2g})"
        )
        return f"published, {row['place']}{figures}"
    if row["state"] == "failed":
        return f"failed, {row['reason']}"
    return {
        "prepared": "its checkpoint is not there yet",
        "pending": "waits to be published",
        "taken": "is being published",
    }[row["state"]]
