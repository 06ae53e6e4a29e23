"""Programs observed from outside that find torch imported: forks of one process that has the seams in place.

For what is seen of a program, where its start is not what is tested: it is a rank once it makes an optimizer.
"""

from __future__ import annotations

import atexit
import os
import runpy
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from ranks import LIMIT_S
from warm_ranks import Origin, become, forked

from ett_trainer_hooks.auto.install import install

IMPORTS = ("torch", "torch._dynamo", "torch.distributed.checkpoint.state_dict")
ORIGINS: list[Origin] = []


def run(words: Sequence[str], folder: Path, environ: Mapping[str, str]) -> tuple[int, str, str]:
    """Status, output and errors of a program, observed as the environment says, which has a journal."""
    if not ORIGINS:
        before = {name: text for name, text in os.environ.items() if not name.startswith(("ETT_", "SLURM_"))}
        ORIGINS.append(Origin({**before, "OMP_NUM_THREADS": "1"}, __file__))
        atexit.register(end)
    told = folder / "told"
    ORIGINS[0].begin({"argv": [*words], "environ": dict(environ), "folder": str(folder), "told": str(told)})
    status = ORIGINS[0].status(LIMIT_S)
    if status is None:
        end()
    assert status is not None, f"the program did not end: {told.with_suffix('.err').read_text()[-3000:]}"
    return status, told.with_suffix(".out").read_text(), told.with_suffix(".err").read_text()


def end() -> None:
    """End the process from which they are forked; those that come after begin anew."""
    while ORIGINS:
        ORIGINS.pop().end()


if __name__ == "__main__":
    watch = install()
    become(forked(IMPORTS))
    watch.recorder._directory = Path(os.environ["ETT_JOURNAL_DIR"])  # as if made in this environment
    runpy.run_path(sys.argv[0], run_name="__main__")
