import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ett_core.intervals import (
    Costs,
    cautions,
    costs_from_mtbf,
    costs_from_nodes,
    costs_of_job,
    expected_ettr,
    failure_range,
    interval_range_s,
    optimal_interval_s,
    refined_interval_s,
    wasted,
)

COSTS = st.builds(
    Costs,
    blocking_s=st.floats(0.01, 1e4),
    failures=st.floats(0.01, 1e3),
    train_s=st.floats(60, 1e8),
    upload_s=st.floats(0, 1e4),
    slowed_s=st.floats(0, 1e4),
)


@pytest.mark.parametrize(
    ("costs", "interval_s", "total_s", "percent"),
    [
        (Costs(blocking_s=15, failures=3, train_s=86400), 929.5, 2788.5, 3.227),
        (Costs(blocking_s=30, failures=4, train_s=86400), 1138.4, 4553.7, 5.270),
        (costs_from_mtbf(blocking_s=120, mtbf_s=6 * 3600), 2276.8, 9107.4, 10.541),
        (Costs(blocking_s=15, failures=3, train_s=86400, upload_s=100), 929.5, 3088.5, 3.575),
    ],
)
def test_worked_figures(costs, interval_s, total_s, percent):
    waste = wasted(costs)
    assert round(optimal_interval_s(costs), 1) == interval_s
    assert round(waste.total_s, 1) == total_s
    assert round(waste.percent, 3) == percent


def test_an_interval_in_use_costs_its_saves_and_half_of_itself_a_failure():
    waste = wasted(Costs(blocking_s=10, failures=2, train_s=36_000, upload_s=50), 3600)
    assert (waste.checkpoints, waste.blocking_s, waste.lost_s) == (10, 100, 3700)
    assert waste.total_s == 3800


@given(costs=COSTS, factor=st.floats(0.01, 100))
def test_no_interval_wastes_less_than_the_optimum(costs, factor):
    best = wasted(costs)
    other = wasted(costs, best.interval_s * factor)
    assert other.total_s >= best.total_s * (1 - 1e-12)


@given(costs=COSTS)
def test_at_the_optimum_saving_costs_what_losing_costs(costs):
    best = wasted(costs)
    saving_s = best.blocking_s + best.slowed_s
    assert math.isclose(saving_s, best.lost_s - costs.failures * costs.upload_s, rel_tol=1e-6, abs_tol=1e-6)


def test_what_a_save_slows_costs_as_much_as_what_it_blocks():
    """2 s of blocking and 6 s of slowing are 8 s, whichever they are; of 10 saves, 20 s and 60 s."""
    costs, plain = (
        Costs(blocking_s=blocking_s, slowed_s=slowed_s, failures=4, train_s=10_000)
        for blocking_s, slowed_s in ((2, 6), (8, 0))
    )
    assert optimal_interval_s(costs) == optimal_interval_s(plain) == 200
    assert expected_ettr(costs, 1000) == expected_ettr(plain, 1000)
    waste = wasted(costs, 1000)
    assert (waste.blocking_s, waste.slowed_s, waste.lost_s, waste.total_s) == (20, 60, 2000, 2080)
    between_s = refined_interval_s(costs) - refined_interval_s(plain)
    assert between_s == pytest.approx(6)  # the steps that are slowed lie between two saves
    assert optimal_interval_s(Costs(blocking_s=0, slowed_s=8, failures=4, train_s=10_000)) == 200


def test_without_failures_no_interval_is_best_and_words_say_so():
    costs = Costs(blocking_s=5, failures=0, train_s=1000)
    assert optimal_interval_s(costs) is None
    assert wasted(costs).total_s == 0
    assert wasted(costs, 100).total_s == 50
    assert cautions(costs) == [
        "Nothing fails, so no checkpoint pays for itself: there is no optimal interval."
    ]


@pytest.mark.parametrize(
    ("costs", "words"),
    [
        (Costs(blocking_s=400, failures=10, train_s=6000), "Blocking is not small beside the time"),
        (Costs(blocking_s=1, slowed_s=399, failures=10, train_s=6000), "What a save costs is not small"),
        (Costs(blocking_s=10, failures=0.001, train_s=100), "not one checkpoint pays for itself"),
        (Costs(blocking_s=1, failures=10, train_s=10_000, upload_s=60), "no more often than uploads end"),
    ],
)
def test_where_the_formula_should_not_be_trusted_a_sentence_says_so(costs, words):
    assert any(words in sentence for sentence in cautions(costs))


def test_in_the_usual_case_there_is_nothing_to_caution():
    assert cautions(Costs(blocking_s=15, failures=3, train_s=86400, upload_s=60)) == []


@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf])
@pytest.mark.parametrize("name", ["blocking_s", "train_s", "mtbf_s"])
def test_a_duration_that_makes_no_sense_is_refused_by_name(name, value):
    figures = {"blocking_s": 1.0, "train_s": 100.0, "mtbf_s": 10.0} | {name: value}
    word = {"blocking_s": "blocking", "train_s": "training", "mtbf_s": "between failures"}[name]
    with pytest.raises(ValueError, match=f"{word}.* must be a finite number"):
        costs_from_mtbf(**figures)


@pytest.mark.parametrize("value", [-1, math.nan, math.inf])
def test_failures_and_upload_may_be_zero_but_not_less(value):
    with pytest.raises(ValueError, match="number of failures must be a finite number, zero or more"):
        Costs(blocking_s=1, failures=value, train_s=10)
    with pytest.raises(ValueError, match="upload time must be a finite number, zero or more"):
        Costs(blocking_s=1, failures=1, train_s=10, upload_s=value)
    with pytest.raises(ValueError, match="slowing of steps must be a finite number, zero or more"):
        Costs(blocking_s=1, failures=1, train_s=10, slowed_s=value)


