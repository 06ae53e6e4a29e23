"""Caches, checkpoint intervals and what-if: from answers to tables, figures, words and markup."""

from __future__ import annotations

import csv
from datetime import timezone

import plotly.graph_objects as go
import pytest
from lever_answers import cold, comparison, interval, run, what_if
from msgspec.structs import replace

from ett_core.fleet.caches import VERDICTS
from ett_core.fleet.what_if import LEVERS
from ett_dashboard import listing
from ett_dashboard.caches import fields as cache_fields
from ett_dashboard.caches import figures as cache_figures
from ett_dashboard.caches import frames as cache_frames
from ett_dashboard.caches import markup as cache_markup
from ett_dashboard.caches import words as cache_words
from ett_dashboard.caches.questions import runs as ask_runs
from ett_dashboard.caches.questions import surprises as ask_surprises
from ett_dashboard.caches.rows import CacheRuns
from ett_dashboard.checkpoints import fields as interval_fields
from ett_dashboard.checkpoints import figures as interval_figures
from ett_dashboard.checkpoints import words as interval_words
from ett_dashboard.checkpoints.curve import Supposed, points, supposed_of
from ett_dashboard.checkpoints.sliders import slider, supposed_in, without
from ett_dashboard.what_if import figures as lever_figures
from ett_dashboard.what_if import frames as lever_frames
from ett_dashboard.what_if import words as lever_words

UTC = timezone.utc
HOSTILE = "<script>x</script><a href='y'>z</a>"


def compare(one, two):
    return f"caches?one={one}&two={two}"


def answer(*runs, total=None, surprises=0):
    kinds = {kind: sum(row.verdict == kind for row in runs) for kind in VERDICTS}
    return CacheRuns(
        as_of=0.0, runs=runs, total=len(runs) if total is None else total, verdicts=kinds, surprises=surprises
    )


@pytest.mark.parametrize(
    "figure",
    [
        cache_figures.hit_rates([run("a"), cold("b")]),
        cache_figures.hit_rates([]),
        cache_figures.trend([run("a"), cold("b"), run("c", verdict="hollow")], UTC),
        cache_figures.side_by_side(comparison(run("a"), cold("b"))),
        interval_figures.wasted_time(supposed_of(interval())),
        interval_figures.wasted_time(supposed_of(interval(failures=0, best_s=None, longest_s=None))),
        lever_figures.gains(what_if("caches")),
        lever_figures.gains(what_if(alone=[])),
        lever_figures.before_and_after(what_if("caches", "recovery")),
    ],
)
def test_plotly_knows_every_property(figure):
    go.Figure(figure)


def test_hit_rates_stand_beside_the_seconds_compiled_all_the_same():
    heat, waited, hidden = cache_figures.hit_rates([run("a"), cold("b")])["data"]
    assert heat["x"] == ["FX graph", "MegaCache"]
    assert heat["z"] == [[0.95, 1.0], [0.0, None]]
    assert (waited["x"], hidden["x"]) == ([20.0, 400.0], [5.0, 5.0])


def test_a_table_of_runs_to_take_away_holds_the_requests_of_each_cache():
    runs = [run("a"), cold("b"), run("=c", hit_ratio=None)]
    written = listing.as_csv(cache_fields.taken_away(runs, UTC), runs).decode().splitlines()
    rows = list(csv.DictReader(written))
    assert [row["id"] for row in rows] == ["a~0", "b~0", "'=c~0"]
    assert [row["fx_graph_misses"] for row in rows] == ["5", "100", "5"]
    assert [row["mega_cache_hits"] for row in rows] == ["1", "", "1"]
    assert [row["hit_percent"] for row in rows] == ["95.0", "0.0", ""]


def test_a_run_is_put_into_the_comparison_on_the_side_that_is_free():
    def pick(side, run_id):
        return f"{side}={run_id}"

    first = cache_fields.compare_cell(run("a"), "", pick)
    assert (first.text, first.href) == ("as first", "one=a~0")
    assert cache_fields.compare_cell(run("a"), "a~0", pick).href is None
    assert cache_fields.compare_cell(run("b"), "a~0", pick).href == "two=b~0"


def test_two_runs_compared_name_the_cold_one_and_the_reason():
    found = comparison(run("a"), cold("b"))
    told = cache_words.comparison_sentence(found)
    assert "the cold one is b · attempt 0: it compiled 6 m 45 s with 0.0 % hits" in told.how
    assert "Torch changed from 2.13.0 to 2.14.0" in told.do
    rows = {what: (one, two) for what, one, two in cache_frames.comparison_rows(found)}
    assert rows["torch"] == ("2.13.0", "2.14.0")
    assert rows["FX graph hit rate"] == ("95.0 %", "0.0 %")
    assert cache_markup.comparison_table(found).count("ett-differs") >= 5
    both = cache_words.comparison_sentence(comparison(run("a"), run("b")))
    assert both.how.startswith("both were warm")


