"""What a rank needs beside the model to go on as if nothing had happened: random numbers, data position, ...

Each is an object with `state_dict` and `load_state_dict`: `Randomness`, a StatefulDataLoader of
torchdata, a learning rate scheduler. Those of one rank are kept together, pickled, under a key of that
rank, so that no rank's is taken for another's.
"""

from __future__ import annotations

import io
import random
import sys
from collections.abc import Mapping
from typing import Any, Protocol

import torch


class Resumable(Protocol):
    """An object that can be brought back to where it was."""

    def state_dict(self) -> Any:  # noqa: ANN401 - of the object
        """Where it is."""
        ...

    def load_state_dict(self, state_dict: Any) -> Any:  # noqa: ANN401 - of the object
        """Go there."""
        ...


class Randomness:
    """The generators of a process: Python's, NumPy's where it is in use, torch's, and of each CUDA device."""

    def state_dict(self) -> dict[str, Any]:
        """Where each generator is."""
        state: dict[str, Any] = {"python": random.getstate(), "torch": torch.get_rng_state()}
        if "numpy" in sys.modules:
            state["numpy"] = sys.modules["numpy"].random.get_state()
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            state["cuda"] = torch.cuda.get_rng_state_all()
        return state

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Set the generators that were in use then."""
        random.setstate(state_dict["python"])
        torch.set_rng_state(state_dict["torch"])
        if "numpy" in state_dict:
            import numpy as np  # noqa: PLC0415 - only where it was in use

            np.random.set_state(state_dict["numpy"])  # noqa: NPY002 - the generator that programs share
        if "cuda" in state_dict and torch.cuda.device_count() == len(state_dict["cuda"]):
            torch.cuda.set_rng_state_all(state_dict["cuda"])


def is_resumable(value: object) -> bool:
    """Whether it can be saved and brought back by itself."""
    return hasattr(value, "state_dict") and hasattr(value, "load_state_dict")


def key_of(rank: int) -> str:
    """Under which a rank keeps its own state."""
    return f"own_of_rank_{rank}"


def packed(own: Mapping[str, Resumable]) -> bytes:
    """Where the objects of a rank are."""
    place = io.BytesIO()
    torch.save({name: each.state_dict() for name, each in own.items()}, place)
    return place.getvalue()


def unpack(data: bytes, own: Mapping[str, Resumable]) -> list[str]:
    """Bring the objects of a rank back to where they were; returns names that the data do not have."""
    states = torch.load(io.BytesIO(data), weights_only=False)  # hashes were checked; torch reads objects so
    for name in own.keys() & states.keys():
        own[name].load_state_dict(states[name])
    return sorted(own.keys() - states.keys())
