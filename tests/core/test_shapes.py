"""What to leave open, from compilations as torch tells of them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ett_core.events import AttemptStart, Compile
from ett_core.shapes import (
    Compilation,
    Input,
    Symbol,
    advise,
    compilations_of,
    for_next_start,
    torch_version_of,
)
from ett_core.shapes.reasons import parse, whole_name
from ett_core.shapes.sources import knows_dimensions, value_of


def compiled(nth, reason=None, *, size=None, traits="float32", **fields):
    inputs = None if size is None else (Input("L['x']", size, traits),)
    told = {"process": "a", "frame": 0, **fields}
    return Compilation(nth=nth, reason=reason, inputs=inputs, **told)


def mismatch(nth, before, after, *, name="x", dim=0):
    return f"0/{nth}: tensor '{name}' size mismatch at index {dim}. expected {before}, actual {after}"


def test_a_size_that_varies_is_left_open():
    advice = advise([compiled(0), compiled(1, mismatch(0, 64, 65))])
    assert (advice.value, advice.graphs, advice.expected) == ("L['x']:0", 2, 1)


def test_without_the_sizes_of_inputs_what_is_expected_is_an_estimate():
    reasons_only = advise([compiled(0), compiled(1, mismatch(0, 64, 65))])
    with_inputs = advise([compiled(0, size=(64,)), compiled(1, mismatch(0, 64, 65), size=(65,))])
    assert (reasons_only.counted, with_inputs.counted) == (False, True)


def test_sizes_of_zero_and_one_keep_their_graphs():
    sizes = (8, 0, 9, 1)
    reasons = [None, mismatch(0, 8, 0), mismatch(1, 0, 9), "0/2: 2 <= x.size()[0]  # y = x * 2"]
    advice = advise(compiled(n, reason, size=(sizes[n],)) for n, reason in enumerate(reasons))
    assert (advice.value, advice.graphs, advice.expected) == ("L['x']:0", 4, 3)
    assert [(left.kind, left.count) for left in advice.frames[0].left] == [("small", 3)]


def test_one_other_size_beside_a_one_is_nothing_to_leave_open():
    advice = advise([compiled(0, size=(1,)), compiled(1, mismatch(0, 1, 64), size=(64,))])
    assert (advice.value, advice.expected, len(advice.frames)) == ("", 2, 1)


def test_dimensions_that_torch_did_not_name_are_found_from_the_inputs():
    first = compiled(0, size=(64, 4))
    second = compiled(1, mismatch(0, 64, 65), size=(65, 5))
    assert advise([first, second]).value == "L['x']:0,L['x']:1"


def test_a_symbol_without_sizes_was_seen_to_vary_by_torch_itself():
    second = compiled(1, mismatch(0, 64, 65), symbols=frozenset({Symbol("L['x']", 0), Symbol("L['y']", 1)}))
    assert advise([compiled(0), second]).value == "L['x']:0,L['y']:1"


def test_what_was_left_open_from_the_beginning_is_not_advised_again():
    opened = frozenset({Symbol("L['x']", 0)})
    small = "0/0: 2 <= x.size()[0]"
    advice = advise([compiled(0, size=(64,), symbols=opened), compiled(1, small, size=(1,))])
    assert (advice.value, advice.expected) == ("", 2)


def test_another_dtype_is_told_and_not_cured():
    reason = "0/0: tensor 'x' dtype mismatch. expected Float, actual Double"
    advice = advise([compiled(0, size=(64,)), compiled(1, reason, size=(64,), traits="float64")])
    assert (advice.value, advice.expected) == ("", 2)
    assert advice.frames[0].left[0].kind == "tensor"


def test_a_size_that_came_back_with_another_dtype_between_costs_no_graph():
    dtype = "0/{}: tensor 'x' dtype mismatch. expected {}, actual {}"
    advice = advise(
        [
            compiled(0, size=(64,)),
            compiled(1, dtype.format(0, "Float", "Double"), size=(64,), traits="float64"),
            compiled(2, dtype.format(1, "Double", "Float"), size=(65,)),
        ]
    )
    assert (advice.value, advice.graphs, advice.expected) == ("L['x']:0", 3, 2)


def test_a_branch_on_a_size_keeps_its_graph():
    reasons = [None, mismatch(0, 64, 65), "0/1: 51 <= x.size()[0]  # if x.shape[0] > 50"]
    advice = advise(compiled(n, reason, size=((64, 65, 8)[n],)) for n, reason in enumerate(reasons))
    assert (advice.value, advice.expected) == ("L['x']:0", 2)
    assert [left.kind for left in advice.frames[0].left] == ["branch"]


@pytest.mark.parametrize(("text", "value"), [("n == 64", "L['n']"), ("o.n == 5", "L['o'].n")])
def test_a_whole_number_that_torch_leaves_open_can_be_from_the_beginning(text, value):
    advice = advise([compiled(0), compiled(1, f"0/0: {text}")])
    assert (advice.value, advice.expected) == (value, 1)


def test_an_attribute_that_torch_holds_constant_is_not_advised():
    advice = advise([compiled(0), compiled(1, "0/0: self.k == 5"), compiled(2, "0/1: self.k == 6")])
    assert (advice.value, advice.expected) == ("", 3)
    assert {left.kind for left in advice.frames[0].left} == {"number"}


def test_graphs_of_processes_add_up_and_repeats_count_once():
    rows = [
        compiled(nth, reason, process=process)
        for process in "ab"
        for nth, reason in enumerate([None, mismatch(0, 64, 65)])
    ]
    advice = advise(rows + rows)
    assert (advice.processes, advice.graphs, advice.expected, len(advice.frames)) == (2, 4, 2, 1)
    assert advice.frames[0].opened == {Symbol("L['x']", 0): (64, 65)}


def test_another_frame_with_an_input_of_that_name_is_told():
    advice = advise(
        [
            compiled(0, size=(64,), code="forward (a.py:1)"),
            compiled(1, mismatch(0, 64, 65), size=(65,), code="forward (a.py:1)"),
            compiled(0, frame=1, size=(3,), code="loss (a.py:9)"),
        ]
    )
    assert advice.shared == {"L['x']": ("loss (a.py:9)",)}


def test_a_frame_at_the_limit_of_torch_is_told():
    advice = advise([compiled(0), *(compiled(n, mismatch(n - 1, n + 60, n + 61)) for n in range(1, 8))])
    assert (advice.frames[0].at_limit, advice.expected) == (True, 1)


def test_frames_compiled_once_need_no_advice():
    advice = advise([compiled(0), compiled(0, frame=1)])
    assert (advice.value, advice.graphs, advice.expected, advice.frames) == ("", 2, 2, ())


def test_no_compilation_is_no_advice():
    assert (advise([]).value, advise([]).graphs, advise([]).processes) == ("", 0, 0)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("tensor 'x' size mismatch at index 0. expected 64, actual 65", "size"),
        ("tensor 'x' stride mismatch at index 1. expected 4, actual 1", "layout"),
        ("tensor 'x' rank mismatch. expected 2, actual 1", "tensor"),
        ("tensor 'x' requires_grad mismatch. expected requires_grad=0", "tensor"),
        ("tensor 'x' dispatch key set mismatch. expected A, actual B", "tensor"),
        ("2 <= x.size()[0]", "small"),
        ("x.size()[0] <= 50", "branch"),
        ("Eq(Mod(x.size()[0], 8), 0)", "branch"),
        ("len(ys) == 3", "length"),
        ("n == -4", "number"),
        ("s == 1e-05", "fraction"),
        ("___check_obj_id(self, 140222), type=<class 'torch.nn.Linear'>", "other"),
        ("", "other"),
    ],
)
def test_reasons_are_told_apart(text, kind):
    assert parse(f"0/0: {text}    # y = f(x)  # train.py:3 in forward").kind == kind


@given(st.text())
def test_any_reason_can_be_read(text):
    assert parse(text).kind
    assert whole_name(text) is not None


def as_torch_reads(value):
    """The entries of a value as torch 2.13 takes them apart: pattern and dimension."""
    for entry in filter(None, value.replace(" ", "").split(",")):
        found = re.match(r"^(.+):(\d+)$", entry)
        yield (found[1], int(found[2])) if found else (entry, None)


def is_open(value, name, dim):
    return any(
        (pattern == name or re.match(pattern, name)) and (of is None or of == dim)
        for pattern, of in as_torch_reads(value)
    )


KEYS = st.text(alphabet=" ,.-*()abz01:+\\$|?{}^", min_size=1, max_size=12)


@given(KEYS, KEYS, st.integers(0, 3))
def test_torch_finds_in_the_value_the_name_that_was_meant_and_reads_all_others(key, other, dim):
    name, another = f"L['batch']['{key}']", f"L['batch']['{other}']"
    value = value_of([Symbol(name, dim)])
    assert is_open(value, name, dim)
    assert not is_open(value, name, dim + 1)
    if len(other) != len(key):
        assert not is_open(value, another, dim)


def test_an_older_torch_gets_names_without_dimensions():
    rows = [compiled(0), compiled(1, mismatch(0, 64, 65))]
    assert advise(rows, torch_version="2.9.0").value == "L['x']"
    assert not knows_dimensions("2.12.1")


def test_events_tell_of_compilations_and_of_the_oldest_torch():
    head = {"job_id": "j", "attempt": 0, "rank": 0, "node": "n", "time": 1.0}
    events = [
        AttemptStart(**head, writer="w", seq=0, versions={"torch": "2.13.0"}),
        AttemptStart(**head, writer="x", seq=0, versions={"torch": "2.9.1+cpu"}),
        Compile(**head, writer="w", seq=1, graph="3/0"),
        Compile(**head, writer="w", seq=2, graph="3/1", recompile_reason=mismatch(0, 64, 65)),
        Compile(**head, writer="w", seq=3, graph="3/1"),
        Compile(**head, writer="w", seq=4, graph="!0/4/0"),
        Compile(**head, writer="w", seq=5, graph="warm-up"),
    ]
    found = list(compilations_of(events))
    assert [(item.process, item.frame, item.nth) for item in found] == [
        ("w", 3, 0),
        ("w", 3, 1),
        ("w", 3, 1),
        ("w", 4, 0),
    ]
    assert advise(found).value == "L['x']:0"
    assert torch_version_of(events) == "2.9.1+cpu"


def told(seq, graph="0/0", **fields):
    return Compile(job_id="j", writer="w", seq=seq, attempt=0, rank=0, time=1.0 + seq, graph=graph, **fields)


def test_events_with_sizes_are_counted_and_those_without_are_estimated():
    """The backward comes under the name of its forward, and takes nothing of it away."""
    sized = [
        told(nth, f"0/{nth}", code="f (a.py:1)", inputs=(Input("L['x']", (size,)),), recompile_reason=reason)
        for nth, (size, reason) in enumerate([(64, None), (65, mismatch(0, 64, 65))])
    ]
    for events in (sized, [*sized, told(9, "0/0")]):
        advice = advise(compilations_of(events))
        assert (advice.graphs, advice.expected, advice.counted) == (2, 1, True)
        assert advice.frames[0].code == "f (a.py:1)"
    bare = [replace(event, code="", inputs=None) for event in sized]
    assert not advise(compilations_of(bare)).counted


def test_what_has_no_code_where_others_have_is_no_graph():
    """A frame that torch skips holds nothing to compile."""
    with_code = told(0, "0/0", code="f (a.py:1)", inputs=())
    skipped = told(1, "1/0")
    assert advise(compilations_of([with_code, skipped])).graphs == 1
    assert advise(compilations_of([skipped])).graphs == 1


def test_symbols_of_an_event_are_what_the_graph_leaves_open():
    (found,) = compilations_of([told(0, code="f (a.py:1)", symbols=("L['x'].size()[1]", "L['n']"))])
    assert found.symbols == {Symbol("L['x']", 1), Symbol("L['n']")}


def test_the_next_start_keeps_open_what_was_open_from_the_beginning():
    """Else a start in which nothing varied any more would undo what it was told."""
    first = [compiled(0, size=(64,)), compiled(1, mismatch(0, 64, 65), size=(65,))]
    assert for_next_start(first) == advise(first).value == "L['x']:0"
    second = [compiled(0, size=(64,), symbols=frozenset({Symbol("L['x']", 0)}))]
    assert advise(second).value == ""
    assert for_next_start(second) == "L['x']:0"
    assert for_next_start(second, torch_version="2.9.1") == "L['x']"
    assert for_next_start([]) == ""


def test_where_only_later_graphs_were_told_one_remains():
    """As where a recorder began to follow compilations after the first."""
    advice = advise([compiled(1, mismatch(0, 64, 65)), compiled(2, mismatch(1, 65, 66))])
    assert (advice.value, advice.graphs, advice.expected) == ("L['x']:0", 2, 1)
