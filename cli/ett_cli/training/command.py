"""How the reference trainer is started: torchrun's command line, and the environment that it needs. Pure."""

from __future__ import annotations

import sys

from ett_cli.job_settings import directory_name
from ett_trainer_hooks.reference.settings import Settings, words_of

QUICK_TORCHRUN = "ett_trainer_hooks.pipeline.quick_torchrun"


def torchrun(settings: Settings, *, job_id: str, ranks: int, restarts: int) -> list[str]:
    """The command that trains on so many ranks of this machine.

    Args:
        settings: of the trainer.
        job_id: names the rendezvous.
        ranks: processes that train together.
        restarts: how often torchrun starts all ranks again after one has failed.
    """
    quick = settings.uses("quick_exit")
    words = [sys.executable, "-m", QUICK_TORCHRUN if quick else "torch.distributed.run"]
    words += ["--nproc-per-node", str(ranks), "--max-restarts", str(restarts)]
    words += ["--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0"]
    words += ["--rdzv-id", directory_name(job_id)]  # of which torchrun makes a directory
    return [*words, "-m", "ett_trainer_hooks.reference", *words_of(settings)]


def environment(ranks: int) -> dict[str, str]:
    """What the ranks need in their environment.

    Each has one core. The store of a rendezvous is not shared between restarts: with a shared one, a rank
    can meet the address that a dead rank left there.
    """
    return {
        "ETT_ACCELERATORS": str(ranks),
        "ETT_ACCELERATOR_TYPE": "cpu",
        "OMP_NUM_THREADS": "1",
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
    }
