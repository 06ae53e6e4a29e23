"""Which of many pieces of evidence is the root: time decides, and a victim is not a cause."""

from __future__ import annotations

from datetime import datetime, timezone
from itertools import permutations

import pytest

from ett_core.failures import Where, judge, scan

OOM = "[rank2]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."
WAIT = "[Rank 5] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, Timeout(ms)=600000) ran"
DAY = datetime(2026, 11, 29, tzinfo=timezone.utc)


def seen(text: str, **where):
    return scan(text.encode(), Where(source=where.pop("source", "log"), **where))


def test_a_victim_is_not_the_cause_whatever_the_order_of_the_files():
    logs = [
        seen(f"2026-11-29 10:00:00 {OOM}", source="rank2.log"),
        seen(f"2026-11-29 10:10:00 {WAIT}", source="rank5.log"),
        seen("2026-11-29 10:10:01 [rank0] Connection closed by localRank 5", source="rank0.log"),
    ]
    found = [judge([s for log in order for s in log]) for order in permutations(logs)]
    assert {(f.failure_class, f.role, f.rank) for f in found} == {("gpu_oom", "root", 2)}


def test_time_goes_before_the_order_of_lines():
    late = "2026-11-29 10:10:00 [rank1]: KeyError: 'x'"
    early = "2026-11-29 10:02:00 [rank3]: RuntimeError: CUDA error: uncorrectable ECC error encountered"
    assert judge(seen(f"{late}\n{early}")).failure_class == "gpu_ecc"


def test_a_wait_of_exactly_the_time_out_after_a_save_is_the_save():
    began = "2026-02-18 10:28:25,496 - root - INFO - Saving latest checkpoint"
    ended = "2026-02-18T10:48:25.681Z Watchdog caught collective operation timeout: Timeout(ms)=1200000) ran"
    assert judge(seen(f"{began}\n{ended}")).failure_class == "checkpoint_stall"
    other = ended.replace("1200000", "600000")
    assert judge(seen(f"{began}\n{other}")).failure_class == "collective_timeout"


@pytest.mark.parametrize("exit_code", [-9, 137])
def test_a_kill_without_a_witness_is_at_most_likely_the_host_s_memory(exit_code: int):
    found = judge(seen(f"failed (exitcode: {exit_code}) local_rank: 1 (pid: 1168) of binary: python"))
    assert (found.failure_class, found.confidence, found.rank) == ("host_oom", "likely", 1)


def test_a_kill_with_a_kernel_line_is_certain():
    rank = seen("failed (exitcode: -9) local_rank: 1 (pid: 1168) of binary: python")
    kernel = seen("Out of memory: Killed process 1168 (python)", source="kernel")
    found = judge([*rank, *kernel])
    assert (found.failure_class, found.confidence) == ("host_oom", "certain")


def test_the_process_that_the_kernel_ended_is_quoted_and_not_the_call_before():
    called = "Nov 29 10:00:01 n3 kernel: python invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0"
    tasks = "\n".join(f"Nov 29 10:00:01 n3 kernel: [  {pid}]  1000 {pid} 2000 python" for pid in range(90))
    killed = "Nov 29 10:00:02 n3 kernel: Out of memory: Killed process 1168 (python) total-vm:9kB"
    found = judge(seen(f"{called}\n{tasks}\n{killed}", date=DAY))
    assert (found.failure_class, found.message) == ("host_oom", killed)
    assert [line.line for line in found.evidence] == [1, 92]
    later = killed.replace("10:00:02", "11:00:02")
    assert judge(seen(f"{called}\n{tasks}\n{later}", date=DAY)).message == called


def test_a_kill_that_the_kernel_did_not_do_came_from_somebody():
    rank = seen("failed (exitcode: -9) local_rank: 1 (pid: 1168) of binary: python")
    denied = seen(
        "memory cgroup: the kernel's oom-killer ended no process of this job's cgroup", source="kernel"
    )
    found = judge([*rank, *denied])
    assert (found.failure_class, found.domain, found.confidence) == ("external_stop", "unknown", "likely")


ENDS = {
    "it aborted after a wait": (
        f"10:00:00 {WAIT}\n10:00:01 failed (exitcode: -6) local_rank: 1 (pid: 7)",
        "collective_timeout",
    ),
    "it was killed after a wait": (
        f"10:00:00 {WAIT}\n10:00:01 failed (exitcode: -9) local_rank: 1 (pid: 7)",
        "collective_timeout",
    ),
    "others waited after it was killed": (
        f"10:00:00 failed (exitcode: -9) local_rank: 1\n10:10:00 {WAIT}",
        "host_oom",
    ),
    "it was killed while nothing moved": ("10:00:00 no progress for 600 s\n10:00:01 exitcode: -9", "hang"),
    "it aborted when it had lost a peer": (
        "what():  Connection closed by peer [10.0.0.4]:5\nFatal Python error: Aborted",
        "peer_failure",
    ),
    "it aborted, with nothing before": ("Aborted (core dumped)", "native_crash"),
}


