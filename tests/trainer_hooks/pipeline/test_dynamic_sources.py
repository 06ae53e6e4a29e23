"""What varied in earlier starts of a job is left open in the next one, unless the user says otherwise."""

import os

import pytest

from ett_core.events import AttemptStart, Compile, CompileInput, encode
from ett_trainer_hooks.pipeline.dynamic_sources import leave_open

VARIABLE = "TORCH_COMPILE_DYNAMIC_SOURCES"
REASON = "0/0: tensor 'x' size mismatch at index 0. expected 64, actual 65"


class Told:
    """Takes decisions."""

    def __init__(self):
        self.decisions = []

    def decision(self, what, why, values):
        assert what == "dynamic sources"
        self.decisions.append((why, dict(values)))


def journal(directory, writer, *sizes, job_id="j", symbols=()):
    """One start that compiled for these sizes."""
    head = {"job_id": job_id, "writer": writer, "attempt": 0, "rank": 0, "time": 1.0}
    events = [AttemptStart(**head, seq=0, versions={"torch": "2.13.0"})]
    for nth, size in enumerate(sizes):
        inputs = (CompileInput("L['x']", (size,)),)
        reason = REASON if nth else None
        told = {"code": "f (a.py:1)", "inputs": inputs, "recompile_reason": reason, "symbols": symbols}
        events.append(Compile(**head, seq=nth + 1, graph=f"0/{nth}", **told))
    directory.mkdir(exist_ok=True)
    path = directory / f"{writer}-1.jsonl"
    path.write_bytes(b"".join(encode(event) + b"\n" for event in events) + b'{"kind":"compile", torn')
    return path


@pytest.fixture
def place(tmp_path):
    return tmp_path / "journal"


def asked(place, *, modules=None, **environ):
    told, variables = Told(), {"ETT_JOB_ID": "j", "ETT_JOURNAL_DIR": str(place), **environ}
    found = leave_open(told, variables, modules or {})
    ((why, values),) = told.decisions
    return found, variables.get(VARIABLE), why, values


def test_what_varied_is_left_open_and_told(place):
    journal(place, "first", 64, 65)
    found, value, why, values = asked(place)
    assert (found, value) == (True, "L['x']:0")
    assert why.endswith("it varied in earlier starts: L['x']:0")
    assert values == {"graphs": 2, "expected_graphs": 1}


def test_a_start_in_which_nothing_varied_any_more_undoes_nothing(place):
    journal(place, "second", 64, symbols=("L['x'].size()[0]",))
    assert asked(place)[:2] == (True, "L['x']:0")


@pytest.mark.parametrize(
    ("sizes", "reason"), [((), "nothing was compiled"), ((64,), "nothing varied")], ids=["first", "steady"]
)
def test_where_nothing_is_to_be_left_open_it_says_why(place, sizes, reason):
    journal(place, "first", *sizes)
    journal(place, "other", 64, 65, job_id="another")
    found, value, why, _ = asked(place)
    assert (found, value) == (False, None)
    assert reason in why


def test_without_a_journal_directory_nothing_was_compiled(place):
    assert "nothing was compiled" in asked(place)[2]


def test_a_value_that_the_user_gave_stays(place):
    journal(place, "first", 64, 65)
    found, value, why, _ = asked(place, **{VARIABLE: "L['mine']"})
    assert (found, value) == (False, "L['mine']")
    assert "stays" in why


def test_after_the_import_of_torch_it_is_too_late_and_it_says_so(place):
    journal(place, "first", 64, 65)
    found, value, why, _ = asked(place, modules={"torch.compiler.config": object()})
    assert (found, value) == (False, None)
    assert "torch was imported before" in why


def test_without_a_job_it_says_so(place):
    assert "name no job" in asked(place, ETT_JOB_ID="")[2]


def test_journals_beyond_the_bound_are_not_read_the_latest_come_first(place, monkeypatch):
    old, new = journal(place, "old", 64, 65), journal(place, "new", 64)
    os.utime(old, (1, 1))
    monkeypatch.setattr("ett_trainer_hooks.pipeline.dynamic_sources.READ_BYTES", new.stat().st_size)
    assert "nothing varied" in asked(place)[2]
