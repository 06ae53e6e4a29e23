"""What a person sets for a launcher, and the environment that a command gets for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ett_core.credentials import token_source
from ett_core.waits import check_wait
from ett_trainer_hooks.auto import observed
from ett_trainer_hooks.identity import label_variable, sanitised_job_id
from ett_trainer_hooks.launcher.restarts import RestartPolicy
from ett_trainer_hooks.launcher.stalls import StallSettings
from ett_trainer_hooks.pipeline.parts import OF_THE_ENVIRONMENT
from ett_trainer_hooks.shipping.transport import poster
from ett_trainer_hooks.standby.handing_over import PLACE

OWN_STORE = "TORCH_DISABLE_SHARE_RDZV_TCP_STORE"


@dataclass(frozen=True, kw_only=True)
class LaunchSettings:
    """How to run a command under observation."""

    command: Sequence[str]
    """The program and its arguments."""
    job_id: str
    """The logical run, the same across restarts; characters that it may not hold become `-`."""
    journal_dir: Path
    """Where the ranks, the launcher and the output of the command write."""
    exporter_url: str | None = None
    """Exporter to ship to while the job runs; None keeps the journals on disk only."""
    token_file: Path | None = None
    """File of the token for the exporter; None: that of the environment, if any."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Words that describe the job, such as `job_name`, `team`, `model`."""
    drain_s: float = 5.0
    """Seconds to go on shipping after the command has ended, while an exporter takes the events."""
    grace_s: float = 30.0
    """Seconds that the command has to end once the job is stopped, and ranks that outlive it."""
    restarts: RestartPolicy = field(default_factory=RestartPolicy)
    """When the command is started again by the launcher; never by default."""
    standby: bool = False
    """Whether ranks that ask for it get a standby: a process that has prepared their next start."""
    stalls: StallSettings = field(default_factory=StallSettings)
    """What counts as a stall, and what is done about one."""
    parts: frozenset[str] = frozenset()
    """Parts of the optimised pipeline for the command, of those that need nothing but variables."""
    look_every_s: float = 0.2
    """Seconds between two looks at processes and output; a death is seen at once where the kernel tells."""

    def __post_init__(self) -> None:
        """Check what a person has given.

        Raises:
            ValueError: a setting is wrong; the message names it.
        """
        if not self.command:
            raise ValueError("command: there is none to run")
        if not self.job_id:
            raise ValueError("job_id is empty")
        if not_ours := self.parts - OF_THE_ENVIRONMENT:
            names, ours = ", ".join(sorted(not_ours)), " and ".join(sorted(OF_THE_ENVIRONMENT))
            raise ValueError(f"parts: {names} must be built into the trainer; the launcher has {ours}")
        if not self.look_every_s > 0:
            raise ValueError(f"look_every_s={self.look_every_s!r} is not above 0 seconds")
        for name in ("drain", "grace"):
            check_wait(name, getattr(self, f"{name}_s"))
        if self.exporter_url is not None:
            poster(self.exporter_url, token=token_source(self.token_file))

    def environment(self, environ: Mapping[str, str]) -> dict[str, str]:
        """The environment of the command: what surrounds the launcher, and the job.

        Its output goes to files, which Python would fill in blocks: it is told to write at once,
        unless `PYTHONUNBUFFERED` is set already. Its processes are observed automatically, unless
        `ETT_AUTO=0` says otherwise. With standbys each start of torchrun's ranks gets a store of its
        own: in the one that they share otherwise a rank that is there at once finds the addresses of the
        start before.
        """
        ours = {
            "ETT_JOB_ID": sanitised_job_id(self.job_id),
            "ETT_JOURNAL_DIR": str(self.journal_dir.absolute()),
        }
        if self.exporter_url is not None:
            ours["ETT_EXPORTER_URL"] = self.exporter_url
        loud = {"PYTHONUNBUFFERED": "1"}
        labels = {label_variable(name): text for name, text in self.labels.items()}
        surrounding = {**loud, **environ, **ours, **labels}
        surrounding.pop(PLACE, None)
        if self.standby:
            surrounding.setdefault(OWN_STORE, "1")
        return observed(surrounding, standby=self.standby)
