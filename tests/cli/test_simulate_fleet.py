"""What a simulated fleet is made of: order, identity, frequency, and what each scenario is about."""

from __future__ import annotations

import hashlib
import itertools
import tracemalloc
from collections import Counter, defaultdict
from collections.abc import Iterable

import pytest

from ett_cli.simulate.catalogue import BY_CLASS, ENDING, NODE, of_hazard
from ett_cli.simulate.chance import Chance
from ett_cli.simulate.disorder import disturbed
from ett_cli.simulate.fleet import Fleet
from ett_cli.simulate.hazards import Hazards, node_name
from ett_cli.simulate.plans import plan_of
from ett_cli.simulate.settings import SCENARIOS, Scenario, scenario
from ett_cli.simulate.truth import JobTruth
from ett_core.events import AnyEvent, Checkpoint, Decision, Evidence, Failure, FirstBatch, decode, encode

END_MS = 1_764_000_000_000
HOUR_S = 3600.0


def lines(shape: Scenario, end_ms: int = END_MS) -> list[bytes]:
    fleet = Fleet(shape, end_ms)
    return [encode(event) for story in fleet.stories() for _, event in fleet.told(story, shape.window_ms)]


def events_of(shape: Scenario) -> list[AnyEvent]:
    return [decode(line) for line in lines(shape)]


def truths(shape: Scenario) -> list[JobTruth]:
    found = []
    for story in Fleet(shape, END_MS).stories():
        for _ in story.events(shape.window_ms):
            pass
        found.append(story.truth(shape.window_ms))
    return [truth for truth in found if truth is not None]


def digest(parts: Iterable[bytes]) -> str:
    return hashlib.sha256(b"\n".join(parts)).hexdigest()


def test_the_same_seed_gives_the_same_bytes():
    shape = scenario("small", jobs=3, days=0.3, disorder=0.02, skew=0.2)
    assert digest(lines(shape)) == digest(lines(shape))


def test_another_seed_is_another_fleet():
    one, other = (scenario("small", jobs=3, days=0.3, seed=seed) for seed in (1, 2))
    assert digest(lines(one)) != digest(lines(other))


def test_another_end_moves_the_fleet_and_changes_nothing_else():
    shape = scenario("small", jobs=2, days=0.2)
    here, there = lines(shape), lines(shape, END_MS + 86_400_000)
    moved = [decode(line).time + 86_400.0 for line in here]
    assert [decode(line).time for line in there] == pytest.approx(moved, abs=1e-6)


def test_lines_are_events_in_order_and_numbered_without_gaps():
    by_writer: dict[str, list[AnyEvent]] = defaultdict(list)
    for event in events_of(scenario("failures", jobs=3, days=0.3)):
        by_writer[event.writer].append(event)
    for said in by_writer.values():
        assert [event.seq for event in said] == list(range(len(said)))
        assert all(a.time <= b.time for a, b in itertools.pairwise(said))


def test_a_job_is_told_in_order_of_time():
    """So that a reader can stop at a moment, and jobs can be merged as they happen."""
    shape = scenario("failures", jobs=2, days=0.4, ranks=1024, smallest=64)
    for story in Fleet(shape, END_MS).stories():
        moments = [at_ms for at_ms, _ in story.events(shape.window_ms)]
        assert all(a <= b for a, b in itertools.pairwise(moments))


def test_jobs_side_by_side_are_the_same_as_one_after_the_other():
    shape = scenario("small", jobs=4, days=0.3)
    side_by_side = [encode(event) for _, event in Fleet(shape, END_MS).merged(shape.window_ms)]
    assert sorted(side_by_side) == sorted(lines(shape))


def test_simulated_jobs_are_labelled_as_such():
    for truth in truths(scenario("small", jobs=4)):
        assert truth.labels["simulated"] == "true"
        assert truth.job_id.startswith("sim-0/")
        assert {"job_name", "team", "model", "cluster", "scheduler"} <= truth.labels.keys()


def test_every_class_of_failure_happens_and_leaves_evidence():
    found = truths(scenario("failures", jobs=16, report_s=60.0))
    told = {failure.failure_class for truth in found for failure in truth.failures}
    assert told == {cause.failure_class for cause in ENDING}
    remarked = set().union(*(truth.incidents for truth in found))
    assert remarked == {"straggler", "not_a_failure"}
    assert {*told, *remarked, "user_cancelled"} == BY_CLASS.keys()


