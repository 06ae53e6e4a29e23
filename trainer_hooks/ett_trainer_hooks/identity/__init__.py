"""Who is speaking: job, attempt, rank and node of a process, from everything that surrounds it.

`who` puts an identity together; `placement` says in which order our settings, launchers and
schedulers are asked for each part of it; `slurm` and `kubernetes` know what those two say.
"""

from ett_trainer_hooks.identity.who import (
    Identity,
    identity_from_env,
    is_first_node,
    label_variable,
    launch_from_env,
    sanitised_job_id,
)

__all__ = [
    "Identity",
    "identity_from_env",
    "is_first_node",
    "label_variable",
    "launch_from_env",
    "sanitised_job_id",
]
