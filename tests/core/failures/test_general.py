"""What no row knows is told by what it happened to and what happened, and by where it was raised."""

from __future__ import annotations

import pytest

from ett_core.failures import judge, scan
from ett_core.failures.classes import CLASSES
from ett_core.failures.general import SENSES, meaning
from ett_core.failures.notions import notions
from ett_core.failures.rules.lexicon import THINGS, TROUBLES

RAISED = {
    "checkpoint_corrupt": "acme.vault.BrokenSnapshot: snapshot 812 is damaged, its checksum is wrong",
    "checkpoint_incompatible": "ValueError: the checkpoint has a different number of experts than this model",
    "checkpoint_save_failed": "acme.io.WriterError: writing the checkpoint shard was rejected",
    "config_error": "acme.args.BadSetting: the option `depth` is not allowed beside `tie`",
    "data_corrupt": "acme.reader.Torn: the parquet footer of part 7 is incomplete",
    "data_corrupt|unread": "acme.reader.Lost: could not load image 7 of the album",
    "dataloader_failure": "acme.feed.Gone: a prefetcher died",
    "object_store": "acme.blobs.RequestFailed: bucket train-7 refused the request",
    "rendezvous_failure": "acme.mesh.Alone: the coordinator could not be reached within the time-out",
    "resource_limit": "OSError: the limit of file descriptors is exhausted",
    "service_error": "acme.client.Unreachable: the tracking server is unavailable",
    "storage_full": "acme.io.NoRoom: the volume is full",
    "time_limit": "acme.sched.Over: walltime of the job expired",
    "peer_failure": "acme.ring.NeighbourLost: peer 3 has left",
    "collective_timeout": "acme.ring.Late: all_reduce timed out after 600 s",
    "user_code": "acme.Boom: no fuel",
}
TOLD = {
    "node_failure": "controld: host gpu-11 became unresponsive",
    "preempted": "cloudd: this instance is being reclaimed",
    "network_fault": "nicd: interface eth3 was lost",
    "gpu_hardware": "healthd: GPU 4 is overheating, hardware shut it off",
    "not_a_failure": "healthd: GPU 4 is ready, no error",
}


@pytest.mark.parametrize("name", RAISED)
def test_an_exception_of_a_name_that_nobody_knows_is_told_by_its_words(name: str):
    log = f'Traceback (most recent call last):\n  File "t.py", line 3, in f\n    go()\n{RAISED[name]}\n'
    found = judge(scan(log.encode()))
    assert (found.failure_class, found.confidence) == (name.partition("|")[0], "likely")


@pytest.mark.parametrize("name", TOLD)
def test_a_last_line_is_told_by_its_words_too(name: str):
    assert judge(scan(f"step 7 loss 2.0\n{TOLD[name]}\n".encode())).failure_class == name


@pytest.mark.parametrize("name", TOLD)
def test_what_training_outlived_has_ended_nothing(name: str):
    assert judge(scan(f"{TOLD[name]}\nstep 8 loss 2.0\n".encode())).failure_class == "not_a_failure"


@pytest.mark.parametrize(
    "line",
    [
        "INFO the node was down for an hour",
        "if the instance is reclaimed the job starts again",
        "checking whether the bucket is unreachable",
        "0 nodes failed, all healthy",
    ],
)
def test_what_is_only_spoken_of_has_ended_nothing(line: str):
    assert judge(scan(line.encode())).failure_class == "not_a_failure"


@pytest.mark.parametrize(
    ("function", "failure_class"),
    [
        ("load_checkpoint", "checkpoint_incompatible"),
        ("save_checkpoint", "checkpoint_save_failed"),
        ("step", "user_code"),
    ],
)
def test_an_exception_that_says_nothing_is_told_by_where_it_was_raised(function: str, failure_class: str):
    log = f'Traceback (most recent call last):\n  File "t.py", line 3, in {function}\n    go()\nKeyError: 7\n'
    assert judge(scan(log.encode())).failure_class == failure_class


def test_a_request_is_told_by_the_code_that_made_it():
    said = "requests.exceptions.ConnectionError: ('Connection aborted.', timeout('too late',))\n"
    log = 'Traceback (most recent call last):\n  File "{0}", line 3, in put\n    send()\n'
    of_store = log.format("/app/google/cloud/storage/blob.py")
    assert judge(scan((of_store + said).encode())).failure_class == "object_store"
    assert judge(scan((log.format("/app/tracker.py") + said).encode())).failure_class == "service_error"


