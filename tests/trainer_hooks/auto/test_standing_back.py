"""Whom the automatic part leaves alone: other processes, other recorders, other `sitecustomize`s."""

from __future__ import annotations

import os
import sys

import pytest
from processes import free_address

from ett_trainer_hooks.auto import SITE

pytestmark = pytest.mark.service("torch")

LOOP = """
import torch
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def loader():
    return DataLoader(TensorDataset(torch.ones(12, 2)), batch_size=2)
def step(batch):
    optimizer.zero_grad(); model(batch[0]).sum().backward(); optimizer.step()
"""
TRAIN = LOOP + "for batch in loader(): step(batch)\nprint([p.tolist() for p in model.parameters()])\n"


def test_off_means_off_and_a_hook_that_fails_changes_nothing_but_one_line(bare, script):
    """ETT_AUTO=0 leaves no journal; the program prints the same where it is observed, and where that fails.

    With the journal's directory a file there is one warning.
    """
    path = script(TRAIN)
    off = bare(sys.executable, path, ETT_AUTO="0")
    assert (off.status, off.events) == (0, [])
    failing = bare(sys.executable, path, ETT_JOURNAL_DIR="/dev/null/nowhere")
    assert (failing.status, failing.out) == (0, off.out)
    assert 1 <= len(failing.err.splitlines()) <= 2
    assert all(line.startswith("ettwatch: ") for line in failing.err.splitlines())
    on = bare(sys.executable, path)
    assert (on.out, on.err) == (off.out, off.err)
    assert on.of("progress")[-1].step == 6


def test_no_module_of_ours_is_there_before_torch(bare, script):
    """A process that never asks for torch imports nothing of ettwatch."""
    program = "import sys, json\nprint([name for name in sys.modules if name.startswith(('ett', 'msgspec'))])"
    ran = bare(sys.executable, script(program))
    assert (ran.out, ran.err) == ("[]\n", "")


def test_a_sitecustomize_of_the_machine_runs_in_its_place(bare, script, tmp_path, environ):
    """The one that ours hides is run, is the module of that name, and our directory is gone from the path."""
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs/sitecustomize.py").write_text("HERE = 'theirs'")
    parts = [str(SITE), str(tmp_path / "theirs"), environ.get("PYTHONPATH", "")]
    program = f"import sys, sitecustomize\nprint(sitecustomize.HERE, {str(SITE)!r} in sys.path)"
    ran = bare(sys.executable, script(program), PYTHONPATH=os.pathsep.join(filter(None, parts)))
    assert (ran.out, ran.err) == ("theirs False\n", "")


@pytest.mark.parametrize("when", ["before torch", "before the optimizer", "in the loop"])
def test_a_program_with_a_recorder_is_not_counted_twice(bare, warm, script, when):
    """Whenever it asks for its recorder, one writer speaks and each step is told once."""
    ask = "\nfrom ett_trainer_hooks import Recorder\nrecorder = Recorder.from_env()\n"
    use = "for batch in recorder.batches(loader()): step(batch)\nrecorder.close()\n"
    programs = {
        "before torch": ask + LOOP + use,
        "before the optimizer": "import torch" + ask + LOOP + use,
        "in the loop": LOOP + "for batch in loader(): step(batch)\n" + ask + use,
    }
    path = script(programs[when])
    ran = bare(sys.executable, path) if when == "before torch" else warm(path)
    assert ran.status == 0, ran.err
    assert len({event.writer for event in ran.events}) == 1
    steps = 12 if when == "in the loop" else 6
    assert sum(event.steps for event in ran.of("progress")) == steps
    assert ran.of("progress")[-1].step == steps
    assert len(ran.of("attempt_end")) == 1


def test_a_program_that_asks_twice_has_one_recorder(start, events_in, tmp_path):
    """As where a loop has its two lines and a callback; a closed one is not given out again."""
    program = """
from ett_trainer_hooks import Recorder
first = Recorder.from_env()
assert Recorder.from_env() is first
first.close()
assert Recorder.from_env() is not first
"""
    child = start(program)
    _, err = child.communicate(timeout=60.0)
    assert (child.returncode, err) == (0, b"")
    assert len({event.writer for event in events_in(tmp_path / "journal")}) == 2


def test_a_recorder_that_was_taken_over_tells_the_end_as_any_other(warm, script):
    """`sys.exit(0)` is a success once nobody watches any more."""
    ask = "\nfrom ett_trainer_hooks import Recorder\nrecorder = Recorder.from_env()\n"
    ran = warm(
        script(LOOP + "for batch in loader(): step(batch)\n" + ask + "import sys; sys.exit(0)"),
    )
    (end,) = ran.of("attempt_end")
    assert (end.status, end.exit_code) == ("succeeded", 0)


