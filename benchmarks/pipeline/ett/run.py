"""What the whole pipeline is worth: one job with the same faults, by a plain and by the optimised trainer.

    python benchmarks/pipeline/ett/run.py --out results [--seeds 0 1 2] [--load 1]
    python benchmarks/pipeline/ett/run.py --short --out trial

For each seed both trainers run in turns, each on a new host (empty caches); who comes first alternates.
A job has three failures: a rank is killed, the whole job is preempted with a grace time, and a rank is
killed while the newest checkpoint is damaged. Times are the exporter's. A job takes a quarter of an hour or
more; `--short` tries everything in some minutes, and measures nothing.
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import faults
import jobs
import msgspec
import service
import tomllib
from figures import OPTIMISED, PLAIN, Run, losses_apart, table
from picture import draw

PATIENCE_S = 3600.0
OPTIONS = {PLAIN: ["--plain"], OPTIMISED: []}
KEPT = ("ett_percent", "wall_s", "components", "groups", "areas", "tts_s", "ttr_s", "failure_list")
KEPT += ("checkpoint_count", "checkpoint_blocking_s", "hidden", "attempts", "versions")
"""What is kept of the exporter's answer."""
SHORT = {
    "--steps": 900,
    "--rows": 20_000,
    "--data-warmup-s": 5,
    "--checkpoint-every-s": 4,
    "--checkpoint-at-least-every-s": 4,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="a new directory for results and logs")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--load", type=float, default=math.inf, help="begin a job when the load is below")
    parser.add_argument("--short", action="store_true", help="try it in few steps, with one seed")
    parser.add_argument("--steps", type=int, help="10 to 15 minutes of training (default: job.toml)")
    given = parser.parse_args()
    changed = SHORT if given.short else {} if given.steps is None else {"--steps": given.steps}
    given.out.mkdir(parents=True)
    out = given.out.resolve()
    runs: list[Run] = []
    with service.exporter(out / "ett.sqlite") as url:
        for number, seed in enumerate(given.seeds[:1] if given.short else given.seeds):
            for side in (PLAIN, OPTIMISED) if number % 2 == 0 else (OPTIMISED, PLAIN):
                wait_for(given.load)
                runs.append(measured(side, seed, out, url, changed))
                (out / "results.json").write_bytes(msgspec.json.encode(runs))
    words = told(runs)
    (out / "table.md").write_text(words)
    draw(runs, out / "ett.png")
    print(words)


def measured(side: str, seed: int, out: Path, url: str, changed: Mapping[str, int]) -> Run:
    """One run of one trainer; `changed` are its settings that differ from job.toml, by option."""
    job_id, load = f"{side}-{seed}", os.getloadavg()[0]
    more = [str(word) for pair in changed.items() for word in pair]
    words = [*OPTIONS[side], "--seed", str(2026 + seed), *more]
    host = out / job_id
    job = jobs.Job(job_id=job_id, host=host, words=words, exporter_url=url)
    settings = tomllib.loads((jobs.HERE / "job.toml").read_text())
    steps = changed.get("--steps", settings["trainer"]["steps"])
    trained = jobs.trained(job, faults.planned(seed, steps))
    told_of_job = service.finished(url, job_id)
    for folder in ("tmp", "inductor", "triton", "checkpoints", "cache", "published"):
        shutil.rmtree(host / folder, ignore_errors=True)
    return Run(
        seed=seed,
        side=side,
        job={key: told_of_job[key] for key in KEPT},
        samples=steps * settings["trainer"]["batch_size"] * settings["ranks"],
        losses=trained.losses,
        struck=trained.struck,
        load=load,
    )


def told(runs: Sequence[Run]) -> str:
    """The tables, and what must hold beside them."""
    seeds = sorted({run.seed for run in runs})
    apart = max(losses_apart(run for run in runs if run.seed == seed) for seed in seeds)
    loads = ", ".join(f"{run.load:.1f}" for run in runs)
    struck = "\n".join(f"- {run.side}, seed {run.seed}: {'; '.join(run.struck)}" for run in runs)
    beside = (
        f"Losses of one step lie at most {apart:.4f} apart, between the trainers and where it was repeated."
    )
    return f"{table(runs)}\n\n{beside}\nLoad at the beginning of the jobs: {loads}.\n\n{struck}\n"


def wait_for(load: float) -> None:
    """Wait until the machine is quiet enough, or for an hour."""
    until = time.monotonic() + PATIENCE_S
    while os.getloadavg()[0] > load and time.monotonic() < until:
        print(f"load {os.getloadavg()[0]:.1f}, waiting for {load:g}", file=sys.stderr)
        time.sleep(10.0)


if __name__ == "__main__":
    main()
