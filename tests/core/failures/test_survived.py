"""A traceback that Python ignored, or that training outlived, has ended nothing."""

from __future__ import annotations

import pytest

from ett_core.failures import judge, scan

CALLS = """Traceback (most recent call last):
  File "train.py", line 3, in step
    work()
"""
IGNORED = """Exception ignored in: <function Pool.__del__ at 0x7f>
Traceback (most recent call last):
  File "pool.py", line 268, in __del__
    self.put(None)
OSError: [Errno 9] Bad file descriptor
"""
BAR = " {0}%|#   | {0}/100 [00:03<00:30,  3.0it/s]\n"

SURVIVED = {
    "ignored at the end": "step 1 loss 2.0\n" + IGNORED,
    "ignored, and nothing else": IGNORED,
    "ignored in the middle": IGNORED + "step 200 loss 1.2\n",
    "of a part that may fail": "step 10 loss 2.1\n" + CALLS + "ValueError: too few\nstep 11 loss 2.0\n",
    "of a service": "step 10\n" + CALLS + "requests.exceptions.ConnectionError: no route\nstep 11\nstep 12\n",
    "of a batch that was too large": (
        "iteration 10/ 90 | loss: 2.1\n"
        + CALLS
        + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate"
        " 2.00 GiB\niteration 11/ 90 | loss: 2.1\n"
    ),
    "of a thread": "Exception in thread Thread-4:\n"
    + CALLS
    + "ValueError: x\nstep 11 loss 2\nstep 12 loss 2\n",
    "with a name of its own": "step 10\n" + CALLS + "acme.Boom: no fuel\nstep 11\n",
    "of a save that is tried later": "step 10\nERROR failed to save checkpoint: late\nstep 11\nstep 12\n",
    "twice": ("step 10\n" + CALLS + "ValueError: x\nstep 11\n") + CALLS + "ValueError: x\nstep 12\n",
    "of one rank, which goes on": "[rank3]: step 10\n[rank3]: Traceback (most recent call last):\n"
    "[rank3]:   File 'x'\n[rank3]: ValueError: x\n[rank3]: step 11\n",
    "of one task of mpirun": "[1,3]<stderr>:step 10\n[1,3]<stderr>:Traceback (most recent call last):\n"
    "[1,3]<stderr>:  File 'x'\n[1,3]<stderr>:ValueError: x\n[1,3]<stderr>:step 11\n",
    "the loss of a partner": "step 10\nNCCL WARN Net : Connection closed by remote peer 10.0.0.4<5>\n"
    "step 11\nstep 12\nstep 13\n",
    "of a choice that its tuner goes on without": "E1129 10:00:00.1 7 acme/tuner.py:7] OutOfResources: "
    "out of resource: shared memory\n"
    "E1129 10:00:00.1 7 acme/tuner.py:7] Ignoring this choice.\n",
    "of a part that is tried anew": "[rank2]: ValueError: an answer was cut\n[rank2]: Retrying in 5 s\n",
    "a module that is not needed": "ModuleNotFoundError: No module named 'tb'\nstep 1\nstep 2\nstep 3\n",
    "beside a bar": BAR.format(10) + CALLS + "ValueError: x\n" + BAR.format(11),
}

ENDED = {
    "user_code|nothing behind": "step 10\n" + CALLS + "KeyError: 'x'\n",
    "user_code|ignored behind": CALLS + "KeyError: 'x'\n" + IGNORED,
    "user_code|another rank": "[rank0]: step 10\n[rank1]: Traceback (most recent call last):\n"
    "[rank1]:   File 'x'\n[rank1]: KeyError: 'x'\n[rank0]: step 11\n",
    "user_code|the bar once more": BAR.format(10) + CALLS + "ValueError: x\n" + BAR.format(10),
    "checkpoint_save_failed|one step ran": "step 10\nERROR failed to save checkpoint: late\nstep 11\n",
    "time_limit|steps of a time of grace": "step 10\nslurmstepd: error: *** JOB 12 ON n1 CANCELLED AT"
    " 2026-01-02T03:04:05 DUE TO TIME LIMIT ***\nstep 11\nstep 12\n",
    "user_code|another one goes on": "[rank1]: KeyError: 'x'\n[rank0]: Skipping the upload\n",
    "storage_full|what is skipped then": "OSError: [Errno 28] No space left on device: '/a/b'\n"
    "Skipping the upload\n",
    "user_code|a summary": "step 10\n" + CALLS + "ValueError: x\nwandb: Run summary:\nwandb:      step 11\n",
    "user_code|an epoch in a message": "epoch 3\n"
    + CALLS
    + "ValueError: x\n\n"
    + CALLS
    + "RuntimeError: epoch 4: x\n",
    "user_code|peers fell": "step 10\n"
    + CALLS
    + "KeyError: 'x'\nstep 11\nRuntimeError: Connection closed by peer\n",
    "user_code|begun anew": "step 10\n[rank1]: KeyError: 'x'\nRuntimeError: Connection closed by peer\n"
    "step 1\nstep 2\nstep 3\nstep 4\n",
    "gpu_oom|a later one": (
        "step 10\n"
        + CALLS
        + "OSError: [Errno 5] Input/output error\nstep 11\nstep 12\n"
        + CALLS
        + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
    ),
}


@pytest.mark.parametrize("text", SURVIVED.values(), ids=SURVIVED)
def test_what_was_survived_is_no_failure(text: str):
    found = judge(scan(text.encode()))
    assert found.failure_class == "not_a_failure"
    assert not found.message.startswith("Traceback")


@pytest.mark.parametrize("name", ENDED)
def test_what_ended_the_log_still_is_its_cause(name: str):
    found = judge(scan(ENDED[name].encode()))
    assert (found.failure_class, found.role) == (name.partition("|")[0], "root")
