"""Checkpoints by torch.distributed.checkpoint: told apart, never claimed, never changed."""

from __future__ import annotations

import re
import signal
import threading
import time
import warnings
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace

import pytest

from ett_core.accounting import JobFold
from ett_trainer_hooks import Recorder
from ett_trainer_hooks.identity import Identity

torch = pytest.importorskip("torch")
dist = pytest.importorskip("torch.distributed")
torch_dcp = pytest.importorskip("torch.distributed.checkpoint")
staging = pytest.importorskip("torch.distributed.checkpoint.staging")
dcp = pytest.importorskip("ett_trainer_hooks.adapters.dcp")

pytestmark = [pytest.mark.service("torch"), pytest.mark.usefixtures("one_rank")]

PROGRAMS = Path(__file__).with_name("programs")
BESIDE = {
    "use_pinned_memory": False,
    "use_shared_memory": False,
    "use_async_staging": True,
    "use_non_blocking_copy": False,
}
SAID = re.compile(r"(told|plain) (step|loaded) (\d) (-?\d\.\d{6})")


@pytest.fixture
def state():
    return {"model": {"w": torch.arange(1000.0)}}


class GatedWriter(torch_dcp.FileSystemWriter):
    """Storage that takes data only while its gate is open, and breaks where it is told to."""

    def __init__(self, path, *, error: BaseException | None = None) -> None:
        super().__init__(path)
        self.gate = threading.Event()
        self.error = error

    def write_data(self, plan, planner):
        assert self.gate.wait(30.0)
        if self.error is not None:
            raise self.error
        return super().write_data(plan, planner)


def own_writer_without_metadata(path):
    """The writer of torch itself, on storage that loses what is written last."""
    writer = torch_dcp.FileSystemWriter(path)
    write_metadata = writer.finish

    def finish(**words):
        write_metadata(**words)
        (Path(path) / ".metadata").unlink()

    writer.finish = finish
    return writer


def loaded(path):
    read = {"model": {"w": torch.zeros(1000)}}
    torch_dcp.load(read, checkpoint_id=path)
    return read["model"]["w"]


def open_later(observer, gate, *, step, seconds):
    """A thread that opens the gate so many seconds after the save of `step` has begun."""

    def open_gate():
        pause = threading.Event()
        while not any(e.kind == "phase_begin" and e.step == step for e in observer.read(observer.path)):
            pause.wait(0.005)
        pause.wait(seconds)
        gate.set()

    thread = threading.Thread(target=open_gate)
    thread.start()
    return thread


def kinds_from(events, kind):
    """The kinds of events from the first of `kind` on."""
    kinds = [event.kind for event in events]
    return kinds[kinds.index(kind) :]


def test_a_save_is_a_phase_and_durable_when_it_returns(observer, state, tmp_path):
    """One rank: its blocking time, its bytes, the metadata that torch returns, the files of torch."""
    metadata = dcp.save(observer.recorder, state, step=7, checkpoint_id=tmp_path / "7")
    assert isinstance(metadata, torch_dcp.Metadata)
    assert torch.equal(loaded(tmp_path / "7"), state["model"]["w"])
    [saved], [durable] = observer.of("checkpoint"), observer.of("checkpoint_durable")
    assert (saved.step, saved.mode, saved.wait_previous_s) == (7, "sync", 0.0)
    assert saved.bytes == durable.bytes == sum(file.stat().st_size for file in (tmp_path / "7").glob("__*"))
    assert durable.duration_s == saved.blocking_s > 0
    assert observer.phases() == ["checkpoint"]
    assert observer.of("checkpoint_failed") == []


