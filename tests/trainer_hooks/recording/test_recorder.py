"""The recorder, on a clock that the test moves and a real journal."""

from __future__ import annotations

import math
import signal
import sys
import threading
from contextlib import nullcontext
from itertools import count, islice
from pathlib import Path
from typing import ClassVar

import pytest

from ett_core.accounting.phases import PhaseLog
from ett_core.events import StepSeconds
from ett_core.step_times import bucket_of, merged
from ett_trainer_hooks import Recorder
from ett_trainer_hooks.identity import Identity
from ett_trainer_hooks.journal import NullJournal


def lasting(*seconds):
    """What a report says of steps that took so long."""
    buckets = merged({bucket_of(each): 1} for each in seconds)
    return StepSeconds(len(seconds), sum(seconds), max(seconds), buckets)


def slow_loader(hands, waits):
    for number, wait_s in enumerate(waits):
        hands.move(wait_s)
        yield number


def test_a_loop_reports_exact_waits_and_step_seconds(bench, hands):
    """The first wait belongs to the start; later waits are data wait and no part of a step."""
    b = bench(report_every_s=1000.0)
    for _ in b.recorder.batches(slow_loader(hands, [7.0, 0.25, 0.5]), samples=32):
        hands.move(2.0)
    first, last = b.of("progress")
    assert (first.step, first.steps, first.samples, first.data_wait_s) == (1, 1, 32, 0.0)
    assert first.step_seconds == lasting(2.0)
    assert (last.step, last.steps, last.samples, last.data_wait_s) == (3, 2, 64, 0.75)
    assert last.step_seconds == lasting(2.0, 2.0)
    assert last.time == first.time + 4.75


def test_the_first_batch_is_told_before_it_is_handed_out(bench, hands):
    """`first_batch` is on disk, with the step resumed from, when the loop body first runs."""
    b = bench()
    b.recorder.resumed(40)
    for number in b.recorder.batches(slow_loader(hands, [3.0, 1.0])):
        told = b.of("first_batch")
        assert len(told) == 1, number
        assert told[0].step == 40
    assert b.recorder.step == 42


def test_the_first_step_is_reported_at_once_and_the_others_by_the_clock(bench, hands):
    """Rank 0 reports after the first step and then once `report_every_s` have passed."""
    b = bench(report_every_s=5.0)
    for _ in b.recorder.batches(range(9)):
        hands.move(2.0)
    assert [event.step for event in b.of("progress")] == [1, 4, 7, 9]


def test_nobody_waits_for_reports_between_the_first_and_the_last(bench, hands, monkeypatch):
    """Those that are cut where an asynchronous save ends are written when the disk takes them, as others."""
    b = bench(report_every_s=5.0)
    waited, put = [], b.journal.put

    def noting(kind, at, *, urgent=False, **fields):
        if kind.kind == "progress":
            waited.append(urgent)
        put(kind, at, urgent=urgent, **fields)

    monkeypatch.setattr(b.journal, "put", noting)
    for number in b.recorder.batches(range(5)):
        hands.move(2.0)
        if number == 2:
            b.recorder.durable(2, mode="async")
    assert [event.step for event in b.of("progress")] == [1, 3, 5]
    assert waited == [True, False, True]


def test_other_ranks_report_once_a_minute(bench, hands):
    """A rank other than 0 keeps its steps for a minute."""
    b = bench(rank=1, report_every_s=5.0)
    for _ in b.recorder.batches(range(9)):
        hands.move(20.0)
    assert [event.step for event in b.of("progress")] == [1, 4, 7, 9]


def test_a_phase_in_the_loop_is_preceded_by_a_report(bench, hands):
    """Steps are reported before an in-loop phase, whose time is no part of a step."""
    b = bench(report_every_s=1000.0)
    for number in b.recorder.batches(range(4)):
        hands.move(1.0)
        if number == 2:
            with b.recorder.phase("evaluation"):
                hands.move(50.0)
    kinds = [event.kind for event in b.written()]
    assert kinds == ["first_batch", "progress", "progress", "phase_begin", "phase_end", "progress"]
    assert [event.steps for event in b.of("progress")] == [1, 1, 2]
    assert b.of("progress")[-1].step_seconds == lasting(1.0, 1.0)


