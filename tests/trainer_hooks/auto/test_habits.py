"""What training programs do besides a plain loop: scaling, accumulating, resuming, saving in odd ways."""

from __future__ import annotations

import os
from functools import partial

import pytest

from ett_trainer_hooks.auto import ledger

pytestmark = pytest.mark.service("torch")

BACKENDS = ["aot_eager", *(["inductor"] if os.environ.get("ETT_FULL") == "1" else [])]

LOOP = """
import torch
from torch.utils.data import DataLoader, IterableDataset, TensorDataset
torch.manual_seed(0)
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = TensorDataset(torch.ones(12, 2))
loader = DataLoader(data, batch_size=2)
def step(batch):
    optimizer.zero_grad(); model(batch[0]).sum().backward(); optimizer.step()
"""


@pytest.fixture
def observed(warm, script):
    """Runs the text of a program after that of `LOOP`, observed."""

    def run(text, *words, made_late=False, **environ):
        before = "".join(
            line for line in LOOP.splitlines(keepends=True) if not line.startswith("optimizer =")
        )
        ran = warm(script((before if made_late else LOOP) + text), *words, **environ)
        assert ran.status == 0, ran.err
        assert "ettwatch" not in ran.err
        return ran

    return run


def test_a_step_that_the_scaler_skips_is_none(observed):
    """Its time is that of the next one."""
    ran = observed("""
scaler = torch.amp.GradScaler("cpu", init_scale=2.0)
for index, batch in enumerate(loader):
    optimizer.zero_grad()
    loss = model(batch[0]).sum() * (float("inf") if index == 2 else 1.0)
    scaler.scale(loss).backward(); scaler.step(optimizer); scaler.update()
""")
    assert ran.of("progress")[-1].step == 5
    assert "evaluation" not in ran.phases()


def test_workers_that_stay_and_data_without_a_length_are_waited_for_as_ever(observed):
    """Persistent workers over two epochs, one left early; an iterable dataset; no worker is a rank."""
    ran = observed("""
class Stream(IterableDataset):
    def __iter__(self): return iter(torch.ones(6, 2))
stay = DataLoader(data, batch_size=2, num_workers=1, persistent_workers=True)
for batch in stay: step(batch)
for index, batch in enumerate(stay):
    step(batch)
    if index == 1: break
for batch in DataLoader(Stream(), batch_size=2): step([batch])
""")
    assert ran.of("progress")[-1].step == 6 + 2 + 3
    assert ran.ranks == {0}
    assert len({event.writer for event in ran.events}) == 1
    assert ran.phases() == ["data_warmup"]
    assert sum(event.data_wait_s for event in ran.of("progress")) > 0


def test_a_search_for_the_learning_rate_is_training_and_what_comes_before_it_is_not(observed):
    """A look at the validation data first is no evaluation yet; the search's steps are steps."""
    ran = observed("""
import copy
with torch.no_grad():
    for batch in DataLoader(data, batch_size=4): model(batch[0])
kept = copy.deepcopy(model.state_dict())
for rate in (0.1, 0.2):
    for group in optimizer.param_groups: group["lr"] = rate
    for batch in loader: step(batch)
model.load_state_dict(kept)
for batch in loader: step(batch)
with torch.no_grad():
    for batch in DataLoader(data, batch_size=4): model(batch[0])
""")
    assert ran.of("progress")[-1].step == 18
    assert ran.phases().count("evaluation") == 1


SAVES = """
import io, os, sys
from pathlib import Path
def save():
    path = sys.argv[1]
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    HOW
if os.path.exists(sys.argv[1]):
    saved = torch.load(sys.argv[1]); model.load_state_dict(saved["model"])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in loader: step(batch)
save()
for batch in loader: step(batch)
"""


@pytest.mark.parametrize(
    "how",
    [
        "torch.save(state, path)",
        "torch.save(state, Path(path + '.new')); os.replace(path + '.new', path)",
        "with open(path, 'wb') as out: torch.save(state, out)",
    ],
)
def test_an_optimizer_without_a_count_resumes_at_the_step_that_its_file_was_saved_at(observed, tmp_path, how):
    """Known by the file, wherever it was moved to; it is durable once training went on."""
    run = partial(observed, SAVES.replace("HOW", how), str(tmp_path / "model.pt"), made_late=True)
    first = run()
    assert [event.step for event in first.of("checkpoint_durable")] == [6]
    assert first.of("first_batch")[0].step is None
    second = run(ETT_ATTEMPT="1")
    again = [event for event in second.events if event.attempt == 1]
    assert [event.step for event in again if event.kind == "first_batch"] == [6]
    assert [event.step for event in again if event.kind == "progress"][-1] == 18


