"""Runs a program, and sends this process a signal (SIGKILL) after so many steps of its optimizer.

killed.py STEPS[:SIGNAL] PROGRAM ...
"""

import os
import runpy
import signal
import sys

from torch.optim.optimizer import register_optimizer_step_post_hook

steps, _, name = sys.argv[1].partition(":")
left = int(steps)


def count(*_):
    global left  # noqa: PLW0603 - of this small program
    left -= 1
    if not left:
        os.kill(os.getpid(), getattr(signal, name or "SIGKILL"))


register_optimizer_step_post_hook(count)
sys.argv = sys.argv[2:]
runpy.run_path(sys.argv[0], run_name="__main__")
