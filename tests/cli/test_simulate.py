"""`ett simulate` as a user meets it: journals, an exporter, the truth, playing live, mistakes."""

from __future__ import annotations

import argparse
import http
import io
import itertools
import json
import re
import select
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ett_cli.commands import simulate
from ett_cli.main import main
from ett_cli.simulate.fleet import Fleet
from ett_cli.simulate.live import Hurry, play
from ett_cli.simulate.settings import SCENARIOS, scenario
from ett_cli.simulate.sinks import Sender, SinkError, Stream
from ett_core.components import group_seconds
from ett_core.events import Progress, StepSeconds, decode
from ett_core.lines import decode_text
from ett_trainer_hooks.shipping.transport import Reply

END = 1_764_000_000
FEW = f"--jobs 3 --days 0.2 --end {END}"


def ett(capsys, words: str) -> tuple[int, str, str]:
    status = main(words.split())
    out, err = capsys.readouterr()
    return status, out, err


def test_journals_are_those_that_other_commands_read(tmp_path, capsys):
    """`ett account` finds in the journals what the truth beside them says."""
    truth = tmp_path / "truth.json"
    journals = tmp_path / "fleet"
    status, out, err = ett(capsys, f"simulate {FEW} --out {journals} --truth {truth}")
    assert (status, err) == (0, "")
    told = json.loads(truth.read_text())
    assert f"{sum(job['events'] for job in told['jobs']):,} events of 3 jobs" in out
    status, out, _ = ett(capsys, f"account {journals} --json --now {END}")
    found = {job["job_id"]: job for job in json.loads(out)["jobs"]}
    assert found.keys() == {job["job_id"] for job in told["jobs"]}
    for job in told["jobs"]:
        assert found[job["job_id"]]["components"] == pytest.approx(job["components"], abs=1e-6)


def test_the_same_words_write_the_same_bytes(tmp_path, capsys):
    for name in ("a", "b"):
        assert ett(capsys, f"simulate {FEW} --seed 7 --out {tmp_path / name}")[0] == 0
    one, other = (
        {
            str(path.relative_to(tmp_path / name)): path.read_bytes()
            for path in (tmp_path / name).rglob("*.jsonl")
        }
        for name in ("a", "b")
    )
    assert one == other
    assert len(one) > 3


def test_a_journal_holds_one_writer_and_lies_under_its_job(tmp_path, capsys):
    ett(capsys, f"simulate {FEW} --out {tmp_path / 'fleet'}")
    for path in (tmp_path / "fleet").rglob("*.jsonl"):
        decoded = decode_text(path.read_bytes(), path.name)
        assert decoded.bad == []
        assert {event.writer for event in decoded.events} == {path.stem}
        assert {f"{tmp_path / 'fleet'}/{event.job_id}" for event in decoded.events} == {str(path.parent)}


def test_a_dash_writes_lines_to_standard_output_and_words_elsewhere():
    words = ["simulate", *FEW.split(), "--out", "-"]
    code = f"import sys; from ett_cli.main import main; sys.exit(main({words!r}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    decoded = decode_text(done.stdout, "stdout")
    assert decoded.bad == []
    assert f"{len(decoded.events):,} events" in done.stderr.decode()


def test_a_dash_writes_lines_alone_of_a_fleet_that_goes_on_too():
    words = ["simulate", "--jobs", "2", "--days", "0.1", "--live", "--live-hours", "0.1"]
    words += ["--speed", "200", "--out", "-"]
    code = f"import sys; from ett_cli.main import main; sys.exit(main({words!r}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    decoded = decode_text(done.stdout, "stdout")
    assert decoded.bad == []
    first, past, last = done.stderr.decode().splitlines()
    assert first.endswith("to standard output, then goes on 200 times as fast as the clock; Ctrl-C ends it")
    assert past.startswith("ett simulate: the past is delivered, ")
    assert last == f"ett simulate: {len(decoded.events):,} events delivered"


