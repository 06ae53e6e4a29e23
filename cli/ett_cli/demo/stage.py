"""What the demo starts and with which settings: commands and environments. Pure, but for ports.

Every process of a demo carries a mark of its run in the environment (`ETT_DEMO_RUN`), by which
it is found again, whatever session or parent it ends up with.
"""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ett_cli.itself import ett
from ett_cli.job_settings import GRACE_S
from ett_cli.training.command import environment, torchrun
from ett_trainer_hooks.reference.settings import Settings

MARK = "ETT_DEMO_RUN"
RANKS = 2
RESTARTS = 3
HOST = "127.0.0.1"
LIMIT_S = 280.0
"""With the time to stop it all, it stays below 300 s."""
WATCHED_LIMIT_S = 3600.0
"""Where a person watches, who can stop it."""
FIRST_PORT = 10_000
KERNELS_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")
"""From which to which port the kernel gives one to whoever asks for any, such as each connection."""
TRIES = 100


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One run of the demo: its name, its directory and the addresses of its services."""

    job_id: str
    run_dir: Path
    exporter_port: int
    app_port: int
    steps: int
    app: bool = True
    """Whether the app is part of it."""
    checkpoint_every_s: float = 5.0
    """Seconds between checkpoints."""
    limit_s: float = LIMIT_S
    """Seconds that everything may take until the job is done."""

    @property
    def journal_dir(self) -> Path:
        """Where the ranks and the launcher write their events."""
        return self.run_dir / "journal"

    @property
    def exporter_url(self) -> str:
        """Address of the exporter."""
        return f"http://{HOST}:{self.exporter_port}"

    @property
    def app_url(self) -> str:
        """Address of the app."""
        return f"http://{HOST}:{self.app_port}"

    @property
    def job_url(self) -> str:
        """Address of the page of this job in the app."""
        return f"{self.app_url}/job?id={self.job_id}"

    def log(self, name: str) -> Path:
        """Where the output of one of the processes goes."""
        return self.run_dir / f"{name}.log"


def free_port(port: int = 0) -> int:
    """The port, once it was listened on for a moment; for 0, one that nobody uses.

    That one is, where there are others, none that the kernel may give away before a service listens there.

    Raises:
        OSError: somebody listens there, or we may not.
    """
    ours = range(FIRST_PORT, _kernels_first_port())
    for candidate in random.SystemRandom().sample(ours, min(TRIES, len(ours))) if port == 0 else ():
        with suppress(OSError):
            return _listened_on(candidate)
    return _listened_on(port)


def _listened_on(port: int) -> int:
    with socket.create_server((HOST, port)) as probe:
        free: int = probe.getsockname()[1]
        return free


def _kernels_first_port() -> int:
    """The first port that the kernel gives away; 0 where it does not say."""
    try:
        return int(KERNELS_PORTS.read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return 0


def exporter_command(stage: Stage) -> list[str]:
    """Serve ingest, metrics and queries over a database in the run directory."""
    port = str(stage.exporter_port)
    return ett("exporter", "--database", str(stage.run_dir / "ett.db"), "--port", port)


def app_command(stage: Stage) -> list[str]:
    """Serve the app over the exporter."""
    return ett("dashboard", "--exporter", stage.exporter_url, "--port", str(stage.app_port))


def trainer_command(stage: Stage) -> list[str]:
    """Run the reference trainer on two ranks, under the launcher."""
    launcher = ["--job-id", stage.job_id, "--exporter", stage.exporter_url]
    launcher += ["--journal-dir", str(stage.journal_dir)]
    settings = Settings(
        steps=stage.steps,
        checkpoint_every_s=stage.checkpoint_every_s,
        checkpoint_dir=stage.run_dir / "checkpoints",
    )
    trainer = torchrun(settings, job_id=stage.job_id, ranks=RANKS, restarts=RESTARTS)
    return ett("run", *launcher, "--", *trainer)


def service_environment(stage: Stage, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment of exporter and app: ours, marked, without the settings of another job."""
    kept = {name: value for name, value in environ.items() if not name.startswith("ETT_")}
    return {**kept, MARK: stage.job_id, "PYTHONUNBUFFERED": "1"}


def trainer_environment(
    stage: Stage, allocated_at: float, environ: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """The environment of the trainer. `allocated_at`: Unix seconds at which its machine was taken.

    All ranks and restarts share one compile cache. The two compiler settings spare a compiled
    header and probes of the CPU.
    """
    labels = {
        "JOB_NAME": "demo",
        "TEAM": "demo",
        "MODEL": "dlrm",
        "CLUSTER": "local",
        "SCHEDULER": "local",
    }
    return {
        **service_environment(stage, environ),
        **{f"ETT_LABEL_{name}": text for name, text in labels.items()},
        "ETT_ALLOCATED_AT": repr(allocated_at),
        **environment(RANKS, GRACE_S),
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        "TORCHINDUCTOR_CACHE_DIR": str(stage.run_dir / "compile-cache"),
        "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0",
        "TORCHINDUCTOR_VEC_ISA_OK": "1",
    }