def test_the_sentence_over_many_runs_counts_what_was_unexpected():
    assert "no run" in cache_words.fleet_sentence(answer()).how
    calm = cache_words.fleet_sentence(answer(run("a")))
    assert (calm.how, calm.do) == ("1 run: 1 warm; none was cold that should have been warm", "")
    told = cache_words.fleet_sentence(answer(run("a"), cold("b"), surprises=1))
    assert told.how == "2 runs: 1 warm, 1 cold; 1 was expected to be warm and was not"
    assert told.do


def test_a_surprise_leads_to_the_comparison_with_the_warm_run():
    html = cache_markup.surprises([cold("team/b"), cold("c", alike="")], compare)
    assert 'href="caches?one=warm~0&amp;two=team/b~0"' in html
    assert html.count("<a ") == 1


def test_words_of_a_job_are_inert_in_caches():
    hostile = cold("b", job_name=HOSTILE, because=HOSTILE, versions={HOSTILE: HOSTILE})
    found = comparison(run("a"), hostile)
    html = (
        cache_markup.surprises([hostile], compare)
        + cache_markup.comparison_table(found)
        + cache_markup.reasons(found)
    )
    assert "<script" not in html
    assert "<a href='y'" not in html
    assert "<script" not in str(cache_figures.hit_rates([hostile])["layout"])
    assert "<script" not in cache_figures.run_hover(hostile)


@pytest.mark.parametrize("kind", [*VERDICTS, "of_a_later_version"])
def test_every_verdict_has_a_colour_and_a_meaning(kind):
    assert cache_words.verdict_colour(kind).startswith("#")
    assert cache_words.verdict_meaning(kind)


def test_filters_that_are_not_chosen_are_not_asked_for():
    assert dict(ask_runs({"team": "ads", "model": "", "other": "x"}).parameters) == {
        "team": "ads",
        "limit": "300",
    }
    assert dict(ask_surprises({}).parameters) == {"limit": "20", "surprise": "true"}


def test_the_curve_has_its_least_at_the_best_interval():
    supposed = supposed_of(interval())
    best = supposed.best
    assert best.interval_s == pytest.approx((2 * 50.0 * 360_000.0 / 20) ** 0.5)
    curve = points(supposed)
    assert min(each.percent for each in curve) == pytest.approx(best.percent, rel=1e-3)
    assert curve[0].interval_s < supposed.range_s[0] < best.interval_s < supposed.range_s[1]
    assert best.recovery_s == 0.0
    assert supposed.used_percent == 10.2
    lifted = replace(supposed, recovery_s=120.0, measured_percent=None)
    assert lifted.best.interval_s == best.interval_s
    assert lifted.used_percent > supposed.best.percent


def test_the_curve_counts_what_saves_slow_the_steps_beside_them():
    supposed = supposed_of(interval(blocking_s=20.0, slowed_s=30.0))
    assert supposed.best.interval_s == pytest.approx((2 * 50.0 * 360_000.0 / 20) ** 0.5)
    assert supposed.range_s == supposed_of(interval()).range_s
    names = [trace["name"] for trace in interval_figures.wasted_time(supposed)["data"]]
    assert names[:3] == ["lost in failures", "blocked by saves", "slowed by saves"]
    assert "slowed beside them" in str(interval_figures.wasted_time(supposed))
    assert "slowed" not in str(interval_figures.wasted_time(supposed_of(interval())))


def test_a_job_without_failures_has_only_a_lower_limit():
    supposed = supposed_of(interval(failures=0, best_s=None, best_percent=None, longest_s=None))
    assert supposed.range_s[1] is None
    assert "any longer one" in str(interval_figures.wasted_time(supposed)["layout"]["annotations"])
    assert "0 failures only" in interval_words.advice(supposed).do


def test_by_hand_there_is_no_interval_in_use_and_no_range():
    supposed = Supposed(failures_a_day=3.0, blocking_s=15.0, upload_s=0.0, recovery_s=0.0)
    told = interval_words.advice(supposed)
    assert told.how == "save every 15 m 30 s: that wastes 3.2 % of the training time"
    assert (supposed.used_percent, supposed.range_s) == (None, None)
    never = Supposed(failures_a_day=0.0, blocking_s=15.0, upload_s=0.0, recovery_s=0.0)
    assert "no save pays" in interval_words.advice(never).how
    assert points(never) == []


def test_the_models_say_the_refined_interval_and_the_share_that_is_left():
    """The worked figures of Daly and of Kokolis et al.; without failures there is nothing to say."""
    day = Supposed(failures_a_day=1, blocking_s=300, upload_s=0, recovery_s=0)
    alone = interval_words.by_the_models(day)
    assert "1 h 56 m of training between two saves" in alone
    assert alone.endswith("92.0 %, queue and recovery aside.")
    cluster = replace(day, failures_a_day=256 * 6.5 / 1000, recovery_s=300.0, interval_s=3600.0)
    told = interval_words.by_the_models(cluster)
    assert "at the best interval 89.3 %, at the one in use 88.6 %, the queue aside" in told
    assert not interval_words.by_the_models(replace(day, failures_a_day=0.0))