def test_how_far_it_is_is_said_every_ten_seconds(tmp_path, capsys):
    """The clock is looked at every 256 events; here it moves by 4 s each time."""
    world = World()

    def wall() -> float:
        world.now += 4.0
        return world.now

    assert simulate.run(parsed(*FEW.split(), "--out", str(tmp_path / "slow")), wall=wall) == 0
    out = capsys.readouterr().out
    assert out.startswith(
        f"ett simulate: writes 0.2 days of 3 jobs (scenario small) to {tmp_path / 'slow'}; "
    )
    said = re.findall(r"^  (\d) of 3 jobs, ([\d,]+) events so far$", out, re.MULTILINE)
    events = [int(told.replace(",", "")) for _, told in said]
    assert events == [768 * nth for nth in range(1, len(events) + 1)]
    jobs = [int(done) for done, _ in said]
    assert jobs == sorted(jobs)
    assert jobs[-1] == 2


def test_the_summary_says_what_was_made(tmp_path, capsys):
    _, out, _ = ett(capsys, f"simulate {FEW} --truth {tmp_path / 't'}")
    lines = out.splitlines()
    assert lines[0] == "ett simulate: scenario small, seed 0, 0.2 days until 2025-11-24 16:00:00 UTC"
    assert lines[-1].endswith("job hours were effective training")


def test_help_tells_of_every_scenario(capsys):
    with pytest.raises(SystemExit):
        main(["simulate", "--help"])
    out = capsys.readouterr().out
    assert all(f"  {name} " in out for name in SCENARIOS)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("", "--out DIR, --exporter URL, --truth FILE or --victims N is needed"),
        ("--out x --exporter http://127.0.0.1:1", "--out and --exporter exclude each other"),
        ("--truth x --jobs 0", "--jobs must be between 1 and 100000, not 0"),
        ("--truth x --days nan", "--days must be between"),
        ("--truth x --ranks 4096", "--ranks must be between 1 and 1024"),
        ("--truth x --end tomorrow", "--end needs Unix seconds or a moment"),
        ("--truth x --end nan", "--end needs Unix seconds or a moment"),
        ("--truth x --live", "--truth is told of a window that is over"),
        ("--out x --live --end 1764000000", "--live goes on from now"),
        ("--out x --live --speed 0", "--speed must be between"),
        ("--out x --live --live-hours nan", "--live-hours must be above 0"),
        ("--exporter ftp://there", "exporter address 'ftp://there' is not of the form"),
    ],
)
def test_a_mistake_is_status_two_with_the_reason(words, reason, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    status, out, err = ett(capsys, f"simulate {words}")
    assert (status, out) == (2, "")
    assert err.startswith(f"ett simulate: {reason}")
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_scenario_is_status_two(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["simulate", "--scenario", "paradise"])
    assert stop.value.code == 2
    assert "invalid choice: 'paradise'" in capsys.readouterr().err


def test_a_directory_with_journals_is_left_alone(tmp_path, capsys):
    (tmp_path / "w.jsonl").write_text("mine\n")
    status, _, err = ett(capsys, f"simulate {FEW} --out {tmp_path}")
    assert status == 2
    assert "holds journals already" in err
    assert [path.name for path in tmp_path.iterdir()] == ["w.jsonl"]


def test_a_file_in_the_place_of_the_directory_is_named(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    status, _, err = ett(capsys, f"simulate {FEW} --out {tmp_path / 'file'}")
    assert (status, err) == (2, f"ett simulate: {tmp_path / 'file'}: File exists\n")


def test_a_truth_that_cannot_be_written_is_status_one(tmp_path, capsys):
    status, _, err = ett(capsys, f"simulate {FEW} --truth {tmp_path / 'no' / 'truth.json'}")
    assert (status, err) == (1, f"ett simulate: {tmp_path}/no/truth.json: No such file or directory\n")


def test_ended_by_hand_is_status_one_in_one_sentence(capsys):
    """Ctrl-C while the exporter does not answer."""

    def sleep(_seconds: float) -> None:
        raise KeyboardInterrupt

    arguments = parsed(*FEW.split(), "--exporter", "http://127.0.0.1:9")
    assert simulate.run(arguments, wall=World().wall, sleep=sleep) == 1
    assert capsys.readouterr().err == "ett simulate: ended by hand; what was delivered stays\n"


# Sending, to an exporter that is a function.


class World:
    """A clock that moves when somebody sleeps."""

    def __init__(self) -> None:
        self.now = float(END)
        self.slept: list[float] = []

    def wall(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def sender(answers: Callable[[bytes], Reply], world: World) -> Sender:
    return Sender(lambda lines, _: answers(lines), wall=world.wall, monotonic=world.wall, sleep=world.sleep)


def some_events(count: int) -> list[Progress]:
    envelope = {"job_id": "j", "writer": "w", "attempt": 0, "rank": 0, "time": END}
    return [Progress(**envelope, seq=seq, step=seq, steps=1) for seq in range(count)]


def accept(lines: bytes) -> Reply:
    return Reply(200, b'{"accepted": %d}' % lines.count(b"\n"))


def test_what_is_not_acknowledged_is_sent_again():
    world, seen = World(), []

    def answer(lines: bytes) -> Reply:
        seen.append(lines)
        if len(seen) == 1:
            raise ConnectionRefusedError(111, "Connection refused")
        return Reply(503, b"{}", retry_after_s=4.0) if len(seen) == 2 else accept(lines)

    sending = sender(answer, world)
    for event in some_events(3):
        sending.take(event)
    sending.flush()
    assert seen == [seen[0]] * 3
    assert world.slept[1] == 4.0
    assert sending.acknowledged == 3


def test_what_is_too_large_is_halved():
    sizes: list[int] = []

    def answer(lines: bytes) -> Reply:
        sizes.append(lines.count(b"\n"))
        return Reply(http.HTTPStatus.REQUEST_ENTITY_TOO_LARGE) if sizes[-1] > 3 else accept(lines)

    sending = sender(answer, World())
    for event in some_events(8):
        sending.take(event)
    sending.flush()
    assert sizes == [8, 4, 2, 2, 4, 2, 2]
    assert sending.acknowledged == 8


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Reply(404, b"<html>"), "is that an ettwatch exporter"),
        (Reply(503, b'{"error": "the disk is full"}'), "503 Service Unavailable: the disk is full"),
        (Reply(200, b'{"accepted": 1, "rejected": [{"line": 2, "reason": "bad"}]}'), "rejected 1 lines"),
    ],
)
def test_a_refusal_ends_it_with_the_reason(answer, reason):
    """For good at once; one that may pass, after a minute of trying."""
    world = World()
    sending = sender(lambda _: answer, world)
    sending.take(some_events(1)[0])
    with pytest.raises(SinkError, match=reason):
        sending.flush()
    assert sum(world.slept) <= 60.0


