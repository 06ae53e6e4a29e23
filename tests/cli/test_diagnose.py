"""`ett diagnose`: reads what people have, says the cause in words and as JSON."""

from __future__ import annotations

import gzip
import io
import json
import os

import pytest

from ett_cli.logs import Log, Unread, read_logs
from ett_cli.main import main
from ett_core.events import AttemptEnd, AttemptStart, Evidence, Failure, JobEnd, encode

OOM = "2026-11-29 10:00:00 torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
WAIT = "2026-11-29 10:10:00 [Rank 5] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1) ran\n"


@pytest.fixture
def rank_logs(tmp_path):
    """The logs of two ranks; the one that failed is the one that sorts last."""
    (tmp_path / "rank_5.log").write_text(WAIT)
    folder = tmp_path / "attempt_0" / "7"
    folder.mkdir(parents=True)
    (folder / "stderr.log").write_text(OOM)
    return tmp_path


def test_a_directory_of_rank_logs_gives_one_cause_with_its_rank(rank_logs, capsys):
    assert main(["diagnose", str(rank_logs)]) == 0
    text = capsys.readouterr().out
    assert text.startswith("Cause: gpu_oom (certain), on rank 7.\n")
    assert "rank_5.log:1" in text


def test_where_nothing_ended_it_is_said_once(tmp_path, capsys):
    (tmp_path / "train.log").write_text("epoch 1 loss 0.3\n")
    assert main(["diagnose", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "No failure: nothing in these logs says that the job ended.\n"


def test_json_has_the_fields_of_the_contract(rank_logs, capsys):
    main(["diagnose", "--json", str(rank_logs)])
    found = json.loads(capsys.readouterr().out)
    fields = {"failure_class", "domain", "role", "confidence", "retry", "rank", "node", "evidence", "message"}
    assert found.keys() == fields
    assert found["evidence"][0].keys() == {"source", "line", "time", "text", "role"}
    assert (found["failure_class"], found["rank"]) == ("gpu_oom", 7)
    assert found["evidence"][0]["time"] == 1795946400.0


def test_what_cannot_be_read_is_told_and_stops_nothing(rank_logs, capsys):
    assert main(["diagnose", str(rank_logs / "nothing"), str(rank_logs)]) == 0
    assert "nothing: No such file or directory" in capsys.readouterr().err


def test_nothing_read_is_an_error(tmp_path, capsys):
    assert main(["diagnose", str(tmp_path)]) == 1
    assert "no file in this directory" in capsys.readouterr().err


def test_standard_input_stands_for_a_dash():
    (log,) = read_logs(["-"], stdin=lambda: io.BytesIO(b"KeyError: 'x'"))
    assert log == Log("<stdin>", b"KeyError: 'x'")


def test_compressed_logs_are_read_and_damaged_ones_told(tmp_path):
    whole = gzip.compress(OOM.encode())
    (tmp_path / "a.log.gz").write_bytes(whole)
    (tmp_path / "b.log.gz").write_bytes(whole[:-9])
    good, bad = read_logs([str(tmp_path)])
    assert good.data == OOM.encode()
    assert isinstance(bad, Unread)


def test_a_huge_log_is_read_from_both_ends(tmp_path, monkeypatch):
    monkeypatch.setattr("ett_cli.logs.READ_LIMIT", 4096)
    path = tmp_path / "huge.log"
    path.write_bytes(OOM.encode() + b"x\n" * 10_000 + b"KeyError: 'the end'\n")
    (log,) = read_logs([str(path)])
    assert len(log.data) < 5000
    assert log.data.startswith(OOM.encode())
    assert log.data.endswith(b"KeyError: 'the end'\n")


def test_the_day_of_a_log_that_tells_none_is_that_of_its_last_change(tmp_path, capsys):
    path = tmp_path / "x.log"
    path.write_text("10:00:00 KeyError: 'x'\n")
    os.utime(path, (1795946400, 1795946400))
    main(["diagnose", "--json", str(path)])
    assert json.loads(capsys.readouterr().out)["evidence"][0]["time"] == 1795946400.0


def test_garbage_is_no_failure(tmp_path, capsys):
    path = tmp_path / "noise"
    path.write_bytes(os.urandom(200_000))
    assert main(["diagnose", str(path)]) == 0
    assert "Cause" in (text := capsys.readouterr().out) or "No failure" in text


LAUNCHER = {"job_id": "j", "writer": "bb", "attempt": 0, "rank": -1, "node": "n"}
RANK = {**LAUNCHER, "writer": "aa", "rank": 1}
CLOSED = "[rank0]: RuntimeError: Connection closed by peer"
LOST = "NVRM: Xid (PCI:0000:c1:00): 79, GPU has fallen off the bus."


def test_the_directory_of_a_run_is_read_as_what_was_said_there(tmp_path, capsys):
    """Ranks that left no log speak from their journals, in the order of time; output counts once."""
    journals = {
        "aa-7.jsonl": [
            AttemptStart(**RANK, seq=0, time=1795946000.0),
            Failure(**RANK, seq=1, time=1795946400.0, message="ValueError: bad batch"),
        ],
        "bb-6.jsonl": [
            AttemptStart(**LAUNCHER, seq=0, time=1795946000.0),
            Evidence(**LAUNCHER, seq=1, time=1795946401.0, source="stderr", text=CLOSED),
            Evidence(**LAUNCHER, seq=2, time=1795946402.0, source="kernel", text=LOST),
        ],
    }
    for name, told in journals.items():
        (tmp_path / name).write_bytes(b"\n".join([*map(encode, told), b'{"kind":"fai']))
    assert main(["diagnose", "--json", str(tmp_path)]) == 0
    assert [line["text"] for line in json.loads(capsys.readouterr().out)["evidence"]] == [
        "2026-11-29 10:00:00.000000 [rank1]: ValueError: bad batch",
        f"2026-11-29 10:00:01.000000 {CLOSED}",
        f"2026-11-29 10:00:02.000000 {LOST}",
    ]
    (tmp_path / "bb.stderr.log").write_text(f"{CLOSED}\n")
    assert main(["diagnose", "--json", str(tmp_path)]) == 0
    texts = [line["text"] for line in json.loads(capsys.readouterr().out)["evidence"]]
    assert [text for text in texts if CLOSED in text] == [CLOSED]


def write(path, *told):
    path.write_bytes(b"".join(encode(event) + b"\n" for event in told))


def restarted(tmp_path, *last):
    """A run whose first attempt lost a rank, and whose second one ends as told."""
    second = {**LAUNCHER, "attempt": 1}
    write(
        tmp_path / "bb-6.jsonl",
        AttemptStart(**LAUNCHER, seq=0, time=1795946000.0),
        Evidence(**LAUNCHER, seq=1, time=1795946400.0, source="kernel", text=LOST),
        Failure(**LAUNCHER, seq=2, time=1795946401.0, of_rank=1, exit_code=1),
        AttemptEnd(**LAUNCHER, seq=3, time=1795946402.0, status="failed"),
        AttemptStart(**second, seq=4, time=1795946410.0),
        *(
            event(**second, seq=5 + n, time=1795946500.0 + n, status=status)
            for n, (event, status) in enumerate(last)
        ),
    )
    return str(tmp_path)


def test_a_job_that_got_over_a_failure_ended_well(tmp_path, capsys):
    """What it got over is told with its evidence, and is not called why it ended."""
    place = restarted(tmp_path, (AttemptEnd, "succeeded"), (JobEnd, "succeeded"))
    assert main(["diagnose", place]) == 0
    head, *rest = capsys.readouterr().out.splitlines()
    assert head == "No failure: it ended well."
    told = " ".join(" ".join(rest).split())
    assert told.startswith("The job succeeded at 2026-11-29 10:01:4")
    assert "Before that it got over a failure: gpu_lost (certain). 'ett account' tells of each." in told
    assert LOST[:30] in told
    assert main(["diagnose", place, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["failure_class"], found["confidence"], found["rank"]) == ("not_a_failure", "certain", None)


@pytest.mark.parametrize("last", [(), ((AttemptEnd, "failed"), (JobEnd, "failed"))])
def test_a_job_that_failed_again_or_still_runs_is_told_by_its_failure(tmp_path, capsys, last):
    assert main(["diagnose", restarted(tmp_path, *last)]) == 0
    assert capsys.readouterr().out.startswith("Cause: gpu_lost")


def test_a_job_without_any_trouble_ended_well_also_where_only_its_ranks_say_so(tmp_path, capsys):
    write(
        tmp_path / "aa-7.jsonl",
        AttemptStart(**RANK, seq=0, time=1795946000.0, world_size=1),
        AttemptEnd(**RANK, seq=1, time=1795946100.0, status="succeeded"),
    )
    assert main(["diagnose", str(tmp_path)]) == 0
    told = (
        "No failure: it ended well.\n  The job succeeded at 2026-11-29 09:55:00 UTC, as its journals tell.\n"
    )
    assert capsys.readouterr().out == told


def test_of_two_jobs_both_must_have_ended_well(tmp_path, capsys):
    other = {**RANK, "job_id": "other", "writer": "cc"}
    restarted(tmp_path, (JobEnd, "succeeded"))
    write(tmp_path / "cc-8.jsonl", AttemptStart(**other, seq=0, time=1795946000.0))
    assert main(["diagnose", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("Cause: gpu_lost")


def test_a_log_is_shown_and_not_obeyed_and_its_json_stays_json(tmp_path, capsys):
    """Neither its words nor its name reach a terminal as they are."""
    name = "a\x1b[2J\nCause: none.log"
    words = "\x1b[2JRuntimeError: \x9b31m \u202e CUDA out of memory. Tried to allocate 2.00 GiB\0\r\n"
    (tmp_path / name).write_text(words)
    assert main(["diagnose", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert not {"\x1b", "\x9b", "\u202e", "\0", "\r"} & set(out)
    assert sum(line.startswith("Cause:") for line in out.splitlines()) == 1
    assert main(["diagnose", "--json", str(tmp_path)]) == 0
    assert json.loads(capsys.readouterr().out)["failure_class"] == "gpu_oom"


def test_a_log_that_is_json_of_endless_depth_is_a_log(tmp_path, capsys):
    """It begins like a journal."""
    (tmp_path / "a.log").write_bytes(b'{"kind":' + b"[" * 200_000 + b"\nKeyError: 'x'\n")
    assert main(["diagnose", str(tmp_path / "a.log")]) == 0
    assert "user_code" in capsys.readouterr().out
