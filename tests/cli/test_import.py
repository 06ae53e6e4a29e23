"""`ett import`: from logs of jobs that were never instrumented to events and accounts."""

from __future__ import annotations

import argparse
import datetime as dt
import io
import itertools
import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ett_cli.commands.import_ import add_arguments, run
from ett_cli.imports import formats
from ett_cli.imports.formats import NAMES, in_order, recognised
from ett_cli.imports.texts import elements_of, lines_of
from ett_cli.imports.times import moment
from ett_cli.imports.torchrun import Years
from ett_cli.main import main
from ett_cli.sorted_events import SortedEvents
from ett_core.events import decode, encode
from ett_core.lines import BadLine, decode_text

DATA = Path(__file__).parents[1] / "data" / "imports"
UTC = dt.timezone.utc
LOGS = {
    "torchrun": "torchrun_info.log",
    "sacct": "sacct.txt",
    "philly": "philly_bad_rows.json",
    "acme": "acme_helios_example_rows.csv",
}


class Imported(NamedTuple):
    events: list
    bad: list


def log_of(name, data, written_at):
    """A log whose contents come in pieces of some bytes."""
    return formats.Log(name, lambda: (data[at : at + 700] for at in range(0, len(data), 700)), written_at)


def imported(name, logs, zone, job_id=""):
    """The events in order, and what could not be used."""
    found = list(formats.imported(name, logs, zone, job_id))
    bad = [each for each in found if isinstance(each, BadLine)]
    return Imported(sorted((each for each in found if each not in bad), key=in_order), bad)


def at(text: str) -> float:
    return dt.datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


@pytest.fixture
def accounts(tmp_path, capsys):
    """Imports a log, accounts for what it holds: the jobs by name, and what the import said."""

    def import_and_account(log, *options):
        out = tmp_path / "events.jsonl"
        status = main(["import", str(log), "--timezone", "UTC", "--out", str(out), *options])
        said = capsys.readouterr().err
        assert status == 0, said
        assert main(["account", "--json", "--now", "1800000000", str(out)]) == 0
        jobs = json.loads(capsys.readouterr().out)["jobs"]
        return {job["job_id"]: job for job in jobs}, said

    return import_and_account


@pytest.mark.parametrize("name", LOGS)
def test_a_format_is_recognised_and_each_event_can_be_read(name, capfdbinary):
    """What goes to standard output is lines of events, in the order of time of each job, without repeats."""
    log = DATA / LOGS[name]
    assert recognised(log.read_bytes()) == name
    assert main(["import", str(log), "--timezone", "UTC"]) == 0
    out, err = capfdbinary.readouterr()
    decoded = decode_text(out, "out")
    assert decoded.bad == []
    assert f" of {name}".encode() in err
    keys = [(event.writer, event.seq) for event in decoded.events]
    assert len(set(keys)) == len(keys) > 0
    for job_id in {event.job_id for event in decoded.events}:
        times = [event.time for event in decoded.events if event.job_id == job_id]
        assert times == sorted(times)


@pytest.mark.parametrize("name", LOGS)
def test_a_log_that_is_imported_twice_gives_the_same_events(name):
    """Also under another name: what is known already counts once."""
    data = (DATA / LOGS[name]).read_bytes()
    first, second = (
        imported(name, [log_of(path, data, 1.8e9)], UTC, "j").events for path in ("a.log", "/b/c.log")
    )
    assert first == second


def test_requeues_of_slurm_are_attempts_and_the_time_between_them_is_the_queue(accounts):
    """Steps are left out; the queue before the first start is not of the job."""
    jobs, _ = accounts(DATA / "sacct.txt")
    job = jobs["slurm-alpha-4001"]
    assert job["wall_s"] == 7 * 3600 + 5 * 60
    assert job["start"] == at("2026-10-20T08:00:00")
    assert job["components"] == {"recover.queue": 2100.0, "unobserved": 23_400.0}
    assert (job["state"], job["attempts"], job["failures"], job["ett_percent"]) == ("succeeded", 3, 2, None)
    assert [failure["cause"] for failure in job["failure_list"]] == ["Slurm: NODE_FAIL", "preempted"]


