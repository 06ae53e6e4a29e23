"""`python -m ett_trainer_hooks.pipeline.quick_torchrun`: torchrun that ends at once after its ranks.

torchrun imports all of torch, and takes it down again while the job is still held for it.
"""

from __future__ import annotations

from ett_trainer_hooks.pipeline.quick_exit import quick_exit


def main() -> None:
    """Run torchrun with the words of the command line; ends the process."""
    from torch.distributed.run import main as torchrun  # noqa: PLC0415 - takes seconds

    with quick_exit():
        torchrun()


if __name__ == "__main__":
    main()
