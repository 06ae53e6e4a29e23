"""Is this object the state of a model or of an optimizer? Read from its form; imports no torch."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping

DEPTH = 3
OPTIMIZER_KEYS = {"state", "param_groups"}


def is_state(thing: object, depth: int = DEPTH) -> bool:
    """True for a module, what `state_dict()` gives, and a mapping that holds such a thing.

    >>> is_state({"epoch": 3, "optimizer": {"state": {}, "param_groups": []}})
    True
    >>> is_state({"images": [1, 2, 3]})
    False
    """
    if is_module(thing):
        return True
    if not isinstance(thing, Mapping):
        return False
    if isinstance(thing, OrderedDict) or thing.keys() >= OPTIMIZER_KEYS:
        return True
    return depth > 0 and any(is_state(part, depth - 1) for part in thing.values())


def holds_optimizer(thing: object, depth: int = DEPTH) -> bool:
    """True for the state of an optimizer, and for mappings and lists that hold one.

    >>> holds_optimizer({"weights": {}, "optimizer_states": [{"state": {}, "param_groups": []}]})
    True
    >>> holds_optimizer(OrderedDict(weight=[1.0]))
    False
    """
    if isinstance(thing, Mapping):
        parts = list(thing.values())
        if thing.keys() >= OPTIMIZER_KEYS:
            return True
    else:
        parts = thing if isinstance(thing, list) else []
    return depth > 0 and any(holds_optimizer(part, depth - 1) for part in parts)


def is_module(thing: object) -> bool:
    """True for an `nn.Module`, by the calls that it offers."""
    kind = type(thing)
    return all(hasattr(kind, name) for name in ("state_dict", "load_state_dict", "named_parameters"))