def test_a_phase_before_the_end_of_the_first_step_is_preceded_by_no_report(bench, hands):
    """A report before any step is complete would claim a loop that has not begun."""
    b = bench()
    for number in b.recorder.batches(range(2)):
        if number == 0:
            with b.recorder.phase("compile"):
                hands.move(9.0)
        hands.move(1.0)
    kinds = [event.kind for event in b.written()]
    assert kinds == ["first_batch", "phase_begin", "phase_end", "progress", "progress"]
    assert b.of("progress")[0].step_seconds == lasting(1.0)


def test_a_checkpoint_of_the_step_in_hand_completes_it(bench, hands):
    """Work up to the checkpointed step is reported before the save and is not counted twice."""
    b = bench(report_every_s=1000.0)
    for number in b.recorder.batches(range(3)):
        hands.move(1.0)
        if number == 1:
            with b.recorder.checkpoint(2, mode="sync") as save:
                hands.move(4.0)
                save.bytes = 1000
            b.recorder.durable(2, bytes=1000, duration_s=4.0)
    assert [(event.step, event.steps) for event in b.of("progress")] == [(1, 1), (2, 1), (3, 1)]
    (saved,) = b.of("checkpoint")
    assert (saved.step, saved.blocking_s, saved.bytes, saved.mode) == (2, 4.0, 1000, "sync")
    begin, end = b.of("phase_begin")[0], b.of("phase_end")[0]
    assert (begin.phase, end.time - begin.time) == ("checkpoint", 4.0)
    assert b.of("checkpoint_durable")[0].step == 2


def test_a_save_that_raises_is_told_as_failed(bench):
    """The phase closes with the error, the checkpoint is said to fail, the error passes through."""
    b = bench()
    with pytest.raises(OSError, match="quota"), b.recorder.checkpoint(7):
        raise OSError("quota")
    assert b.of("phase_end")[0].error == "OSError: quota"
    assert b.of("checkpoint_failed")[0].step == 7


class MuteError(Exception):
    """It raises when it is asked what it says."""

    def __str__(self):
        raise RuntimeError("no words")


class OfItsOwnError(Exception):
    """Its `failures` are not those of torch's checkpoints."""

    failures: ClassVar[dict[str, object]] = {"first": 3, "second": "no exception", "third": ()}


@pytest.mark.parametrize("kind", [MuteError, OfItsOwnError])
def test_an_error_that_cannot_be_put_in_words_passes_through_and_is_told(bench, kind):
    """The program gets what its work raised, and every event is there that tells of an error."""
    b = bench()
    error = kind()
    with pytest.raises(kind) as raised, b.recorder.checkpoint(7):
        raise error
    b.recorder.failure(error)
    assert raised.value is error
    assert b.of("phase_end")[0].error == b.of("checkpoint_failed")[0].message == kind.__name__
    assert (b.of("failure")[0].exception, b.of("failure")[0].message) == (kind.__name__, kind.__name__)
    assert b.warnings == []


@pytest.mark.service("torch")
def test_what_torchrun_raises_in_the_program_that_called_it_is_told(bench):
    """Its `failures` are of processes."""
    elastic = pytest.importorskip("torch.distributed.elastic.multiprocessing.errors")
    b = bench()
    process = elastic.ProcessFailure(local_rank=0, pid=4711, exitcode=1, error_file="none")
    b.recorder.failure(elastic.ChildFailedError("train.py", {0: process}))
    (failure,) = b.of("failure")
    assert failure.exception == "ChildFailedError"
    assert "4711" in failure.message
    assert b.warnings == []


def test_leaving_the_loop_by_break_completes_and_reports_the_last_step(bench, hands):
    """The step of the batch in hand counts when the loop is left."""
    b = bench(report_every_s=1000.0)
    for number in b.recorder.batches(range(100)):
        hands.move(1.0)
        if number == 4:
            break
    assert b.recorder.step == 5
    assert b.of("progress")[-1].step == 5


def through_a_generator(batches):
    try:
        yield from batches
    finally:
        pass


def over_a_generator(batches):
    for batch in batches:
        try:
            yield batch
        finally:
            pass


AROUND = {
    "nothing": lambda batches: batches,
    "enumerate": enumerate,
    "zip": lambda batches: zip(batches, range(100), strict=False),
    "a generator that delegates": through_a_generator,
    "a generator with a loop": over_a_generator,
    "two generators": lambda batches: over_a_generator(over_a_generator(batches)),
}