@pytest.mark.parametrize(
    ("name", "state", "wall_s"),
    [("4002", "cancelled", 600.0), ("4005", "failed", 1800.0), ("4006", "timed_out", 86_400.0),
     ("4012", "succeeded", 0.0), ("4013", "succeeded", 3600.0)],
)  # fmt: skip
def test_states_of_slurm_become_ends_of_jobs(accounts, name, state, wall_s):
    """A job whose end has no time counts none, and ends as it is said to have ended."""
    jobs, _ = accounts(DATA / "sacct.txt")
    job = jobs[f"slurm-alpha-{name}"]
    assert (job["state"], job["wall_s"]) == (state, wall_s)


def test_rows_of_slurm_that_cannot_be_used_are_told_by_line_and_reason(accounts):
    jobs, said = accounts(DATA / "sacct.txt")
    reasons = {int(line.split(":")[1]): line for line in said.splitlines() if line.startswith(str(DATA))}
    assert sorted(reasons) == [10, 11, 12, 17, 18, 19, 20, 21]
    assert reasons[10].endswith("it never started (CANCELLED by 1000)")
    assert reasons[11].endswith("it ends (2026-10-25T02:10:00) before it starts (2026-10-25T02:50:00)")
    assert reasons[18].endswith("15 fields where the header has 14")
    assert reasons[19].endswith("State 'MELTED' is not known")
    assert said.splitlines()[-1] == (
        "ett import: 8 jobs, 34 events from 23 lines of sacct; 8 remarks on what could not be used"
    )
    assert "slurm-alpha-4011" not in jobs


def test_what_slurm_says_of_hardware_and_people_becomes_labels_and_counts():
    """The components of a heterogeneous job are one job."""
    events = imported("sacct", [log_of("s", (DATA / "sacct.txt").read_bytes(), 0.0)], UTC).events
    starts = {event.job_id: event for event in events if event.kind == "attempt_start"}
    dlrm = starts["slurm-alpha-4001"]
    assert (dlrm.accelerators, dlrm.accelerator_type, dlrm.node) == (16, "h100", "gpu-007")
    assert dlrm.labels == {
        "scheduler": "slurm", "job_name": "dlrm", "user": "ana", "account": "ads", "partition": "h100",
        "cluster": "alpha",
    }  # fmt: skip
    assert (starts["slurm-alpha-4013"].accelerators, starts["slurm-alpha-4005"].accelerators) == (8, 0)
    assert [event.attempt for event in events if event.job_id == "slurm-alpha-4001"][-1] == 2000
    (oom,) = [e for e in events if e.job_id == "slurm-alpha-4005" and e.kind == "failure"]
    assert (oom.message, oom.exit_code, oom.signal) == ("Slurm: OUT_OF_MEMORY", None, None)


def test_a_time_that_a_change_of_clocks_makes_ambiguous_lies_after_the_start():
    """02:10 came twice on that night in Berlin: what began at the first 02:50 ended in the second hour."""
    header, *rows = (DATA / "sacct.txt").read_text().splitlines()
    array = next(row for row in rows if row.startswith("4004_7"))
    zone = pytest.importorskip("zoneinfo").ZoneInfo("Europe/Berlin")
    found = imported("sacct", [log_of("s", f"{header}\n{array}\n".encode(), 0.0)], zone)
    assert found.bad == []
    start, end = found.events[0], found.events[-1]
    assert end.time - start.time == 20 * 60


def test_a_longer_table_keeps_the_numbers_of_the_events_that_a_shorter_one_told():
    """A second import of a job that went on in between adds what is new."""
    header, *rows = (DATA / "sacct.txt").read_text().splitlines()
    own = [row for row in rows if row.startswith("4001|")]
    short, whole = (
        imported("sacct", [log_of("s", "\n".join([header, *part]).encode(), 0.0)], UTC).events
        for part in (own[:2], own)
    )
    later = {(event.writer, event.seq): event for event in whole}
    told = [event for event in short if event.kind != "job_end"]
    assert [later[event.writer, event.seq] for event in told] == told