def test_templates_of_log_lines_are_filled_in():
    for event in events_of(scenario("failures", jobs=4, days=0.5)):
        if isinstance(event, Evidence):
            assert "{" not in event.text.replace("dict_keys([{", "")
        if isinstance(event, Failure) and event.message:
            assert "{" not in event.message


def test_hardware_fails_as_often_as_published():
    """6.5 failures in 1,000 node-days (Kokolis et al., arXiv 2410.21680), in the mean of many draws."""
    shape = Scenario(ranks=1024, smallest=1024, job_failures=0.0, preemptions=0.0, jobs=1)
    chance = Chance("rate")
    plan = plan_of(shape, 0, chance)
    hazards = Hazards(shape, plan, chance)
    strikes = [hazards.in_loop(0, [], None) for _ in range(20_000)]
    days = sum(strike.at_ms for strike in strikes if strike is not None) / 86_400_000
    assert len(strikes) / (days * plan.nodes) == pytest.approx(6.5 / 1000, rel=0.03)


def test_causes_of_hardware_are_as_frequent_as_in_the_llama_3_report():
    causes, weights = of_hazard(NODE)
    shares = dict(zip((cause.failure_class for cause in causes), weights, strict=True))
    gpus = sum(shares[name] for name in ("gpu_ecc", "gpu_lost", "gpu_hardware", "nvlink_fault"))
    assert gpus / sum(weights) == pytest.approx((148 + 72 + 19 + 17 + 6 + 6 + 12) / 377, abs=0.05)


def test_a_bad_node_fails_more_often_than_others():
    failures = [f for t in truths(scenario("incident", jobs=30, report_s=60.0)) for f in t.failures]
    nodes = Counter(f.node for f in failures if f.failure_class == "gpu_ecc")
    bad = {node_name(cluster, 7) for cluster in ("pci1", "vll2", "cco3")}
    assert sum(nodes[node] for node in bad) > sum(nodes.values()) / 2


def test_an_outage_ends_many_jobs_by_one_class():
    shape = scenario("incident", jobs=30, report_s=60.0)
    begin, _ = (shape.at_ms(share) for share in shape.outage or (0.0, 0.0))
    origin_s = (END_MS - shape.window_ms + begin) / 1000
    during = [
        f.failure_class
        for t in truths(shape)
        for f in t.failures
        if origin_s <= f.time <= origin_s + 0.06 * shape.days * 86_400 + 120
    ]
    assert during.count("object_store") >= 3
    assert during.count("object_store") > len(during) / 2


def test_a_deploy_makes_starts_slower():
    shape = scenario("incident", jobs=60, train_hours=1.0)
    deployed_s = (END_MS - shape.window_ms + shape.at_ms(shape.deploy or 0.0)) / 1000
    slow: dict[bool, list[float]] = {False: [], True: []}
    for truth in truths(shape):
        preparation = truth.components.get("start.preproc_creation")
        if preparation is not None:
            slow[truth.start >= deployed_s].append(preparation)
    before, after = (sum(values) / len(values) for values in slow.values())
    assert after > 2.0 * before


def test_cold_caches_miss():
    shape = scenario("cold-cache", jobs=40, train_hours=1.0)
    cold_s = [(END_MS - shape.window_ms + shape.at_ms(share)) / 1000 for share in shape.cold or ()]
    rates: dict[bool, list[float]] = {False: [], True: []}
    for truth in truths(shape):
        totals = truth.caches.get("fx_graph")
        if totals is not None and truth.attempts == 1:
            is_cold = cold_s[0] <= truth.start < cold_s[1]
            rates[is_cold].append(totals["hits"] / (totals["hits"] + totals["misses"]))
    warm, cold = (sum(values) / len(values) for values in rates.values())
    assert warm > 0.6
    assert cold < 0.2