def leave_by_break(begin):
    for number, _ in enumerate(begin()):
        if number == 4:
            break


def leave_by_return(begin):
    for number, _ in enumerate(begin()):
        with nullcontext():
            if number == 4:
                return number
    return None


def ask_no_more(begin):
    for _ in islice(begin(), 5):
        pass


def raise_in_the_body(begin):
    for number, _ in enumerate(begin()):
        with nullcontext():
            if number == 4:
                raise ArithmeticError


def fail_inside_a_call(begin):
    for number, _ in enumerate(begin()):
        divmod(1, 4 - number)


def fail_in_a_comprehension(begin):
    return [1 / (4 - number) for number, _ in enumerate(begin())]


def fail_while_handling_an_error(begin):
    for number, _ in enumerate(begin()):
        try:
            ["number"][number]
        except IndexError:  # noqa: PERF203 - the case
            if number == 4:
                raise ArithmeticError from None


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("leave", [leave_by_break, leave_by_return, ask_no_more])
def test_leaving_the_loop_on_purpose_completes_the_step_in_hand(bench, around, leave):
    """Whatever stands between the batches and the loop."""
    b = bench(report_every_s=1000.0)
    leave(lambda: AROUND[around](b.recorder.batches(range(100))))
    assert b.recorder.step == b.of("progress")[-1].step == 5


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize(
    "leave",
    [raise_in_the_body, fail_inside_a_call, fail_in_a_comprehension, fail_while_handling_an_error],
)
def test_a_step_that_failed_is_never_claimed(bench, around, leave):
    """An exception in the loop body leaves its batch uncounted, and the steps before it reported."""
    b = bench(report_every_s=1000.0)
    with pytest.raises(ArithmeticError):
        leave(lambda: AROUND[around](b.recorder.batches(range(100))))
    assert b.recorder.step == b.of("progress")[-1].step == 4


@pytest.mark.parametrize("around", AROUND)
def test_a_step_whose_fate_cannot_be_told_is_not_claimed(bench, around):
    """An iterator in a variable outlives its loop; so does one that an error holds."""
    b = bench(report_every_s=1000.0)
    batches = AROUND[around](b.recorder.batches(range(100)))
    errors = []
    try:
        raise_in_the_body(batches.__iter__)
    except ArithmeticError as error:
        errors.append(error)
    del batches
    errors.clear()
    assert b.recorder.step == b.of("progress")[-1].step == 4


def test_an_exception_thrown_into_the_iterator_completes_no_step(bench):
    """As a scheduler of coroutines would do it."""
    b = bench()
    batches = b.recorder.batches(range(3))
    next(batches)
    with pytest.raises(KeyError):
        batches.throw(KeyError())
    next(unfinished := b.recorder.batches(range(3)))
    unfinished.close()
    assert b.recorder.step == 0
    assert b.of("progress") == []


def test_steps_after_a_failed_one_are_counted_again(bench, hands):
    """A loop that is begun again goes on from the last complete step, and the lost time is no step."""
    b = bench(report_every_s=1000.0)
    with pytest.raises(ArithmeticError):
        raise_in_the_body(lambda: b.recorder.batches(range(9)))
    hands.move(50.0)
    for _ in b.recorder.batches(range(2)):
        hands.move(1.0)
    assert b.recorder.step == 6
    assert b.of("progress")[-1].step_seconds == lasting(1.0, 1.0)


def test_an_error_of_the_loader_passes_through_and_the_steps_are_reported(bench, hands):
    """What the data pipeline raises reaches the trainer unchanged."""

    def broken():
        yield 1
        yield 2
        raise KeyError("shard 3")

    b = bench(report_every_s=1000.0)
    batches = b.recorder.batches(broken())
    with pytest.raises(KeyError, match="shard 3"):
        all(hands.move(1.0) is None for _ in batches)
    assert b.of("progress")[-1].step == 2


def test_steps_go_on_over_a_second_loop(bench, hands):
    """An epoch more adds steps, and no second `first_batch`."""
    b = bench()
    for _ in range(2):
        for _ in b.recorder.batches(range(3)):
            hands.move(1.0)
    assert b.recorder.step == 6
    assert len(b.of("first_batch")) == 1


