"""`python -m ett_trainer_hooks.reference`: one rank of the reference trainer.

Every rank is a process of its own that torchrun starts. The recorder is made before the heavy
imports; it tells of an uncaught exception, theirs included, by itself.
"""

from __future__ import annotations

import sys
from contextlib import nullcontext

from ett_trainer_hooks import Recorder
from ett_trainer_hooks.pipeline.quick_exit import quick_exit
from ett_trainer_hooks.pipeline.quiet_interrupts import quiet_interrupts
from ett_trainer_hooks.reference.settings import parse
from ett_trainer_hooks.reference.train import train


def main() -> None:
    """Train, and say that it went well where it did."""
    settings = parse(sys.argv[1:])
    quiet_interrupts()
    recorder = Recorder.from_env()
    with quick_exit() if settings.uses("quick_exit") else nullcontext():
        train(settings, recorder)
        recorder.close("succeeded")


if __name__ == "__main__":
    main()
