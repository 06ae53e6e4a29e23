"""Compilations of the real compiler, told to a recorder: cold, warm, nested, beside the loop, failing."""

from __future__ import annotations

import threading

import pytest

from ett_trainer_hooks.recording.compiling import CompileWatch, track_of_this_thread

LIMIT_S = 600.0
"""Guards against a program that hangs; on a machine with much to do a compilation takes minutes."""
FAST = {
    "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0",
    "TORCHINDUCTOR_VEC_ISA_OK": "1",
    "OMP_NUM_THREADS": "1",
}
"""Spares a compiled header and probes of the CPU, in all runs alike."""

TRAIN = """
from ett_trainer_hooks import Recorder
recorder = Recorder.from_env()
import os, torch
if os.environ.get("LOAD"):
    torch.compiler.load_cache_artifacts(open(os.environ["LOAD"], "rb").read())
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
compiled = torch.compile(model)
for size in recorder.batches([4, 4]):
    compiled(torch.ones(size, 4)).sum().backward()
recorder.close()
if os.environ.get("SAVE"):
    open(os.environ["SAVE"], "wb").write(torch.compiler.save_cache_artifacts()[0])
"""


@pytest.fixture
def told(start, events_in, tmp_path):
    """Runs a program to its end; the events that it has told."""

    def run(program, **environ):
        caches = str(tmp_path / "caches")
        child = start(program, **{**FAST, "TORCHINDUCTOR_CACHE_DIR": caches, **environ})
        _, err = child.communicate(timeout=LIMIT_S)
        assert (child.returncode, b"ettwatch" in err) == (0, False), err.decode()
        (journal,) = (tmp_path / "journal").glob(f"*-{child.pid}.jsonl")
        return events_in(journal)

    return run


def of(events, kind):
    return [event for event in events if event.kind == kind]


def totals(events):
    """The last totals of each cache, as hits and misses."""
    return {event.cache: (event.hits, event.misses) for event in of(events, "cache")}


@pytest.mark.service("torch")
@pytest.mark.service("compiler")
def test_a_cold_start_compiles_a_warm_one_loads_and_those_without_native_code_say_so(told, tmp_path):
    """Hits are counted once, and a hit that called the native compiler shows its seconds.

    Native code is missing where it was removed, and in artifacts of the compiler, which hold none.
    """
    cold = told(TRAIN, SAVE=str(tmp_path / "artifacts"))
    compiles = of(cold, "compile")
    assert [event.graph for event in compiles] == ["0/0", "0/0"]
    assert [event.recompile_reason for event in compiles] == [None, None]
    assert all(event.native_compile_s > 0 for event in compiles)
    assert totals(cold) == {"fx_graph": (0, 2), "aot_autograd": (0, 1)}
    for event, (begun_s, ended_s) in zip(compiles, spans(cold), strict=True):
        own = sum(seconds for stage, seconds in event.stage_seconds.items() if stage != "native")
        assert 0 < own <= ended_s - begun_s
    assert {"dynamo", "aot_autograd", "inductor", "native"} == compiles[0].stage_seconds.keys()
    warm = told(TRAIN)
    assert [event.graph for event in of(warm, "compile")] == ["0/0"]
    assert [event.native_compile_s for event in of(warm, "compile")] == [0]
    assert totals(warm) == {"fx_graph": (0, 0), "aot_autograd": (1, 0)}
    assert {"dynamo", "cache_load"} == of(warm, "compile")[0].stage_seconds.keys()
    for native in (tmp_path / "caches").rglob("*.so"):
        native.unlink()
    without = told(TRAIN)
    assert totals(without) == totals(warm)
    assert all(event.native_compile_s > 0 for event in of(without, "compile"))
    brought = told(
        TRAIN, LOAD=str(tmp_path / "artifacts"), TORCHINDUCTOR_CACHE_DIR=str(tmp_path / "elsewhere")
    )
    assert totals(brought) == {**totals(warm), "mega_cache": (2, 0)}
    assert all(event.native_compile_s > 0 for event in of(brought, "compile"))


