"""The sums over a fleet are exactly those of its jobs, whatever came, changed and went before."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ett_cli.simulate.fleet import Fleet
from ett_cli.simulate.settings import Scenario
from ett_core.accounting.account import NS, nanoseconds
from ett_core.components import COMPONENTS
from ett_core.events import encode
from ett_exporter.fleet import Window, groups_of, quantiles
from ett_exporter.fleet_sums import Sums, kind_of, part_of
from ett_exporter.ledger import Ledger
from ett_exporter.queries import FleetQuery
from ett_exporter.service import Service
from ett_exporter.store import Store
from ett_exporter.views import WINDOWS_S

END = 1_764_000_000.0
SHAPE = Scenario(jobs=8, days=0.25, ranks=16, reporting_ranks=1, seed=11, job_failures=20.0, train_hours=1.0)
MOMENTS = [END - SHAPE.days * 86_400 * (1 - share) for share in (0.2, 0.4, 0.6, 0.8, 1.0)]
PRICES = {"H100": 2.5, "H200": 3.1, "B200": 5.7}
GROUPS = (None, "cluster", "team", "model", "scheduler", "purpose", "accelerator_type", "state")


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """The views of each job of a simulated fleet at some moments, those of one moment together."""
    now = [0.0]
    store = Store(str(tmp_path_factory.mktemp("fleet") / "ett.sqlite"))
    service, found = Service(store, clock=lambda: now[0]), []
    told = list(Fleet(SHAPE, round(END * 1000)).merged(SHAPE.window_ms))
    for moment in MOMENTS:
        now[0] = moment
        due = [event for at_ms, event in told if END - SHAPE.days * 86_400 + at_ms / 1000 <= moment]
        service.ingest_events(b"\n".join(map(encode, due)))
        found.append({view.account.job_id: view for view in service.views(moment)})
    store.close()
    return found


@st.composite
def courses(draw):
    """Which view of which job is put in, or that it is dropped (None), one after the other."""
    step = st.tuples(st.integers(0, SHAPE.jobs - 1), st.none() | st.integers(0, len(MOMENTS) - 1))
    return draw(st.lists(step, max_size=40))


queries = st.builds(
    FleetQuery,
    window=st.sampled_from(list(WINDOWS_S)),
    weight=st.sampled_from(["job", "accelerator", "cost"]),
    group_by=st.sampled_from(GROUPS),
    state=st.sampled_from(["", "training", "succeeded,failed"]),
)


def expected(views, weight, window):
    """One group from the views of its jobs, one after the other, in whole numbers and without a sum kept."""
    totals = dict.fromkeys(COMPONENTS, 0)
    for view in views:
        factor = 1 if weight == "job" else view.accelerator_weight
        if weight == "cost":
            factor *= round(10 * PRICES.get(view.details.accelerator_type, 0.0))
        for component, seconds in view.windows[window.name].items():
            if weight == "job" or component != "recover.queue":
                totals[component] += factor * nanoseconds(seconds)
    unit = NS * 36_000 if weight == "cost" else NS
    accounts = [view.account for view in views]
    inside = [f for account in accounts for f in account.failures if window.begin <= f.time < window.end]
    back = [f for account in accounts for f in account.failures if f.ttr_s is not None]
    started = [a for a in accounts if a.tts_s is not None]
    return {
        "jobs": len(views),
        "failures": len(inside),
        "components": {name: amount / unit for name, amount in totals.items() if amount},
        "tts": quantiles(a.tts_s for a in started if window.begin <= a.start + a.tts_s < window.end),
        "ttr": quantiles(f.ttr_s for f in back if window.begin <= f.time + f.ttr_s < window.end),
    }


def shown(group, weight):
    """The same figures of a group; money is a sum of rounded prices, time is exact."""
    figures = msgspec.structs.asdict(group)
    components = figures["components"]
    if weight == "cost":
        components = pytest.approx(components, rel=1e-12)
    return {name: figures[name] for name in ("jobs", "failures", "tts", "ttr")} | {"components": components}


@given(course=courses(), query=queries, end=st.sampled_from(MOMENTS))
def test_the_sums_are_those_of_the_jobs_one_by_one(seen, course, query, end):
    """By job, by held accelerators and in money, whole and by group: as added up anew."""
    ledger, latest = Ledger(), {}
    names = sorted(seen[-1])
    for place, moment in course:
        name = names[place % len(names)]
        view = None if moment is None else seen[moment].get(name)
        if view is None:
            ledger.drop(name)
            latest.pop(name, None)
        else:
            ledger.put(view)
            latest[name] = view
    window = Window(end - WINDOWS_S[query.window], end, query.window)
    ((whole, groups),) = groups_of(ledger.windows, query, [window], PRICES)
    there = [v for v in latest.values() if v.windows[query.window] and query.kinds()(kind_of(v))]
    assert expected(there, query.weight, window) == shown(whole, query.weight)
    keys = {getattr(kind_of(view), query.group_by) for view in there} if query.group_by else set()
    assert [group.key for group in groups] == sorted(keys)
    for group in groups:
        own = [view for view in there if getattr(kind_of(view), query.group_by) == group.key]
        assert expected(own, query.weight, window) == shown(group, query.weight)


def test_nothing_stays_of_jobs_that_left(seen):
    """Sums of nothing are empty, not zero or nearly so."""
    sums = Sums()
    parts = [part_of(view) for views in seen for view in views.values()]
    for part in parts:
        sums.change(None, part)
    for part in reversed(parts):
        sums.change(part, None)
    assert list(sums.of_window("7d")) == []
    assert not sums._totals


def test_a_job_whose_description_changes_moves_as_a_whole(seen):
    """A new team takes the time, the failures and the moments of the job with it."""
    view = max(seen[-1].values(), key=lambda view: len(view.account.failures))
    labels = {**view.details.labels, "team": "another"}
    moved = replace(view, details=replace(view.details, labels=labels))
    ledger = Ledger()
    ledger.put(view)
    ledger.put(moved)
    window = Window(END - 604_800, END, "7d")
    ((whole, groups),) = groups_of(ledger.windows, FleetQuery(window="7d", group_by="team"), [window], {})
    assert [group.key for group in groups] == ["another"]
    assert whole.failures == groups[0].failures == len(view.account.failures) > 0
