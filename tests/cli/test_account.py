import gc
import io
import json
import math
from pathlib import Path

import pytest

from ett_cli.commands.account import as_json, render
from ett_cli.journals import collector_paused, read_journals
from ett_cli.main import main
from ett_cli.report import report
from ett_core.accounting import JobFold
from ett_core.events import AttemptEnd, AttemptStart, FirstBatch, Progress, encode

SCENARIOS = json.loads((Path(__file__).parents[1] / "core" / "data" / "scenarios.json").read_text())
START = 1_764_000_000.0


def run_of(job_id: str) -> list:
    """Ten seconds of start-up, thirty of training of which three wait for data, done."""
    said = {"job_id": job_id, "writer": f"w-{job_id}", "attempt": 0, "rank": 0, "node": "n0"}
    return [
        AttemptStart(seq=0, time=START, world_size=1, **said),
        FirstBatch(seq=1, time=START + 10, **said),
        Progress(seq=2, time=START + 40, step=30, steps=30, data_wait_s=3, **said),
        AttemptEnd(seq=3, time=START + 40, status="succeeded", **said),
    ]


def as_lines(events: list) -> bytes:
    return b"".join(encode(event) + b"\n" for event in events)


def account(capsys, *words: object) -> tuple[int, dict, str]:
    """Status, parsed JSON and standard error of `ett account ... --json`."""
    status = main(["account", "--json", *map(str, words)])
    out, err = capsys.readouterr()
    return status, json.loads(out), err


@pytest.mark.parametrize("scenario", SCENARIOS, ids=[s["name"] for s in SCENARIOS])
def test_a_worked_scenario_comes_out_of_a_json_array_as_worked(scenario, tmp_path, capsys):
    path = tmp_path / "events.json"
    path.write_text(json.dumps(scenario["events"], indent=1))
    now = scenario["now"] or max(event["time"] for event in scenario["events"])
    status, answer, err = account(capsys, path, "--now", now)
    (job,) = answer["jobs"]
    expect = scenario["expect"]
    assert (status, err) == (0, "")
    assert job["components"] == pytest.approx(expect["components"], abs=1e-6)
    assert job["wall_s"] == pytest.approx(expect["wall_s"], abs=1e-6)
    assert job["ett_percent"] == pytest.approx(expect["ett_percent"], abs=1e-6)
    assert job["failures"] == expect["failures"]
    assert job["tts_s"] == pytest.approx(expect["tts_s"], abs=1e-6)
    assert job["ttr_s"] == pytest.approx(expect["ttr_s"], abs=1e-6)
    assert math.isclose(sum(job["groups"].values()), job["wall_s"], abs_tol=1e-6)
    assert math.isclose(sum(job["areas"].values()), job["wall_s"], abs_tol=1e-6)


def test_journals_of_a_directory_are_taken_together_and_jobs_kept_apart(tmp_path, capsys):
    first, second = run_of("a"), run_of("b/x")
    (tmp_path / "deep").mkdir()
    (tmp_path / "one.jsonl").write_bytes(as_lines(first[:2] + second))
    (tmp_path / "deep" / "two.jsonl").write_bytes(as_lines(first[2:]))
    (tmp_path / "notes.txt").write_text("not a journal")
    status, answer, err = account(capsys, tmp_path)
    assert (status, err) == (0, "")
    assert [job["job_id"] for job in answer["jobs"]] == ["a", "b/x"]
    for job in answer["jobs"]:
        assert job["components"] == {"training": 27.0, "start.process_start": 10.0, "data_wait": 3.0}
        assert job["ett_percent"] == 67.5


def test_bad_lines_are_told_by_file_line_and_reason_and_change_no_figure(tmp_path, capsys):
    path = tmp_path / "w.jsonl"
    lines = as_lines(run_of("a")).splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], b"oops\n", *lines[1:], b'{"kind":"pro']))
    status, answer, err = account(capsys, path)
    assert status == 0
    assert answer["jobs"][0]["ett_percent"] == 67.5
    assert f"{path}:2: JSON is malformed" in err
    assert f"{path}:6: torn" in err
    assert "2 bad lines" in err


def test_a_file_that_cannot_be_read_is_told_and_the_others_are_used(tmp_path, capsys):
    (tmp_path / "a.jsonl").write_bytes(as_lines(run_of("a")))
    status, answer, err = account(capsys, tmp_path / "missing.jsonl", tmp_path / "a.jsonl")
    assert status == 0
    assert len(answer["jobs"]) == 1
    assert f"{tmp_path}/missing.jsonl: No such file or directory" in err


def test_without_any_event_the_status_is_one(tmp_path, capsys):
    status, answer, err = account(capsys, tmp_path)
    assert (status, answer) == (1, {"jobs": []})
    assert "no .jsonl or .json file in this directory" in err


@pytest.mark.parametrize(
    "words", [["account"], ["account", "x", "--now", "nan"], ["account", "x", "--now", "soon"]]
)
def test_a_wrong_command_line_is_status_two(words, capsys):
    with pytest.raises(SystemExit) as stop:
        main(words)
    assert stop.value.code == 2
    assert "usage: ett account" in capsys.readouterr().err


def test_standard_input_is_read_for_a_dash():
    parts = list(read_journals(["-"], stdin=lambda: io.BytesIO(as_lines(run_of("a")))))
    assert [event for part in parts for event in part.events] == run_of("a")


def test_the_garbage_collector_rests_while_journals_are_read_and_goes_on_after():
    with collector_paused():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_the_moment_of_a_running_job_can_be_chosen(tmp_path, capsys):
    path = tmp_path / "w.jsonl"
    path.write_bytes(as_lines(run_of("a")[:3]))
    _, answer, _ = account(capsys, path, "--now", START + 50)
    (job,) = answer["jobs"]
    assert (job["state"], job["wall_s"], job["finished"]) == ("training", 50.0, False)


def test_the_text_is_the_report_with_what_it_must_be_read_with():
    fold = JobFold("a")
    fold.add(run_of("a")[:3])
    said = {"job_id": "a", "writer": "w2", "attempt": 1, "rank": 0, "node": "n0"}
    fold.add([AttemptStart(seq=0, time=START + 60, **said), FirstBatch(seq=1, time=START + 70, **said)])
    job = as_json(fold.account(START + 80))
    assert render(job).startswith(report(job))
    assert render(job).splitlines()[-1].startswith("Where it resumed is unknown")
    assert job["failure_list"][0]["cause"]


def test_the_table_is_printed_without_json(tmp_path, capsys):
    path = tmp_path / "w.jsonl"
    path.write_bytes(as_lines(run_of("a")))
    assert main(["account", str(path)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Job a: succeeded, 40.0 s of wall time")
    assert "ETT 67.5 %" in out
