"""How long a trainer stays after its last step: where it publishes its model itself, and where it hands over.

In turns, each a job of its own under `ett run`: the same reference DLRM, steps and save; only the part
`standalone_publishing` differs. After the second, `ett publish` does what the first has done itself. Times
are those of the journals: from the last step of rank 0, after which it records what the model predicts, to
the last rank's end.

    python benchmarks/pipeline/publishing/run.py --rows 100000 --turns 5
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ett_cli.journals import read_journals
from ett_core.events import AnyEvent, AttemptEnd, PhaseBegin, PhaseEnd

ETT = str(Path(sys.executable).with_name("ett"))
RANKS = 2
STEPS = 30
PHASES = ("imports", "load", "unshard", "export", "validate", "upload")
LIMIT_S = 1800


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--tables", choices=["plain", "int8"], default="plain")
    arguments = parser.parse_args()
    measured: dict[str, list[float]] = {}
    for turn in range(arguments.turns):
        for name, seconds in one_turn(arguments.rows, arguments.tables).items():
            measured.setdefault(name, []).append(seconds)
        print(f"turn {turn + 1} of {arguments.turns}", file=sys.stderr, flush=True)
    print("| | s |")
    print("|---|---|")
    for name, seconds in measured.items():
        print(f"| {name} | {statistics.median(seconds):.2f} ({min(seconds):.2f} to {max(seconds):.2f}) |")


def one_turn(rows: int, tables: str) -> dict[str, float]:
    """Seconds of one job that publishes itself, then of one that hands over, with its publisher."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        itself = trained(folder / "itself", rows, "--publish-to", str(folder / "models"))
        alone = trained(folder / "alone", rows, "--parts", "standalone_publishing")
        words = ["--to", str(folder / "models"), "--tables", tables]
        run(
            [ETT, "publish", str(folder / "alone" / "checkpoints"), *words],
            folder / "publisher",
        )
        publisher = events_in(folder / "publisher")
    stayed, left = after_last_step(itself), after_last_step(alone)
    return {
        "last step to gone, publishes itself": stayed,
        "last step to gone, hands over": left,
        "of that, phase `publish`, publishes itself": seconds_of(itself, "publish"),
        "of that, phase `publish`, hands over": seconds_of(alone, "publish"),
        "gone earlier by": stayed - left,
        **{f"publisher, {phase}": seconds_of(publisher, phase) for phase in PHASES},
    }


def trained(folder: Path, rows: int, *more: str) -> list[AnyEvent]:
    """The events of a job."""
    words = ["--steps", str(STEPS), "--rows", str(rows), "--checkpoint-every-s", "3600", "--no-compile"]
    words += ["--checkpoint-dir", str(folder / "checkpoints"), *more]
    ranks = ["--nproc-per-node", str(RANKS), "--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0"]
    trainer = [sys.executable, "-m", "torch.distributed.run", *ranks, "-m", "ett_trainer_hooks.reference"]
    run([ETT, "run", "--job-id", "job", "--", *trainer, *words], folder / "journal")
    return events_in(folder / "journal")


def run(command: Sequence[str], journal: Path) -> None:
    mine = {name: text for name, text in os.environ.items() if not name.startswith("ETT_")}
    environ = {**mine, "ETT_JOURNAL_DIR": str(journal), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr[-3000:]}")


def events_in(journal: Path) -> list[AnyEvent]:
    return [event for part in read_journals([str(journal)]) for event in part.events]


def after_last_step(events: Sequence[AnyEvent]) -> float:
    """Seconds from the last step of rank 0 to the end of the last rank; both record predictions first."""
    last = min(each.time for each in events if isinstance(each, PhaseBegin) and each.phase == "publish")
    return max(each.time for each in events if isinstance(each, AttemptEnd) and each.rank >= 0) - last


def seconds_of(events: Sequence[AnyEvent], phase: str) -> float:
    """Seconds of a phase of rank 0, all times that it came."""
    began = sum(
        each.time for each in events if isinstance(each, PhaseBegin) and (each.rank, each.phase) == (0, phase)
    )
    ended = sum(
        each.time for each in events if isinstance(each, PhaseEnd) and (each.rank, each.phase) == (0, phase)
    )
    return ended - began


if __name__ == "__main__":
    main()
