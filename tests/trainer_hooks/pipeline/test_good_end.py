"""A thread that dies in native code at the end of a process does not spoil that end."""

import signal

import pytest

ABORTS = """
import atexit, ctypes, sys, threading
from ett_trainer_hooks.pipeline.good_end import end_well_despite

over = threading.Event()
def hang():
    over.wait()
    ctypes.CDLL(None).abort()

thread = threading.Thread(target=hang, daemon=True)
thread.start()
atexit.register(lambda: (over.set(), thread.join(2.0 if sys.argv[1] == "guarded" else None)))
if sys.argv[1] == "guarded":
    end_well_despite(thread)
print("leaves", flush=True)
sys.exit(7)
"""


@pytest.mark.parametrize(("way", "status"), [("guarded", 7), ("bare", -signal.SIGABRT)])
def test_the_status_is_that_of_the_program_though_a_thread_aborts(start, way, status):
    child = start(ABORTS, way)
    out, _ = child.communicate(timeout=120)
    assert (child.returncode, out) == (status, b"leaves\n")
