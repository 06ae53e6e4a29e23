"""What libraries of training software say of their failures, where no other row knows the words.

Checkpoints, data, settings, environments: like `families`, behind all tables and never certain.
"""

from __future__ import annotations

from ett_core.failures.rule import Rule

LIBRARIES = (
    Rule(
        failure_class="checkpoint_incompatible",
        needles=("state dict", "state_dict", "checkpointingexception"),
        pattern=r"CheckpointingException: |(?:Error|Exception|assert\w*)\b.{0,200}(?:expected|mismatch|missing|unexpected|incompatible|match|not in|not found)"
        r".{0,80}\bstate[ _]dict|(?:Error|Exception|assert\w*)\b.{0,120}\bstate[ _]dict\b.{0,120}"
        r"(?:but got|mismatch|missing|incompatible|not match|does not|doesn't|not in\b|not found)|KeyError: '\w{0,40}state_dict'",
        example="RuntimeError: Expected 2 entries in state dict, but got 4.",
        counter_example="RuntimeError: the state_dict of the model is empty",
        vague=True,
    ),
    Rule(
        failure_class="checkpoint_save_failed",
        needles=("checkpointexception",),
        pattern=r"\bCheckpointException\b",
        example="torch.distributed.checkpoint.api.CheckpointException: CheckpointException ranks:dict_keys([0, 1])",
        counter_example="except CheckpointExceptionGroup as group:",
        vague=True,
    ),
    Rule(
        failure_class="config_error",
        needles=(
            "omegaconf.errors",
            "hydra.errors",
            "misconfigurationexception",
            "could not override",
            "is not in struct",
            "divisible by",
            "a multiple of",
            "instantiationexception",
            "error locating target",
            "not a valid model identifier",
            "repo id must be",
            "hfvalidationerror",
        ),
        pattern=r"\b(?:omegaconf|hydra)\.errors\.\w+|MisconfigurationException|could not override '|is not in struct"
        r"|(?:Error|Exception)\b.{0,200}\b(?:divisible by|a multiple of)\b|InstantiationException|error locating target"
        r"|not a valid model identifier|repo id must be|HFValidationError",
        example="lightning.fabric.utilities.exceptions.MisconfigurationException: `Trainer(strategy='x')` is not available",
        counter_example="vocab padded so that it is divisible by 128",
        vague=True,
    ),
    Rule(
        failure_class="environment_error",
        needles=("command not found",),
        example="slurmstepd: error: pyxis:     [ERROR] Command not found: nvidia-container-cli",
        counter_example="the command found nothing",
    ),
)
