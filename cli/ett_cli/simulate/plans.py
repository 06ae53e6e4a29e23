"""Who the jobs are: names, sizes, hardware, habits; drawn from the scenario alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from ett_cli.simulate.chance import Chance
from ett_cli.simulate.settings import Scenario

GPUS_PER_NODE = 8
LONGEST_STEP_MS = 2_400
"""Ten steps of the slowest rank take less than a minute: a silence of more than 60 s is a stall for all."""

SUCCEED, CANCEL, TIME_OUT, GIVE_UP = "succeed", "cancel", "time_out", "give_up"

_KINDS = (
    ("ads-ranking", "dlrm-v3", "ads"),
    ("feed-ranking", "dlrm-v3", "feed"),
    ("reels-retrieval", "two-tower", "video"),
    ("search-relevance", "bert-ranker", "search"),
    ("user-embeddings", "hstu", "foundation"),
    ("shop-ctr", "dcn-v2", "shop"),
    ("assistant-pretrain", "llama-8b", "genai"),
    ("notifications", "mmoe", "growth"),
)
_CLUSTERS = (("pci1", "H100", "slurm"), ("vll2", "H200", "slurm"), ("cco3", "A100", "kubernetes"))


class Plan(NamedTuple):
    """A job as its owner intends it. Amounts ending in `_ms` are milliseconds, in `_s` seconds."""

    place: int
    job_id: str
    submit_ms: int
    labels: Mapping[str, str]
    versions: Mapping[str, str]
    config_hash: str
    accelerator_type: str
    cluster: str
    world_size: int
    nodes: int
    reporters: tuple[int, ...]
    adoption: float
    target_steps: int
    step_ms: int
    batch: int
    steps_a_report: int
    steps_a_save: int
    steps_an_evaluation: int
    wait_share: float
    asynchronous: bool
    blocking_s: float
    upload_s: float
    checkpoint_bytes: int
    evaluation_s: float
    publish_s: float
    limit_ms: int | None
    fate: str
    """How it ends if nothing else happens."""
    lazy: bool
    """Whether it compiles in its first step."""
    overlaps: bool
    """Whether it compiles while its data warm up."""
    forgets: bool
    """Whether restarts in place are not counted: they say the number of the attempt before."""


def plan_of(scenario: Scenario, index: int, chance: Chance) -> Plan:
    """The job of an index."""
    kind, model, team = chance.choice(_KINDS)
    cluster, accelerator, scheduler = chance.choice(_CLUSTERS)
    submit_ms = _submit_ms(scenario, index, chance)
    adoption = min(1.0, max(0.0, scenario.adopted(submit_ms) + chance.gauss(0.0, 0.08)))
    world_size = _world_size(scenario, chance)
    step_ms = min(LONGEST_STEP_MS, max(40, chance.around_ms(0.6, 0.8)))
    train_ms = max(600_000, chance.around_ms(3600.0 * scenario.train_hours, 0.7))
    interval_s = 1800.0 - 900.0 * adoption
    steps_a_save = max(2, round(interval_s * 1000 / step_ms))
    asynchronous = chance.hit(adoption)
    size = math.log2(world_size + 1)
    return Plan(
        place=index,
        job_id=f"sim-{scenario.seed}/{kind}-{index:05d}",
        submit_ms=submit_ms,
        labels={
            "job_name": f"{kind}-{index:05d}",
            "team": team,
            "model": model,
            "cluster": cluster,
            "scheduler": scheduler,
            "simulated": "true",
        },
        versions={"torch": "2.13.0", "torchrec": "1.8.0", "python": "3.11"},
        config_hash=f"{chance.getrandbits(48):012x}",
        accelerator_type=accelerator,
        cluster=cluster,
        world_size=world_size,
        nodes=-(-world_size // GPUS_PER_NODE),
        reporters=_reporters(world_size, scenario.reporting_ranks),
        adoption=adoption,
        target_steps=max(10, train_ms // step_ms),
        step_ms=step_ms,
        batch=256 * world_size,
        steps_a_report=max(1, round(1000 * scenario.report_s / step_ms)),
        steps_a_save=steps_a_save,
        steps_an_evaluation=steps_a_save * chance.choice((0, 4, 8)),
        wait_share=min(0.3, chance.lognormvariate(math.log(0.045 - 0.03 * adoption), 0.5)),
        asynchronous=asynchronous,
        blocking_s=(2.0 + 0.3 * size) if asynchronous else 40.0 + 12.0 * size,
        upload_s=30.0 + 10.0 * size,
        checkpoint_bytes=world_size * 3 * 2**30,
        evaluation_s=90.0,
        publish_s=0.0 if chance.hit(adoption) else 1800.0,
        limit_ms=86_400_000 if chance.hit(0.15) else None,
        fate=chance.weighted((SUCCEED, CANCEL, TIME_OUT, GIVE_UP), (85, 6, 3, 6)),
        lazy=chance.hit(0.3),
        overlaps=chance.hit(adoption),
        forgets=chance.hit(0.1),
    )


def _submit_ms(scenario: Scenario, index: int, chance: Chance) -> int:
    """Jobs come evenly over the window; the first at its beginning."""
    slot_ms = scenario.window_ms / scenario.jobs
    return round(slot_ms * (index + (0.8 * chance.random() if index else 0.0)))


def _world_size(scenario: Scenario, chance: Chance) -> int:
    """A power of two (or the largest size): small ones are more frequent."""
    sizes = [1 << power for power in range(11) if scenario.smallest <= 1 << power <= scenario.ranks]
    if not sizes or sizes[-1] < scenario.ranks:
        sizes.append(scenario.ranks)
    return chance.weighted(sizes, [1.0 / (1 + rank / 4) for rank in range(len(sizes))])


def _reporters(world_size: int, most: int) -> tuple[int, ...]:
    """Ranks that report, spread over the job; rank 0 is the first.

    >>> _reporters(64, 4)
    (0, 16, 32, 48)
    """
    count = min(world_size, most)
    return tuple(place * world_size // count for place in range(count))