def test_attempts_of_philly_lack_ends_or_starts_and_nothing_is_made_up(accounts):
    """What became of an attempt without an end nobody knows, up to the next one."""
    jobs, said = accounts(DATA / "philly_bad_rows.json")
    whole = jobs["philly-application_1506638472019_14199"]
    assert whole["components"] == {"recover.queue": 7.0, "unobserved": 74.0 + 193_182.0}
    assert whole["state"] == "succeeded"
    torn = jobs["philly-application_1506638472019_16565"]
    assert (torn["state"], torn["attempts"], torn["failures"]) == ("succeeded", 4, 3)
    assert torn["components"] == {"recover.queue": 147.0, "unobserved": 231.0 + 43.0 + 48.0}
    assert torn["wall_s"] == at("2017-10-09T03:15:12") - at("2017-10-09T03:07:23")
    assert len(jobs) == 2
    assert "philly_bad_rows.json:4: it has no attempt that could be used" in said
    assert said.count("its end is unknown") == 2
    assert said.count("its start is unknown") == 1


def test_durations_of_acme_count_from_the_start_and_not_from_the_submission(accounts):
    """The published durations of one cluster count the queue as well."""
    jobs, said = accounts(DATA / "acme_helios_example_rows.csv")
    walls = {name: job["wall_s"] for name, job in jobs.items()}
    assert walls["acme_kalos-dlctk696s0jbvitv"] == 8.0
    assert walls["acme_kalos-dlc1t2ypl09b8qtp"] == 70.0
    assert walls["acme_seren-5778469"] == 2693.0
    assert walls["helios-1425511"] == 36_848.0
    assert jobs["acme_seren-5778432"]["start"] == at("2023-02-28T16:18:54")
    assert jobs["helios-1425513"]["state"] == "cancelled"
    assert "nothing was left out" in said


def test_a_log_of_torchrun_tells_starts_failures_and_the_end(accounts):
    """The time between a failure and the next start is recovery; nobody saw what the ranks did."""
    jobs, _ = accounts(DATA / "torchrun_info.log")
    job = jobs["torchrun-torchrun_info"]
    assert (job["state"], job["attempts"], job["failures"]) == ("failed", 2, 2)
    assert job["components"]["recover.restart"] == pytest.approx(0.302, abs=1e-5)
    assert job["components"]["unobserved"] == pytest.approx(0.179 + 8.341 + 7.341, abs=0.01)
    first, second = job["failure_list"]
    assert first["cause"] == "rank 1 (pid 22746) exited with status 1"
    assert any("boom: bad batch" in line["text"] for line in first["evidence"])
    assert any(line["source"] == "elastic" for line in second["evidence"])


def test_a_log_of_torchrun_that_recovered_ends_with_success():
    data = (DATA / "torchrun_recovered.log").read_bytes()
    events = imported("torchrun", [log_of("r", data, at("2027-03-01T00:00:00"))], UTC, "j").events
    kinds = [(event.attempt, event.kind) for event in events if event.kind != "evidence"]
    assert kinds == [
        (0, "attempt_start"), (0, "failure"), (0, "attempt_end"), (1, "attempt_start"), (1, "attempt_end"),
        (1, "job_end"),
    ]  # fmt: skip
    assert events[-1].status == "succeeded"
    assert dt.datetime.fromtimestamp(events[0].time, UTC).year == 2026
    assert events[0].world_size == 2
    assert not any("socket.cpp" in event.text for event in events if event.kind == "evidence")


def test_at_its_default_level_torchrun_tells_failures_only(accounts):
    """An attempt then begins where the one before it failed, and the first one is not known to begin."""
    jobs, _ = accounts(DATA / "torchrun_warnings.log", "--job-id", "mine")
    job = jobs["mine"]
    assert (job["state"], job["attempts"], job["failures"]) == ("failed", 2, 2)
    assert job["components"] == {"unobserved": pytest.approx(4.777, abs=1e-5)}


def test_the_logs_of_several_nodes_are_one_job(tmp_path, accounts):
    """The node of group rank 0 tells the end."""
    text = (DATA / "torchrun_recovered.log").read_text()
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "node-a.log").write_text(text)
    (tmp_path / "logs" / "node-b.log").write_text(text.replace("group_rank=0", "group_rank=1"))
    jobs, _ = accounts(tmp_path / "logs", "--job-id", "two", "--year", "2026")
    assert (jobs["two"]["state"], jobs["two"]["attempts"], jobs["two"]["failures"]) == ("succeeded", 2, 1)
    found = [decode(line) for line in (tmp_path / "events.jsonl").read_bytes().splitlines()]
    assert {event.node for event in found} == {"node-a", "node-b"}
    assert [event.node for event in found if event.kind == "job_end"] == ["node-a"]


