"""Observes a training program that says nothing by itself, through public seams of torch.

`SITE` is a directory for the front of PYTHONPATH; its `sitecustomize` costs nothing until torch
is imported. Off with `ETT_AUTO=0`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

SITE = Path(__file__).with_name("site")

__all__ = ["SITE", "observed"]


def observed(environ: Mapping[str, str], *, standby: bool = False) -> dict[str, str]:
    """The environment with the automatic part in front of PYTHONPATH, unless `ETT_AUTO=0` is in it.

    For a `standby`, which takes over at the start of the interpreter, also where it is.

    >>> observed({"ETT_AUTO": "0"})
    {'ETT_AUTO': '0'}
    """
    if environ.get("ETT_AUTO") == "0" and not standby:
        return dict(environ)
    others = [part for part in environ.get("PYTHONPATH", "").split(os.pathsep) if part and part != str(SITE)]
    return {**environ, "PYTHONPATH": os.pathsep.join([str(SITE), *others])}
