"""`python -m ett_trainer_hooks.pipeline.quick_torchrun`: torchrun that ends at once after its ranks.

torchrun imports all of torch, and takes it down again while the job is still held for it.
"""

from __future__ import annotations

import sys
import traceback

from ett_trainer_hooks.pipeline.imports import uncollected
from ett_trainer_hooks.pipeline.quick_exit import quick_exit
from ett_trainer_hooks.pipeline.quiet_interrupts import quiet_interrupts


def main() -> None:
    """Run torchrun with the words of the command line; ends the process, with the status of torchrun.

    Of a signal that ended it only the last line is written, and not where torchrun stood.
    """
    quiet_interrupts()
    with uncollected():
        from torch.distributed.elastic.multiprocessing.api import SignalException  # noqa: PLC0415 - seconds
        from torch.distributed.run import main as torchrun  # noqa: PLC0415 - the same

    with quick_exit():
        try:
            torchrun()
        except SignalException as stopped:
            sys.stderr.write("".join(traceback.format_exception_only(stopped)))
            raise SystemExit(1) from stopped
        except Exception as error:
            sys.excepthook(type(error), error, error.__traceback__)
            raise SystemExit(1) from error


if __name__ == "__main__":
    main()