def spans(events):
    """Begin and end of each `compile` phase of the main track."""
    phases = [
        event
        for event in events
        if event.kind.startswith("phase_") and event.phase == "compile" and event.track == "main"
    ]
    assert [event.kind for event in phases] == ["phase_begin", "phase_end"] * (len(phases) // 2)
    return [(begin.time, end.time) for begin, end in zip(phases[::2], phases[1::2], strict=True)]


@pytest.mark.service("torch")
def test_compilations_beside_the_loop_after_a_reset_again_and_that_fail_are_all_told(told):
    """A side thread has a track of its own; a reset takes nothing away; reasons and errors are told."""
    events = told("""
from ett_trainer_hooks import Recorder
recorder = Recorder.from_env()
import threading, torch
def beside():
    torch.compile(lambda tensor: tensor + 1, backend="eager")(torch.ones(2))
thread = threading.Thread(target=beside, name="fast batch")
thread.start()
thread.join()
torch._dynamo.reset()
again = torch.compile(lambda tensor: tensor + 2, backend="eager")
again(torch.ones(2))
again(torch.ones(3))
def refuses(graph, inputs):
    raise LookupError("no such backend")
try:
    torch.compile(lambda tensor: tensor + 3, backend=refuses)(torch.ones(2))
except Exception as error:
    assert "no such backend" in str(error), error
recorder.close()
""")
    ends = [event for event in of(events, "phase_end") if event.phase == "compile"]
    assert [event.track for event in ends] == ["thread fast batch", "main", "main", "main"]
    assert ["no such backend" in (event.error or "") for event in ends] == [False, False, False, True]
    reasons = [event.recompile_reason for event in of(events, "compile")]
    assert [reason is None for reason in reasons] == [True, True, False, True]
    assert "size mismatch" in reasons[2]


@pytest.mark.service("torch")
def test_what_is_compiled_around_a_graph_break_holds_nothing_of_ours(told, tmp_path):
    """A step that dynamo breaks at its backward compiles to as many frames as alone, and no error."""
    program = """
from ett_trainer_hooks import Recorder
recorder = Recorder.from_env()
import sys, torch
torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
@torch.compile(backend="aot_eager")
def step(batch):
    loss = model(batch).sum()
    loss.backward()
    return loss
step(torch.ones(3, 4))
from torch._dynamo.utils import counters
with open(sys.argv[0] + ".counts", "w") as out:
    print(dict(counters["stats"]), len(counters["graph_break"]), file=out)
recorder.close()
"""
    events = told(program)
    told(
        program.replace(
            "Recorder.from_env()", "Recorder.from_env()\nrecorder._compile_watch._attach = lambda: None"
        )
    )
    watched, alone = (path.read_text() for path in sorted(tmp_path.glob("*.counts")))
    assert watched == alone
    assert all(event.error is None for event in of(events, "phase_end"))


def test_a_nested_compilation_is_part_of_the_outermost(bench):
    """Torch up to 2.6 calls for each level; one phase and one fact come of it."""
    made = bench()
    watch = CompileWatch(made.recorder, thread=threading.get_ident, modules={})
    for graph in ("0/0", "1/0"):
        watch.begin(graph)
    watch.end()
    assert made.of("phase_end") == []
    watch.end()
    watch.end()
    assert [event.phase for event in made.of("phase_end")] == ["compile"]
    assert [event.graph for event in made.of("compile")] == ["0/0"]
    assert made.warnings == []


def test_threads_that_python_did_not_start_work_for_the_one_that_trains():
    """They run the backward; a thread of the program has a track with its name."""
    tracks = []

    def note():
        tracks.append(track_of_this_thread(training=0))

    for name in ("Dummy-1", "loader"):
        thread = threading.Thread(target=note, name=name)
        thread.start()
        thread.join()
    assert tracks == ["main", "thread loader"]
    assert track_of_this_thread(threading.get_ident()) == "main"


def test_a_recorder_watches_once(bench):
    """Asked twice, it tells each compilation once."""
    recorder = bench().recorder
    recorder.watch_compile()
    first = recorder._compile_watch
    recorder.watch_compile()
    assert recorder._compile_watch is first
