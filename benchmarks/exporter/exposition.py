"""How long /metrics takes to write, next to prometheus_client's encoder on the same samples, in one run.

    python benchmarks/exporter/exposition.py [--samples 100000 1000000] [--rounds 5]

Both get the samples ready: ours as samples by job, the rival as finished families. Seconds are
processor time of the one thread that works. Rounds of both alternate, so that other work on the
machine falls on both alike.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, SummaryMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric

from ett_core.components import COMPONENTS
from ett_core.metrics import COUNTER, FAMILIES, SUMMARY
from ett_exporter.chunks import Chunks, gzip_stream
from ett_exporter.exposition import blocks
from ett_exporter.text import Sample, head

SAMPLES_A_JOB = 40
COMPONENT_LABELS = [(component,) for component in COMPONENTS]
WINDOW_LABELS = [("all",), ("1h",), ("24h",)]
"""Labels that jobs have in common are one object, as `ett_exporter.job_series` makes them."""


def samples_of(job_id: str, chance: random.Random) -> list[Sample]:
    """A job's samples as the exporter has them: 40, most of them seconds by component."""
    made = [("ett_job_info", (f"name of {job_id}", "ads", "dlrm", "c1", "H100", "slurm", "training"), 1)]
    made += [("ett_job_component_seconds", of, chance.uniform(1, 1e6)) for of in COMPONENT_LABELS[:20]]
    plain = [n for n, f in FAMILIES.items() if f.labels == ("job_id",) and f.kind != SUMMARY]
    made += [(name, (), chance.uniform(1, 1e9)) for name in plain]
    made += [("ett_job_effective_ratio", of, chance.random()) for of in WINDOW_LABELS]
    return made[:SAMPLES_A_JOB]


class Ready:
    """Finished families of the rival."""

    def __init__(self, jobs: Mapping[str, Sequence[Sample]]) -> None:
        self._families: dict[str, Metric] = {}
        for job_id, samples in jobs.items():
            for name, labels, value in samples:
                self._family(name).add_metric((job_id, *labels), value)

    def collect(self) -> Iterable[Metric]:
        return self._families.values()

    def _family(self, name: str) -> Metric:
        if name not in self._families:
            described = FAMILIES[name]
            kinds = {COUNTER: CounterMetricFamily, SUMMARY: SummaryMetricFamily}
            kind = kinds.get(described.kind, GaugeMetricFamily)
            self._families[name] = kind(name, described.help, labels=list(described.labels))
        return self._families[name]


def rival_from(jobs: dict[str, list[Sample]]) -> bytes:
    """What a collector does at each scrape: families from the samples, then the encoder."""
    registry = CollectorRegistry()
    registry.register(Ready(jobs))
    return generate_latest(registry)


def written(chunks: Chunks) -> list[bytes]:
    """The answer in blocks, as the server sends it; the rival makes one of it all."""
    families = chunks.refresh()
    parts: list[bytes] = []
    for family in FAMILIES:
        if family in families:
            parts += [head(family, openmetrics=False), *chunks.texts(family)]
    return blocks(parts)


def packed(chunks: Chunks) -> list[bytes]:
    families = [family for family in FAMILIES if family in chunks.refresh()]
    texts = [text for family in families for text in chunks.texts(family)]
    return blocks(gzip_stream([piece for family in families for piece in chunks.pieces(family)], texts))


def update(chunks: Chunks, jobs: dict[str, list[Sample]]) -> None:
    for job_id, samples in jobs.items():
        chunks.put(job_id, samples)


def timed(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    print("| samples | what | CPU seconds, median (range) | times the rival |")
    print("|---|---|---|---|")
    for count in arguments.samples:
        compare(count, arguments.rounds)


def compare(count: int, rounds: int) -> None:
    chance = random.Random(1)  # noqa: S311 - figures, not secrets
    ids = [f"team/job-{n:06}" for n in range(count // SAMPLES_A_JOB)]
    chunks = Chunks()
    update(chunks, {job_id: samples_of(job_id, chance) for job_id in ids})
    written(chunks)
    times: dict[str, list[float]] = {}
    for _ in range(rounds):
        jobs = {job_id: samples_of(job_id, chance) for job_id in ids}
        tenth = {job_id: samples_of(job_id, chance) for job_id in ids[::10]}
        near = {job_id: samples_of(job_id, chance) for job_id in ids[: len(ids) // 10]}
        registry = CollectorRegistry()
        registry.register(Ready(jobs))
        measure = {
            "prometheus_client generate_latest": lambda r=registry: generate_latest(r),
            "the same, its families made from the samples": lambda j=jobs: rival_from(j),
            "all jobs changed": lambda j=jobs: (update(chunks, j), written(chunks)),
            "all jobs changed, gzip from text": lambda: packed(chunks),
            "a tenth of the jobs changed, every tenth": lambda t=tenth: (update(chunks, t), written(chunks)),
            "a tenth changed, gzip from text": lambda: packed(chunks),
            "a tenth of the jobs changed, neighbours": lambda n=near: (update(chunks, n), written(chunks)),
            "nothing changed": lambda: written(chunks),
        }
        for name, work in measure.items():
            times.setdefault(name, []).append(timed(work))
    rival = statistics.median(times["prometheus_client generate_latest"])
    for name, seconds in times.items():
        median = statistics.median(seconds)
        print(
            f"| {count:,} | {name} | {median:.4f} ({min(seconds):.4f} to {max(seconds):.4f})"
            f" | {rival / median:.1f} |"
        )


if __name__ == "__main__":
    main()