OLD_FORM = (
    "[2024-01-05 12:00:00,250] torch.distributed.elastic.agent.server.api: [INFO] "
    "[default] Starting worker group\n"
    "[2024-01-05 12:10:00,500] torch.distributed.elastic.multiprocessing.api: [ERROR] "
    "failed (exitcode: -9) local_rank: 3 (pid: 77) of binary: /usr/bin/python\n"
    "[2024-01-05 12:20:00,000] torch.distributed.elastic.agent.server.api: [WARNING] "
    "Received Signals.SIGTERM death signal, shutting down workers\n"
)


def test_the_form_of_older_torchrun_logs_is_understood():
    """Years, signals and a stop from outside."""
    found = imported("torchrun", [log_of("old.log", OLD_FORM.encode(), 0.0)], UTC)
    assert recognised(OLD_FORM.encode()) == "torchrun"
    told = [(event.kind, event.time) for event in found.events]
    assert told[0] == ("attempt_start", at("2024-01-05T12:00:00.250000"))
    failure = next(event for event in found.events if event.kind == "failure")
    assert (failure.signal, failure.of_rank, failure.time) == (9, None, at("2024-01-05T12:10:00.500000"))
    assert [event.status for event in found.events if event.kind == "job_end"] == ["preempted"]


@pytest.mark.parametrize(
    ("latest", "month", "day", "year"),
    [("2026-06-01T00:00:00", 5, 31, 2026), ("2026-06-01T00:00:00", 12, 31, 2025),
     ("2026-06-01T12:00:00", 6, 2, 2026), ("2027-03-01T00:00:00", 2, 29, 2024)],
)  # fmt: skip
def test_a_line_without_a_year_lies_in_the_latest_that_is_possible(latest, month, day, year):
    """A log was last written after its lines."""
    seconds = Years(at(latest), UTC).seconds(month, day, "01:02:03.5")
    assert dt.datetime.fromtimestamp(seconds, UTC) == dt.datetime(year, month, day, 1, 2, 3, 500_000, UTC)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("2026-11-29T20:42:44", at("2026-11-29T20:42:44")),
     ("2026-11-29 20:42:44+08:00", at("2026-11-29T12:42:44")),
     ("1764000000.5", 1764000000.5), ("Unknown", None), ("None", None), ("", None)],
)  # fmt: skip
def test_moments_of_logs_are_read_or_missing(text, seconds):
    assert moment(text, UTC) == seconds


@pytest.mark.parametrize("text", ["soon", "2026-13-01", "-5", "1e400", "0001-01-01T00:00:00", "9" * 40])
def test_what_is_no_moment_is_named(text):
    with pytest.raises(ValueError, match="is not a date and time"):
        moment(text, UTC)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(NAMES), st.data())
def test_garbage_in_a_log_is_told_and_never_a_traceback(name, data):
    """Lines cut, doubled, shuffled and overwritten at random; what comes out are events all the same."""
    original = (DATA / LOGS.get(name, "torchrun_info.log")).read_bytes()
    if name == "torchtitan":
        original = b'{"log_type_name":"step_start","time_us":1764000000000000,"rank":0,"step":1}\n' * 3
    text = bytearray(original[: data.draw(st.integers(0, len(original)))])
    for _ in range(data.draw(st.integers(0, 8))):
        place = data.draw(st.integers(0, len(text)))
        text[place : place + data.draw(st.integers(0, 9))] = data.draw(st.binary(max_size=6))
    found = imported(name, [log_of("garbage", bytes(text), 1.8e9)], UTC, "j")
    lines = b"".join(json_lines(found.events))
    assert decode_text(lines, "out").bad == []
    recognised(bytes(text))


def json_lines(events):
    return [encode(event) + b"\n" for event in events]


def test_standard_input_is_read_for_a_dash(capfdbinary):
    words = ["-", "--timezone", "UTC"]
    arguments = parsed(words)
    data = (DATA / "sacct.txt").read_bytes()
    assert run(arguments, stdin=lambda: io.BytesIO(data)) == 0
    assert b"<stdin>:10: it never started" in capfdbinary.readouterr().err


def parsed(words):
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return parser.parse_args(words)


