"""What is read of a frame that was compiled, and what is left out."""

from types import SimpleNamespace

import pytest

from ett_core.events import CompileInput
from ett_trainer_hooks.recording.frames import INPUTS_KEPT, NAME_KEPT, UNTOLD, frame_in

CODE = compile("x = 1", "/job/model/train.py", "exec")


class SymInt:
    """A whole number that a graph leaves open, called as torch calls its own."""

    def __init__(self, hint):
        self.node = SimpleNamespace(hint=hint)


def tracked(name, *size, **more):
    fake = SimpleNamespace(
        size=lambda: size, dtype="torch.float32", device="cpu", requires_grad=False, _is_param=False
    )
    fake.__dict__.update(more)
    return SimpleNamespace(source=SimpleNamespace(name=name), fake=fake)


def graph(*fakes, empty=False):
    return SimpleNamespace(tracked_fakes=list(fakes), is_empty_graph=lambda: empty)


def test_names_sizes_and_what_is_open_are_told_and_parameters_are_not():
    number = SimpleNamespace(source=SimpleNamespace(name=lambda: "L['n']"), fake=SymInt(3))
    frame = frame_in(
        (
            CODE,
            graph(
                tracked("L['x']", SymInt(65), 4, requires_grad=True),
                tracked("L['w']", 4, _is_param=True),
                tracked("L['u']", SymInt(None)),
                number,
            ),
            None,
        )
    )
    assert frame.code == "<module> (train.py:1)"
    assert frame.inputs == (
        CompileInput("L['x']", (65, 4), "torch.float32 cpu with gradient"),
        CompileInput("L['u']", (-1,), "torch.float32 cpu"),
    )
    assert frame.symbols == ("L['x'].size()[0]", "L['u'].size()[0]", "L['n']")


@pytest.mark.parametrize("told", [(), (CODE,), (graph(),), (CODE, graph(empty=True))])
def test_without_a_graph_there_is_nothing_to_tell(told):
    assert frame_in(told) == UNTOLD


@pytest.mark.parametrize(
    "inputs",
    [
        [tracked(f"L['x'][{n}]", SymInt(8)) for n in range(INPUTS_KEPT + 1)],
        [tracked("L['x']", 8), tracked("x" * (NAME_KEPT + 1), 8)],
    ],
)
def test_inputs_beyond_the_bounds_are_not_told_at_all(inputs):
    frame = frame_in((CODE, graph(*inputs)))
    assert frame.code
    assert frame.inputs is None
    assert len(frame.symbols) <= INPUTS_KEPT
