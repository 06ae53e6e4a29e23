"""How the reference trainer is started: torchrun's command line, and the environment that it needs. Pure."""

from __future__ import annotations

import math
import sys

from ett_cli.job_settings import GRACE_S, directory_name
from ett_trainer_hooks.reference.settings import Settings, words_of

END_S = 5.0
"""What the launcher waits longer than the ranks count on."""
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


def launcher_grace_s(settings: Settings, given_s: float | None) -> float:
    """Seconds from a stop until the launcher ends everything: more than the ranks count on.

    Raises:
        ValueError: those that are `given_s` are less.

    >>> launcher_grace_s(Settings(parts="preemption"), None)
    30.0
    >>> launcher_grace_s(Settings(parts="preemption", grace_s=100), None)
    105.0
    """
    if not settings.uses("preemption"):
        return GRACE_S if given_s is None else given_s
    if given_s is None:
        return max(GRACE_S, settings.grace_s + END_S)
    if given_s <= settings.grace_s:
        raise ValueError(
            f"grace_s is {settings.grace_s:g}: the ranks would be ended before, as --grace is {given_s:g}"
        )
    return given_s


def environment(ranks: int, grace_s: float) -> dict[str, str]:
    """What the ranks need in their environment.

    Each has one core. The store of a rendezvous is not shared between restarts: with a shared one, a rank
    can meet the address that a dead rank left there. torchrun ends its ranks no earlier than
    the launcher does.
    """
    patience = {"TORCH_ELASTIC_SHUTDOWN_TIMEOUT": str(math.ceil(grace_s))} if math.isfinite(grace_s) else {}
    return {
        **patience,
        "ETT_ACCELERATORS": str(ranks),
        "ETT_ACCELERATOR_TYPE": "cpu",
        "OMP_NUM_THREADS": "1",
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
    }
