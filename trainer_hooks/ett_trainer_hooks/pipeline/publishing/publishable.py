"""What a model has to say of itself to be published: its dense part, its tables, where their weights lie."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec
import torch

from ett_trainer_hooks.guard import type_and_text


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """A table of embeddings; `key`: of its weight [rows, width] in the checkpoint.

    For each feature the embeddings of the ids of a sample are added up, or their mean is taken.
    """

    name: str
    key: str
    features: tuple[str, ...]
    mean: bool = False


class Publishable(Protocol):
    """A model in two parts: tables, and a dense part that is exported."""

    def dense(self) -> torch.nn.Module:
        """The dense part on the CPU, its weights still to come.

        It is called with numbers [samples, n] and, for each feature, its pooled embeddings
        [samples, width], and gives the predictions [samples, ...].
        """
        ...

    def key(self, name: str) -> str:
        """Under which the checkpoint keeps a parameter or buffer of the dense part."""
        ...

    def tables(self) -> Sequence[Table]:
        """The tables."""
        ...


class UnfitError(Exception):
    """Model and checkpoint do not fit each other, or the model cannot be built; the message says why."""


def built(publishable: str, settings: Mapping[str, Any]) -> Publishable:
    """The model that `module:name`, called with settings, makes.

    Raises:
        UnfitError: there is no such thing here, or it does not take the settings.
    """
    module, _, name = publishable.partition(":")
    try:
        made: Publishable = getattr(importlib.import_module(module), name)(**settings)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise UnfitError(f"{publishable} cannot be built: {type_and_text(error)}") from error
    return made