@pytest.mark.parametrize(("text", "failure_class"), ENDS.values(), ids=ENDS.keys())
def test_an_end_counts_as_a_cause_only_where_nothing_was_waited_for_before(text, failure_class):
    assert judge(seen(text)).failure_class == failure_class


@pytest.mark.parametrize("text", ["srun: error: n4: task 7: Exited with exit code 1", "FATAL: state 7"])
def test_an_end_of_an_unknown_kind_is_no_root(text):
    found = judge(seen(text))
    assert (found.failure_class, found.role) == ("unknown", "cascade")


def test_a_launcher_s_report_of_an_end_names_no_cause():
    report = "E1014 11:53:57.6 13 api.py:826] failed (exitcode: 1) local_rank: 0 of binary: /opt/app/python"
    assert judge(seen(report)).failure_class == "unknown"


def test_sigterm_alone_proves_nothing():
    found = judge(seen("W1129 10:00:00.0 1 api.py:719] Received 15 death signal, shutting down workers"))
    assert (found.failure_class, found.domain) == ("external_stop", "unknown")


def test_an_exception_explains_less_than_what_its_own_traceback_says():
    outer = "torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:"
    inner = "OSError: [Errno 28] No space left on device"
    assert judge(seen(f"{outer}\n{inner}")).failure_class == "storage_full"


def test_nothing_is_found_in_a_run_that_goes_well():
    found = judge(seen("step 1 loss 0.3\nstep 2 loss 0.2\n"))
    assert (found.failure_class, found.evidence) == ("not_a_failure", ())


def test_a_warning_ends_nothing():
    assert (
        judge(seen("W0306 14:40:15.9 1 x.py] out of resource: shared memory")).failure_class
        == "not_a_failure"
    )


def test_evidence_is_in_time_order_bounded_and_one_line_a_rank():
    waits = "\n".join(f"2026-11-29 10:{n % 60:02}:00 {WAIT}" for n in range(500))
    found = judge(seen(f"{waits}\n2026-11-29 09:59:00 {OOM}"))
    assert len(found.evidence) <= 20
    assert [e.time for e in found.evidence] == sorted(e.time for e in found.evidence)
    assert found.evidence[0].role == "root"


def test_what_is_shown_holds_no_control_characters():
    found = judge(seen("\x1b[31mRuntimeError: \x00boom\x07\u202e"))
    assert found.message.isprintable()


def test_moments_without_a_date_take_the_day_they_are_given():
    (found,) = seen("10:00:00 KeyError: 'x'", date=DAY)
    assert found.time == datetime(2026, 11, 29, 10, tzinfo=timezone.utc).timestamp()
    (unknown,) = seen("10:00:00 KeyError: 'x'")
    assert unknown.time is None
    assert unknown.order_s is not None


def test_a_log_that_crosses_midnight_goes_on():
    first, second = seen("2026-11-29 23:59:59 KeyError: 'x'\n00:00:05 KeyError: 'y'")
    assert second.time - first.time == pytest.approx(6.0)


def test_a_full_device_below_a_semaphore_is_shared_memory_and_the_root():
    """The frame that tells it stands beside the evidence; a path of a file in the message says otherwise."""
    log = "    sl = self._semlock = _multiprocessing.SemLock(\nOSError: [Errno 28] No space left on device"
    found = judge(scan(log.encode()))
    assert (found.failure_class, found.role) == ("shm_exhausted", "root")
    assert [(each.line, each.role) for each in found.evidence] == [(1, "context"), (2, "root")]
    assert judge(scan(f"{log}: '/ckpt/1'".encode())).failure_class == "storage_full"


def test_a_rank_that_ended_by_sigterm_says_more_than_the_agent_that_ended_the_others():
    agent = "10:00:00 W1129 1 api.py:897] Sending process 165 closing signal SIGTERM"
    rank = "10:00:01 E1129 1 api.py:882] failed (exitcode: -15) local_rank: 1 (pid: 7)"
    assert judge(seen(f"{agent}\n{rank}")).failure_class == "external_stop"
    assert judge(seen(agent)).failure_class == "peer_failure"


def test_a_signal_that_words_alone_tell_of_is_no_root():
    (told,) = seen("acme.Halted: got signal 15")
    assert (told.failure_class, told.role) == ("external_stop", "teardown")
