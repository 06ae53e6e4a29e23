"""The boards as they lie in grafana/boards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

BOARDS = sorted((Path(__file__).parents[2] / "grafana" / "boards").glob("*.json"))


@pytest.fixture(params=BOARDS, ids=[path.stem for path in BOARDS])
def board(request: pytest.FixtureRequest) -> dict[str, Any]:
    """One board, as Grafana would read it."""
    return json.loads(request.param.read_text())