def test_an_asynchronous_save_is_durable_only_once_the_storage_has_it(observer, state, tmp_path):
    """While the storage keeps it waiting the trainer is free and nothing is claimed; then all is told."""
    writer = GatedWriter(tmp_path / "1")
    future = dcp.async_save(observer.recorder, state, step=1, storage_writer=writer)
    assert not future.done()
    assert kinds_from(observer.told(), "phase_end") == ["phase_end", "checkpoint", "phase_begin"]
    state["model"]["w"].zero_()
    writer.gate.set()
    dcp.wait(observer.recorder)
    assert future.done()
    assert torch.equal(loaded(tmp_path / "1"), torch.arange(1000.0))
    first, complete = observer.of("checkpoint")
    [durable] = observer.of("checkpoint_durable")
    assert (first.mode, first.upload_s, first.staging_s) == ("async", None, None)
    assert first.blocking_s == complete.blocking_s
    assert durable.duration_s >= complete.staging_s + complete.upload_s
    assert complete.staging_s <= complete.blocking_s
    assert (complete.bytes, durable.bytes, durable.mode) == (durable.bytes, complete.bytes, "async")
    assert observer.phases(track="checkpoint") == ["checkpoint_upload"]


def test_the_wait_for_the_save_before_is_told_apart(observer, state, tmp_path):
    """With slow storage the second save waits for the first: one in flight, and the wait has its field."""
    slow, next_one = GatedWriter(tmp_path / "1"), GatedWriter(tmp_path / "2")
    next_one.gate.set()
    first = dcp.async_save(observer.recorder, state, step=1, storage_writer=slow)
    opener = open_later(observer, slow.gate, step=2, seconds=0.3)
    began_s = time.monotonic()
    second = dcp.async_save(observer.recorder, state, step=2, storage_writer=next_one)
    blocked_s = time.monotonic() - began_s
    opener.join()
    assert first.done()
    second.result()
    dcp.wait(observer.recorder)
    last = [event for event in observer.of("checkpoint") if event.step == 2][-1]
    assert 0.1 < last.wait_previous_s <= last.blocking_s <= blocked_s
    assert last.staging_s <= last.blocking_s - last.wait_previous_s
    assert [event.step for event in observer.of("checkpoint_durable")] == [1, 2]
    ends = [(e.kind, e.step) for e in observer.told() if e.kind in {"checkpoint_durable", "checkpoint"}]
    assert ends.index(("checkpoint_durable", 1)) < ends.index(("checkpoint", 2))


def test_a_blocking_save_waits_for_the_one_in_flight_too(observer, state, tmp_path):
    """Both would use the same collectives at once."""
    slow = GatedWriter(tmp_path / "1")
    dcp.async_save(observer.recorder, state, step=1, storage_writer=slow)
    opener = open_later(observer, slow.gate, step=2, seconds=0.2)
    dcp.save(observer.recorder, state, step=2, checkpoint_id=tmp_path / "2")
    opener.join()
    assert observer.of("checkpoint")[-1].wait_previous_s > 0.1
    assert [event.step for event in observer.of("checkpoint_durable")] == [1, 2]


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyError("part")], ids=repr)
def test_what_the_storage_raises_reaches_the_program_and_is_told(observer, state, tmp_path, error):
    """Blocking and asynchronous: torch's own exception comes out; nothing is durable; training can go on."""
    outcomes = []
    for step, how in ((1, dcp.save), (2, dcp.async_save)):
        writer = GatedWriter(tmp_path / str(step), error=error)
        writer.gate.set()
        with pytest.raises(torch_dcp.api.CheckpointException) as raised:
            how(observer.recorder, state, step=step, storage_writer=writer).result()
        outcomes.append(raised.value.failures[0][0])
    dcp.wait(observer.recorder)
    assert [(type(each), each.args) for each in outcomes] == [(type(error), error.args)] * 2
    failed = [(event.step, event.mode) for event in observer.of("checkpoint_failed")]
    assert failed == [(1, "sync"), (2, "async")]
    wanted = f"CheckpointException: rank 0: {type(error).__name__}: {error}"
    assert [event.message for event in observer.of("checkpoint_failed")] == [wanted, wanted]
    assert observer.of("checkpoint_durable") == []
    dcp.save(observer.recorder, state, step=3, checkpoint_id=tmp_path / "3")
    assert [event.step for event in observer.of("checkpoint_durable")] == [3]


