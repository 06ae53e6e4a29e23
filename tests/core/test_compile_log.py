"""Compilations of a job: those of the lowest rank of its latest attempts, and counts over all."""

from hypothesis import given
from hypothesis import strategies as st

from ett_core import details
from ett_core.compile_log import ATTEMPTS_KEPT, COMPILATIONS_KEPT, INPUTS_KEPT, CompileLog
from ett_core.details import JobDetails
from ett_core.events import Compile, CompileInput

REASON = "0/0: tensor 'x' size mismatch at index 0. expected 64, actual 65"


def compiled(seq, *, attempt=0, rank=0, **fields):
    head = {"job_id": "j", "writer": f"w{attempt}.{rank}", "seq": seq, "attempt": attempt, "rank": rank}
    return Compile(**head, time=1e9 + seq, graph=f"0/{seq}", **fields)


def logged(*events):
    log = CompileLog()
    for event in events:
        log.add(event)
        log.settle()
    return log


def test_the_lowest_rank_tells_and_all_are_counted():
    known = logged(
        compiled(1, rank=2),
        compiled(2, rank=1, recompile_reason=REASON),
        compiled(3, rank=1),
        compiled(4, rank=-1),
    ).read()
    assert (known.count, known.again) == (4, 1)
    assert [(line.rank, line.graph) for line in known.lines] == [(1, "0/2"), (1, "0/3")]


def test_the_latest_attempts_and_their_first_compilations_are_kept():
    attempts = range(ATTEMPTS_KEPT + 2)
    many = [compiled(n, attempt=a) for a in attempts for n in range(COMPILATIONS_KEPT + 3)]
    lines = logged(*many).read().lines
    assert sorted({line.attempt for line in lines}) == list(attempts)[2:]
    assert [line.seq for line in lines if line.attempt == attempts[-1]] == list(range(COMPILATIONS_KEPT))


def test_a_line_holds_seconds_sizes_and_why():
    inputs = (CompileInput("L['x']", (65, 4), "float32"),)
    stages = {"dynamo": 1.0, "inductor": 2.0, "native": 9.0}
    (line,) = (
        logged(compiled(1, code="f (a.py:1)", stage_seconds=stages, recompile_reason=REASON, inputs=inputs))
        .read()
        .lines
    )
    assert (line.seconds, line.native_s, line.recompile_reason) == (3.0, 9.0, REASON)
    assert (line.code, line.inputs) == ("f (a.py:1)", inputs)


def test_more_inputs_than_recorders_tell_are_not_kept():
    inputs = tuple(CompileInput(f"L['x{n}']", (1,)) for n in range(INPUTS_KEPT + 1))
    assert logged(compiled(1, inputs=inputs)).read().lines[0].inputs is None


@given(st.permutations([compiled(n, attempt=n % 2, rank=n % 3) for n in range(8)]))
def test_the_order_of_arrival_changes_nothing(shuffled):
    assert logged(*shuffled).read() == logged(*sorted(shuffled, key=lambda event: event.seq)).read()


def test_details_keep_compilations_over_a_dump():
    fold = JobDetails()
    assert fold.compilations.read() is None
    fold.add([compiled(1), compiled(2, recompile_reason=REASON, inputs=(CompileInput("L['x']", (65,)),))])
    again = details.load(details.dump(fold))
    assert again.compilations.read() == fold.compilations.read()
    assert again.compilations.read().again == 1
