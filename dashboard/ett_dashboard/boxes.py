"""Boxes in which a viewer chooses: mounts `assets/boxes.js`.

A box shows what the address says and changes nothing but the address, in the browser; the page then comes
as that address asks for it. So no choice is lost or undone by a run of the page that crosses it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec
import streamlit as st

from ett_dashboard.theme import script

_mount = st.components.v2.component(
    "ett_boxes", html='<div class="ett-boxes"></div>', js=script("find.js", "boxes.js"), isolate_styles=False
)


class Box(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One box, for one parameter of the address."""

    name: str
    """Of the parameter."""
    title: str
    kind: Literal["few", "several", "many", "find", "words", "amount", "slide"]
    """One of few and several of them (all to be seen), one of many, one of very many (found by a part of its
    name), free words, a number from 0 to `most`, and the same by a slider that moves by `step`."""
    options: Sequence[str | tuple[str, str]] = ()
    """Words of the address, with the one that is shown where it is another."""
    usual: str = ""
    """What holds without the parameter."""
    clears: Sequence[str] = ()
    """Parameters that mean nothing more once something else is chosen here."""
    hint: str = ""
    meaning: str = ""
    titled: bool = False
    """Whether the title stands before the box, not only for those who cannot see."""
    most: float = 0.0
    step: float = 0.0


def boxes(row: Sequence[Box], *, key: str) -> None:
    """Draw boxes side by side."""
    _mount(key=key, data={"boxes": msgspec.to_builtins(list(row))})
