"""From the views of all jobs to the samples of the fleet on /metrics: pure.

Windows trail in event time and hold exactly the seconds of their jobs. Held accelerator time
weighs each second by the accelerators of its job; queueing after a failure weighs nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from ett_core.components import COMPONENTS, RECOVER_QUEUE
from ett_exporter.job_series import clip, ratio
from ett_exporter.live import WINDOWS_S, JobView
from ett_exporter.text import Sample, Samples


def fleet_samples(views: Sequence[JobView], shown: Sequence[JobView]) -> Samples:
    """Samples over all jobs (`views`); jobs by state only of those `shown` on /metrics."""
    for (state, cluster, team), count in sorted(Counter(map(_state_of, shown)).items()):
        yield Sample("ett_fleet_jobs", (state, cluster, team), count)
    for cluster in sorted({_cluster_of(view) for view in views}):
        members = [view for view in views if _cluster_of(view) == cluster]
        for window in WINDOWS_S:
            yield from _window_samples(members, window, cluster)


def _window_samples(views: Sequence[JobView], window: str, cluster: str) -> Samples:
    wall = _total([(view.windows[window], 1) for view in views])
    held = _total([(_held(view.windows[window]), view.accelerator_weight) for view in views])
    for weight, components in (("job", wall), ("accelerator", held)):
        share = ratio(components)
        if share is not None:
            yield Sample("ett_fleet_effective_ratio", (window, weight, cluster), share)
    for component, seconds in held.items():
        yield Sample("ett_fleet_component_seconds", (window, cluster, component), seconds)


def _held(components: Mapping[str, float]) -> dict[str, float]:
    return {name: seconds for name, seconds in components.items() if name != RECOVER_QUEUE}


def _total(weighted: Sequence[tuple[Mapping[str, float], int]]) -> dict[str, float]:
    """Seconds by component, summed with their weights, in display order, without zeros."""
    totals: dict[str, float] = {}
    for components, weight in weighted:
        for name, seconds in components.items():
            totals[name] = totals.get(name, 0.0) + weight * seconds
    return {name: totals[name] for name in COMPONENTS if totals.get(name)}


def _state_of(view: JobView) -> tuple[str, str, str]:
    return (view.account.state, _cluster_of(view), clip(view.label("team")))


def _cluster_of(view: JobView) -> str:
    return clip(view.label("cluster"))