@pytest.mark.parametrize("how", ["save", "async_save"])
def test_without_its_metadata_a_save_is_no_checkpoint(observer, state, tmp_path, how):
    """The library reports success; what makes the checkpoint exist is not there, so it failed."""
    writer = own_writer_without_metadata(tmp_path / "1")
    getattr(dcp, how)(observer.recorder, state, step=1, storage_writer=writer)
    dcp.wait(observer.recorder)
    [failed] = observer.of("checkpoint_failed")
    assert failed.message == f"the save returned, but there is no metadata in {tmp_path / '1'}"
    assert observer.of("checkpoint_durable") == []


def test_a_stager_beside_the_training_is_told_as_such(observer, state, tmp_path):
    """The response of torch comes back; `wait_for_staging` returns once the copy is made."""
    stager = staging.DefaultStager(staging.StagingOptions(**BESIDE))
    response = dcp.async_save(
        observer.recorder, state, step=1, checkpoint_id=tmp_path / "1", async_stager=stager
    )
    dcp.wait_for_staging(observer.recorder)
    assert response.staging_completion.done()
    state["model"]["w"].zero_()
    dcp.wait(observer.recorder)
    stager.close()
    assert response.upload_completion.done()
    assert torch.equal(loaded(tmp_path / "1"), torch.arange(1000.0))
    assert observer.phases(track="checkpoint") == ["checkpoint_staging", "checkpoint_upload"]
    complete = observer.of("checkpoint")[-1]
    assert complete.staging_s > 0
    assert complete.upload_s > 0
    assert [event.step for event in observer.of("checkpoint_durable")] == [1]


def test_a_stager_that_fails_beside_the_training_is_a_failed_save(observer, state, tmp_path):
    """The copy was never made; nobody waits for it for ever."""

    class Broken(staging.DefaultStager):
        def _stage(self, _state, **_words):
            raise MemoryError("no host memory")

    stager = Broken(staging.StagingOptions(**BESIDE))
    response = dcp.async_save(
        observer.recorder, state, step=1, checkpoint_id=tmp_path / "1", async_stager=stager
    )
    dcp.wait_for_staging(observer.recorder)
    dcp.wait(observer.recorder)
    stager.close()
    with pytest.raises(MemoryError):
        response.upload_completion.result()
    assert [event.message for event in observer.of("checkpoint_failed")] == ["MemoryError: no host memory"]


def test_a_load_is_a_phase_that_says_where_training_resumes(observer, state, tmp_path):
    """The step may be a number, or read from what was loaded."""
    torch_dcp.save({**state, "step": 40}, checkpoint_id=tmp_path / "1")
    read = {"model": {"w": torch.zeros(1000)}, "step": 0}
    dcp.load(observer.recorder, read, checkpoint_id=tmp_path / "1", step=lambda: read["step"])
    assert torch.equal(read["model"]["w"], state["model"]["w"])
    assert observer.recorder.step == 40
    dcp.load(observer.recorder, read, checkpoint_id=tmp_path / "1", step=30)
    dcp.load(observer.recorder, read, checkpoint_id=tmp_path / "1")
    ends = [(event.phase, event.resumed_step) for event in observer.of("phase_end")]
    assert ends == [("checkpoint_load", 40), ("checkpoint_load", 30), ("checkpoint_load", None)]


def test_a_load_that_fails_raises_what_torch_raises(observer, tmp_path):
    """A checkpoint that is not there; the phase ends with the error, and nothing is resumed."""
    with pytest.raises(torch_dcp.api.CheckpointException):
        dcp.load(observer.recorder, {"w": torch.zeros(3)}, checkpoint_id=tmp_path / "none", step=5)
    [end] = observer.of("phase_end")
    assert "rank 0" in end.error
    assert (end.resumed_step, observer.recorder.step) == (None, 0)


@pytest.mark.parametrize("durable", [True, False])
def test_the_program_may_decide_who_says_durable(observer, state, tmp_path, durable):
    """Where a rename makes the checkpoint exist, the save must not say so before it."""
    dcp.save(observer.recorder, state, step=1, checkpoint_id=tmp_path / "1", durable=durable)
    assert len(observer.of("checkpoint_durable")) == durable


