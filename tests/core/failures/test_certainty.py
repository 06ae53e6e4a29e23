"""Certain is a line that says what happened, where no other line names another cause."""

from __future__ import annotations

import pytest

from ett_core.failures import Where, judge, scan

FULL = "OSError: [Errno 28] No space left on device: '/ckpt/step_9'"
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB"
NAN = "RuntimeError: loss is nan at step 12, aborting"

SAYS_WHAT_HAPPENED = {
    "a device without space": FULL,
    "an allocation that did not fit": OOM,
    "an assertion of the kernel itself": "RuntimeError: CUDA error: device-side assert triggered",
    "a symbol that no library has": "ImportError: acme_ops.so: undefined symbol: _ZN4acme5fusedEv",
}
SAYS_HOW_IT_WAS_NOTICED = {
    "an access that hardware may have spoilt": "CUDA error: an illegal memory access was encountered",
    "a fault that the device reports": "Memory access fault by GPU node-4 on address 0x7f12",
    "a device that gives no context": "CUDA error: all CUDA-capable devices are busy or unavailable",
    "a worker that touched no page": "DataLoader worker (pid 7) is killed by signal: Bus error.",
    "a descriptor that did not arrive": "RuntimeError: received 0 items of ancdata",
    "a name that a module lacks": "ImportError: cannot import name 'fused' from 'acme.ops'",
    "a node that gave no answer": "slurmctld: error: Nodes gpu-17 not responding, setting DOWN",
    "a node that is emptied": "scontrol: node gpu-17 State=DOWN+DRAIN Reason=the fan is loud [root]: drained",
}


def found(text: str):
    return judge(scan(text.encode(), Where(source="log")))


@pytest.mark.parametrize("text", SAYS_WHAT_HAPPENED.values(), ids=SAYS_WHAT_HAPPENED)
def test_what_happened_is_certain(text: str):
    assert found(text).confidence == "certain"


@pytest.mark.parametrize("text", SAYS_HOW_IT_WAS_NOTICED.values(), ids=SAYS_HOW_IT_WAS_NOTICED)
def test_what_several_causes_look_like_is_not(text: str):
    assert found(text).confidence != "certain"


@pytest.mark.parametrize(("one", "other"), [(FULL, OOM), (OOM, NAN), (NAN, FULL)])
def test_two_causes_in_one_log_are_not_certain_whichever_came_first(one: str, other: str):
    assert found(f"{one}\n{other}").confidence == found(f"{other}\n{one}").confidence == "likely"


def test_what_came_clearly_later_is_no_rival():
    assert found(f"2026-11-29 10:00:00 {OOM}\n2026-11-29 10:10:00 {NAN}").confidence == "certain"
    assert found(f"2026-11-29 10:00:00 {OOM}\n2026-11-29 10:00:02 {NAN}").confidence == "likely"


def test_an_exception_that_only_repeats_what_happened_is_no_rival():
    assert found(f"{OOM}\nRuntimeError: training of fold 3 did not end well").confidence == "certain"


def test_who_took_the_hardware_back_may_say_so_in_several_words():
    slurm = "slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-01-02T03:04:05 DUE TO PREEMPTION ***"
    pod = 'pod "ns/trainer-0" is disrupted: reason "EvictionByEvictionAPI"'
    assert found(f"{slurm}\n{pod}").confidence == "certain"
