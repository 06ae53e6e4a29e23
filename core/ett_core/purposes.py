"""What a job is there for: to train, unless a label of it says otherwise. Pure.

A fleet's averages are about jobs that train. One that publishes a model, say, has no training to lose:
all of its time would count as lost.
"""

from __future__ import annotations

from collections.abc import Mapping

LABEL = "purpose"
"""The label by which a job says it."""
TRAINING = "training"
PUBLISHING = "publishing"
PUBLISHES, PUBLISHES_STEP = "publishes", "publishes_step"
"""Labels of a job that publishes: whose model, and of which step."""
OF_THE_RUN = frozenset(
    {"job_name", "scheduler", "partition", "qos", "queue", "namespace", LABEL, PUBLISHES, PUBLISHES_STEP}
)
"""Labels that say what a job is called, where it runs and what for, not whose it is."""


def purpose_of(labels: Mapping[str, str]) -> str:
    """What a job with these labels is there for.

    >>> purpose_of({}), purpose_of({"purpose": "publishing"})
    ('training', 'publishing')
    """
    return labels.get(LABEL) or TRAINING


def handed_on(labels: Mapping[str, str]) -> dict[str, str]:
    """What holds of a job that publishes a model as it does of the job that has trained it.

    >>> handed_on({"team": "ads", "cluster": "c1", "scheduler": "slurm", "job_name": "nightly"})
    {'team': 'ads', 'cluster': 'c1'}
    """
    return {name: text for name, text in labels.items() if name not in OF_THE_RUN}


def no_training(labels: Mapping[str, str]) -> str:
    """One sentence about a job that is not there to train; empty for one that is.

    >>> no_training({"purpose": "publishing", "publishes": "dlrm-17", "publishes_step": "400"})
    'This job publishes the model of dlrm-17 (step 400): it trains nothing, and fleets leave it out of ETT.'
    >>> no_training({"purpose": "evaluation"})
    'The purpose of this job is evaluation: it trains nothing, and fleets leave it out of ETT.'
    """
    purpose = purpose_of(labels)
    if purpose == TRAINING:
        return ""
    does = f"The purpose of this job is {purpose}"
    if purpose == PUBLISHING and (whose := labels.get(PUBLISHES)):
        step = labels.get(PUBLISHES_STEP)
        does = f"This job publishes the model of {whose}" + (f" (step {step})" if step else "")
    return f"{does}: it trains nothing, and fleets leave it out of ETT."
