"""Runs and their caches: verdicts rest on compile seconds as well, and a cold run is explained."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from simulated_rows import END, known

from ett_cli.simulate.settings import scenario
from ett_core.fleet.cache_compare import HOLLOW_WORDS, NO_REASON, likely_reasons, rates, side_by_side
from ett_core.fleet.caches import (
    COLD,
    HOLLOW,
    NOTHING,
    PARTLY,
    SILENT,
    VERDICTS,
    WARM,
    CacheRun,
    cache_runs,
    hit_ratio,
    judged,
)
from ett_core.process_totals import CacheTotals


def cache_run(name: str, start: float, hits: int = 95, misses: int = 5, compile_s: float = 30.0, **fields):
    caches = {"fx_graph": CacheTotals(hits=hits, misses=misses)} if hits + misses else {}
    said = {
        "attempt": 0,
        "family": "dlrm",
        "cluster": "c1",
        "team": "ads",
        "model": "dlrm",
        "accelerator_type": "H200",
        "world_size": 8,
        "nodes": ["n1", "n2"],
        "config_hash": "aa",
        "versions": {"torch": "2.13.0"},
        "bytes": 0,
        "saved_s": 0.0,
        "hidden_compile_s": 0.0,
        "recompile_s": 0.0,
        "cache_load_s": 0.0,
    }
    said |= {"caches": caches, "hit_ratio": hit_ratio(list(caches.values()))}
    return CacheRun(
        id=f"{name}~0", job_id=name, job_name=name, start=start, compile_s=compile_s, **(said | fields)
    )


COLD_RUN = cache_run("cold", 1.0, hits=0, misses=100, compile_s=400.0)


@pytest.mark.parametrize(
    ("run", "kind"),
    [
        (cache_run("a", 2.0), WARM),
        (cache_run("a", 2.0, hits=10, misses=90), COLD),
        (cache_run("a", 2.0, hits=50, misses=50), PARTLY),
        (cache_run("a", 2.0, compile_s=390.0), HOLLOW),
        (cache_run("a", 2.0, compile_s=100.0, hidden_compile_s=290.0), HOLLOW),
        (cache_run("a", 2.0, hits=0, misses=0), SILENT),
        (cache_run("a", 2.0, hits=0, misses=0, compile_s=0.0), NOTHING),
    ],
)
def test_a_verdict_holds_hits_against_seconds(run, kind):
    """Hits alone are no proof: what compiles as long as a cold run of its family was warm in name only."""
    verdict = judged([COLD_RUN, run])[run.id]
    assert verdict.kind == kind
    assert kind in VERDICTS


def test_without_a_cold_run_to_compare_with_hits_are_believed():
    assert judged([cache_run("a", 2.0, compile_s=390.0)])["a~0"].kind == WARM


def test_what_was_compiled_before_is_expected_to_be_warm():
    """The same configuration, versions and accelerator; another version of torch is no surprise."""
    again = cache_run("b", 2.0, hits=0, misses=100, compile_s=380.0)
    other = cache_run("c", 3.0, hits=0, misses=100, compile_s=380.0, versions={"torch": "2.14.0"})
    found = judged([again, other, COLD_RUN])
    assert [found[key].is_surprise for key in ("cold~0", "b~0", "c~0")] == [False, True, False]
    assert "cold~0" in found["b~0"].because


def test_a_family_that_was_warm_is_expected_to_stay_warm():
    """After three warm runs with other configurations a cold one is a surprise, and has one to look at."""
    warm = [cache_run(f"w{n}", float(n), config_hash=f"{n}") for n in range(3)]
    cold = cache_run("x", 9.0, hits=1, misses=99, compile_s=400.0, config_hash="new")
    found = judged([*warm, cold])
    assert not any(found[run.id].expected_warm for run in warm)
    assert found["x~0"].is_surprise
    assert found["x~0"].alike == "w2~0"
    stranger = cache_run("y", 9.5, hits=1, misses=99, family="other", config_hash="new")
    assert not judged([*warm, stranger])["y~0"].expected_warm


def test_the_two_sides_show_what_differs_first():
    two = cache_run("b", 2.0, versions={"torch": "2.14.0", "triton": "4"}, nodes=["n9"])
    rows = side_by_side(cache_run("a", 1.0), two)
    assert [row.what for row in rows if row.differs] == ["torch", "triton", "nodes"]
    assert [row.differs for row in rows] == sorted((row.differs for row in rows), reverse=True)


BUNDLE = {"fx_graph": CacheTotals(hits=95, misses=5), "mega_cache": CacheTotals(hits=1)}


@pytest.mark.parametrize(
    ("warm", "cold", "says"),
    [
        ({}, {"versions": {"torch": "2.14.0"}}, "Torch changed from 2.13.0 to 2.14.0"),
        ({}, {"config_hash": "bb"}, "Configuration changed from aa to bb"),
        ({"caches": BUNDLE}, {}, "did not ask for one"),
        ({"caches": BUNDLE}, {"caches": {"mega_cache": CacheTotals(misses=1)}}, "missing or refused"),
        ({}, {"caches": {"aot_autograd": CacheTotals(misses=9, bypasses=4)}}, "bypassed 4 times"),
        ({}, {"nodes": ["n7"]}, "other nodes and loaded no bundle"),
        ({}, {"world_size": 16}, "16 ranks instead of 8"),
        ({}, {"cluster": "c2"}, "another cluster (c2)"),
        ({}, {}, NO_REASON),
    ],
)
def test_the_likely_reason_of_a_cold_run(warm, cold, says):
    one = cache_run("w", 1.0, **warm)
    two = cache_run("c", 2.0, **({"hits": 0, "misses": 100, "compile_s": 400.0} | cold))
    assert says in likely_reasons(one, two, COLD)[0]


def test_a_hollow_run_is_told_to_look_for_native_code_and_a_warm_one_needs_no_reason():
    one, two = cache_run("w", 1.0), cache_run("h", 2.0, compile_s=390.0)
    assert likely_reasons(one, two, HOLLOW) == [HOLLOW_WORDS]
    assert "nothing to explain" in likely_reasons(one, two, WARM)[0]


def test_rates_name_each_cache_of_either_run():
    one, two = cache_run("a", 1.0, caches=BUNDLE), cache_run("b", 2.0, hits=1, misses=3)
    assert rates(one, two) == {"fx_graph": (0.95, 0.25), "mega_cache": (1.0, None)}


def runs_of(each):
    return cache_runs(
        each.account, each.rows.runs, each.details.processes.run_caches, each.details.starts.labels
    )


def test_the_cold_day_of_a_simulated_fleet_is_seen():
    """Runs that found caches cold by the truth of the simulation are called cold, the others warm."""
    shape = scenario("cold-cache", jobs=16, report_s=600.0)
    begin, end = (END - shape.window_ms / 1000 * (1 - share) for share in (0.5, 0.75))
    runs = [run for each in known(shape) for run in runs_of(each)]
    found = judged(runs)
    kinds = {run.id: found[run.id].kind for run in runs if begin < run.start < end - 600}
    assert len(kinds) > 3
    assert set(kinds.values()) <= {COLD, NOTHING, SILENT}
    assert {verdict.kind for verdict in found.values()} >= {COLD, WARM}


def test_a_number_that_two_attempts_say_names_two_runs():
    """Ids are unique, and the totals of a number count once."""
    each = next(known(scenario("small", jobs=1, report_s=600.0)))
    twice = replace(each.account, attempts=[each.account.attempts[0]] * 2)
    runs = cache_runs(twice, [each.rows.runs[0]] * 2, each.details.processes.run_caches, {})
    assert [run.id.rpartition("~")[2] for run in runs] == ["0", "0.2"]
    assert not runs[1].caches
