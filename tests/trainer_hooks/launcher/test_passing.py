"""Output passes through whoever reads it, however slowly, and whatever becomes of its file."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ett_trainer_hooks.launcher.output.follow import OpenTail
from ett_trainer_hooks.launcher.output.passing import Passing, stream_sink
from ett_trainer_hooks.launcher.output.room import OutputRoom

ETT = str(Path(sys.executable).with_name("ett"))
PRINTS = "import sys; sys.stdout.write('x' * 3_000_000); sys.stdout.flush(); sys.exit(5)"
STEPS = """
import sys, time
for step in range(300):
    print(step, "x" * 5000)
    time.sleep(0.005)
sys.exit(7)
"""


def test_a_slow_reader_gets_everything(tmp_path, trainer_env):
    """Who begins to read long after the command is over is waited for, as the command would."""
    words = [ETT, "run", "--quiet", "--journal-dir", str(tmp_path / "j"), "--", sys.executable, "-c", PRINTS]
    with subprocess.Popen(words, env=trainer_env, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        pause = threading.Event()
        pause.wait(6.0)
        assert child.stdout.read() == b"x" * 3_000_000
    assert child.returncode == 5


def test_a_reader_that_has_stopped_is_not_waited_for_once_the_job_is_asked_to_stop(tmp_path):
    """It is said that output was not passed on."""
    path, blocked = tmp_path / "out", threading.Event()
    path.write_bytes(b"x" * 100)
    passing = Passing(path, lambda _: blocked.wait())
    told: list[str] = []
    thread = threading.Thread(target=lambda: told.append(passing.finish(lambda: True)))
    thread.start()
    thread.join(30.0)
    blocked.set()
    assert told == ["whoever reads it took no more"]


def test_output_that_rested_for_long_before_a_stop_passes_all_the_same(tmp_path):
    """Silence of the command is no silence of the reader."""
    path, passed = tmp_path / "out", []
    path.touch()
    passing = Passing(path, passed.append)
    passing._moved_s -= 1000.0
    path.write_bytes(b"the last words")
    assert passing.finish(lambda: True) == ""
    assert b"".join(passed) == b"the last words"


def test_output_that_nobody_takes_is_told(tmp_path):
    """A full disk behind the standard output: the reason is given, and the command is not touched."""
    path = tmp_path / "out"
    path.write_bytes(b"x")
    with Path("/dev/full").open("w") as full:
        assert Passing(path, stream_sink(full)).finish(lambda: False) == "No space left on device"


def test_a_descriptor_that_does_not_block_gets_everything(tmp_path):
    """As a terminal that another program has set so."""
    path = tmp_path / "out"
    path.write_bytes(b"x" * 1_000_000)
    reads, writes = os.pipe()
    os.set_blocking(writes, False)
    with os.fdopen(reads, "rb") as reader, os.fdopen(writes, "w") as writer:
        passing = Passing(path, stream_sink(writer))
        assert len(reader.read(1_000_000)) == 1_000_000
        assert passing.finish(lambda: False) == ""


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_stream_that_is_closed_stops_no_command(tmp_path, trainer_env, closed):
    """The command runs, its status passes, and nothing of ours gets into the other stream."""
    program = "print(1); raise SystemExit(3)"
    run = f"{ETT} run --journal-dir {tmp_path}/j -- {sys.executable} -c '{program}' {closed}"
    done = subprocess.run(["bash", "-c", run], env=trainer_env, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert done.stdout == ("1\n" if ">&-" not in closed.replace("2>&-", "") else "")


def test_output_whose_file_is_removed_still_passes(tmp_path):
    """What was written before and after, and what the next attempt writes under the same name."""
    path = tmp_path / "out"
    tail = OpenTail(path)
    assert tail.read() == b""
    with path.open("ab", buffering=0) as file:
        file.write(b"one")
        assert tail.read() == b"one"
        path.unlink()
        file.write(b"two")
        assert tail.read() == b"two"
    path.write_bytes(b"three")
    assert (tail.left(), tail.read()) == (0, b"three")
    tail.close()


def test_a_job_outlives_the_removal_of_its_journals(ett_run, eventually, tmp_path):
    """Status and all of the output are those of the command."""
    child = ett_run(STEPS)
    printed = (tmp_path / "journal").glob
    eventually(lambda: any(path.stat().st_size for path in printed("*.stdout.log")))
    shutil.rmtree(tmp_path / "journal", ignore_errors=True)
    out, _ = child.communicate(timeout=60.0)
    assert child.returncode == 7
    assert len(out.splitlines()) == 300


def test_a_full_disk_ends_no_program_that_prints(tmp_path, trainer_env):
    """A job prints twice what the disk of its journals holds: it ends as ever, and all of it passes."""
    program = tmp_path / "train.py"
    program.write_text(STEPS)
    place = tmp_path / "disk"
    place.mkdir()
    inside = (
        f"mount -t tmpfs -o size=700k none {place} || exit 99; "
        f"exec {ETT} run --journal-dir {place}/j -- {sys.executable} {program}"
    )
    own = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    words = ["unshare", "--mount", *own, "bash", "-c", inside]
    done = subprocess.run(words, env=trainer_env, capture_output=True, text=True, check=False)
    if done.returncode == 99 or "unshare:" in done.stderr:
        pytest.skip(f"no disk of one's own here: {done.stderr}")
    assert done.returncode == 7, done.stderr
    assert len(done.stdout.splitlines()) == 300


def test_room_is_set_aside_and_given_back(tmp_path):
    """Blocks ahead of the end while somebody may print, none after it; the size is that of the output."""
    path = tmp_path / "out"
    path.write_bytes(b"x" * 10_000)
    room = OutputRoom(path, lambda: 0, lambda _: None)
    room.look()
    held = path.stat().st_blocks * 512
    if held < 1_000_000:
        pytest.skip("the file system here sets nothing aside")
    room.close()
    assert path.stat().st_blocks * 512 < 100_000
    assert path.read_bytes() == b"x" * 10_000


def test_on_a_full_disk_output_that_was_passed_on_makes_room(tmp_path):
    """Only what was passed on is given up; that is said once."""
    path = tmp_path / "out"
    path.write_bytes(b"x" * 100_000)
    calls: list[tuple[int, int, int]] = []
    said: list[Path] = []

    def allocate(_: int, mode: int, offset: int, size: int) -> None:
        calls.append((mode, offset, size))
        if mode == 1:
            raise OSError(28, "No space left on device")

    room = OutputRoom(path, lambda: 50_000, said.append, allocate)
    room.look()
    room.look()
    assert [call for call in calls if call[0] == 3] == [(3, 0, 49152)]
    assert (room.given_up, said) == (49152, [path])