@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf])
def test_an_interval_that_makes_no_sense_is_refused(value):
    with pytest.raises(ValueError, match="interval must be a finite number above zero"):
        wasted(Costs(blocking_s=1, failures=1, train_s=10), value)


@pytest.mark.parametrize(
    ("failures", "low", "high"), [(0, 0.0, 2.9957), (1, 0.0513, 4.7439), (10, 5.4254, 16.9622)]
)
def test_limits_of_a_poisson_count_are_those_of_the_tables(failures, low, high):
    """Exact 90 % limits: halves of quantiles of the chi-squared distribution."""
    assert failure_range(failures) == (pytest.approx(low, abs=1e-4), pytest.approx(high, abs=1e-4))


def test_the_optimum_is_the_surer_the_more_failures_were_seen():
    def spread(failures):
        shortest, longest = interval_range_s(Costs(blocking_s=10, failures=failures, train_s=1e6))
        best = optimal_interval_s(Costs(blocking_s=10, failures=failures, train_s=1e6))
        assert shortest < best < longest
        return longest / shortest

    assert spread(3) > spread(30) > spread(300) > 1
    assert interval_range_s(Costs(blocking_s=10, failures=0, train_s=1e6))[1] is None


@pytest.mark.parametrize(
    ("job", "best_minutes", "ettr"),
    [
        ((256, 6.5, 300, 300), 93.0, 0.8925),
        ((1024, 6.5, 300, 300), 46.5, 0.7850),
        ((1500, 6.5, 10, 600), 7.02, 0.8875),
        ((1500, 1.0, 300, 1200), 98.0, 0.8831),
    ],
)
def test_figures_of_clusters(job, best_minutes, ettr):
    nodes, rate, blocking_s, recovery_s = job
    costs = costs_from_nodes(
        blocking_s=blocking_s, nodes=nodes, failures_in_1000_node_days=rate, recovery_s=recovery_s
    )
    assert optimal_interval_s(costs) / 60 == pytest.approx(best_minutes, abs=0.05)
    assert expected_ettr(costs) == pytest.approx(ettr, abs=0.00005)


def test_another_interval_than_the_best_trains_less():
    costs = costs_from_nodes(blocking_s=300, nodes=256, failures_in_1000_node_days=6.5, recovery_s=300)
    assert round(expected_ettr(costs, 3600), 4) == 0.8857


@pytest.mark.parametrize(
    ("costs", "ettr"),
    [
        (Costs(blocking_s=5, failures=0, train_s=1000), 1.0),
        (Costs(blocking_s=5, failures=100, train_s=1000, recovery_s=60), 0.0),
    ],
)
def test_the_expected_share_stays_a_share(costs, ettr):
    assert expected_ettr(costs) == ettr


def test_the_refined_interval_is_the_published_one():
    costs = costs_from_mtbf(blocking_s=300, mtbf_s=86_400)
    assert round(refined_interval_s(costs) / 60, 1) == 116.7


@given(mtbf_s=st.floats(60, 1e7), share=st.floats(1e-7, 1e-4))
def test_where_blocking_is_small_the_refinement_changes_little(mtbf_s, share):
    costs = costs_from_mtbf(blocking_s=share * mtbf_s, mtbf_s=mtbf_s)
    between_starts_s = refined_interval_s(costs) + costs.blocking_s
    assert between_starts_s == pytest.approx(optimal_interval_s(costs), rel=0.01)


def test_the_refined_interval_is_at_most_the_time_between_failures():
    assert refined_interval_s(costs_from_mtbf(blocking_s=300, mtbf_s=100)) == 100
    assert refined_interval_s(Costs(blocking_s=5, failures=0, train_s=1000)) is None


@pytest.mark.parametrize("figures", [(0, 6.5), (math.nan, 6.5), (8, 0), (8, -1)])
def test_a_cluster_that_makes_no_sense_is_refused_by_name(figures):
    nodes, rate = figures
    with pytest.raises(ValueError, match=r"(nodes|node-days) must be a finite number above zero"):
        costs_from_nodes(blocking_s=1, nodes=nodes, failures_in_1000_node_days=rate)


def test_the_time_of_a_job_is_that_of_its_loop():
    """Two hours in the loop with 6 failures and saves of 10 s: 155 s, however long it hangs or is dead."""
    lived = {"training": 6000.0, "unsaved_training": 900.0, "data_wait": 240.0, "checkpoint_blocking": 60.0}
    around = {"start.compile": 300.0, "recover.queue": 1e5, "stalled": 1e5, "recover.restart": 1e6}
    costs = costs_of_job(lived | around, saves=6, blocking_s=60.0, failures=6, upload_s=5.0)
    assert costs == Costs(blocking_s=10.0, failures=6, train_s=7200.0, upload_s=5.0)
    assert optimal_interval_s(costs) == pytest.approx(154.92, abs=0.01)
    assert costs == costs_of_job(lived, saves=6, blocking_s=60.0, failures=6, upload_s=5.0)
    slow = costs_of_job(lived, saves=6, blocking_s=60.0, failures=6, upload_s=5.0, slowed_s=5.0)
    assert optimal_interval_s(slow) == pytest.approx(
        (2 * 15 * 1200) ** 0.5
    )  # 10 s of blocking and 5 of slowing


@pytest.mark.parametrize(
    "job",
    [
        {"saves": 0, "blocking_s": 0.0, "components": {"training": 9.0}},
        {"saves": 1, "blocking_s": 0.0, "components": {"training": 9.0}},
        {"saves": 1, "blocking_s": 1.0, "components": {"stalled": 9.0}},
    ],
)
def test_a_job_that_never_saved_or_never_trained_has_no_costs(job):
    assert costs_of_job(failures=1, **job) is None