def test_steps_counted_by_hand_are_reported_like_those_of_a_loop(bench, hands):
    """`first_batch` and `step_done` serve loops that read ahead."""
    b = bench(report_every_s=1000.0)
    b.recorder.first_batch()
    for _ in range(3):
        hands.move(2.0)
        b.recorder.step_done(samples=8, data_wait_s=0.5)
    b.recorder.flush()
    first, last = b.of("progress")
    assert (first.step, first.data_wait_s, first.step_seconds) == (1, 0.5, lasting(1.5))
    assert (last.step, last.samples, last.step_seconds) == (3, 16, lasting(1.5, 1.5))


class Several:
    """An array of several elements, which is no number; torch says so by a RuntimeError."""

    def __float__(self):
        raise RuntimeError("a Tensor with 2 elements cannot be converted to Scalar")


@pytest.mark.parametrize("amount", [float("nan"), float("inf"), -1.0, "three", None, Several()])
def test_an_amount_that_is_none_costs_neither_the_step_nor_its_report(bench, hands, amount):
    """It counts as 0, with one warning for each name."""
    b = bench()
    for _ in b.recorder.batches(range(2), samples=amount):
        hands.move(1.0)
    for _ in b.recorder.batches(range(2), samples=lambda _: amount):
        hands.move(1.0)
    b.recorder.step_done(samples=amount, data_wait_s=amount)
    b.recorder.flush()
    assert sum(event.steps for event in b.of("progress")) == 5
    assert {event.samples for event in b.of("progress")} == {0.0}
    assert len(b.warnings) == 2


def test_the_resumed_step_of_a_span_travels_on_its_end_and_numbers_the_steps(bench):
    """A `checkpoint_load` that finds a step resumes there."""
    b = bench()
    with b.recorder.phase("checkpoint_load") as span:
        span.resumed_step = 120
    for _ in b.recorder.batches(range(2)):
        pass
    assert b.of("phase_end")[0].resumed_step == 120
    assert b.of("first_batch")[0].step == 120
    assert b.recorder.step == 122


def test_a_decorated_function_is_a_phase_each_time_it_is_called(bench):
    """Also a recursive one: every call has a span of its own, and keeps its result."""
    b = bench()

    @b.recorder.phase("model_init")
    def build(depth):
        return depth if depth == 0 else build(depth - 1) + 1

    assert build(2) == 2
    assert [event.kind for event in b.written()] == ["phase_begin"] * 3 + ["phase_end"] * 3


def test_a_span_may_be_entered_inside_itself_and_again(bench, hands):
    """Each entry has its own end, in the order of nesting."""
    b = bench()
    span = b.recorder.phase("evaluation")
    with span:
        hands.move(1.0)
        with span:
            hands.move(2.0)
        assert span.blocking_s == 2.0
        hands.move(4.0)
    assert span.blocking_s == 7.0
    with span:
        hands.move(8.0)
    moments = [(event.kind[6:], event.time - b.written()[0].time) for event in b.written()]
    assert moments == [
        ("begin", 0.0), ("begin", 1.0), ("end", 3.0), ("end", 7.0), ("begin", 7.0), ("end", 15.0)
    ]  # fmt: skip


def test_threads_speak_at_once_and_every_event_is_there_once(bench):
    """Eight threads with tracks of their own: numbers without a gap, phases that close."""
    b = bench()

    def work(number):
        for step in range(50):
            with b.recorder.phase("upload", track=f"thread {number}", step=step):
                b.recorder.durable(step)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    events = b.written()
    assert [event.seq for event in events] == list(range(8 * 50 * 3))
    for number in range(8):
        own = [e.kind for e in events if e.kind != "checkpoint_durable" and e.track == f"thread {number}"]
        assert own == ["phase_begin", "phase_end"] * 50


def test_a_phase_on_another_track_takes_nothing_from_a_step(bench, hands):
    """Work beside the loop blocks nobody."""
    b = bench()
    for _ in b.recorder.batches(range(1)):
        with b.recorder.phase("upload", track="saver"):
            hands.move(3.0)
    assert b.of("progress")[0].step_seconds.sum == 3.0
    assert b.of("phase_begin")[0].track == "saver"