@pytest.mark.parametrize(
    ("words", "said"),
    [(["--timezone", "Mars/North"], "--timezone 'Mars/North' is not known"),
     (["--year", "1"], "--year 1 is not"),
     (["--job-id", "a b"], "--job-id 'a b' is not"),
     (["--exporter", "nowhere"], "'nowhere' is not of the form")],
)  # fmt: skip
def test_a_wrong_setting_is_named_with_status_two(words, said, capsys):
    assert main(["import", str(DATA / "sacct.txt"), *words]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "no such file or directory"), ("what is this\n", "its format is not recognised; say --format"),
     ("", "its format is not recognised")],
)  # fmt: skip
def test_a_log_that_gives_nothing_is_told_with_status_one(content, said, tmp_path, capsys):
    path = tmp_path / "x.log"
    if content is not None:
        path.write_text(content)
    assert main(["import", str(path)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert err.splitlines()[-1] == "ett import: 0 jobs, 0 events from 0 lines; nothing was left out"


def test_a_directory_that_cannot_be_written_is_told(capsys):
    assert main(["import", str(DATA / "sacct.txt"), "--out", "/proc/nope/x"]) == 1
    assert "ett import: /proc/nope" in capsys.readouterr().err


def test_a_device_is_written_to_and_not_replaced():
    """`--out /dev/null` leaves the device as it is."""
    assert main(["import", str(DATA / "sacct.txt"), "--out", "/dev/null"]) == 0
    assert Path("/dev/null").is_char_device()


def test_a_file_is_there_whole_or_not_at_all(tmp_path):
    """It is written beside its place and renamed."""
    out = tmp_path / "events.jsonl"
    out.write_text("old")
    assert main(["import", str(DATA / "sacct.txt"), "--timezone", "UTC", "--out", str(out)]) == 0
    assert len(out.read_bytes().splitlines()) == 34
    assert list(tmp_path.iterdir()) == [out]


def test_every_format_stands_in_the_documents():
    """docs/import.md names them all."""
    text = (Path(__file__).parents[2] / "docs" / "import.md").read_text()
    assert [name for name in NAMES if f"`{name}" not in text] == []


def test_the_example_of_a_pipe_in_the_documents_works(tmp_path):
    """`ett import ... | ett account -`, as a shell runs it."""
    ett = Path(sys.executable).with_name("ett")
    command = f"{ett} import {DATA / 'sacct.txt'} --timezone UTC | {ett} account - --json"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert len(json.loads(done.stdout)["jobs"]) == 8


PEAK = """
import re, sys
from pathlib import Path
from ett_cli.main import main
status = main(["import", *sys.argv[1:]])
peak = re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1]
print(status, peak)
"""


def torchtitan_lines(records):
    for n in range(records):
        step, edge = divmod(n, 2)
        name = ("step_start", "step_end")[edge]
        at, rank = 1764000000000000 + n * 1000, step % 4
        yield (
            f'{{"log_type_name":"{name}","time_us":{at},"rank":{rank},"pid":{rank},"tid":1,'
            f'"host_name":"n0","step":{step + 1},"relative_step":{step + 1}}}\n'
        )


def torchrun_lines(lines):
    yield OLD_FORM
    for n in range(lines):
        yield f"step {n} loss 0.25 of a job that prints very much, {'x' * 400}\n"


def sacct_lines(steps):
    header, *rows = (DATA / "sacct.txt").read_text().splitlines()
    whole = next(row for row in rows if row.startswith("4001|"))
    yield f"{header}\n{whole}\n"
    for n in range(steps):
        yield f"{whole.replace('4001', f'4001.{n}', 1)}{'y' * 300}\n" if n % 2 else "\n"


LARGE = {"torchrun": (torchrun_lines, 100_000), "torchtitan": (torchtitan_lines, 200_000),
         "sacct": (sacct_lines, 200_000)}  # fmt: skip


@pytest.mark.parametrize("name", LARGE)
def test_a_log_may_be_larger_than_the_memory_that_an_import_takes(name, tmp_path):
    """Of a log of 30 to 40 MB no more is held than of its beginning, but for a few megabytes."""
    lines, many = LARGE[name]
    peaks = []
    for count in (1000, many):
        log = tmp_path / f"{count}.log"
        with log.open("w") as file:
            file.writelines(lines(count))
        words = [str(log), "--timezone", "UTC", "--format", name, "--out", str(tmp_path / "events.jsonl")]
        done = subprocess.run(
            [sys.executable, "-c", PEAK, *words], capture_output=True, text=True, check=True, timeout=300
        )
        status, peak = done.stdout.split()
        assert status == "0", done.stderr
        peaks.append(int(peak) << 10)
    assert log.stat().st_size > 25e6
    assert peaks[1] - peaks[0] < 20e6


def test_a_pipe_is_read_as_a_file_is(tmp_path, capfdbinary):
    """Also by formats that read twice."""
    pipe = tmp_path / "pipe.log"
    os.mkfifo(pipe)
    data = (DATA / "torchrun_info.log").read_bytes()
    writing = threading.Thread(target=pipe.write_bytes, args=(data,))
    writing.start()
    assert main(["import", str(pipe), "--timezone", "UTC", "--job-id", "j"]) == 0
    writing.join()
    from_pipe = capfdbinary.readouterr().out
    (tmp_path / "pipe2.log").write_bytes(data)
    assert main(["import", str(tmp_path / "pipe2.log"), "--timezone", "UTC", "--job-id", "j"]) == 0
    from_file = capfdbinary.readouterr().out
    kinds = [[decode(line).kind for line in out.splitlines()] for out in (from_pipe, from_file)]
    assert kinds[0] == kinds[1] != []


def test_a_full_disk_leaves_the_file_that_was_there_and_no_half_of_another(tmp_path):
    """A limit of the size of files stands for the disk."""
    out = tmp_path / "events.jsonl"
    out.write_text("old")
    ett = Path(sys.executable).with_name("ett")
    command = f"ulimit -f 4; exec {ett} import {DATA / 'sacct.txt'} --timezone UTC --out {out}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert "File too large" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["events.jsonl"]
    assert out.read_text() == "old"


@given(st.binary(max_size=200), st.lists(st.integers(1, 9), min_size=1))
def test_lines_are_the_same_in_pieces_of_any_size(text, sizes):
    def pieces():
        at = 0
        for size in itertools.cycle(sizes):
            if at >= len(text):
                return
            yield text[at : at + size]
            at += size

    whole = text.split(b"\n")
    assert list(lines_of(pieces())) == (whole if whole[-1] else whole[:-1])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
)


@given(st.lists(JSON, max_size=6), st.integers(1, 30), st.sampled_from([None, 0, 2]))
def test_elements_of_an_array_are_the_same_in_pieces_of_any_size(values, size, indent):
    """Each as it stands, with the number of its line."""
    text = json.dumps(values, indent=indent, ensure_ascii=False).encode()
    found = list(elements_of(text[at : at + size] for at in range(0, len(text), size)))
    assert [json.loads(element) for _, element in found] == values
    lines = text.split(b"\n")
    assert all(element.split(b"\n")[0] in lines[number - 1] for number, element in found)


@pytest.mark.parametrize(
    ("text", "reason"),
    [(b"", "does not begin with ["), (b'{"a": 1}', "does not begin with ["), (b"[1, 2", "ends inside"),
     (b"[1] 2", "something follows"), (b"[1][2]", "something follows"), (b'["', "ends inside")],
)  # fmt: skip
def test_what_is_no_array_is_told(text, reason):
    with pytest.raises(ValueError, match=re.escape(reason)):
        list(elements_of([text]))


def test_of_a_torn_array_the_jobs_before_the_end_are_used(accounts, tmp_path):
    """A trace that was not copied to its end."""
    log = tmp_path / "cluster_job_log"
    log.write_bytes((DATA / "philly_bad_rows.json").read_bytes()[:-30])
    jobs, said = accounts(log)
    assert "philly-application_1506638472019_14199" in jobs
    assert "not a JSON array of jobs (it ends inside the array)" in said


def test_many_events_are_put_in_order_through_the_disk():
    """Beyond a number of them the order is that of a sort in memory."""
    data = (DATA / "sacct.txt").read_bytes()
    events = imported("sacct", [log_of("s", data, 0.0)], UTC).events
    with SortedEvents(in_order, most=5) as ordered:
        for event in reversed(events):
            ordered.add(event)
        assert list(ordered) == events == list(ordered)


def test_a_name_in_a_log_that_no_job_may_have_is_made_one():
    text = OLD_FORM.replace("[default]", "--rdzv-id=my$run [default]")
    found = imported("torchrun", [log_of("old.log", text.encode(), 0.0)], UTC)
    assert {event.job_id for event in found.events} == {"torchrun-my-run"}