def test_many_lines_go_in_segments_of_bounded_size():
    sizes: list[int] = []

    def answer(lines: bytes) -> Reply:
        sizes.append(lines.count(b"\n"))
        return accept(lines)

    sending = sender(answer, World())
    for event in some_events(12_000):
        sending.take(event)
    sending.flush()
    assert sizes == [5_000, 5_000, 2_000]


# Playing live.


def test_history_comes_at_once_and_the_rest_when_it_is_due():
    shape = scenario("small", jobs=3, days=0.1)
    world, stream = World(), io.BytesIO()
    told = Fleet(shape, END * 1000).merged(shape.window_ms + 600_000)
    begin = END - shape.window_ms / 1000
    waits: list[float] = []

    class Noting(Stream):
        def take(self, event) -> None:
            waits.append(world.now - event.time)
            super().take(event)

    play(told, Noting(stream), begin=begin, now=END, speed=1.0, wall=world.wall, sleep=world.sleep)
    assert min(waits) > -1e-3
    assert max(wait for wait in waits if wait < shape.window_ms / 2000) > 0
    late = [decode(line) for line in stream.getvalue().splitlines()]
    assert sum(event.time > END for event in late) > 30
    assert world.now == pytest.approx(END + 600, abs=15)


def test_a_fleet_in_a_hurry_has_the_same_shares_of_time():
    """Moments and durations after the beginning shrink together."""
    hurry = Hurry(1000.0, 10.0)
    event = Progress(
        job_id="j",
        writer="w",
        seq=0,
        attempt=0,
        rank=0,
        time=1500.0,
        step=1,
        steps=1,
        data_wait_s=20.0,
        step_seconds=StepSeconds(10, 100.0, 20.0),
    )
    moved = hurry.event(event)
    assert (moved.time, moved.data_wait_s) == (1050.0, 2.0)
    assert moved.step_seconds == StepSeconds(10, 10.0, 2.0)


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    simulate.add_arguments(parser)
    return parser.parse_args(words)


