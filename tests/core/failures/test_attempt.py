"""A failed attempt is judged by what was reported of it: how it ended, and the lines beside."""

from __future__ import annotations

import pytest

from ett_core.accounting import FailureAccount
from ett_core.evidence_log import EvidenceLine
from ett_core.failures import diagnose

AT = 1_795_946_400.0


def failed(**facts) -> FailureAccount:
    known = dict.fromkeys(("exception", "message", "exit_code", "signal", "status", "rank"))
    fixed = {
        "attempt": 0,
        "time": AT,
        "node": "n1",
        "silent": False,
        "ttr_s": None,
        "unsaved_s": 0.0,
        "fallback_step": None,
        "resume_evidence": "unknown",
    }
    return FailureAccount(**{**fixed, **known, **facts})


def line(
    text: str, time: float = AT, rank: int = 0, source: str = "stderr", node: str = "n1"
) -> EvidenceLine:
    return EvidenceLine(time=time, rank=rank, writer="w", seq=0, node=node, source=source, text=text)


FACTS = {
    "an exception": ({"exception": "KeyError", "message": "KeyError: 'x'", "rank": 3}, "user_code", "likely"),
    "an exception of the tables": (
        {
            "exception": "OutOfMemoryError",
            "message": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB",
        },
        "gpu_oom",
        "certain",
    ),
    "SIGKILL": ({"signal": 9, "rank": 1}, "host_oom", "likely"),
    "a shell's SIGKILL": ({"exit_code": 137}, "host_oom", "likely"),
    "SIGSEGV": ({"signal": 11}, "native_crash", "likely"),
    "SIGTERM": ({"signal": 15}, "external_stop", "likely"),
    "a bare exit code": ({"exit_code": 1}, "unknown", "unknown"),
    "preempted": ({"status": "preempted"}, "preempted", "certain"),
    "time limit": ({"status": "timed_out"}, "time_limit", "certain"),
    "cancelled": ({"status": "cancelled"}, "user_cancelled", "certain"),
    "silence": ({"silent": True}, "unknown", "unknown"),
    "nothing": ({}, "unknown", "unknown"),
}


@pytest.mark.parametrize(("facts", "failure_class", "confidence"), FACTS.values(), ids=FACTS.keys())
def test_how_it_ended_tells_what_it_can_and_no_more(facts, failure_class, confidence):
    found = diagnose(failed(**facts), [])
    assert (found.failure_class, found.confidence) == (failure_class, confidence)


def test_a_line_of_the_kernel_makes_a_kill_certain():
    kernel = line("Out of memory: Killed process 12 (python)", source="kernel", rank=-1, time=AT - 1)
    found = diagnose(failed(signal=9, rank=1), [kernel])
    assert (found.failure_class, found.confidence, found.rank) == ("host_oom", "certain", 1)


def test_the_rank_that_failed_first_is_the_one_to_look_at():
    lost = line("RuntimeError: Connection closed by peer", time=AT + 1, rank=0)
    cause = line("KeyError: 'x'", time=AT - 2, rank=5, node="n2")
    found = diagnose(
        failed(exception="RuntimeError", message="Connection closed by peer", rank=0), [cause, lost]
    )
    assert (found.failure_class, found.role, found.rank, found.node) == ("user_code", "root", 5, "n2")


def test_warnings_beside_an_unknown_end_do_not_make_it_no_failure():
    warning = line("W0306 14:40:15.9 1 x.py] out of resource: shared memory")
    assert diagnose(failed(exit_code=1), [warning]).failure_class == "unknown"


def test_evidence_carries_the_times_that_were_reported():
    found = diagnose(failed(exit_code=1), [line("10:00:00 KeyError: 'x'", time=AT - 5)])
    assert found.evidence[0].time == AT - 5


def test_a_job_that_was_ended_because_it_stood_still_hung_whatever_its_end_looks_like():
    """The SIGTERM that follows came from the watchdog."""
    lines = [
        line("no progress for 302 s on this node: rank 0 in the loop", AT - 302, rank=-1, source="stall"),
        line("stalled: no progress for 302 s; ended by the launcher", AT, rank=-1, source="failure"),
        line("received SIGTERM", AT + 0.1, source="failure"),
    ]
    found = diagnose(failed(signal=15), lines)
    assert (found.failure_class, found.confidence) == ("hang", "certain")


def test_of_a_job_that_stood_still_the_rank_that_was_stopped_is_the_one_to_look_at():
    stack = "rank {} in the loop (pid 7)\nprocess: {}\nThread 7: all_reduce (distributed_c10d.py)"
    lines = [
        line(stack.format(0, "S (sleeping)"), source="stack", rank=-1),
        line(stack.format(1, "T (stopped)"), source="stack", rank=-1),
        line("stalled: no progress for 302 s; ended by the launcher", rank=-1, source="failure"),
    ]
    assert diagnose(failed(signal=15), lines).rank == 1
    assert diagnose(failed(signal=15), lines[2:]).rank is None


