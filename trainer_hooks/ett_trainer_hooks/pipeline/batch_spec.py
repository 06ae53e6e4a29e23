"""What a batch looks like, declared: to make one before the data are there, and to compare a real one.

A declaration names the fields of a batch (attributes, or keys of a mapping). Torch and TorchRec are
imported where a batch is made; comparing only reads what the real one has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ett_trainer_hooks import torch_private


@dataclass(frozen=True)
class AnySize:
    """A size of a dimension that may differ from batch to batch; `usual` is used where one is made up."""

    usual: int


@dataclass(frozen=True)
class Dense:
    """A tensor: sizes of its dimensions, the name of its type, and whether a gradient is asked for."""

    shape: tuple[int | AnySize, ...]
    dtype: str = "float32"
    requires_grad: bool = False

    def made(self) -> Any:  # noqa: ANN401 - torch's
        """Zeros of this kind; dimensions of any size are marked as dynamic for the compiler."""
        import torch  # noqa: PLC0415

        sizes = [_usual(size) for size in self.shape]
        made = torch.zeros(sizes, dtype=getattr(torch, self.dtype), requires_grad=self.requires_grad)
        mark = torch_private.load("any_size")
        for place, size in enumerate(self.shape):
            if isinstance(size, AnySize) and callable(mark):
                mark(made, place)
        return made

    def differs(self, real: Any) -> str:  # noqa: ANN401 - a tensor, or what came in its place
        """How a real tensor differs, in words; empty where it does not."""
        shape = getattr(real, "shape", None)
        if shape is None:
            return f"is a {type(real).__name__}, declared as a tensor"
        if len(shape) != len(self.shape) or any(
            size != real_size
            for size, real_size in zip(self.shape, shape, strict=True)
            if not isinstance(size, AnySize)
        ):
            return f"has the shape {_sizes(shape)}, declared {_sizes(self.shape)}"
        if (dtype := _dtype(real)) != self.dtype:
            return f"is {dtype}, declared {self.dtype}"
        if bool(real.requires_grad) != self.requires_grad:
            return f"has requires_grad={real.requires_grad}, declared {self.requires_grad}"
        return ""


@dataclass(frozen=True)
class Jagged:
    """A KeyedJaggedTensor of TorchRec: its keys, samples in a batch, ids a key and sample."""

    keys: tuple[str, ...]
    samples: int
    ids: int = 1
    """Ids of every key and sample where one is made up; real ones may have any number."""
    dtype: str = "int64"
    lengths_dtype: str = "int32"
    weighted: bool = False

    def made(self) -> Any:  # noqa: ANN401 - TorchRec's
        """One with `ids` zeros for every key and sample."""
        import torch  # noqa: PLC0415
        from torchrec import KeyedJaggedTensor  # noqa: PLC0415

        lists = len(self.keys) * self.samples
        return KeyedJaggedTensor(
            keys=list(self.keys),
            values=torch.zeros(lists * self.ids, dtype=getattr(torch, self.dtype)),
            lengths=torch.full((lists,), self.ids, dtype=getattr(torch, self.lengths_dtype)),
            weights=torch.ones(lists * self.ids) if self.weighted else None,
        )

    def differs(self, real: Any) -> str:  # noqa: ANN401 - a jagged tensor, or what came in its place
        """How a real one differs, in words; empty where it does not."""
        if not callable(getattr(real, "lengths", None)):
            return f"is a {type(real).__name__}, declared as a jagged tensor"
        if (keys := tuple(real.keys())) != self.keys:
            return _keys_differ(keys, self.keys)
        if (samples := real.stride()) != self.samples:
            return f"has {samples} samples, declared {self.samples}"
        for what, tensor, dtype in (
            ("ids", real.values(), self.dtype),
            ("lengths", real.lengths(), self.lengths_dtype),
        ):
            if (found := _dtype(tensor)) != dtype:
                return f"has {what} of {found}, declared {dtype}"
        if (real.weights_or_none() is not None) != self.weighted:
            return "has no weights, declared with" if self.weighted else "has weights, declared without"
        return ""


Spec = Mapping[str, "Dense | Jagged"]
"""The fields of a batch by name."""


def make(spec: Spec) -> dict[str, Any]:
    """A batch as declared, by field, of zeros."""
    return {name: kind.made() for name, kind in spec.items()}


def mismatch(spec: Spec, batch: object) -> str:
    """The first field of a real batch that is not as declared, with how; empty where all are.

    >>> from types import SimpleNamespace as Tensor
    >>> batch = {"labels": Tensor(shape=(3,), dtype="torch.float32", requires_grad=False)}
    >>> mismatch({"labels": Dense((4,))}, batch)
    'labels has the shape [3], declared [4]'
    >>> mismatch({"labels": Dense((AnySize(4),))}, batch), mismatch({"dense": Dense((4,))}, batch)
    ('', 'dense is not there')
    """
    for name, kind in spec.items():
        missing = object()
        real = batch.get(name, missing) if isinstance(batch, Mapping) else getattr(batch, name, missing)
        if real is missing:
            return f"{name} is not there"
        if words := kind.differs(real):
            return f"{name} {words}"
    return ""


def _usual(size: int | AnySize) -> int:
    return size.usual if isinstance(size, AnySize) else size


def _sizes(shape: Any) -> str:  # noqa: ANN401 - torch's
    return f"[{', '.join('any' if isinstance(size, AnySize) else str(size) for size in shape)}]"


def _dtype(tensor: Any) -> str:  # noqa: ANN401 - torch's
    return str(tensor.dtype).removeprefix("torch.")


def _keys_differ(real: tuple[str, ...], declared: tuple[str, ...]) -> str:
    if missing := [key for key in declared if key not in real]:
        return f"lacks the keys {', '.join(missing[:3])}{' and more' if len(missing) > 3 else ''}"  # noqa: PLR2004
    if more := [key for key in real if key not in declared]:
        return f"has more keys than declared, {more[0]} among them"
    return "has its keys in another order than declared"
