"""A made-up batch has the compiler begin early, and changes nothing else."""

import gc
import random
import threading

import pytest

torch = pytest.importorskip("torch")

from ett_trainer_hooks.pipeline.batch_spec import AnySize, Dense  # noqa: E402
from ett_trainer_hooks.pipeline.fast_batch import FastBatch  # noqa: E402

pytestmark = pytest.mark.service("torch")

OPTIONS = {"backend": "aot_eager"}
SPEC = {"numbers": Dense((8, 3)), "labels": Dense((8,))}
USED = "used: the first step compiled nothing"


@pytest.fixture(autouse=True)
def fresh_compiler():
    torch.compiler.reset()
    torch._dynamo.utils.counters.clear()
    yield
    torch.compiler.reset()


class Net(torch.nn.Module):
    """A model with state that a forward pass changes, and one that draws random numbers."""

    def __init__(self):
        super().__init__()
        self.first, self.norm = torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4)
        self.last = torch.nn.Linear(4, 1)

    def forward(self, numbers):
        hidden = torch.nn.functional.dropout(self.norm(self.first(numbers)), 0.5, self.training)
        return self.last(hidden)


@pytest.fixture
def model():
    return compiled_model()


def compiled_model():
    torch.manual_seed(5)
    built = Net()
    built.compile(**OPTIONS)
    return built


def loss_of(parts, batch):
    return torch.nn.functional.mse_loss(parts["all"](batch["numbers"]).squeeze(-1), batch["labels"])


def batch_of(size=8, **changed):
    made = torch.Generator().manual_seed(1)
    return {
        "numbers": torch.randn(size, 3, generator=made),
        "labels": torch.randn(size, generator=made),
    } | changed


def state_of(model):
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


def train(bench, model, fast, batches, *, rehearsed=True):
    """Losses of a loop over the batches, after a rehearsal in a thread."""
    if rehearsed:
        thread = threading.Thread(target=fast.rehearse, args=({"all": model},))
        thread.start()
        thread.join()
        gc.collect()  # the copies are gone
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
    losses = []
    for batch in bench.recorder.batches(fast.checked(batches)):
        loss = loss_of({"all": model}, batch)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(float(loss.detach()))
    return losses


def graphs():
    return torch._dynamo.utils.counters["stats"]["unique_graphs"]


def test_a_rehearsal_changes_nothing_but_what_is_compiled(bench, model):
    """Weights, running statistics, gradients, and the states of the random generators stay."""
    before = state_of(model), torch.random.get_rng_state(), random.getstate()
    assert FastBatch(SPEC, loss_of, bench().recorder, OPTIONS).rehearse({"all": model})
    assert graphs() == 1
    after = state_of(model), torch.random.get_rng_state(), random.getstate()
    assert all(torch.equal(before[0][name], after[0][name]) for name in before[0])
    assert torch.equal(before[1], after[1])
    assert before[2] == after[2]
    assert all(parameter.grad is None for parameter in model.parameters())


def test_the_real_steps_find_what_was_compiled_and_learn_the_same(bench, model):
    """No graph more than the rehearsal's; the losses of a run without, dropout included."""
    told = bench()
    with_it = train(told, model, FastBatch(SPEC, loss_of, told.recorder, OPTIONS), [batch_of()] * 3)
    assert graphs() == 1
    (decision,) = told.of("decision")
    assert (decision.what, decision.why) == ("fast batch", USED)
    assert decision.values == {"graphs": 1, "graphs_again": 0}

    torch.compiler.reset()
    plain = compiled_model()
    fast = FastBatch(SPEC, loss_of, told.recorder, OPTIONS)
    assert train(bench(), plain, fast, [batch_of()] * 3, rehearsed=False) == with_it


def test_the_compilation_is_a_phase_of_the_threads_own_track(bench, model):
    """It takes nothing from the main track, where the first step would have waited for it."""
    told = bench()
    told.recorder.watch_compile()
    train(told, model, FastBatch(SPEC, loss_of, told.recorder, OPTIONS), [batch_of()] * 2)
    assert {event.track.split("-")[0] for event in told.of("phase_begin")} == {"thread Thread"}


@pytest.mark.parametrize(
    ("real", "words"),
    [
        (batch_of(6), "numbers has the shape [6, 3], declared [8, 3]"),
        (batch_of(labels=torch.zeros(8, dtype=torch.float64)), "labels is float64, declared float32"),
        (
            batch_of(numbers=torch.zeros(8, 3, requires_grad=True)),
            "numbers has requires_grad=True, declared False",
        ),
    ],
)
def test_a_batch_that_is_not_as_declared_is_refused_with_the_reason(bench, model, real, words):
    """What was compiled is forgotten, so the first step compiles as it would have, sizes fixed."""
    told = bench()
    fast = FastBatch(SPEC, loss_of, told.recorder, OPTIONS)
    real["labels"] = real["labels"].to(real["labels"].dtype)
    losses = train(
        told, model, fast, [real | {"labels": real["labels"].float()} if "shape" in words else real]
    )
    assert len(losses) == 1
    (decision,) = told.of("decision")
    assert decision.why == f"refused: {words}; the first step compiles again"
    assert graphs() == 2


def test_a_dimension_of_any_size_may_differ(bench, model):
    """The graph holds for both sizes."""
    told = bench()
    spec = {"numbers": Dense((AnySize(8), 3)), "labels": Dense((AnySize(8),))}
    train(told, model, FastBatch(spec, loss_of, told.recorder, OPTIONS), [batch_of(12), batch_of(10)])
    assert [event.why for event in told.of("decision")] == [USED]
    assert graphs() == 1


def test_what_cannot_be_rehearsed_is_told_and_costs_nothing(bench, model):
    """A forward that fails ends in a decision, never in the trainer; then the first step compiles."""
    told = bench()

    def fails(*_):
        raise RuntimeError("no such part")

    losses = train(told, model, FastBatch(SPEC, fails, told.recorder, OPTIONS), [batch_of()] * 2)
    assert len(losses) == 2
    (decision,) = told.of("decision")
    assert decision.why == "given up: RuntimeError: no such part; the first step compiles"


def test_a_loop_without_batches_ends(bench, model):
    """As it would have."""
    told = bench()
    assert train(told, model, FastBatch(SPEC, loss_of, told.recorder, OPTIONS), []) == []
