"""Every board has the shape that Grafana's own schemas ask for, down to the options of its panels."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest
from jsonschema import Draft7Validator

SHAPES = json.loads((Path(__file__).parents[1] / "data" / "grafana" / "schemas.json").read_text())


def faults(name: str, value: object) -> list[str]:
    schema = {"$ref": f"#/definitions/{name}", "definitions": SHAPES["definitions"]}
    return [error.message for error in Draft7Validator(schema).iter_errors(value)]


def faults_of_panels(board: dict) -> list[str]:
    found = []
    for panel in board["panels"]:
        if panel["type"] == "row":
            continue
        shape = SHAPES["panels"].get(panel["type"])
        if shape is None:
            found.append(f"no panel is called {panel['type']!r}")
            continue
        found += faults(shape["options"], panel["options"])
        if "custom" in shape:
            found += faults(shape["custom"], panel["fieldConfig"]["defaults"]["custom"])
    return found


def test_a_board_has_the_shape_of_a_dashboard(board):
    assert faults("Dashboard", board) == []


def test_panels_have_the_options_of_their_kind(board):
    assert faults_of_panels(board) == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("type",), "time-series"),
        (("options", "legend", "placement"), "below"),
        (("options", "tooltips"), {}),
        (("fieldConfig", "defaults", "custom", "drawStyle"), "dots"),
        (("fieldConfig", "defaults", "custom", "fillOpacity"), "much"),
    ],
)
def test_a_wrong_option_is_found(path, value):
    """The shapes are strict: a misspelled kind, key or value does not pass."""
    text = (Path(__file__).parents[2] / "grafana" / "boards" / "exporter.json").read_text()
    board = json.loads(text)
    panel = copy.deepcopy(next(each for each in board["panels"] if each["type"] == "timeseries"))
    place = panel
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    assert faults_of_panels({"panels": [panel]}) != []