@pytest.mark.parametrize(
    ("call", "failure_class"),
    [("torch.save(model, path)", "checkpoint_save_failed"), ("torch.load(path)", "checkpoint_incompatible")],
)
def test_whether_a_checkpoint_was_saved_or_read_is_told_by_what_was_called(call: str, failure_class: str):
    log = f'Traceback (most recent call last):\n  File "t.py", line 3, in go\n    {call}\n'
    said = "RuntimeError: File out/checkpoint_0.pt cannot be opened.\n"
    assert judge(scan((log + said).encode())).failure_class == failure_class


def test_an_error_of_the_program_itself_stays_one_whatever_it_names():
    said = "AttributeError: 'Checkpointer' object has no attribute 'bucket_unreachable'"
    assert judge(scan(said.encode())).failure_class == "user_code"


def test_a_row_that_knows_the_words_goes_before():
    log = "acme.reader.Torn: the parquet footer is cut\nOSError: [Errno 28] No space left on device: '/a'"
    assert judge(scan(log.encode())).failure_class == "storage_full"


def test_the_tables_are_whole():
    named = {
        one
        for sense in SENSES
        for both in (sense.things, sense.never)
        for each in both
        for one in each.split("|")
    }
    assert named <= {*THINGS, *TROUBLES}
    assert {sense.failure_class for sense in SENSES} <= {*CLASSES}
    assert not {*THINGS} & {*TROUBLES}


def test_names_in_code_are_words_too():
    assert notions("NoSuchBucketError") >= {"object store", "failed"}
    assert meaning("RESOURCE_EXHAUSTED: out of HBM", raised=True) is not None


OF_THE_PROGRAM = (
    "RuntimeError: mat1 and mat2 shapes cannot be multiplied (64x512 and 256x10)",
    "RuntimeError: Expected all tensors to be on the same device, but found cuda:0 and cpu!",
    "RuntimeError: Index 1 of input takes value 77 which is not in the valid range [0, 10)",
    "RuntimeError: The size of tensor a (10) must match the size of tensor b (20)",
    "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn",
    "ValueError: Expected input batch_size (32) to match target batch_size (16).",
    "RuntimeError: KeyedJaggedTensor lengths and offsets are both missing",
    "AssertionError: number of heads must be even",
    "ValueError: optimizer got an empty parameter list",
    "AssertionError: labels are out of range for the embedding table",
)


@pytest.mark.parametrize("said", OF_THE_PROGRAM)
def test_what_a_program_says_of_its_own_work_is_its_own_error(said: str):
    assert judge(scan(said.encode())).failure_class == "user_code"


def test_lines_of_a_trace_end_nothing():
    line = 'V1130 04:59:04.0 2 torch/_dynamo/utils.py:2009] {"compilation_metrics": {"fail_type": null}}'
    assert judge(scan(line.encode())).failure_class == "not_a_failure"


NAMED_AFTER_MUCH = (
    "['torchrun', '--nnodes', '2', 'train.py', '--checkpoint-failed-retries', '3'] did not work",
    "acme.Boom: save_checkpoint_failed.py has no main",
    "acme.Boom: prod/preempted-worker-0 has no fuel",
    "acme.Boom: {'memory': {'gpu': 'exhausted'}, 'port': 'in use'} is no answer",
)


@pytest.mark.parametrize("said", NAMED_AFTER_MUCH)
def test_names_of_programs_and_of_pods_and_what_was_called_tell_nothing(said: str):
    assert meaning(said, raised=True) is None


def test_a_traceback_that_is_cut_off_is_told_by_where_it_ends():
    log = 'Traceback (most recent call last):\n  File "t.py", line 3, in load_checkpoint\n    read(path)\n'
    found = judge(scan(log.encode()))
    assert (found.failure_class, found.confidence) == ("checkpoint_incompatible", "likely")


@pytest.mark.parametrize(
    ("frame", "failure_class"), [("f.write(buffer)", "storage_io"), ("link.recv(4)", "peer_failure")]
)
def test_what_a_socket_and_a_mounted_file_say_alike_is_told_by_which_it_was(frame: str, failure_class: str):
    log = (
        f'Traceback (most recent call last):\n  File "t.py", line 3, in go\n    {frame}\n'
        "OSError: [Errno 107] Transport endpoint is not connected\n"
    )
    assert judge(scan(log.encode())).failure_class == failure_class
