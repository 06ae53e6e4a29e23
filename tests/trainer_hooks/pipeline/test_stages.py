"""Stages of a start: what waits for what, what a failure leaves, what the recorder is told."""

import sys
import threading

import pytest

from ett_trainer_hooks.pipeline.stages import Stage, run

PATIENCE_S = 60.0


def add(_, *given):
    return sum(given) + 1


@pytest.mark.parametrize("side_by_side", [True, False])
def test_each_stage_is_given_the_results_that_it_needs(bench, side_by_side):
    """In the order of its needs, with threads and without."""
    stages = [
        Stage("one", add),
        Stage("two", add, needs=("one",), main=True),
        Stage("pair", lambda _, *given: given, needs=("two", "one")),
    ]
    assert run(stages, bench().recorder, side_by_side=side_by_side) == {"one": 1, "two": 2, "pair": (2, 1)}


def test_stages_that_do_not_need_each_other_run_side_by_side(bench):
    """Three at once: two on threads of their own and one on the thread that calls."""
    together = threading.Barrier(3)
    stages = [
        Stage(name, lambda _: together.wait(PATIENCE_S), main=name == "main") for name in ("a", "main", "b")
    ]
    assert sorted(run(stages, bench().recorder).values()) == [0, 1, 2]


def test_stages_of_the_calling_thread_keep_the_order_declared(bench):
    """Whatever is ready first: collectives come in one order on all ranks."""
    order = []

    def note(name):
        return lambda *_: order.append((name, threading.current_thread() is threading.main_thread()))

    late = threading.Event()
    stages = [
        Stage("slow", lambda _: late.wait(0.05)),
        Stage("first", note("first"), needs=("slow",), main=True),
        Stage("second", note("second"), main=True),
    ]
    run(stages, bench().recorder)
    assert order == [("first", True), ("second", True)]


def test_off_they_run_one_after_another_on_the_calling_thread(bench):
    """In the order declared, without a thread and without a word about a path."""
    told = bench()
    order = []

    def note(name):
        return lambda *_: order.append((name, threading.current_thread()))

    stages = [Stage("a", note("a")), Stage("b", note("b"), main=True), Stage("c", note("c"))]
    run(stages, told.recorder, side_by_side=False)
    assert order == [(name, threading.main_thread()) for name in "abc"]
    assert {event.track for event in told.of("phase_begin")} == {"main"}
    assert told.of("decision") == []


def test_every_stage_is_a_phase_of_its_track_and_the_path_is_told(bench, hands):
    """The thread's own track; the critical path and the hidden seconds in one decision."""
    told = bench()
    source_done = threading.Event()

    def imports(_):
        assert source_done.wait(PATIENCE_S)
        hands.move(5.0)

    def source(_):
        hands.move(1.0)
        source_done.set()

    stages = [
        Stage("imports", imports, main=True),
        Stage("source", source, phase="preproc_creation"),
        Stage("model", lambda *_: hands.move(2.0), needs=("imports",), phase="model_init", main=True),
    ]
    run(stages, told.recorder)
    tracks = {event.phase: event.track for event in told.of("phase_begin")}
    assert tracks == {"imports": "main", "preproc_creation": "thread source", "model_init": "main"}
    (decision,) = told.of("decision")
    assert decision.what == "start stages"
    assert decision.why.startswith("critical path: imports, model; ")
    assert set(decision.values) == {"worked_s", "hidden_s"}


@pytest.mark.parametrize("main", [True, False])
def test_a_failure_cancels_the_rest_and_raises_its_own_error(bench, main):
    """What runs sees it, what has not begun never begins, the error is the very one."""
    told = bench()
    error = OSError("no such data")
    running, began = threading.Event(), []

    def fail(_):
        assert running.wait(PATIENCE_S)
        raise error

    def look(here):
        running.set()
        assert here.cancelled.wait(PATIENCE_S)
        raise ConnectionError("interrupted")

    stages = [
        Stage("source", look),
        Stage("data", fail, main=main),
        Stage("model", began.append, needs=("data",)),
        Stage("plan", lambda *_: began.append("plan"), needs=("source",), main=True),
    ]
    with pytest.raises(OSError, match="no such data") as raised:
        run(stages, told.recorder)
    assert raised.value is error
    assert began == []
    (decision,) = told.of("decision")
    assert decision.what == "start cancelled"
    assert decision.why == (
        "data failed: OSError: no such data; source then failed too: ConnectionError: interrupted; "
        "never completed: plan, model"
    )


def test_a_stage_that_does_not_look_delays_the_error_only_so_long(bench):
    """A daemon thread is left behind rather than a job that hangs."""
    never = threading.Event()
    stages = [Stage("deaf", lambda _: never.wait(PATIENCE_S)), Stage("fails", lambda _: 1 / 0, main=True)]
    with pytest.raises(ZeroDivisionError):
        run(stages, bench().recorder, patience_s=0.0)
    never.set()


@pytest.mark.parametrize("side_by_side", [True, False])
def test_the_end_of_the_program_passes_through(bench, side_by_side):
    """`sys.exit` in a stage ends the program as it would have without stages."""
    with pytest.raises(SystemExit) as ended:
        run([Stage("leaves", lambda _: sys.exit(7))], bench().recorder, side_by_side=side_by_side)
    assert ended.value.code == 7


@pytest.mark.parametrize(
    ("needs", "words"),
    [(("b",), "'b' needs itself"), (("a", "a"), "a stage twice"), (("c",), "needs c, which no stage before")],
)
def test_a_declaration_that_cannot_run_is_refused(bench, needs, words):
    """Before anything runs."""
    with pytest.raises(ValueError, match=words):
        run([Stage("a", add), Stage("b", add, needs=needs), Stage("c", add)], bench().recorder)


def test_a_name_stands_for_one_stage(bench):
    with pytest.raises(ValueError, match="two stages are called 'a'"):
        run([Stage("a", add), Stage("a", add)], bench().recorder)