@pytest.mark.parametrize(
    ("used_s", "says"), [(600.0, "too often"), (9000.0, "too seldom"), (1400.0, "next to the least")]
)
def test_advice_tells_in_which_direction_an_interval_is_off(used_s, says):
    job = interval(interval_s=used_s, wasted_percent=33.0)
    assert says in interval_words.advice(supposed_of(job)).how


def test_the_table_of_intervals_tells_who_is_far_from_the_best():
    jobs = [
        interval("often"),
        interval("seldom", interval_s=9000.0, wasted_percent=30.0),
        interval("well", interval_s=1400.0, wasted_percent=7.8),
        interval("new", best_s=None, best_percent=None, failures=0),
    ]
    rows = listing.rows(interval_fields.fields({"team": "a"}), jobs, lambda job: job.job_id, "well")
    assert [row.chosen for row in rows] == [False, False, True, False]
    assert rows[0].cells[0].href == "checkpoints?team=a&job=often"
    assert [row.cells[1].text for row in rows] == [
        "too often",
        "too seldom",
        "near the best",
        "no failure yet",
    ]
    assert interval_words.fleet_sentence(jobs).how == (
        "2 jobs of 4 could save 40 accelerator-hours by other intervals"
    )
    assert "as often as they should" in interval_words.fleet_sentence(jobs[2:]).how
    assert "no job" in interval_words.fleet_sentence([]).how


@pytest.mark.parametrize("key", [*LEVERS, "failure:gpu_ecc", "of_a_later_version"])
def test_every_lever_has_a_title(key):
    assert lever_words.title(key)
    assert lever_words.TITLES.keys() == LEVERS.keys()


def test_what_if_says_what_levers_reach_together_and_what_is_counted_twice():
    told = lever_words.answer_sentence(what_if("caches", "recovery"), "7d")
    assert "78.7 % effective instead of 70.0 %" in told.how
    assert "the same time" in told.do
    plain = lever_words.answer_sentence(what_if(), "7d")
    assert plain.how == "3 jobs trained effectively for 70.0 % of the last 7 days"
    assert "compile caches are warm" in plain.do
    empty = what_if(now=type(what_if().now)(total=0.0, components={}), alone=[])
    assert "no job" in lever_words.answer_sentence(empty, "1h").how


def test_before_and_after_share_one_scale_and_the_difference_is_shown():
    figure = lever_figures.before_and_after(what_if("caches", "recovery"))
    sums = [sum(trace["x"][place] for trace in figure["data"]) for place in (0, 1)]
    assert sums == pytest.approx([100.0, 100.0])
    assert figure["data"][-1]["x"] == pytest.approx([0.0, 11.0])


def test_tables_of_what_if_add_up():
    parts = lever_frames.parts_frame(what_if("caches", "recovery"))
    assert parts["saved"].sum() == pytest.approx(110.0)
    levers = lever_frames.levers_frame(what_if("caches"))
    assert levers["Chosen"].tolist() == [True, False, False]
    assert levers["ETT alone"].tolist() == pytest.approx([76.9, 72.9, 70.0])


def test_accelerator_seconds_become_money_at_a_price():
    found = lever_frames.priced(what_if("caches", "recovery"), 36.0)
    assert (found.weight, found.saved, found.now.total) == ("cost", pytest.approx(1.1), pytest.approx(10.0))
    assert sum(found.together.components.values()) == pytest.approx(found.together.total)
    assert found.now.effective_ratio == 0.7


def test_an_address_supposes_other_figures_than_were_measured():
    """What it does not name stays as it is; what is no amount, or less than nothing, is not supposed."""
    measured = Supposed(
        failures_a_day=3.0, blocking_s=15.0, upload_s=60.0, recovery_s=0.0, interval_s=900.0,
        measured_percent=2.0, seen=(3, 86_400.0),
    )  # fmt: skip
    for said in ({}, {"blocking_s": "much", "upload_s": "-1", "recovery_s": "inf"}, {"job": "j"}):
        assert supposed_in(said, measured) is measured
    supposed = supposed_in({"blocking_s": "0", "upload_s": "30"}, measured)
    assert (supposed.blocking_s, supposed.upload_s, supposed.failures_a_day) == (0.001, 30.0, 3.0)
    assert (supposed.interval_s, supposed.measured_percent, supposed.range_s) == (900.0, None, None)
    assert without({"job": "j", "blocking_s": "0"}) == {"job": "j"}
    box = slider("upload_s", measured, supposed_in({"upload_s": "9000"}, measured))
    assert (box.usual, box.most, box.step) == ("60", 9000.0, 0.1)
