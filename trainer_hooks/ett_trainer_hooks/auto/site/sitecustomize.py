"""Runs at the start of every Python process of an observed job: waits for torch, then steps aside.

Only the standard library, one finder that compares a name; nothing of ettwatch is imported before
torch is asked for. A `sitecustomize` that the machine has of its own runs as if this one were not
there.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from importlib.machinery import PathFinder

HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - pathlib takes time to import


class OnTorch:
    """Finds nothing; begins the observation when torch is first asked for."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:  # noqa: ARG002
        """Called by the import system for every module that is not imported yet."""
        if name == "torch" and self in sys.meta_path:
            sys.meta_path.remove(self)
            begin()


def begin() -> None:
    """Load the automatic part; whatever goes wrong, the program goes on without it."""
    try:
        from ett_trainer_hooks.auto.install import install  # noqa: PLC0415 - only where torch is

        install()
    except Exception as error:  # noqa: BLE001 - the boundary that protects the program
        if os.environ.get("RANK", "0") == "0":
            print(f"ettwatch: not observed ({type(error).__name__}: {error})", file=sys.stderr)


def is_wanted() -> bool:
    """The environment asks for observation."""
    asked = os.environ.get("ETT_JOB_ID") and os.environ.get("ETT_JOURNAL_DIR")
    return bool(asked) and os.environ.get("ETT_AUTO") != "0" and os.environ.get("ETT_DISABLED") != "1"


def note_start() -> None:
    """Note that torchrun has started this rank, however early it may end.

    The file that does it is run by itself, as its package would take time to import.
    """
    path = os.path.join(os.path.dirname(os.path.dirname(HERE)), "elastic_starts.py")  # noqa: PTH118, PTH120
    try:
        with open(path) as file:  # noqa: PTH123
            code = compile(file.read(), path, "exec")
        found = {"__name__": "ett_elastic_starts"}
        exec(code, found)  # noqa: S102 - a file of ours
        found["starts_before"](os.environ, os.getpid())  # type: ignore[operator]
    except Exception:  # noqa: BLE001, S110 - the recorder notes it later, as without this file
        pass


def run_the_next() -> None:
    """Run the `sitecustomize` that this one hides, in its place."""
    sys.path[:] = [part for part in sys.path if os.path.abspath(part) != HERE]  # noqa: PTH100
    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


if is_wanted():
    sys.meta_path.insert(0, OnTorch())
    if "TORCHELASTIC_ERROR_FILE" in os.environ:
        note_start()
run_the_next()