def test_no_rank_speaks_for_others_it_never_asked(monkeypatch):
    """With `no_dist` among several ranks a save knows of itself alone."""
    monkeypatch.setattr(dist, "get_world_size", lambda: 2)
    assert not dcp.coordinates({"no_dist": True})
    assert dcp.coordinates({})


def test_a_program_without_a_process_group_saves_alone(observer, state, tmp_path):
    """The library says so in a warning, and this process says durable."""
    dist.destroy_process_group()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            dcp.save(observer.recorder, state, step=1, checkpoint_id=tmp_path / "1")
    finally:
        store = dist.FileStore(str(tmp_path / "rendezvous2"), 1)
        dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    assert [event.step for event in observer.of("checkpoint_durable")] == [1]


class BrokenJournal:
    is_open = True
    dropped = 0

    def put(self, *_args, **_words):
        raise OSError("the journal is broken")

    def flush(self, _timeout_s):
        raise OSError("the journal is broken")


def test_hooks_that_fail_change_no_save_and_no_load(state, tmp_path, capsys):
    """With a journal that raises on every event all calls do what torch's do; one line says so."""
    recorder = Recorder(identity=Identity(job_id="j", writer="w"), journal=BrokenJournal())
    dcp.save(recorder, state, step=1, checkpoint_id=tmp_path / "1")
    for step in (2, 3):
        dcp.async_save(recorder, state, step=step, checkpoint_id=tmp_path / str(step))
    dcp.wait(recorder)
    read = {"model": {"w": torch.zeros(1000)}}
    dcp.load(recorder, read, checkpoint_id=tmp_path / "3", step=lambda: 1 / 0)
    assert torch.equal(read["model"]["w"], state["model"]["w"])
    assert capsys.readouterr().err.count("\n") == 1


def test_a_save_whose_futures_tell_nothing_holds_up_no_other(observer, state, tmp_path, monkeypatch):
    """Where torch gives others than it does now, what those would have told is missing, and no more."""
    strange = SimpleNamespace(staging_completion=object(), upload_completion=Future())
    with monkeypatch.context() as patch:
        patch.setattr(torch_dcp, "async_save", lambda *_args, **_words: strange)
        assert dcp.async_save(observer.recorder, state, step=1, checkpoint_id=tmp_path / "1") is strange
    assert observer.recorder not in dcp._flights
    dcp.wait(observer.recorder)
    dcp.save(observer.recorder, state, step=2, checkpoint_id=tmp_path / "2")
    assert [event.step for event in observer.of("checkpoint_durable")] == [2]
    assert [event.phase for event in observer.of("phase_end") if event.track == dcp.TRACK] == [
        "checkpoint_staging"
    ]
    assert len(observer.warnings) == 1


def test_a_save_that_ends_after_the_recorder_closed_is_said_once(observer, state, tmp_path):
    """It cannot be told any more; one warning names the call that was missing."""
    writer = GatedWriter(tmp_path / "1")
    future = dcp.async_save(observer.recorder, state, step=1, storage_writer=writer)
    observer.recorder.close()
    writer.gate.set()
    future.result()
    dcp.wait(observer.recorder)
    assert observer.warnings == [dcp.LATE]


@pytest.fixture(scope="module")
def ran(torchrun):
    """Two ranks that save in every way, load, fill the disk, and save and load again with torch alone."""
    ran = torchrun("saves.py", "saves", ranks=2)
    assert ran.status == 0, ran.err
    return ran


def test_two_ranks_learn_and_load_the_same_as_with_torch_alone(ran):
    """Losses of both ranks, and the weights in every checkpoint."""
    said = SAID.findall(ran.out)
    told, plain = (sorted(words[1:] for words in said if words[0] == how) for how in ("told", "plain"))
    assert len(plain) == 2 * 6 + 5
    assert told == plain