def test_a_file_that_changed_since_or_was_copied_tells_no_step(tmp_path):
    """Nothing is guessed from a name."""
    path = tmp_path / "model.pt"
    path.write_bytes(b"one")
    ledger.note(tmp_path, path, 3)
    assert ledger.step_of(tmp_path, str(path)) == 3
    (tmp_path / "copy.pt").write_bytes(b"one")
    assert ledger.step_of(tmp_path, tmp_path / "copy.pt") is None
    path.write_bytes(b"another")
    assert ledger.step_of(tmp_path, path) is None
    ledger.note(tmp_path, tmp_path / "nowhere", 4)
    assert ledger.step_of(tmp_path, None) is None
    assert ledger.step_of(tmp_path / "empty", path) is None


def test_a_checkpoint_put_together_in_memory_blocks_and_is_claimed_by_nobody(observed):
    """Where it goes from there is not known; weights alone in memory may be anything."""
    ran = observed("""
import io
for batch in loader: step(batch)
torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, io.BytesIO())
torch.save(model.state_dict(), io.BytesIO())
for batch in loader: step(batch)
""")
    assert ran.phases() == ["data_warmup", "checkpoint"]
    assert [event.step for event in ran.of("checkpoint")] == [6]
    assert ran.of("checkpoint_durable") == []


def test_several_files_of_one_step_are_durable_together(observed, tmp_path):
    """Weights in safetensors, optimizer by torch.save: one claim, dated to the last of them."""
    ran = observed(f"""
import os
from safetensors.torch import save_file
for batch in loader: step(batch)
save_file(model.state_dict(), {str(tmp_path / "model.safetensors")!r})
torch.save(optimizer.state_dict(), {str(tmp_path / "optimizer.pt")!r})
for batch in loader: step(batch)
torch.save(optimizer.state_dict(), {str(tmp_path / "optimizer.pt")!r})
""")
    assert [event.step for event in ran.of("checkpoint")] == [6, 6, 12]
    (first, last) = ran.of("checkpoint_durable")
    assert (first.step, last.step) == (6, 12)
    ends = [event.time for event in ran.of("phase_end") if event.phase == "checkpoint"]
    assert first.time == pytest.approx(ends[1], abs=0.05)
    assert first.bytes == (tmp_path / "optimizer.pt").stat().st_size


def test_a_save_right_before_a_crash_is_claimed_by_nobody(warm, script, tmp_path):
    """Whether other files belong to it is not known; a success that ends with a save claims it."""
    path = str(tmp_path / "model.pt")
    save = f"for batch in loader: step(batch)\ntorch.save(optimizer.state_dict(), {path!r})\n"
    crashed = warm(script(LOOP + save + "raise ValueError('no')"))
    assert (crashed.status, crashed.of("checkpoint_durable")) == (1, [])
    ended = warm(script(LOOP + save), ETT_ATTEMPT="1")
    assert [event.step for event in ended.of("checkpoint_durable")] == [6]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_compiled_update_is_known_by_what_it_changes(observed, backend):
    """Compiled code calls no hook; parameters that changed since the last batch tell of it."""
    ran = observed(f"""
@torch.compile(backend={backend!r})
def update(): optimizer.step()
for batch in loader:
    optimizer.zero_grad(); model(batch[0]).sum().backward(); update()
with torch.no_grad():
    for batch in loader: model(batch[0])
""")
    assert ran.of("progress")[-1].step == 6
    assert ran.phases().count("evaluation") == 1


def test_compiled_artifacts_that_come_in_are_a_phase(observed):
    """Loading what was compiled elsewhere is `cache_load`."""
    ran = observed("""
torch.compile(lambda tensor: tensor + 1, backend="eager")(torch.ones(2))
try:
    torch.compiler.load_cache_artifacts(b"no artifacts")
except Exception: pass
for batch in loader: step(batch)
""")
    assert "cache_load" in ran.phases()