def test_a_phase_told_afterwards_takes_nothing_from_a_step(bench, hands):
    """It lies where it was, after the report of the steps before it."""
    b = bench(report_every_s=1000.0)
    b.recorder.first_batch()
    b.recorder.step_done()
    hands.move(2.0)
    b.recorder.step_done()
    hands.move(3.0)
    b.recorder.past_phase("checkpoint", hands.now_s - 2.5, hands.now_s)
    hands.move(1.0)
    b.recorder.step_done()
    b.recorder.flush()
    progress = b.of("progress")
    assert [(each.steps, each.step_seconds) for each in progress[1:]] == [
        (1, lasting(2.0)),
        (1, lasting(1.5)),
    ]
    (begin,), (end,) = b.of("phase_begin"), b.of("phase_end")
    assert (begin.phase, end.time - begin.time) == ("checkpoint", 2.5)
    assert progress[1].time < begin.time < end.time < progress[2].time


def test_a_time_limit_that_strikes_as_a_phase_begins_leaves_later_steps_whole(bench, hands, monkeypatch):
    """It reaches the program, and what phases take from steps from then on is as ever."""
    b = bench(report_every_s=1000.0)

    def strike(_number, _frame):
        raise TimeoutError

    before = signal.signal(signal.SIGUSR1, strike)
    try:
        with monkeypatch.context() as striking:
            striking.setattr(b.journal, "flush", lambda _timeout_s: signal.raise_signal(signal.SIGUSR1))
            with pytest.raises(TimeoutError):
                b.recorder.phase("evaluation").__enter__()
    finally:
        signal.signal(signal.SIGUSR1, before)
    b.recorder.first_batch()
    b.recorder.step_done()
    with b.recorder.phase("evaluation"):
        hands.move(30.0)
    hands.move(2.0)
    b.recorder.step_done()
    b.recorder.flush()
    assert b.of("progress")[-1].step_seconds == lasting(2.0)


def struck_at(place, work):
    """Does `work`; a handler raises where the interpreter looks for signals the `place`-th time in a hook.

    It looks as a Python function begins, and as one in C returns. Whether it looked so often.
    """
    looks = count()

    def look(frame, event, _argument):
        of_a_hook = frame.f_code.co_filename != __file__
        ends_unseen = event == "call" and frame.f_code.co_name == "__exit__"
        if of_a_hook and event in ("call", "c_return") and not ends_unseen and next(looks) == place:
            sys.setprofile(None)
            signal.raise_signal(signal.SIGUSR1)

    sys.setprofile(look)
    try:
        work()
    except TimeoutError:
        return True
    finally:
        sys.setprofile(None)
    return False


@pytest.fixture
def limited():
    """SIGUSR1 is a time limit of the program."""

    def strike(_number, _frame):
        raise TimeoutError

    before = signal.signal(signal.SIGUSR1, strike)
    yield
    signal.signal(signal.SIGUSR1, before)


@pytest.mark.usefixtures("limited")
def test_a_time_limit_that_strikes_anywhere_in_the_hooks_of_a_phase_changes_no_step(bench, hands):
    """As a phase begins or ends, or one inside it: no later step gains or loses time, nothing stays open."""
    b = bench(report_every_s=1e9)
    b.recorder.first_batch()
    b.recorder.step_done()

    def evaluate():
        with b.recorder.phase("evaluation"):
            hands.move(20.0)
            with b.recorder.phase("evaluation"):
                hands.move(5.0)

    places = count()
    while struck_at(next(places), evaluate):
        hands.move(2.0)
        b.recorder.step_done()
        with b.recorder.phase("save"):
            hands.move(1.0)
    b.recorder.flush()
    steps = [event.step_seconds for event in b.of("progress")[1:]]
    assert next(places) > 50
    assert [each for each in steps if each is not None] == [lasting(2.0)] * len(steps)
    log = PhaseLog()
    for event in b.written():
        if event.kind == "phase_begin":
            log.begin(0, event.phase, event.track)
        elif event.kind == "phase_end":
            log.end(0, event.phase, event.track)
        elif event.kind == "progress":
            log.stacks = {}
    assert list(log.open()) == []
    assert (b.recorder.guard.faults, b.warnings) == (0, [])


@pytest.mark.usefixtures("limited")
def test_a_time_limit_that_strikes_as_a_phase_begins_leaves_none_open(bench, hands):
    """The work never began: a begin that was told has its end at once."""
    b = bench()
    begun = []

    def load():
        with b.recorder.phase("checkpoint_load"):
            begun.append(hands.now_s)

    places = count()
    while struck_at(next(places), load) and not begun:
        events = [event for event in b.written() if event.kind.startswith("phase_")]
        stack = []
        for event in events:
            if event.kind == "phase_begin":
                stack.append(event)
            elif stack:
                stack.pop()
        assert stack == []
    assert next(places) > 20