def test_of_two_ranks_the_coordinator_says_durable(ran):
    """Each rank tells its own costs; the process that the first save by process starts is waited for."""
    durable = [(event.step, event.mode, event.rank) for event in ran.of("checkpoint_durable")]
    assert durable == [(1, "sync", 0), *((step, "async", 0) for step in (2, 3, 4, 5))]
    for rank in (0, 1):
        complete = [event for event in ran.of("checkpoint", rank) if event.upload_s is not None]
        assert [event.step for event in complete] == [2, 3, 4, 5]
        waited = {event.step: event.wait_previous_s for event in complete}
        assert waited[5] > max(waited[3], 0.3)
    account = ran.account()
    assert account.state == "succeeded"
    assert account.components["checkpoint_blocking"] > waited[5]


def test_storage_that_is_full_fails_the_save_and_not_the_job(ran):
    """The operating system takes no more of a file: torch raises, both ranks say why, nothing is durable."""
    for step in ("101", "102"):
        assert ran.out.count(f"full disk {step} CheckpointException") == 2
    failed = sorted((event.rank, event.step, event.mode) for event in ran.of("checkpoint_failed"))
    assert failed == [(0, 101, "sync"), (0, 102, "async"), (1, 101, "sync"), (1, 102, "async")]
    assert all("rank 0: " in event.message for event in ran.of("checkpoint_failed"))


def test_a_process_that_is_killed_in_the_middle_claims_nothing(start, events_in, tmp_path):
    """After SIGTERM the save is told as failed; after SIGKILL nobody can say so, and nothing is durable."""
    numbers = (signal.SIGTERM, signal.SIGKILL)
    program = (PROGRAMS / "stuck_save.py").read_text()
    children = [
        start(program, str(tmp_path / number.name), ETT_JOURNAL_DIR=str(tmp_path / f"{number.name} journal"))
        for number in numbers
    ]
    failed = {}
    for number, child in zip(numbers, children, strict=True):
        assert child.stdout.readline() == b"saving\n"
        child.send_signal(number)
        assert child.wait(30.0) == -number
        events = events_in(tmp_path / f"{number.name} journal")
        assert [event for event in events if event.kind == "checkpoint_durable"] == []
        failed[number] = [event.message for event in events if event.kind == "checkpoint_failed"]
    assert failed == {
        signal.SIGTERM: ["the process ended before the save was complete"],
        signal.SIGKILL: [],
    }


def test_training_after_the_last_durable_save_is_lost_and_no_more(start, events_in, tmp_path):
    """Killed with a save in flight, the job goes on from the one before: what lay between was unsaved."""
    program = (PROGRAMS / "killed_and_resumed.py").read_text()
    place = str(tmp_path / "saves")
    first = start(program, place, ETT_ATTEMPT="0")
    assert first.wait(60.0) == -signal.SIGKILL
    second = start(program, place, ETT_ATTEMPT="1000")
    out, err = second.communicate(timeout=60.0)
    assert (second.returncode, out) == (0, b"10.0\n"), err
    events = events_in(tmp_path / "journal")
    durable = [(event.attempt, event.step) for event in events if event.kind == "checkpoint_durable"]
    assert durable == [*((0, step) for step in range(1, 5)), *((1000, step) for step in range(5, 11))]
    [load] = [event for event in events if event.kind == "phase_end" and event.phase == "checkpoint_load"]
    assert (load.attempt, load.resumed_step) == (1000, 4)
    fold = JobFold("job")
    fold.add(events)
    account = fold.account(events[-1].time)
    assert account.state == "succeeded"
    assert sum(account.components.values()) == pytest.approx(account.wall_s, abs=1e-6)
    reports = [event for event in events if event.kind == "progress" and event.steps]
    spent_s = {
        is_lost: sum(r.step_seconds.sum for r in reports if (r.attempt == 0 and r.step > 4) == is_lost)
        for is_lost in (True, False)
    }
    assert spent_s[True] >= 3 * 0.05
    assert account.components["unsaved_training"] == pytest.approx(spent_s[True], rel=0.3, abs=0.1)
    assert account.components["training"] == pytest.approx(spent_s[False], rel=0.3, abs=0.1)
