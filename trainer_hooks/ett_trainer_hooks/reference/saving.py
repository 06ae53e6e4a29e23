"""How often the reference trainer saves: at a fixed interval, or as often as is best."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ett_core.interval_choice import Bounds, supposed
from ett_trainer_hooks import Recorder
from ett_trainer_hooks.pipeline.checkpoint.fleet import learn_from_fleet
from ett_trainer_hooks.pipeline.checkpoint.policy import CheckpointPolicy
from ett_trainer_hooks.reference.settings import Settings


def policy_of(
    settings: Settings,
    recorder: Recorder,
    clock: Callable[[], float],
    environ: Mapping[str, str],
) -> CheckpointPolicy:
    """The policy of this rank; the first one leads, and asks the exporter of the job if there is one."""
    leads = environ["RANK"] == "0"
    nodes = int(environ["WORLD_SIZE"]) / int(environ["LOCAL_WORLD_SIZE"])
    before, fixed_s = supposed(nodes), settings.checkpoint_every_s
    if not settings.uses("interval_control"):
        fixed = Bounds(longest_s=fixed_s, shortest_s=fixed_s, first_s=fixed_s)
        return CheckpointPolicy(recorder, bounds=fixed, before=before, leads=leads, clock=clock)
    longest_s = settings.checkpoint_at_least_every_s
    bounds = Bounds(longest_s=longest_s, shortest_s=min(1.0, longest_s), first_s=fixed_s)
    policy = CheckpointPolicy(recorder, bounds=bounds, before=before, leads=leads, clock=clock)
    if leads and (url := environ.get("ETT_EXPORTER_URL")):
        learn_from_fleet(policy, recorder, before, exporter_url=url)
    return policy
