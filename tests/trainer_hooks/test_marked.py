"""What a test starts ends with it, even where the test is killed."""

import subprocess
import sys

from marked import NAME, bearers, marked

TEST = """
import os, subprocess, time
from marked import marked
with marked() as mark:
    subprocess.Popen(["sleep", "600"], env={**os.environ, **mark}, start_new_session=True)
    print(*mark.values(), flush=True)
    time.sleep(600)
"""


def test_processes_with_a_session_of_their_own_end_with_the_block():
    with marked() as mark:
        command = [sys.executable, "-c", "import time; print(flush=True); time.sleep(600)"]
        left = subprocess.Popen(command, env=mark, start_new_session=True, stdout=subprocess.PIPE)
        left.stdout.readline()
        assert bearers(mark[NAME]) == [left.pid]
    assert bearers(mark[NAME]) == []
    left.communicate()


def test_they_end_with_a_test_that_is_killed(start, eventually):
    test = start(TEST, PYTHONPATH=":".join(sys.path))
    mark = test.stdout.readline().decode().strip()
    eventually(lambda: len(bearers(mark)) == 1)
    test.kill()
    eventually(lambda: not bearers(mark))