def test_names_of_functions_in_stacks_are_no_evidence_of_what_happened():
    stack = line(
        "Thread 7: raise_for\n  CUDA out of memory. Tried to allocate 2 GiB", source="stack", rank=-1
    )
    assert diagnose(failed(exit_code=1), [stack]).failure_class == "unknown"


def test_what_a_traceback_says_explains_the_exception_that_the_rank_reported():
    """Torch answers a checkpoint that was cut short with EINVAL; the frame before it tells whose it is."""
    printed = line(
        "[rank1]: Traceback (most recent call last):\n"
        "    super().__init__(torch._C.PyTorchFileReader(name_or_buffer))\n"
        "OSError: [Errno 22] Invalid argument",
        AT + 0.2,
        rank=-1,
    )
    words = {"exception": "OSError", "message": "OSError: [Errno 22] Invalid argument", "rank": 1}
    found = diagnose(failed(**words), [printed])
    assert (found.failure_class, found.confidence, found.rank) == ("checkpoint_corrupt", "likely", 1)
    assert diagnose(failed(**words), []).failure_class == "user_code"


def test_a_rank_whose_words_a_launcher_passes_on_is_the_one_to_look_at():
    printed = line("[rank3]: Traceback (most recent call last):\nKeyError: 'x'", AT - 1, rank=-1)
    assert diagnose(failed(exit_code=1), [printed]).rank == 3


def test_a_launcher_s_word_of_a_signal_is_the_end_of_a_rank():
    told = line("rank 1 (pid 12) was ended by signal 9 (SIGKILL)", AT, rank=1, source="failure")
    found = diagnose(failed(exit_code=1), [told])
    assert (found.failure_class, found.confidence, found.rank) == ("host_oom", "likely", 1)


def test_a_rank_that_its_launcher_or_torchrun_killed_did_not_run_out_of_memory():
    """Who sent a SIGKILL is known here: nothing points at the kernel."""
    told = "rank 1 (pid 12) was ended by signal 9 (SIGKILL), sent by torchrun"
    found = diagnose(failed(signal=9, rank=1, message=told), [line(told, AT, rank=1, source="failure")])
    assert found.failure_class != "host_oom"
    died = line("RuntimeError: CUDA error: device-side assert triggered", AT - 1, rank=0, source="stderr")
    assert diagnose(failed(signal=9, rank=1, message=told), [died]).rank == 0


def test_the_rank_that_somebody_killed_is_the_root_and_not_those_that_torchrun_then_stopped():
    """As in the demo, where the kernel says that it was not for want of memory."""
    killed = "rank 1 was killed by SIGKILL (sender unknown)\nrank 1 (pid 12) was ended by signal 9 (SIGKILL)"
    denied = "memory cgroup: the kernel's oom-killer ended no process of this job's cgroup (/x: oom_kill 0)"
    stopped = "rank 0 was stopped by SIGTERM (sent by torchrun)\nreceived SIGTERM"
    lines = [
        line(killed, AT - 0.05, rank=-1, source="failure"),
        line(denied, AT - 0.05, rank=-1, source="kernel"),
        line(stopped, AT, rank=0, source="failure"),
        line("rank 0 (pid 11) was sent SIGTERM by torchrun", AT + 0.2, rank=-1, source="launcher"),
    ]
    found = diagnose(failed(signal=9, rank=1, message=killed.splitlines()[1]), lines)
    assert (found.failure_class, found.confidence, found.rank) == ("external_stop", "likely", 1)
    assert {each.role for each in found.evidence if "SIGTERM" in each.text} <= {"teardown"}
    assert [each.text for each in found.evidence if each.role == "root"] == [killed.splitlines()[1]]


@pytest.mark.parametrize(
    ("word", "failure_class"),
    [("preempted", "preempted"), ("timed_out", "time_limit"), ("cancelled", "user_cancelled")],
)
def test_a_rank_that_was_stopped_with_its_launcher_ended_as_the_job_did(word, failure_class):
    """The SIGTERM that the rank got was passed on."""
    words = f"the launcher was told to stop: SIGTERM from pid 7 (sh) of root; the job ends as {word}"
    told = line(words, AT - 0.1, rank=-1, source="launcher")
    assert diagnose(failed(signal=15, rank=1), [told]).failure_class == failure_class


@pytest.mark.parametrize(
    ("status", "failure_class", "confidence"),
    [("preempted", "maintenance", "certain"), ("failed", "maintenance", "likely")],
)
def test_a_line_says_how_the_hardware_was_taken_back_and_the_status_that_it_was(
    status, failure_class, confidence
):
    drained = line("slurmctld: node n1 state set to DRAIN: host maintenance", rank=-1, source="scheduler")
    found = diagnose(failed(status=status), [drained])
    assert (found.failure_class, found.confidence, found.message) == (failure_class, confidence, drained.text)


def test_the_rank_that_the_kernel_ended_is_named_and_not_the_one_that_noticed():
    lines = [
        line("rank 1 (pid 12) was ended by signal 9 (SIGKILL)", AT + 0.1, rank=-1, source="failure"),
        line(
            "memory cgroup out of memory: the kernel's oom-killer ended 1 process", rank=-1, source="kernel"
        ),
    ]
    lost = {"exception": "RuntimeError", "message": "Connection closed by peer", "rank": 0}
    found = diagnose(failed(**lost), lines)
    assert (found.failure_class, found.confidence, found.rank) == ("host_oom", "certain", 1)