def test_a_phase_around_the_whole_loop_takes_what_is_inside_it_off_the_steps(bench, hands):
    """An evaluation within a phase of the whole training is no part of the step in hand."""
    b = bench(report_every_s=1000.0)
    with b.recorder.phase("fit"):
        for number in b.recorder.batches(range(3)):
            hands.move(1.0)
            if number == 1:
                with b.recorder.phase("evaluation"):
                    hands.move(50.0)
    assert b.of("progress")[-1].step_seconds == lasting(1.0, 1.0)


def test_the_end_is_told_once(bench):
    """Only the first status counts."""
    b = bench()
    b.recorder.close("failed")
    b.recorder.close("succeeded")
    assert [event.status for event in b.of("attempt_end")] == ["failed"]


def test_an_event_that_no_reader_would_accept_is_dropped_and_numbers_stay_whole(bench):
    """A wrong value costs its event, one warning, and no gap in the sequence."""
    b = bench()
    b.recorder.durable(-5)
    b.recorder.durable(-6)
    b.recorder.cache("fx_graph", hits=1)
    assert [(event.kind, event.seq) for event in b.written()] == [("cache", 0)]
    assert b.journal.dropped == 2
    assert len(b.warnings) == 1


class BrokenJournal(NullJournal):
    is_open = True

    def put(self, *_args, **_fields):
        raise RuntimeError("journal broken")


def test_a_fault_in_the_hooks_changes_nothing_for_the_trainer(capsys):
    """With a journal that raises on every event the loop runs as ever; one line says so."""
    recorder = Recorder(identity=Identity(job_id="j", writer="w"), journal=BrokenJournal())
    recorder.start()
    total = 0
    with recorder.phase("model_init"):
        for number in recorder.batches(range(10), samples=lambda _: 1 / 0):
            total += number
            with recorder.checkpoint(number):
                pass
    recorder.failure(ValueError("x"))
    recorder.close()
    assert (total, recorder.step) == (45, 10)
    assert recorder.guard.faults > 10
    assert capsys.readouterr().err.count("\n") == 1


def test_a_fault_is_told_without_the_names_of_our_insides(bench):
    """The warning is for a person who has never seen this code: names of the API only."""
    first, second = bench(), bench()
    first.recorder.resumed("many")
    list(second.recorder.batches([1], samples=lambda _: 1 / 0))
    assert first.warnings == [
        "resumed failed (ValueError: invalid literal for int() with base 10: 'many'); the job goes on"
    ]
    assert second.warnings == ["a hook failed (ZeroDivisionError: division by zero); the job goes on"]


def test_a_fault_that_cannot_be_put_in_words_is_told_by_its_type(bench):
    """What the program's own function raises says nothing here; the loop gets all its batches."""
    b = bench()

    def samples(_):
        raise MuteError

    assert list(b.recorder.batches([1, 2], samples=samples)) == [1, 2]
    assert b.warnings == ["a hook failed (MuteError); the job goes on"]


class Tee:
    """The standard error of a program that copies it elsewhere, and breaks in a way of its own."""

    def write(self, text):
        raise KeyError(text)

    def flush(self):
        """Do nothing."""


def test_a_warning_that_standard_error_cannot_take_is_lost_and_nothing_else(monkeypatch):
    """Programs put objects of their own in its place."""
    recorder = Recorder(identity=Identity(job_id="j", writer="w"), journal=BrokenJournal())
    monkeypatch.setattr(sys, "stderr", Tee())
    recorder.start()
    assert recorder.guard.faults == 1


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"ETT_JOB_ID": "j"},
        {"ETT_JOURNAL_DIR": "journal"},
        {"ETT_JOB_ID": "j", "ETT_JOURNAL_DIR": "journal", "ETT_DISABLED": "1"},
    ],
)
def test_hooks_that_are_off_count_steps_and_write_nothing(environ, tmp_path, monkeypatch):
    """Off is the same calls with the same results, and no file."""
    monkeypatch.chdir(tmp_path)
    recorder = Recorder.from_env(environ)
    recorder.resumed(5)
    with recorder.phase("model_init") as span:
        span.resumed_step = 10
    for number in recorder.batches(range(3)):
        with recorder.checkpoint(number):
            pass
        recorder.durable(number)
    recorder.close()
    assert not recorder.active
    assert recorder.step == 13
    assert list(Path(tmp_path).iterdir()) == []


