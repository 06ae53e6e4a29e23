import gc
import gzip
import io
import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from backlogs import IN_TIME, RANKS

from ett_cli.commands.account import render
from ett_cli.journals import collector_paused, read_journals
from ett_cli.main import main
from ett_cli.recorded import Recorded
from ett_cli.report import report
from ett_core.events import (
    AttemptEnd,
    AttemptStart,
    Cache,
    Checkpoint,
    CheckpointDurable,
    CheckpointFailed,
    Compile,
    Evidence,
    Failure,
    FirstBatch,
    JobEnd,
    Progress,
    encode,
)

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


OBEYED = "\x1b\x07\x9b\u202e\r\b\0"
HOSTILE = "<script>\x1b[2J\x1b]0;title\x07\x9b31m\u202e\r\b\0**x**\nJob z: succeeded\t| ../../etc"


def hostile_run() -> list:
    """A job whose every word is hostile."""
    said = {"job_id": "h", "writer": HOSTILE, "attempt": 0, "rank": 0, "node": HOSTILE}
    about = {"job_name": HOSTILE, "team": HOSTILE, HOSTILE: HOSTILE}
    kinds = [
        (AttemptStart, {"world_size": 1, "labels": about, "versions": about}),
        (FirstBatch, {}),
        (Cache, {"cache": HOSTILE, "hits": 1}),
        (Compile, {"graph": HOSTILE, "stage_seconds": {HOSTILE: 2.0}, "recompile_reason": HOSTILE}),
        (Progress, {"step": 3, "steps": 3}),
        (Checkpoint, {"step": 3, "mode": HOSTILE}),
        (CheckpointFailed, {"step": 3, "message": HOSTILE}),
        (Evidence, {"source": "stall", "text": HOSTILE}),
        (Evidence, {"source": "stderr", "text": HOSTILE}),
        (Failure, {"exception": HOSTILE, "message": HOSTILE}),
        (AttemptEnd, {"status": "failed", "exit_code": 1}),
    ]
    return [kind(seq=n, time=START + n, **said, **fields) for n, (kind, fields) in enumerate(kinds)]


def test_what_a_job_tells_is_shown_and_makes_up_no_line(tmp_path, capsys):
    """A terminal obeys none of it, a line end in a name begins no line, on both outputs and as JSON."""
    journal = tmp_path / f"j{OBEYED[:-1]}\n[2J.jsonl"
    journal.write_bytes(as_lines(hostile_run()) + b'{"kind":"\x1b[2J' + OBEYED.encode() + b'"}\n')
    assert main(["account", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert [letter for letter in out + err if letter in OBEYED] == []
    assert [line for line in out.splitlines() if line.startswith("Job ")] == [out.splitlines()[0]]
    assert "\\nJob z: succeeded" in out
    assert len(err.splitlines()) == 2
    assert main(["account", "--json", str(tmp_path)]) == 0
    assert json.loads(capsys.readouterr().out)["jobs"][0]["labels"]["team"] == HOSTILE


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


def test_packed_journals_are_read_as_plain_ones(tmp_path, capsys):
    """Of one that breaks off what came before counts, and the break is told."""
    lines = as_lines(run_of("a")).splitlines(keepends=True)
    packed = tmp_path / "two.jsonl.gz"
    (tmp_path / "one.jsonl").write_bytes(b"".join(lines[:2]))
    packed.write_bytes(gzip.compress(b"".join(lines[2:])))
    status, answer, err = account(capsys, tmp_path)
    assert (status, err) == (0, "")
    assert answer["jobs"][0]["ett_percent"] == 67.5
    packed.write_bytes(packed.read_bytes()[:-4])
    status, answer, err = account(capsys, tmp_path)
    assert (status, answer["jobs"][0]["ett_percent"]) == (0, 67.5)
    assert err.startswith(f"ett account: {packed}: compressed file ended before")


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
    assert f"{tmp_path}/missing.jsonl: no such file or directory" in err
    assert "bad line" not in err


def test_the_error_that_a_program_has_left_beside_the_journals_is_no_bad_line(tmp_path, capsys):
    """Every job that fails under torchrun leaves one there."""
    fails = "import os, pathlib; pathlib.Path(os.environ['TORCHELASTIC_ERROR_FILE']).write_text('{}'); 1 / 0"
    words = ["--quiet", "--journal-dir", str(tmp_path), "--job-id", "j", "--", sys.executable, "-c", fails]
    environ = {name: value for name, value in os.environ.items() if name != "TORCHELASTIC_ERROR_FILE"}
    ett = [sys.executable, "-c", "import sys; from ett_cli.main import main; sys.exit(main())"]
    ran = subprocess.run([*ett, "run", *words], env=environ, check=False)
    assert ran.returncode == 1
    assert [path.read_text() for path in tmp_path.glob("*.json")] == ["{}"]
    status, answer, err = account(capsys, tmp_path)
    assert (status, [job["job_id"] for job in answer["jobs"]], err) == (0, ["j"], "")


def test_without_any_event_the_status_is_one(tmp_path, capsys):
    status, answer, err = account(capsys, tmp_path)
    assert (status, answer) == (1, {"jobs": []})
    assert err == f"ett account: {tmp_path}: no journal (*.jsonl, *.json) in this directory\n"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "ett account: '': an empty name is no file\n"),
        ("empty.jsonl", "ett account: empty.jsonl: the file is empty\n"),
        ("blank.jsonl", "ett account: no event of any job in there.\n"),
        ("none.jsonl", "ett account: none.jsonl: no such file or directory\n"),
    ],
)
def test_a_path_that_gives_no_event_is_told_in_one_sentence(name, reason, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "blank.jsonl").write_text("\n")
    assert main(["account", name]) == 1
    assert capsys.readouterr().err == reason