def test_live_can_be_ended_by_hand(tmp_path, capsys):
    """Ctrl-C delivers what is due and says how much that was."""
    arguments = parsed("--live", "--days", "0.1", "--jobs", "2", "--out", str(tmp_path / "live"))
    world = World()

    def sleep(seconds: float) -> None:
        world.sleep(seconds)
        if world.now > END + 60:
            raise KeyboardInterrupt

    assert simulate.run(arguments, wall=world.wall, sleep=sleep) == 0
    out = capsys.readouterr().out
    lines = sum(len(path.read_bytes().splitlines()) for path in (tmp_path / "live").rglob("*.jsonl"))
    assert f"{lines:,} events delivered" in out
    assert lines > 100
    shape = scenario("small", jobs=2, days=0.1)
    told = Fleet(shape, END * 1000).merged(shape.window_ms + 24 * 3_600_000)
    past = sum(1 for _ in itertools.takewhile(lambda each: each[0] <= shape.window_ms, told))
    assert f"the past is delivered, {past:,} events" in out


# A real exporter.


@pytest.fixture
def exporter_url(tmp_path: Path) -> Iterator[str]:
    command = [str(Path(sys.executable).with_name("ett")), "exporter", "--port", "0"]
    command += ["--database", str(tmp_path / "ett.sqlite")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    try:
        readable, _, _ = select.select([process.stdout], [], [], 60.0)
        yield process.stdout.readline().split()[3] if readable else pytest.fail("no exporter within 60 s")
    finally:
        process.kill()
        process.communicate()


def jobs_of(url: str) -> dict[str, dict]:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"{url}/api/v1/jobs", timeout=30) as answer:
        return {job["job_id"]: job for job in json.load(answer)["jobs"]}


def test_an_exporter_answers_with_the_truth(exporter_url, tmp_path, capsys):
    """Of jobs that have ended the exporter tells exactly what was drawn, clocks and disorder or not."""
    truth = tmp_path / "truth.json"
    words = "--scenario failures --jobs 5 --train-hours 0.6 --days 0.6 --skew 0.3 --disorder 0.02"
    status, out, err = ett(capsys, f"simulate {words} --exporter {exporter_url} --truth {truth}")
    assert (status, err) == (0, "")
    assert out.splitlines()[-1] == f"  to look at them: ett dashboard --exporter {exporter_url}"
    told = [job for job in json.loads(truth.read_text())["jobs"] if job["finished"]]
    assert told
    found = eventually(lambda: jobs_of(exporter_url), lambda jobs: all(agrees(jobs, job) for job in told))
    for job in told:
        seen = found[job["job_id"]]
        assert seen["components"] == pytest.approx(job["components"], abs=1e-6)
        assert seen["groups"] == pytest.approx(group_seconds(job["components"]), abs=1e-5)
        assert (seen["state"], seen["failures"]) == (job["outcome"], len(job["failures"]))


def agrees(jobs: dict, job: dict) -> bool:
    """Whether the answer tells of all that was sent of a job."""
    seen = jobs.get(job["job_id"], {"components": {}})
    return seen["components"] == pytest.approx(job["components"], abs=1e-6)


def eventually(ask: Callable[[], dict], settled: Callable[[dict], bool]) -> dict:
    """The first answer that is settled; the list of jobs may be a second old."""
    pause = threading.Event()
    for _ in range(300):
        answer = ask()
        if settled(answer):
            break
        pause.wait(0.1)
    return answer


def test_no_exporter_is_status_one_with_the_reason(capsys):
    """Where nobody listens it gives up after a minute; what it was about to do was said before."""
    world = World()
    arguments = parsed(*FEW.split(), "--exporter", "http://127.0.0.1:9")
    assert simulate.run(arguments, wall=world.wall, sleep=world.sleep) == 1
    out, err = capsys.readouterr()
    assert err == "ett simulate: the exporter did not take the events: Connection refused\n"
    assert out.splitlines()[:2] == [
        "ett simulate: sends 0.2 days of 3 jobs (scenario small) to http://127.0.0.1:9; this takes a while",
        "  to look at them: ett dashboard --exporter http://127.0.0.1:9",
    ]
    assert 30.0 < sum(world.slept) <= 60.0
