"""What to do about the time that a component holds: one clause each. Pure words.

Every component of the language has advice, so that a report can always end with one sentence
that helps.
"""

from __future__ import annotations

from collections.abc import Mapping

_BY_COMPONENT: Mapping[str, str] = {
    "start.allocation": "start the process as soon as the hardware is there, with images and data in place",
    "data_wait": "make more batches ahead, with more readers or nearer data",
    "recompile": "mark the sizes that vary as dynamic, so that a new one compiles nothing",
    "checkpoint_blocking": "save asynchronously from a snapshot, or less often",
    "evaluation": "evaluate less often, or in a job of its own",
    "publish": "let a process without accelerators publish from the last checkpoint",
    "shutdown": "leave as soon as the last checkpoint is durable",
    "other": "put the parts of the trainer that have no name here into phases, to see what they are; the "
    "time between two starts of a job that had not failed is here, too: give a new run a --job-id of its own",
    "unsaved_training": "save more often (`ett interval` says how often is best)",
    "stalled": "look at the stacks of the ranks to see who waits for whom, and shorten time-outs",
    "recover.teardown": "let surviving ranks be stopped at once after the first failure",
    "recover.queue": "keep the hardware over a restart, or hold spare nodes",
    "recover.allocation": "keep images and data on the nodes, so that a process starts at once",
    "recover.restart": "restart the ranks in place (torchrun --max-restarts) rather than the job",
    "unobserved": "let the trainer report its phases and steps with the recorder",
}

_BY_PART: Mapping[str, str] = {
    "process_start": "import less before the first phase, or keep a standby process with its imports done",
    "device_init": "initialise devices while the data pipeline starts",
    "process_group": "create only the process groups that are used, and reuse them",
    "preproc_creation": "build the preprocessing beside the model, on a track of its own",
    "model_init": "build the model on the meta device and fill only the local shards",
    "sharding_plan": "keep the sharding plan from one start to the next",
    "data_warmup": "start the data pipeline first, and let the rest of the start run beside it",
    "compile": "keep the compile cache where every start finds it, and compile once a node",
    "cache_load": "load a bundle that holds what this job compiles and nothing else",
    "checkpoint_load": "read only the local shards, from near storage",
    "other": "give the parts of the start that have no name here phases, to see what they are",
}


def advice_on(component: str) -> str:
    """What to do about the time in a component; a clause without a full stop.

    >>> advice_on("recover.checkpoint_load")
    'read only the local shards, from near storage'
    """
    if component in _BY_COMPONENT:
        return _BY_COMPONENT[component]
    return _BY_PART[component.partition(".")[2]]