@contextmanager
def without_rights() -> Iterator[None]:
    """As root, whom no mode stops: act as a user who owns nothing."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65_534)
    try:
        yield
    finally:
        os.seteuid(user)


def test_what_may_not_be_read_is_told(tmp_path):
    """A directory that nobody may enter is named with the reason."""
    closed = tmp_path / "closed"
    closed.mkdir()
    (closed / "a.jsonl").write_bytes(as_lines(run_of("a")))
    closed.chmod(0)
    try:
        with without_rights():
            parts = list(read_journals([str(closed)]))
    finally:
        closed.chmod(0o700)
    bad = [(bad.source, bad.line, bad.reason) for part in parts for bad in part.bad]
    assert bad == [(str(closed), 0, "permission denied")]


def test_without_a_journal_the_command_line_is_wrong(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["account"])
    assert stop.value.code == 2
    assert "usage: ett account" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["abc", "nan", "inf", "1e300"])
def test_a_moment_that_is_none_is_named_with_status_two(text, capsys):
    assert main(["account", "x", "--now", text]) == 2
    assert capsys.readouterr().err == f"ett account: --now needs Unix seconds, not {text!r}\n"


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
    recorded = Recorded("a")
    recorded.add(run_of("a")[:3])
    said = {"job_id": "a", "writer": "w2", "attempt": 1, "rank": 0, "node": "n0"}
    recorded.add([AttemptStart(seq=0, time=START + 60, **said), FirstBatch(seq=1, time=START + 70, **said)])
    job = recorded.as_json(START + 80)
    assert render(job).startswith(report(job))
    assert render(job).splitlines()[-1].startswith("Where it resumed is unknown")
    assert job["failure_list"][0]["cause"]


def test_journals_of_ranks_read_one_after_the_other_tell_what_those_read_in_time_do(tmp_path, capsys):
    """Hours of each: which rank is slow, and what saves cost."""
    found = []
    for name, parts in (("ranks", RANKS), ("time", [IN_TIME])):
        (tmp_path / name).mkdir()
        for place, events in enumerate(parts):
            (tmp_path / name / f"{place}.jsonl").write_bytes(as_lines(events))
        _, answer, _ = account(capsys, tmp_path / name)
        found.append(
            {field: answer["jobs"][0][field] for field in ("stragglers", "step_spread", "async_saves")}
        )
    assert found[0] == found[1]
    assert {each["rank"] for each in found[0]["stragglers"]} == {2}


def test_the_table_is_printed_without_json(tmp_path, capsys):
    path = tmp_path / "w.jsonl"
    path.write_bytes(as_lines(run_of("a")))
    assert main(["account", str(path)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Job a: succeeded, 40.0 s of wall time")
    assert "ETT 67.5 %" in out


def test_a_finished_job_is_accounted_for_as_a_whole_whatever_the_moment(tmp_path, capsys):
    path = tmp_path / "w.jsonl"
    path.write_bytes(as_lines(run_of("a")))
    _, early, _ = account(capsys, path, "--now", START + 20)
    _, late, _ = account(capsys, path, "--now", START + 4000)
    assert early == late
    assert early["jobs"][0]["wall_s"] == 40.0


def details_of(job_id: str) -> list:
    """What a rank says beside its time: a save of 0.5 s, durable, cache look-ups and compile seconds."""
    said = {"job_id": job_id, "writer": "details", "attempt": 0, "rank": 0, "node": "n0"}
    return [
        Checkpoint(seq=0, time=START + 20, step=10, mode="sync", blocking_s=0.5, **said),
        CheckpointDurable(seq=1, time=START + 21, step=10, mode="sync", **said),
        Cache(seq=2, time=START + 22, cache="fx_graph", hits=3, misses=1, **said),
        Compile(seq=3, time=START + 22, stage_seconds={"dynamo": 1.5}, **said),
    ]


def test_checkpoints_and_caches_are_told_in_text_and_json_and_repeats_count_once(tmp_path, capsys):
    lines = as_lines(run_of("a") + details_of("a"))
    (tmp_path / "one.jsonl").write_bytes(lines)
    (tmp_path / "copy.jsonl").write_bytes(lines)
    _, answer, _ = account(capsys, tmp_path)
    (job,) = answer["jobs"]
    assert (job["checkpoint_count"], job["checkpoint_blocking_s"]) == (1, 0.5)
    assert (job["checkpoint_failed_count"], job["checkpoint_failed_why"]) == (0, None)
    assert (job["last_durable_at"], job["last_durable_step"]) == (START + 21, 10)
    assert job["caches"] == {"fx_graph": {"hits": 3, "misses": 1, "bypasses": 0}}
    assert job["compile"] == {"dynamo": 1.5}
    assert main(["account", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "Checkpoints        1 save, training blocked for 0.5 s in all" in out
    assert "the last durable one at step 10" in out
    assert "  fx_graph         3 hits, 1 misses, 0 bypasses (75 % hits)" in out
    assert "  seconds by stage dynamo 1.5 s" in out


def test_saves_that_failed_are_told_with_the_reason_of_the_last(tmp_path, capsys):
    said = {"job_id": "a", "attempt": 0, "node": "n0", "mode": "async"}
    failed = [
        CheckpointFailed(
            seq=10 + step + rank,
            time=START + step,
            step=step,
            writer="details",
            rank=rank,
            message=why,
            **said,
        )
        for step, why in ((20, "OSError: [Errno 28] No space left"), (30, "OSError: [Errno 30] Read-only"))
        for rank in (0, 1)
    ]
    (tmp_path / "one.jsonl").write_bytes(as_lines(run_of("a") + details_of("a") + failed[::-1]))
    _, answer, _ = account(capsys, tmp_path)
    (job,) = answer["jobs"]
    assert (job["checkpoint_failed_count"], job["checkpoint_failed_why"]) == (2, failed[-1].message)
    assert main(["account", str(tmp_path)]) == 0
    told = "; 2 failed, the last for: OSError: [Errno 30] Read-only"
    assert f"the last durable one at step 10{told}\n" in capsys.readouterr().out


def failed_with(status: int, *texts: str) -> list:
    """A job of the launcher alone, whose command exited with `status` and wrote these lines."""
    said = {"job_id": "a", "writer": "launcher", "attempt": 0, "rank": -1, "node": "n0"}
    evidence = [
        Evidence(seq=10 + n, time=START + 5, source="stderr", text=text, **said)
        for n, text in enumerate(texts)
    ]
    return [
        AttemptStart(seq=0, time=START, **said),
        *evidence,
        Failure(
            seq=1,
            time=START + 6,
            exit_code=status,
            message=f"the command exited with status {status}",
            **said,
        ),
        AttemptEnd(seq=2, time=START + 6, status="failed", exit_code=status, **said),
        JobEnd(seq=3, time=START + 6, status="failed", **said),
    ]


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["Traceback (most recent call last):\nValueError: bad shape\nsecond line"], "ValueError: bad shape"),
        (["[rank1]: torch.OutOfMemoryError: 3 GiB", "x.errors.ChildFailedError: \n=====\nexitcode: 1"],
         "torch.OutOfMemoryError: 3 GiB"),
        (["no such table\n------"], "no such table"),
    ],
)  # fmt: skip
def test_a_failure_known_by_its_exit_status_shows_the_words_that_tell_why(texts, words, tmp_path, capsys):
    path = tmp_path / "w.jsonl"
    path.write_bytes(as_lines(failed_with(1, *texts)))
    assert main(["account", str(path)]) == 0
    out = capsys.readouterr().out
    assert f"  1. attempt 0: the command exited with status 1\n     last words: {words}\n" in out
    assert "never recovered" in out
    assert "Time to recover    never\n" in out
    _, answer, _ = account(capsys, path)
    evidence = answer["jobs"][0]["failure_list"][0]["evidence"]
    assert [line["text"] for line in evidence if line["source"] == "stderr"] == texts


def test_every_key_stands_in_the_documents(tmp_path, capsys):
    """docs/account.md names each key of the JSON object."""
    text = (Path(__file__).parents[2] / "docs" / "account.md").read_text()
    path = tmp_path / "w.jsonl"
    path.write_bytes(as_lines(failed_with(1)))
    _, answer, _ = account(capsys, path)
    assert [key for key in answer["jobs"][0] if f"`{key}`" not in text] == []
