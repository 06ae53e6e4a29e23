"""Runs a program, and kills this process as SIGKILL does after so many steps of its optimizer."""

import os
import runpy
import signal
import sys

from torch.optim.optimizer import register_optimizer_step_post_hook

left = int(sys.argv[1])


def count(*_):
    global left  # noqa: PLW0603 - of this small program
    left -= 1
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)


register_optimizer_step_post_hook(count)
sys.argv = sys.argv[2:]
runpy.run_path(sys.argv[0], run_name="__main__")
