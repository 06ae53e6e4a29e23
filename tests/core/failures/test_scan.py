"""What stands below, before and around a line of a log belongs to it, and only that."""

from __future__ import annotations

import json

import pytest
from labelled_logs import Labelled, cases, diagnosed

from ett_core.failures import Diagnosis, judge, scan

TRACEBACK = 'Traceback (most recent call last):\n  File "train.py", line 3, in go\n    work()\n'


def diagnosis(text: str) -> Diagnosis:
    return judge(scan(text.encode()))


BROKEN = (
    "RuntimeError:\n    the shape of the checkpoint's weight differs from the model\n",
    "RuntimeError: Error(s) in reading what the run had left:\n\tMissing key in checkpoint: w\n",
    """RuntimeError: the tensor that was found under the name of this parameter in
the checkpoint has a different size
""",
)


@pytest.mark.parametrize("said", BROKEN)
def test_a_message_that_goes_on_below_is_read_whole(said: str):
    found = diagnosis(TRACEBACK + said)
    assert (found.failure_class, found.confidence) == ("checkpoint_incompatible", "likely")


@pytest.mark.parametrize("speaker", ["[rank3]: ", "3: ", "gpu-7: ", "(Worker pid=77) ", "[1,3]<stderr>:"])
def test_lines_of_one_speaker_belong_together(speaker: str):
    said = (TRACEBACK + BROKEN[0]).splitlines()
    text = "".join(f"{speaker}{line}\n" for line in said)
    assert diagnosis(text).failure_class == "checkpoint_incompatible"


@pytest.mark.parametrize(
    "below",
    [
        "[rank1]: the checkpoint of this run is damaged\n",
        "2026-11-29 10:00:00 the checkpoint of this run is damaged\n",
        "ERROR: the checkpoint of this run is damaged\n",
    ],
)
def test_what_another_says_below_is_no_part_of_a_message(below: str):
    text = f"{TRACEBACK}RuntimeError:\n{below}"
    raised = next(line for line in scan(text.encode()) if "RuntimeError" in line.text)
    assert raised.failure_class == "user_code"


@pytest.mark.parametrize(
    ("warning", "failure_class"),
    [
        ("WARNING: Loss is nan, stopping training", "nan_loss"),
        ("WARNING: Loss is nan, ending training", "nan_loss"),
        ("WARNING: Loss is nan, the step is left out", "not_a_failure"),
    ],
)
def test_a_warning_that_ends_the_run_has_ended_it(warning: str, failure_class: str):
    assert diagnosis(f"step 7 loss 2.0\n{warning}\n").failure_class == failure_class


@pytest.mark.parametrize("level", ["I", "V"])
def test_what_a_component_of_a_cluster_says_by_the_way_is_no_end(level: str):
    text = f"{level}1129 10:00:00.123456    7 pods.go:191] Error syncing pod, aborting: the old one is gone\n"
    assert diagnosis(text).failure_class == "not_a_failure"


PRINTED_BY = {
    "torchrun": "[default3]:",
    "a log of torchx": "trainer/0 [default3]:",
    "srun": "3: ",
    "mpirun": "[1,3]<stderr>:",
    "a host": "gpu-node-07: ",
    "a collector": "2026-11-29T10:00:00.123456789Z ",
    "the runtime of containers": "2026-11-29T10:00:00.123456789Z stderr F ",
    "compose": "worker-3  | ",
    "ray": "(TrainWorker pid=7123, ip=10.0.0.4) ",
    "syslog": "Nov 29 10:00:00 node-7 train[712]: ",
    "kubectl": "[pod/trainer-worker-3/pytorch] ",
    "determined": "<>        [2021-12-07 10:40:48] 514a56c5 [rank=0] || ",
    "a terminal": "\x1b[33m",
}
"""What stands before each line of a log, by who printed it."""
KEPT_AS = {
    "records of containers": lambda line: json.dumps(
        {"log": f"{line}\n", "stream": "stderr", "time": "2026-11-29T10:00:00.123456789Z"}
    ),
    "records of a cloud": lambda line: json.dumps(
        {"severity": "ERROR", "message": line, "timestamp": "2026-11-29T10:00:00Z", "pod": "trainer-0"}
    ),
    "logfmt": lambda line: f'time="2026-11-29T10:00:00Z" level=error msg={json.dumps(line)} pod=trainer-0',
    "lines behind bars of progress": lambda line: f" 45%|##   | 45/99 [01:08<01:22, 2.88it/s]\r{line}",
}
NOT_ALIKE = 0.02
"""Of the texts: where what was said began matters, or a stamp that the text had not."""
AFTER = """[rank0]:[W502 10:20:00.0 ProcessGroupNCCL.cpp:1496] Warning: destroy_process_group() was not called
wandb: Waiting for W&B process to finish... (failed 1). Press Control-C to abort syncing.
UserWarning: resource_tracker: There appear to be 12 leaked semaphore objects to clean up at shutdown
W0502 10:20:01.000000 101 elastic/multiprocessing/api.py:897] Sending process 165 closing signal SIGTERM
E0502 10:20:02.000000 101 elastic/multiprocessing/api.py:869] failed (exitcode: 1) local_rank: 0 (pid: 164)
srun: error: node-a: task 0: Exited with exit code 1
"""