def test_a_full_disk_explains_a_save_that_torch_broke_off_without_a_reason():
    words = "RuntimeError: [enforce fail at inline_container.cc:672] . unexpected pos 17728 vs 17680"
    broke = {"exception": "RuntimeError", "message": words, "rank": 1}
    disk = line(
        "no space left on device: 0 of 1048576 bytes are free where /ckpt/1.pt was", AT - 0.1, 1, "disk"
    )
    assert diagnose(failed(**broke), []).failure_class == "checkpoint_save_failed"
    found = diagnose(failed(**broke), [disk])
    assert (found.failure_class, found.confidence, found.rank) == ("storage_full", "certain", 1)


def test_a_crash_of_which_the_kernel_alone_tells_may_be_a_neighbour_s():
    crash = line("python[77]: segfault at 0 ip 00007f1 sp 00007ffd error 4 in x.so", rank=-1, source="kernel")
    stopped = line(
        "rank 1 was stopped by SIGTERM (sender unknown)\nreceived SIGTERM", AT + 1, source="failure"
    )
    assert diagnose(failed(signal=15), [crash, stopped]).failure_class == "external_stop"
    assert diagnose(failed(signal=11), [crash]).failure_class == "native_crash"


STILL = "no progress for 302 s on this node: {}"
IN_A_SAVE = STILL.format(
    "rank 0 in the loop (last report: step 8); rank 1 in checkpoint (last report: step 8)"
)
INSIDE = {
    "one rank saved": (IN_A_SAVE, "checkpoint_stall", 1),
    "all saved": (STILL.format("ranks 0-1 in checkpoint (last report: step 8)"), "checkpoint_stall", None),
    "one rank compiled": (STILL.format("ranks 0, 2 in the loop; rank 5 in compile"), "compile_slow", 5),
    "before the first step": (
        STILL.format("ranks 0-7 in compile, before its first step"),
        "compile_slow",
        None,
    ),
    "they did different things": (STILL.format("rank 0 in compile; rank 1 in checkpoint"), "hang", None),
    "all were in the loop": (STILL.format("ranks 0-1 in the loop (last report: step 8)"), "hang", None),
    "one loaded a checkpoint": (STILL.format("rank 0 in checkpoint_load; rank 1 in the loop"), "hang", None),
}


@pytest.mark.parametrize(("told", "failure_class", "rank"), INSIDE.values(), ids=INSIDE.keys())
def test_a_job_that_stood_still_in_a_save_or_a_compilation_is_told_so(told, failure_class, rank):
    ended = line("stalled: no progress for 302 s; ended by the launcher", rank=-1, source="failure")
    found = diagnose(failed(signal=15), [line(told, AT - 1, rank=-1, source="stall"), ended])
    assert (found.failure_class, found.role, found.rank) == (failure_class, "root", rank)
    assert found.confidence == ("certain" if failure_class == "hang" else "likely")
    assert (found.message == told) is (failure_class != "hang")


def test_ranks_that_waited_for_a_save_until_their_time_out_are_its_victims():
    waited = "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, Timeout(ms)=600000) ran"
    facts = {"exception": "DistBackendError", "message": waited, "rank": 0}
    stall = line(IN_A_SAVE, AT - 300, rank=-1, source="stall")
    found = diagnose(failed(**facts), [stall])
    assert (found.failure_class, found.domain, found.rank) == ("checkpoint_stall", "infrastructure", 1)
    over = line("the stall is over after 9 s: there is progress again", AT - 200, rank=-1, source="stall")
    assert diagnose(failed(**facts), [stall, over]).failure_class != "checkpoint_stall"


HELD = "rank 1 (pid 7) was stopped for 2.0 of the last 2.0 s: by a signal or a debugger; the others wait"
RUNS = "rank 1 (pid 7) runs again: it was stopped for 9.0 of 9.0 s"


def test_a_rank_that_stood_stopped_is_the_one_that_the_others_waited_for():
    """Whether the launcher ended the job, or a time-out of the others did."""
    held, runs = (line(text, AT - back, rank=-1, source="stopped") for text, back in ((HELD, 90), (RUNS, 80)))
    still = line(STILL.format("ranks 0-1 in the loop (last report: step 8)"), AT - 1, rank=-1, source="stall")
    ended = line("stalled: no progress for 302 s; ended by the launcher", rank=-1, source="failure")
    found = diagnose(failed(signal=15), [held, still, ended])
    assert (found.failure_class, found.confidence, found.rank) == ("hang", "certain", 1)
    waited = {
        "exception": "RuntimeError",
        "message": "Timed out waiting 60000ms for recv operation to complete",
    }
    found = diagnose(failed(rank=0, **waited), [held])
    assert (found.failure_class, found.role, found.confidence) == ("straggler", "root", "likely")
    assert (found.rank, found.message) == (1, HELD)
    assert diagnose(failed(rank=0, **waited), [held, runs]).failure_class == "collective_timeout"
