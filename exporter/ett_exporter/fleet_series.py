"""From the sums over all jobs to the samples of the fleet on /metrics: pure.

Windows trail in event time and hold exactly the seconds of their jobs. Held accelerator time
weighs each second by the accelerators of its job; queueing after a failure weighs nothing. Jobs that
are not there to train are left out of windows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ett_core.accounting.account import seconds
from ett_core.components import COMPONENTS, TRAINING
from ett_core.failures.classes import CLASSES, NOT_A_FAILURE
from ett_core.growing import Histogram
from ett_core.purposes import TRAINING as PURPOSE
from ett_exporter.fleet_sums import Sums, held_ns
from ett_exporter.job_series import ratio
from ett_exporter.ledger import CauseKey, Ledger, Told
from ett_exporter.text import Samples, histogram
from ett_exporter.views import WINDOWS_S

_PLACE = {component: place for place, component in enumerate(COMPONENTS)}


def fleet_samples(ledger: Ledger) -> Samples:
    """Samples over all jobs in the ledger."""
    for window in WINDOWS_S:
        yield from _window(ledger.windows, window, ledger.names.clusters)
    yield from _final(ledger)
    yield from _failures(ledger)
    for family, histograms in (
        ("ett_fleet_time_to_start_seconds", ledger.to_start),
        ("ett_fleet_time_to_recover_seconds", ledger.to_recover),
        ("ett_fleet_checkpoint_blocking_seconds", ledger.blocking),
    ):
        yield from _histograms(family, histograms)


def _window(sums: Sums, window: str, clusters: Told) -> Samples:
    wall: dict[str, dict[str, int]] = {}
    held: dict[str, dict[str, int]] = {}
    for kind, total in sums.of_window(window):
        if kind.purpose != PURPOSE:
            continue
        cluster, amounts = clusters.of(kind.cluster), total.amounts_ns(window)
        _add(wall.setdefault(cluster, {}), amounts)
        _add(held.setdefault(cluster, {}), held_ns(kind, amounts))
    for cluster in sorted(wall):
        weighed = _in_order(held[cluster])
        for weight, amounts_s in (("job", _in_order(wall[cluster])), ("accelerator", weighed)):
            share = ratio(amounts_s)
            if share is not None:
                yield ("ett_fleet_effective_ratio", (window, weight, cluster), share)
        for component, amount_s in weighed.items():
            yield ("ett_fleet_component_seconds", (window, cluster, component), amount_s)


def _add(totals: dict[str, int], amounts: Mapping[str, int]) -> None:
    for component, amount in amounts.items():
        totals[component] = totals.get(component, 0) + amount


def _in_order(amounts: Mapping[str, int]) -> dict[str, float]:
    """Seconds by component in display order."""
    return {component: seconds(amounts[component]) for component in sorted(amounts, key=_PLACE.__getitem__)}


def _final(ledger: Ledger) -> Samples:
    counted, taken_back = ledger.final.counted, ledger.final.taken_back
    for key in sorted(counted):
        yield ("ett_fleet_final_accelerator_seconds_total", key, seconds(counted[key]))
    for key in sorted(taken_back.keys() | {key for key in counted if key.component == TRAINING}):
        amount = seconds(taken_back.get(key, 0))
        yield ("ett_fleet_reclassified_accelerator_seconds_total", key, amount)


def _failures(ledger: Ledger) -> Samples:
    """Every class counts from 0 on: `increase` does not see what a series begins with."""
    lost, counted = ledger.lost.counted, ledger.failures.counted
    for cause in sorted(counted.keys() | set(_possible(ledger.clusters))):
        yield ("ett_fleet_failures_total", cause, counted.get(cause, 0))
        yield ("ett_fleet_lost_accelerator_seconds_total", cause, seconds(lost.get(cause, 0)))
    for place, count in sorted(ledger.nodes.counted.items()):
        yield ("ett_node_failures_total", place, count)


def _possible(clusters: Iterable[str]) -> Iterator[CauseKey]:
    for cluster in clusters:
        for each in CLASSES.values():
            if each.name != NOT_A_FAILURE:
                yield CauseKey(each.name, each.domain, cluster)


def _histograms(family: str, histograms: Mapping[str, Histogram]) -> Samples:
    for cluster in sorted(histograms):
        found = histograms[cluster]
        yield from histogram(family, (cluster,), found.bounds, found.cumulative(), found.total_s)
