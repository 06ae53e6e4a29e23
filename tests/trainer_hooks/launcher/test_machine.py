"""What the machine says beside a job: the kernel's log, the counters of the memory cgroup."""

from __future__ import annotations

import pytest

from ett_trainer_hooks.launcher.cgroup import OomCounter, limit_of
from ett_trainer_hooks.launcher.kernel import KernelLog, record

XID = (
    b"3,900,5140900000,-;NVRM: Xid (PCI:0000:07:00): 79, pid=12, GPU has fallen off the bus.\n DEVICE=+pci\n"
)
OOM = b"6,901,5141000000,-;Out of memory: Killed process 4711 (python3) total-vm:1kB, anon-rss:1kB\n"
DULL = b"6,902,5142000000,-;eth0: link becomes ready\n"


def cgroups(tmp_path, line, file, limit=""):
    proc, root = tmp_path / "proc", tmp_path / "cgroup"
    (proc / "self").mkdir(parents=True)
    (proc / "self" / "cgroup").write_text(line)
    path = root / file
    path.parent.mkdir(parents=True)
    if limit:
        name, text = limit.split("=")
        (path.parent / name).write_text(text)

    def write(count):
        path.write_text(f"low 0\nhigh 0\nmax 17\noom 3\noom_kill {count}\n")

    write(1)
    return OomCounter(proc, root), write


@pytest.mark.parametrize(
    ("line", "file", "limit"),
    [
        ("0::/job/step\n", "job/step/memory.events", "memory.max=1024"),
        ("0::/\n", "memory.events", "memory.max=1024"),
        ("0::/../../host/pod\n", "memory.events", "memory.max=1024"),
        ("0::/a/b\n", "unified/a/b/memory.events", "memory.max=1024"),
        (
            "4:cpu:/\n3:hugetlb,memory:/slurm\n",
            "memory/slurm/memory.oom_control",
            "memory.limit_in_bytes=1024",
        ),
        ("4:memory:/of/the/host\n0::/\n", "memory/memory.oom_control", "memory.limit_in_bytes=1024"),
    ],
)
def test_processes_that_the_kernel_ended_for_want_of_memory_are_counted(tmp_path, line, file, limit):
    """In version 1 and 2, in a container and outside; what was counted before is not of this job."""
    counter, write = cgroups(tmp_path, line, file, limit)
    assert counter.look() == ""
    write(3)
    sentence = counter.look()
    assert "oom-killer ended 2 processes of this job's cgroup" in sentence
    assert "oom_kill 1 -> 3, limit 1024 bytes" in sentence
    assert counter.look() == ""
    assert counter.kills == 2


def test_a_kernel_that_ended_nothing_says_so(tmp_path):
    """As long as no process of the job was ended for want of memory, and never after."""
    counter, write = cgroups(tmp_path, "0::/job\n", "job/memory.events")
    assert "oom-killer ended no process of this job's cgroup" in counter.denial()
    write(2)
    assert counter.denial() == ""
    counter.look()
    assert counter.denial() == ""


def test_a_machine_without_counters_says_nothing(tmp_path):
    """Nor does one whose counters go away."""
    assert OomCounter(tmp_path, tmp_path).denial() == ""
    assert OomCounter(tmp_path, tmp_path).look() == ""
    counter, _ = cgroups(tmp_path, "0::/\n", "memory.events")
    (tmp_path / "cgroup" / "memory.events").unlink()
    assert counter.look() == ""


@pytest.mark.parametrize("text", ["max\n", "9223372036854771712\n"])
def test_a_limit_that_is_none_is_called_so(tmp_path, text):
    (tmp_path / "memory.max").write_text(text)
    assert limit_of(tmp_path) == "no limit of its own"
    assert limit_of(tmp_path / "nowhere") == "limit unknown"


def test_telling_lines_of_the_kernel_are_found_from_now_on(tmp_path):
    """What was said before is not of this job; dull lines and details are left out."""
    path = tmp_path / "kmsg"
    path.write_bytes(OOM)
    log = KernelLog(path)
    assert log.look() == []
    with path.open("ab") as file:
        file.write(DULL + XID + OOM)
    found = log.look()
    assert [line.uptime_s for line in found] == [5140.9, 5141.0]
    assert found[0].text.endswith("GPU has fallen off the bus.")
    assert log.look() == []
    log.close()


def test_a_log_that_may_not_be_read_is_an_empty_one(tmp_path):
    log = KernelLog(tmp_path / "none")
    assert log.look() == []
    log.close()


@pytest.mark.parametrize("data", [b"", b"x", b"6,1;no time", b"6,1,x,-;no number", b"\xff,\xff,1,-"])
def test_a_record_that_is_none_is_left_out(data):
    assert record(data) is None


@pytest.mark.parametrize(
    "text",
    [
        "INFO: task python:4711 blocked for more than 120 seconds.",
        "mce: [Hardware Error]: Machine check events logged",
        "nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, Non-fatal",
        "python3[99]: segfault at 0 ip 0000 sp 0000 error 4",
        "EXT4-fs error (device sda1): bad block",
        "nfs: server filer not responding, timed out",
    ],
)
def test_lines_of_hardware_and_storage_count(tmp_path, text):
    path = tmp_path / "kmsg"
    path.touch()
    log = KernelLog(path)
    path.write_bytes(f"4,1,1000000,-;{text}\n".encode())
    assert [line.text for line in log.look()] == [text]
    log.close()