def test_an_environment_that_cannot_be_understood_switches_the_hooks_off(tmp_path, capsys):
    """A wrong variable is named in one warning; the trainer runs."""
    environ = {"ETT_JOB_ID": "j", "ETT_JOURNAL_DIR": str(tmp_path), "ETT_ATTEMPT": "first"}
    recorder = Recorder.from_env(environ)
    assert not recorder.active
    said = "ETT_ATTEMPT='first' is not a whole number of 0 or more; the hooks are off, the job goes on"
    assert capsys.readouterr().err == f"ettwatch: {said}\n"


def test_a_wrong_interval_is_refused_at_construction():
    """The message names the setting."""
    with pytest.raises(ValueError, match="report_every_s"):
        Recorder(identity=Identity(job_id="j", writer="w"), journal=NullJournal(), report_every_s=0.0)


class Scalar:
    """An array of one element, as numpy and torch have them."""

    def __init__(self, value):
        self._value = value

    def item(self):
        return self._value

    def __int__(self):
        return int(self._value)

    def __eq__(self, other):
        return self._value == other

    __hash__ = None


class Measured(float):
    """A number of a type of its own, as those of numpy are."""


def test_steps_and_amounts_may_be_arrays_of_one_element(bench, hands):
    """A save, a load and what they cost are told whatever type a trainer counts with."""
    b = bench()
    with b.recorder.phase("checkpoint_load", step=Scalar(0)) as load:
        load.resumed_step = Scalar(40)
    with b.recorder.checkpoint(Scalar(41)) as save:
        hands.move(2.0)
        save.staging_s, save.bytes = Measured(0.5), Scalar(7)
    b.recorder.durable(Scalar(41), duration_s=Measured(1.5))
    b.recorder.counters({"loss": Scalar(0.25), "norm": Measured(2.0)})
    assert [(e.kind, e.phase, e.step) for e in b.written()[:4]] == [
        ("phase_begin", "checkpoint_load", 0),
        ("phase_end", "checkpoint_load", 0),
        ("phase_begin", "checkpoint", 41),
        ("phase_end", "checkpoint", 41),
    ]
    assert b.of("phase_end")[0].resumed_step == 40
    (saved,), (durable,), (counted,) = (b.of(k) for k in ("checkpoint", "checkpoint_durable", "counters"))
    assert (saved.step, saved.blocking_s, saved.staging_s, saved.bytes) == (41, 2.0, 0.5, 7)
    assert (durable.step, durable.duration_s) == (41, 1.5)
    assert counted.values == {"loss": 0.25, "norm": 2.0}
    assert (b.warnings, b.journal.dropped) == ([], 0)


def test_a_number_that_is_none_costs_only_itself(bench):
    """Of what is counted or decided, the other values are told."""
    b = bench()
    b.recorder.counters({"loss": math.nan, "lr": 0.5})
    b.recorder.decision("interval", values={"saves": -math.inf, "steps": 40})
    assert b.of("counters")[0].values == {"lr": 0.5}
    assert b.of("decision")[0].values == {"steps": 40.0}
    assert b.warnings == []


def test_an_endless_name_is_cut_and_its_phase_not_lost(bench, hands):
    """Beginning and end keep the same name, so that the phase has its time."""
    b = bench()
    with b.recorder.phase("save /scratch/" + "x" * 1_000_000, track="io" * 1000):
        hands.move(1.0)
    (begin,), (end,) = b.of("phase_begin"), b.of("phase_end")
    assert (begin.phase, begin.track) == (end.phase, end.track)
    assert begin.phase.startswith("save /scratch/x")
    assert (len(begin.phase), len(begin.track), b.warnings) == (256, 256, [])


def test_a_very_long_message_is_cut_and_not_lost(bench):
    """Its line stays below what an exporter takes; the failure itself is always told."""
    b = bench()
    b.recorder.failure(message="x" * 100_000)
    b.recorder.checkpoint_failed(1, "y" * 100_000)
    b.recorder.compile(recompile_reason="z" * 100_000)
    assert [len(b.of(kind)[0].message) for kind in ("failure", "checkpoint_failed")] == [4000, 4000]
    assert len(b.of("compile")[0].recompile_reason) == 4000
