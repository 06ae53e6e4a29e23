"""What the app asks about the fleet is what the exporter keeps ready."""

from __future__ import annotations

import pytest

from ett_dashboard.fleet.questions import PARTS, over_time, weighing
from ett_exporter.followed import USUAL, edges_of, shape_of

NOW = 1_764_007_321.5


@pytest.mark.parametrize("window", PARTS)
@pytest.mark.parametrize("now", [NOW, NOW + 43_200.0])
def test_the_sums_that_the_fleet_page_shows_go_on_by_themselves(window, now):
    """Its parts are of a shape that is followed; those of a day are followed before anybody asks."""
    asked = dict(over_time(window, weighing("accelerator", None), {}, now).parameters)
    edges = edges_of(float(asked["begin"]), float(asked["end"]), int(asked["buckets"]))
    shape = shape_of(edges)
    assert shape is not None
    assert shape.edges_at(now) == edges
    assert (shape == USUAL) == (window == "24h")
