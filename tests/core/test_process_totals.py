"""Totals that processes report: bounded, whatever a job calls its caches and counters."""

from __future__ import annotations

from ett_core.events import Cache, Counters, TunedKernel
from ett_core.named_sums import NAMES_KEPT
from ett_core.process_totals import ProcessTotals


def said(seq, writer="w"):
    return {"job_id": "j", "writer": writer, "seq": seq, "attempt": 0, "rank": 0, "time": 100.0 + seq}


def test_caches_of_endless_names_are_left_out_and_known_ones_go_on():
    """After as many names as are kept, those that are known count on, also after a restart."""
    totals = ProcessTotals()
    for seq in range(2 * NAMES_KEPT):
        totals.add_cache(Cache(cache=f"c{seq}", hits=1, **said(seq)))
    for again in (totals, ProcessTotals.of_state(totals.state())):
        again.add_cache(Cache(cache="c7", hits=5, **said(1000)))
        again.add_cache(Cache(cache="c7", hits=6, **said(0, "other")))
        again.add_cache(Cache(cache="new", hits=6, **said(1001)))
        assert len(again.caches) == len(again.run_caches[0]) == NAMES_KEPT
        assert again.caches["c7"].hits == 11
        assert "new" not in again.caches


def test_what_was_tuned_is_not_held_with_the_totals():
    """A kernel's configurations may take as much as a line: the totals need none of them."""
    totals = ProcessTotals()
    tuned = TunedKernel(kernel="k", tuned_s=1.0, candidates=({"BLOCK": 1},) * 100)
    totals.add_cache(Cache(cache="kernels", hits=3, misses=1, tuned=tuned, **said(0)))
    (kept,) = totals.state().caches
    assert (kept.hits, kept.misses, kept.tuned) == (3, 1, None)


def test_a_report_of_endless_counters_is_cut():
    """As many of its names as a job may have count; the next report of the process counts on."""
    totals = ProcessTotals()
    for seq, value in ((0, 1.0), (1, 2.0)):
        totals.add_counters(Counters(values={f"n{n}": value for n in range(5000)}, **said(seq)))
    assert totals.counters == {f"n{n}": 2.0 for n in range(NAMES_KEPT)}
    assert all(len(report.values) == NAMES_KEPT for _, report in totals.state().counters)