def test_what_a_rank_starts_is_no_rank(bare, script):
    """Neither a forked child nor a program that a rank runs speaks, even where it trains."""
    child = script(TRAIN)
    program = (
        LOOP
        + "import os, subprocess, sys\n"
        + f"subprocess.run([sys.executable, {child!r}], check=True)\n"
        + "pid = os.fork()\n"
        + "for batch in loader(): step(batch)\n"
        + "os.waitpid(pid, 0) if pid else os._exit(0)\n"
    )
    ran = bare(sys.executable, script(program))
    assert ran.status == 0, ran.err
    assert len({event.writer for event in ran.events}) == 1
    assert sum(event.steps for event in ran.of("progress")) == 6


def test_spawned_ranks_are_known_by_their_process_group(bare, script):
    """Where no variable says the rank, joining the group does; the parent is none."""
    program = f"""
import os, torch.multiprocessing as mp
def work(rank):
    import torch.distributed as dist
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=os.environ["PORT"])
    dist.init_process_group("gloo", rank=rank, world_size=2)
    exec({TRAIN!r}, {{}})
    dist.destroy_process_group()
if __name__ == "__main__":
    mp.spawn(work, nprocs=2)
"""
    ran = bare(sys.executable, script(program), PORT=free_address().partition(":")[2])
    assert ran.status == 0, ran.err
    assert ran.ranks == {0, 1}
    assert {event.world_size for event in ran.of("attempt_start")} == {2}
    assert [ran.of("progress", rank)[-1].step for rank in (0, 1)] == [6, 6]


def test_a_crash_is_told_as_the_recorder_tells_it(warm, script):
    """The exception, then the end; nothing succeeded."""
    ran = warm(script(LOOP + "for batch in loader(): step(batch)\nraise ValueError('no')"))
    assert ran.status == 1
    assert [event.exception for event in ran.of("failure")] == ["ValueError"]
    assert [event.status for event in ran.of("attempt_end")] == ["failed"]


def test_leaving_with_a_status_is_called_no_success(warm, script):
    """`sys.exit(3)` passes, and is how the attempt ended."""
    ran = warm(script(LOOP + "for batch in loader(): step(batch)\nimport sys; sys.exit(3)"))
    assert ran.status == 3
    assert [(event.status, event.exit_code) for event in ran.of("attempt_end")] == [("failed", 3)]
    assert ran.of("progress")[-1].step == 6


def test_evaluations_left_early_are_seen_where_two_loaders_side_by_side_are_none(warm, script):
    """By `break` between epochs and at the end; batches of two loaders for one step are training."""
    program = (
        LOOP
        + """
for epoch in range(2):
    for one, two in zip(loader(), loader()): step(one)
    for index, batch in enumerate(loader()):
        if index == 3: break
        with torch.no_grad(): model(batch[0])
"""
    )
    ran = warm(script(program))
    assert ran.of("progress")[-1].step == 12
    assert ran.phases() == ["data_warmup", "evaluation", "evaluation"]


def test_a_pass_that_brings_gradients_is_training(warm, script):
    """One step after a whole pass of accumulation is no evaluation."""
    program = (
        LOOP
        + """
for epoch in range(3):
    for batch in loader(): model(batch[0]).sum().backward()
    optimizer.step()
"""
    )
    ran = warm(script(program))
    assert ran.of("progress")[-1].step == 3
    assert "evaluation" not in ran.phases()


def test_a_file_without_state_is_no_checkpoint(warm, script, tmp_path):
    """Predictions saved and data loaded have a name of their own; memory is no file at all."""
    program = (
        LOOP
        + f"""
import io
for batch in loader(): step(batch)
torch.save(torch.ones(3), {str(tmp_path / "x.pt")!r})
torch.load({str(tmp_path / "x.pt")!r})
torch.save(model.state_dict(), io.BytesIO())
"""
    )
    ran = warm(script(program))
    assert ran.phases() == ["data_warmup", "torch_save", "torch_load"]
    assert not ran.of("checkpoint")


def test_a_compiled_optimizer_compiles_to_the_same_graphs(bare, script):
    """What torch traces of a step holds nothing of ours; its steps are known by what they change."""
    program = (
        LOOP
        + "compiled = torch.compile(optimizer.step, backend='eager')\n"
        + "for batch in loader(): model(batch[0]).sum().backward(); compiled()\n"
        + "from torch._dynamo.utils import counters\n"
        + "print(counters['stats'], counters['graph_break'], [p.tolist() for p in model.parameters()])\n"
    )
    alone = bare(sys.executable, script(program), ETT_AUTO="0")
    ran = bare(sys.executable, script(program))
    assert (ran.status, ran.out) == (0, alone.out)
    assert "get_ident" not in ran.err
    assert "compile" in ran.phases()
    assert ran.of("progress")[-1].step == 6