def _unlike(each: Labelled, text: str) -> bool:
    was, found = diagnosed(each), diagnosis(text)
    is_lost = was.failure_class in each.accept and found.failure_class not in each.accept
    is_too_sure = found.confidence == "certain" and not each.may_be_certain
    return is_lost or is_too_sure or (each.is_victim and found.role == "root")


def _printed(each: Labelled, before: str) -> str:
    return "".join(f"{before}{line}\n" for line in each.text.splitlines())


@pytest.mark.parametrize("printer", PRINTED_BY)
def test_a_log_means_the_same_whoever_printed_it(printer: str):
    some = cases()[::8]
    unlike = [each.name for each in some if _unlike(each, _printed(each, PRINTED_BY[printer]))]
    assert len(unlike) <= NOT_ALIKE * len(some), unlike


NAMED_AFTER_FAILURES = (
    "spot-preemptible-1",
    "oom-exp-2",
    "nccl-timeout-3",
    "save-failed-4",
    "nvlink-5",
)


@pytest.mark.parametrize("host", NAMED_AFTER_FAILURES)
def test_a_log_means_the_same_whatever_its_host_is_called(host: str):
    some = cases()[::8]
    unlike = [each.name for each in some if _unlike(each, _printed(each, f"{host}: "))]
    assert len(unlike) <= NOT_ALIKE * len(some), unlike


def test_what_a_device_says_of_itself_is_read():
    assert diagnosis("bond0: link status definitely down for interface eth1, disabling it").failure_class == (
        diagnosis("node-7 kernel: bond0: link status definitely down for interface eth1").failure_class
    )


@pytest.mark.parametrize("keeper", KEPT_AS)
def test_a_log_means_the_same_however_it_was_kept(keeper: str):
    some = cases()[::8]
    texts = ["".join(f"{KEPT_AS[keeper](line)}\n" for line in each.text.splitlines()) for each in some]
    unlike = [each.name for each, text in zip(some, texts, strict=True) if _unlike(each, text)]
    assert len(unlike) <= NOT_ALIKE * len(some), unlike


def test_the_lines_of_a_log_keep_their_numbers_however_it_was_kept():
    log = b'{"log": "step 3\\nstep 4\\n"}\r\n45%|# |\r50%|# |\r\n{"message": "RuntimeError: NCCL error"}\r\n'
    assert [line.line for line in scan(log)] == [3]


def test_a_record_tells_what_it_holds_beside_its_message():
    record = json.dumps({"level": "error", "msg": "the pod failed", "error": "Node n7 became NotReady"})
    assert diagnosis(record).failure_class == "node_failure"


@pytest.mark.parametrize(("steps_of_another", "failure_class"), [(2, "unknown"), (9, "not_a_failure")])
def test_that_others_go_on_for_a_while_does_not_tell_that_one_did(steps_of_another: int, failure_class: str):
    steps = "".join(f"[rank1]: step {step} loss 2.0\n" for step in range(steps_of_another))
    assert diagnosis(f"[rank0]: FATAL: the plugin is in state 7\n{steps}").failure_class == failure_class


@pytest.mark.sweep
@pytest.mark.parametrize("printer", PRINTED_BY)
def test_every_log_means_the_same_whoever_printed_it(printer: str):
    unlike = [each.name for each in cases() if _unlike(each, _printed(each, PRINTED_BY[printer]))]
    assert len(unlike) <= NOT_ALIKE * len(cases()), unlike


def test_how_a_launcher_takes_a_job_down_hides_nothing():
    some = [
        each for each in cases()[::4] if not {"not_a_failure", "unknown", "external_stop"} & {*each.accept}
    ]
    unlike = [each.name for each in some if _unlike(each, f"{each.text.rstrip()}\n{AFTER}")]
    assert len(unlike) <= NOT_ALIKE * len(some), unlike
