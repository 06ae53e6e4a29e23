"""Rows to tables and bars."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ett_core.accounting.account import AttemptAccount
from ett_core.components import COMPONENTS
from ett_dashboard import frames
from ett_dashboard.rows import CacheRow, CheckpointRow, StretchRow

COMPONENT_SECONDS = {"training": 600.0, "start.compile": 100.0, "data_wait": 50.0, "stalled": 50.0}


def stretch(start: float, end: float, attempt: int = 0, **components: float) -> StretchRow:
    return StretchRow(
        start=start, end=end, attempt=attempt, components=components or {"training": end - start}
    )


def test_the_partition_keeps_display_order_and_adds_up():
    shares = frames.partition({**COMPONENT_SECONDS, "publish": 0.0})
    assert [(s.component, s.group, s.seconds, s.percent) for s in shares] == [
        ("training", "effective", 600.0, 75.0),
        ("start.compile", "idleness", 100.0, 12.5),
        ("data_wait", "idleness", 50.0, 6.3),
        ("stalled", "failure", 50.0, 6.2),
    ]


SECONDS = st.dictionaries(st.sampled_from(COMPONENTS), st.floats(0.001, 1e7), min_size=1)


@given(SECONDS)
def test_shares_add_up_to_a_hundred_and_training_reads_as_ett_percent(components):
    shares = {share.component: share.percent for share in frames.partition(components)}
    assert sum(round(10 * value) for value in shares.values()) == 1000
    if "training" in components:
        percent = 100 * components["training"] / sum(components.values())
        assert abs(shares["training"] - percent) <= 0.05 + 1e-9


def test_the_partition_to_take_away_holds_exact_seconds():
    table = frames.partition_frame({"training": 2 / 3, "data_wait": 1 / 3})
    assert (
        table.to_csv(index=False)
        .splitlines()[1]
        .startswith("training,effective,effective training,0.66666666666666")
    )
    assert list(frames.partition_frame({}).columns) == list(table.columns)


def test_losses_are_largest_first_without_training():
    assert [s.component for s in frames.losses(COMPONENT_SECONDS, most=2)] == ["start.compile", "data_wait"]


def test_states_are_counted_worst_first():
    assert frames.states({"succeeded": 1, "training": 2, "lost": 1}) == [
        ("lost", 1),
        ("training", 2),
        ("succeeded", 1),
    ]


def test_neighbours_that_show_the_same_become_one_bar():
    line = [stretch(0, 10), stretch(10, 20), stretch(20, 30, attempt=1)]
    assert [(b.start, b.end, b.attempt) for b in frames.bars(line)] == [(0, 20, 0), (20, 30, 1)]


def test_a_stretch_is_cut_across_its_lane_by_its_shares():
    bars = frames.bars([stretch(0, 10, data_wait=2.0, training=8.0)])
    assert [(b.component, b.low, b.high, b.seconds) for b in bars] == [
        ("training", 0.0, 0.8, 8.0),
        ("data_wait", 0.8, 1.0, 2.0),
    ]
    assert frames.bars([]) == []


@given(
    st.lists(
        st.tuples(st.floats(0.001, 1e4), st.sampled_from(COMPONENTS), st.integers(0, 2)),
        min_size=1,
        max_size=400,
    )
)
def test_joining_stretches_loses_no_second(pieces):
    """Whatever is joined for display, each component keeps its seconds."""
    line, at = [], 0.0
    for length, component, attempt in sorted(pieces, key=lambda piece: piece[2]):
        line.append(stretch(at, at + length, attempt, **{component: length}))
        at += length
    bars = frames.bars(line, columns=50)
    for component in COMPONENTS:
        told = sum(row.components.get(component, 0.0) for row in line)
        assert sum(b.seconds for b in bars if b.component == component) == pytest.approx(told)


def test_ten_thousand_reports_become_few_bars():
    line = [stretch(10.0 * n, 10.0 * n + 10, training=9.5, data_wait=0.5) for n in range(10_000)]
    assert len(frames.bars(line)) < 2000


def test_hit_rates_leave_bypasses_out_and_are_unknown_without_requests():
    assert CacheRow(3, 1, 9).hit_percent == 75.0
    assert CacheRow(bypasses=2).hit_percent is None


def test_ranks_show_who_held_up_the_start():
    attempt = AttemptAccount(
        attempt=0,
        start=100.0,
        end=200.0,
        loop_start=131.0,
        outcome="running",
        observed=True,
        critical_rank=1,
        leader=0,
        world_size=2,
        accelerators=2,
        accelerator_type="",
        resumed_step=0,
        last_step=None,
        first_batch_at={0: 130.0, 1: 131.0},
        hidden={},
        components={},
    )
    assert frames.first_batches(attempt) == [
        frames.FirstBatch(1, 31.0, "held up the start"),
        frames.FirstBatch(0, 30.0, "leads the loop"),
    ]


def test_checkpoints_tell_their_fate_latest_first():
    rows = [
        CheckpointRow(time=10.0, step=1, durable_at=14.0, blocking_s=1.5),
        CheckpointRow(time=20.0, step=2, failed=True),
        CheckpointRow(time=30.0, step=3),
    ]
    latest = frames.latest_saves(rows)
    assert [frames.fate(save) for save in latest] == ["on its way", "failed", "durable"]
    assert [save.durable_after_s for save in latest] == [None, None, 4.0]