def test_adoption_raises_the_share_of_effective_training():
    """Plain jobs train about 80 % of their time, those that use the optimised pipeline over 90 %."""
    shape = scenario("fleet", jobs=50, ranks=64, report_s=300.0)
    plain, optimised = (
        [t for t in truths(Scenario(**{**fields_of(shape), "adoption": (a, a)})) if t.finished]
        for a in (0.0, 0.9)
    )
    assert 76.0 < share_of_training(plain) < 87.0
    assert 90.0 < share_of_training(optimised) < 97.0


def fields_of(shape: Scenario) -> dict[str, object]:
    return {name: getattr(shape, name) for name in shape.__dataclass_fields__}


def share_of_training(jobs: Iterable[JobTruth]) -> float:
    jobs = list(jobs)
    trained = sum(job.components.get("training", 0.0) for job in jobs)
    return 100 * trained / sum(job.wall_s for job in jobs)


def test_a_launch_crashes_at_its_start_until_it_is_mended():
    (launch,) = truths(scenario("launch", days=0.5, ranks=64))
    assert [f.failure_class for f in launch.failures[:4]] == ["config_error"] * 4
    assert launch.tts_s is not None


def test_few_ranks_of_a_large_job_report():
    shape = scenario("launch", days=0.1, ranks=1024)
    ranks = {event.rank for event in events_of(shape)}
    assert ranks == {-1, 0, 128, 256, 384, 512, 640, 768, 896}


def test_jobs_that_save_behind_their_trainers_back_tell_at_each_loop_how_often():
    """Each loop that begins has the decision of its leader; jobs that save as they always did have none."""
    for adoption in (-1.0, 2.0):
        told = list(events_of(scenario("small", days=0.2, ranks=8, adoption=(adoption, adoption))))
        saves = {event.job_id for event in told if isinstance(event, Checkpoint) and event.mode == "async"}
        decided = [event for event in told if isinstance(event, Decision)]
        assert saves <= {event.job_id for event in decided}
        assert bool(saves) == bool(decided) == (adoption > 0)
        loops = Counter((e.job_id, e.attempt) for e in told if isinstance(e, FirstBatch) and e.rank == 0)
        assert Counter((e.job_id, e.attempt) for e in decided) <= loops
        assert all(event.values["interval_s"] > event.values["blocking_s"] > 0 for event in decided)
        assert all(0 < event.values["slowed_s"] < 0.06 * event.values["upload_s"] for event in decided)


def test_memory_does_not_grow_with_the_length_of_a_job():
    """A job of two days needs no more than one of some hours."""

    def peak(days: float) -> int:
        shape = scenario("small", jobs=1, days=days, train_hours=9000.0, job_failures=0.0, preemptions=0.0)
        story = Fleet(shape, END_MS).story(0)
        tracemalloc.start()
        for _ in story.events(shape.window_ms):
            pass
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    assert peak(2.0) < peak(0.3) + 100_000


def test_disorder_loses_nothing_and_repeats_some():
    shape = scenario("small", jobs=1, days=0.3)
    told = list(Fleet(shape, END_MS).story(0).events(shape.window_ms))
    arrived = list(disturbed(told, Chance("x"), 0.1))
    assert {encode(event) for _, event in arrived} == {encode(event) for _, event in told}
    assert 0.05 < len(arrived) / len(told) - 1.0 < 0.15
    assert all(a[0] <= b[0] for a, b in itertools.pairwise(arrived))


@pytest.mark.parametrize("name", SCENARIOS)
def test_each_scenario_can_be_made_smaller(name):
    assert truths(scenario(name, jobs=1, days=0.05, ranks=2))


@pytest.mark.parametrize(
    ("field", "value", "option"),
    [
        ("jobs", 0, "--jobs"),
        ("days", 0.0, "--days"),
        ("days", float("nan"), "--days"),
        ("ranks", 2048, "--ranks"),
        ("report_s", 0.0, "--report-s"),
        ("disorder", 0.9, "--disorder"),
        ("skew", -0.1, "--skew"),
        ("node_failures", -1.0, "--node-failures"),
        ("train_hours", 0.0, "--train-hours"),
    ],
)
def test_a_value_out_of_range_is_refused_by_the_name_of_its_option(field, value, option):
    with pytest.raises(ValueError, match=f"^{option} must be between"):
        scenario("small", **{field: value})
