"""What the page of what-if asks of the query API. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ett_dashboard.client import Question
from ett_dashboard.what_if.rows import WhatIf

FILTERS = ("cluster", "team", "model", "scheduler", "purpose", "text")
SLOW_S = 10.0


def what_if(window: str, weight: str, levers: Sequence[str], chosen: Mapping[str, str]) -> Question[WhatIf]:
    """The time of some jobs in the latest `window` with some levers."""
    given = {name: value for name in FILTERS if (value := chosen.get(name))}
    parameters = {"window": window, "weight": weight, "levers": ",".join(levers), **given}
    return Question("/api/v1/what-if", WhatIf, tuple(parameters.items()), SLOW_S)
