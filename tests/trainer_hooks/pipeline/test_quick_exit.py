"""A process that ends without taking the interpreter down does all that must happen at an end."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

HEAD = "from ett_trainer_hooks.pipeline.quick_exit import quick_exit\n"


def ended(program, **streams):
    """How a Python program ended."""
    code = HEAD + textwrap.dedent(program)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | streams
    env = os.environ | {"PYTHONUNBUFFERED": ""}
    return subprocess.run([sys.executable, "-c", code], env=env, text=True, check=False, timeout=60, **pipes)


def test_threads_exit_functions_and_output_come_before_the_end_and_modules_stay():
    """In that order, and no object is taken down."""
    done = ended("""
        import atexit, sys, threading, time

        class Kept:
            def __del__(self):
                print("taken down")

        kept = Kept()
        atexit.register(print, "exit function")
        with quick_exit():
            threading.Thread(target=lambda: (time.sleep(0.1), print("thread"))).start()
            print("block")
            sys.stdout.write("no end of line")
        print("never")
    """)
    assert done.returncode == 0
    assert done.stdout == "block\nno end of linethread\nexit function\n"


@pytest.mark.parametrize(
    ("statement", "status"),
    [
        ("raise SystemExit", 0),
        ("raise SystemExit(0)", 0),
        ("raise SystemExit(143)", 143),
        ("raise SystemExit(-1)", 255),
        ("raise SystemExit('with words')", 1),
        ("raise KeyError('no such step')", 1),
        ("pass", 0),
    ],
)
def test_the_status_is_the_one_python_ends_with(statement, status):
    """With and without it, and the same is said."""
    bare = ended(statement)
    quick = ended(f"with quick_exit():\n    {statement}")
    assert quick.returncode == bare.returncode == status
    assert quick.stderr.splitlines()[-1:] == bare.stderr.splitlines()[-1:]


def test_output_that_nobody_takes_is_status_120():
    """As Python has it."""
    with Path("/dev/full").open("w") as full:
        assert ended("with quick_exit():\n    print('lost')", stdout=full).returncode == 120
        assert ended("print('lost')", stdout=full).returncode == 120
