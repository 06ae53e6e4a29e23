"""From the sums over all jobs to the samples of the fleet on /metrics: pure.

Windows trail in event time and hold exactly the seconds of their jobs. Held accelerator time
weighs each second by the accelerators of its job; queueing after a failure weighs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from ett_core.accounting.account import seconds
from ett_core.components import COMPONENTS, TRAINING
from ett_core.growing import Histogram
from ett_exporter.job_series import ratio
from ett_exporter.ledger import Ledger, WindowKey
from ett_exporter.live import WINDOWS_S
from ett_exporter.text import Sample, Samples, histogram

_PLACE = {component: place for place, component in enumerate(COMPONENTS)}


def fleet_samples(ledger: Ledger) -> Samples:
    """Samples over all jobs in the ledger; jobs by state only of those that are shown on /metrics."""
    for state, count in sorted((+ledger.states).items()):
        yield Sample("ett_fleet_jobs", state, count)
    yield from _windows(ledger)
    yield from _final(ledger)
    yield from _failures(ledger)
    for family, histograms in (
        ("ett_fleet_time_to_start_seconds", ledger.to_start),
        ("ett_fleet_time_to_recover_seconds", ledger.to_recover),
        ("ett_fleet_checkpoint_blocking_seconds", ledger.blocking),
    ):
        yield from _histograms(family, histograms)


def _windows(ledger: Ledger) -> Samples:
    wall, held = _by_window(ledger.wall), _by_window(ledger.held)
    for cluster in sorted({key.cluster for key in ledger.wall}):
        for window in WINDOWS_S:
            for weight, totals in (("job", wall), ("accelerator", held)):
                share = ratio(totals.get((cluster, window), {}))
                if share is not None:
                    yield Sample("ett_fleet_effective_ratio", (window, weight, cluster), share)
            for component, amount in held.get((cluster, window), {}).items():
                yield Sample("ett_fleet_component_seconds", (window, cluster, component), amount)


def _by_window(totals: Mapping[WindowKey, int]) -> dict[tuple[str, str], dict[str, float]]:
    """Seconds by component in display order, by cluster and window."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for key in sorted(totals, key=lambda key: _PLACE[key.component]):
        found.setdefault((key.cluster, key.window), {})[key.component] = seconds(totals[key])
    return found


def _final(ledger: Ledger) -> Samples:
    counted, taken_back = ledger.final.counted, ledger.final.taken_back
    for key in sorted(counted):
        yield Sample("ett_fleet_final_accelerator_seconds_total", key, seconds(counted[key]))
    for key in sorted(taken_back.keys() | {key for key in counted if key.component == TRAINING}):
        amount = seconds(taken_back.get(key, 0))
        yield Sample("ett_fleet_reclassified_accelerator_seconds_total", key, amount)


def _failures(ledger: Ledger) -> Samples:
    lost = ledger.lost.counted
    for cause, count in sorted(ledger.failures.counted.items()):
        yield Sample("ett_fleet_failures_total", cause, count)
        yield Sample("ett_fleet_lost_accelerator_seconds_total", cause, seconds(lost.get(cause, 0)))
    for place, count in sorted(ledger.nodes.counted.items()):
        yield Sample("ett_node_failures_total", place, count)


def _histograms(family: str, histograms: Mapping[str, Histogram]) -> Samples:
    for cluster in sorted(histograms):
        found = histograms[cluster]
        yield from histogram(family, (cluster,), found.bounds, found.cumulative(), found.total_s)
