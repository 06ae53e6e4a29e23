"""The benchmarks of the exporter still run; what they measure is no test's concern."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks" / "exporter"
SMALL = {
    "exposition": (["--samples", "400", "--rounds", "1"], 8),
    "growth": (["--jobs", "3", "5", "--minutes", "0.5"], 2),
    "memory": (["--days", "0.02", "--loaded", "1"], 1),
    "queries": (["--jobs", "30", "--rounds", "2"], 12),
}
"""Arguments of a small run, and the rows of its table."""


@pytest.mark.parametrize("name", SMALL)
def test_a_small_run_prints_its_table(name):
    arguments, rows = SMALL[name]
    ran = subprocess.run(
        [sys.executable, str(FOLDER / f"{name}.py"), *arguments], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    table = [line for line in ran.stdout.splitlines() if line.startswith("|")]
    assert len(table) >= 2 + rows, ran.stdout
    assert "nan" not in ran.stdout
