"""Which checkpoints stay: the last ones, every n-th step, the best by a metric."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import isnan, nan

from ett_trainer_hooks.pipeline.checkpoint.manifest import Manifest


@dataclass(frozen=True, kw_only=True)
class Retention:
    """What is kept; a checkpoint stays as long as one of these wants it."""

    last: int = 3
    """The newest ones, 1 at least; with 2 or more there is one to fall back to."""
    every: int = 0
    """Steps that are multiples of this stay for ever; 0 for none."""
    best: int = 0
    """How many of the best by `metric` stay."""
    metric: str = ""
    """A metric of the commits; those without it, or with one that is no number, are not among the best."""
    highest: bool = False
    """Whether more is better, as with an accuracy."""

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        if self.last < 1:
            raise ValueError(f"the last {self.last} checkpoints: at least the newest one has to stay")
        if self.every < 0 or self.best < 0:
            raise ValueError("a number of checkpoints is not negative")
        if bool(self.best) != bool(self.metric):
            raise ValueError("the best checkpoints need both a number (best) and the name of a metric")


def retired(committed: Iterable[Manifest], rule: Retention) -> list[Manifest]:
    """Those that nothing wants any longer, oldest first."""
    oldest_first = sorted(committed, key=lambda manifest: manifest.sequence)
    wanted = {manifest.commit for manifest in oldest_first[-rule.last :] + _best(oldest_first, rule)}
    return [
        manifest
        for manifest in oldest_first
        if manifest.commit not in wanted and not (rule.every and manifest.step % rule.every == 0)
    ]


def _best(committed: list[Manifest], rule: Retention) -> list[Manifest]:
    """The best ones; of equal ones the newest."""

    def merit(manifest: Manifest) -> tuple[float, int]:
        value = manifest.metrics[rule.metric]
        return (value if rule.highest else -value, manifest.sequence)

    rated = [m for m in committed if not isnan(m.metrics.get(rule.metric, nan))]
    return sorted(rated, key=merit, reverse=True)[: rule.best]
