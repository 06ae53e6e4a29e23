"""Rules that every board keeps: those of Grafana's dashboard linter and those of ours."""

from __future__ import annotations

import re
from pathlib import Path

import promql_parser
import pytest
from board_queries import PANELS_OF_DATA, filled, queries_of

from ett_core.accounting import STATES
from ett_core.colours import DOMAIN_COLOURS, component_colour, state_group
from ett_core.components import COMPONENTS, GROUP_COLOURS, GROUPS, group_of
from ett_core.failures.classes import CLASSES, DOMAINS
from ett_core.metrics import COUNTER, FAMILIES, GAUGE, series_names
from ett_grafana.build import boards, differing, generated
from ett_grafana.config import Config
from ett_grafana.queries.parts import of_group
from ett_grafana.recording import recorded

GRAFANA = Path(__file__).parents[2] / "grafana"
CHOSEN = {"cluster": "c1", "team": "ads", "window": "1h", "model": "m", "job_id": "a|b", "instance": ".*"}
RATES = ("rate", "irate", "increase")
READ_AS_THEY_ARE = {
    "ett_node_": ("max_over_time",),
    "ett_job_": (*RATES, "last_over_time", "offset"),
}
"""A node has no series before its first failure; counters of jobs: see `grown`."""
COUNTERS = {
    series for name, family in FAMILIES.items() if family.kind != GAUGE for series in series_names(name)
}
OTHERS = ("up", "scrape_duration_seconds", "DCGM_FI_", "kube_", "slurm_job_")
"""Series of others that boards show: Prometheus's own, and those of the exporters of docs/grafana.md."""


def panels(board):
    return [panel for panel in board["panels"] if panel["type"] != "row"]


def selectors(expr: str) -> list[tuple[str, list[str]]]:
    """Names of the series of an expression, each with the functions around it, the innermost last."""
    found = []

    def walk(node, around):
        if isinstance(node, promql_parser.VectorSelector):
            found.append((node.name, [*around, "offset"] if node.offset else around))
            return
        if isinstance(node, promql_parser.MatrixSelector):
            found.append((node.vector_selector.name, around))
            return
        if isinstance(node, promql_parser.Call):
            for argument in node.args:
                walk(argument, [*around, node.func.name])
            return
        for part in ("expr", "lhs", "rhs"):
            if getattr(node, part, None) is not None:
                walk(getattr(node, part), around)

    walk(promql_parser.parse(expr), [])
    return found


def exprs_of(board) -> list[str]:
    own = [query.expr for query in queries_of(board)]
    return own + [each["expr"] for each in board["annotations"]["list"] if "expr" in each]


def test_the_files_are_what_would_be_made():
    assert differing(generated(Config()), GRAFANA) == []


def test_a_board_that_was_edited_is_noticed(tmp_path):
    """A changed, a missing and a foreign file are each named."""
    for name, text in generated(Config()).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "boards/job.json").write_text("{}")
    (tmp_path / "boards/fleet.json").unlink()
    (tmp_path / "boards/own.json").write_text("{}")
    assert differing(generated(Config()), tmp_path) == [
        "boards/fleet.json",
        "boards/job.json",
        "boards/own.json",
    ]


def test_uids_are_frozen(board):
    """Links and bookmarks of people lead to uids: they never change."""
    names = ("fleet", "job", "failures", "caches", "checkpoints", "exporter")
    assert [each.name for each in boards(Config())] == list(names)
    assert board["uid"] in {f"ettwatch-{name}" for name in names}
    assert board["tags"] == ["ettwatch"]
    assert board["editable"] is False


def test_the_data_source_is_chosen_by_the_reader(board):
    """A variable `datasource` stands first, and every panel, query and variable uses it."""
    first, *others = board["templating"]["list"]
    assert (first["name"], first["type"], first["query"], first["label"]) == (
        "datasource",
        "datasource",
        "prometheus",
        "Data source",
    )
    chosen = {"type": "prometheus", "uid": "${datasource}"}
    assert all(panel["datasource"] == chosen for panel in panels(board))
    assert all(target["datasource"] == chosen for panel in panels(board) for target in panel["targets"])
    assert all(each["datasource"] == chosen for each in others if each["type"] == "query")


def test_label_variables_ask_again_when_the_time_range_changes(board):
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            assert variable["refresh"] == 2
            assert variable["label"]
            assert variable["description"]
            assert variable["multi"]
            if variable["includeAll"]:
                assert variable["allValue"] == ".*"


@pytest.mark.parametrize("name", ["job", "caches", "checkpoints"])
def test_boards_of_jobs_take_several_jobs_but_never_all(name):
    (board,) = (each for each in boards(Config()) if each.name == name)
    (job,) = (variable for variable in board.variables if variable.name == "job_id")
    assert job.is_multi
    assert not job.has_all


def test_every_variable_is_used(board):
    asked = [str(each.get("query")) for each in board["templating"]["list"]]
    text = " ".join([*exprs_of(board), *asked, str(board["links"]), str(board["panels"])])
    for variable in board["templating"]["list"]:
        assert re.search(rf"\$\{{?{variable['name']}\b", text), variable["name"]


def test_every_panel_says_what_it_shows(board):
    """Title, a sentence, a unit, a kind that we know, at least one query, none without a name."""
    for panel in panels(board):
        assert panel["title"]
        assert panel["description"].endswith(".")
        assert panel["fieldConfig"]["defaults"]["unit"]
        assert panel["type"] in PANELS_OF_DATA
        assert panel["targets"]
        assert [target["refId"] for target in panel["targets"]] == list("ABCDEFGH")[: len(panel["targets"])]


def test_panels_have_ids_and_titles_of_their_own(board):
    ids = [panel["id"] for panel in board["panels"]]
    titles = [panel["title"] for panel in panels(board)]
    assert len(set(ids)) == len(ids)
    assert len(set(titles)) == len(titles)


def test_panels_fill_the_grid_without_lying_on_each_other(board):
    """24 columns; every cell belongs to one panel, and no line ends before the right edge."""
    taken = set()
    for panel in board["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        taken |= cells
    lowest = max(y for _, y in taken)
    assert taken == {(x, y) for x in range(24) for y in range(lowest + 1)}


def test_queries_parse_and_keep_the_rules_of_rates(board):
    """Windows of rates are Grafana's own; counters stand in rates only, and rates hold counters only."""
    for expr in exprs_of(board):
        assert not re.search(r"\b(?:rate|irate)\([^)]*\[(?!\$__rate_interval\])", expr), expr
        assert not re.search(r"\bincrease\([^)]*\[(?!\$__(?:rate_interval|range)\]|\$window\])", expr), expr
        for name, around in selectors(filled(expr, CHOSEN)):
            is_counter = name in COUNTERS or (name not in FAMILIES and name.endswith("_total"))
            around_it = next(
                (good for kind, good in READ_AS_THEY_ARE.items() if name.startswith(kind)), RATES
            )
            assert not is_counter or (around or ["plain"])[-1] in around_it, expr
            assert is_counter or not around or around[-1] not in RATES, expr


def test_queries_name_series_that_exist(board):
    """Ours, recorded ones, Prometheus's own, or those of exporters that docs/grafana.md names."""
    known = {series for name in FAMILIES for series in series_names(name)}
    known |= {each.record for each in recorded(Config())}
    for expr in exprs_of(board):
        for name, _ in selectors(filled(expr, CHOSEN)):
            assert name in known or name.startswith(OTHERS), name


def test_selectors_use_only_labels_of_their_family(board):
    for expr in exprs_of(board):
        for name, labels in re.findall(r"\b(ett_\w+)\{([^}]*)\}", filled(expr, CHOSEN)):
            family = next(key for key in FAMILIES if name in series_names(key))
            used = set(re.findall(r"(\w+)\s*[=!]", re.sub(r'"[^"]*"', "", labels)))
            assert used <= {*FAMILIES[family].labels, "instance"}, expr


def test_limits_are_drawn(board):
    """Where a series over time has limits, they are drawn as lines."""
    for panel in panels(board):
        defaults = panel["fieldConfig"]["defaults"]
        if panel["type"] == "timeseries":
            drawn = defaults["custom"]["thresholdsStyle"]["mode"] != "off"
            assert drawn == (len(defaults["thresholds"]["steps"]) > 1)


def test_limits_come_from_the_settings():
    """A threshold that is changed once changes on every board that shows it."""
    other = Config(app_url="https://ett.example/")
    texts = {name: text for name, text in generated(other).items() if name.startswith("boards/")}
    assert all('"https://ett.example"' in text for text in texts.values())
    assert not any("127.0.0.1" in text for text in texts.values())


def test_an_app_that_cannot_be_linked_to_is_refused():
    with pytest.raises(ValueError, match="--app-url"):
        Config(app_url="ett.example")


@pytest.mark.parametrize("group", GROUPS)
def test_selectors_of_groups_choose_their_components(group):
    pattern = of_group(group).removeprefix('component=~"').removesuffix('"').replace("\\\\", "\\")
    assert {name for name in COMPONENTS if re.fullmatch(pattern, name)} == {
        name for name in COMPONENTS if group_of(name) == group
    }


def test_colours_are_those_of_the_app():
    """Components, groups, states, and whose a failure is have the colours that they have in the app."""
    known = {group: {colour} for group, colour in GROUP_COLOURS.items()}
    for name in COMPONENTS:
        known.setdefault(name, set()).add(component_colour(name))
    for state in STATES:
        known.setdefault(state, set()).add(GROUP_COLOURS[state_group(state)])
    for name, domain in {
        **{name: name for name in DOMAINS},
        **{c.name: c.domain for c in CLASSES.values()},
    }.items():
        known.setdefault(name, set()).add(DOMAIN_COLOURS[domain])
    panels = [panel for board in boards(Config()) for each in board.sections for panel in each.panels]
    shown = [pair for panel in panels for pair in panel.colours.items() if pair[0] in known]
    assert all(colour in known[name] for name, colour in shown)
    assert {name for name, _ in shown} >= {*GROUPS, *COMPONENTS, *DOMAINS, *CLASSES}


def test_every_board_leads_to_the_app_and_to_the_others(board):
    kinds = {link["type"]: link for link in board["links"]}
    assert kinds["link"]["url"].startswith("${app}/")
    assert kinds["dashboards"]["tags"] == ["ettwatch"]
    assert kinds["dashboards"]["keepTime"]


def test_panels_lead_to_pages_of_the_app():
    """Links into the app lead to pages that it has."""
    pages = {"", "job", "failures", "caches", "checkpoints", "what-if", "regressions"}
    links = {
        link.url
        for board in boards(Config())
        for section in board.sections
        for panel in section.panels
        for link in panel.links
        if link.url.startswith("${app}/")
    }
    assert {re.split(r"[/?]", url)[1] for url in links} <= pages
    assert len(links) > 5


def test_moments_are_marked(board):
    """Failures and restarts come from the series, deploys from Grafana's own annotations."""
    own = {each["name"]: each for each in board["annotations"]["list"]}
    assert own["Deploys"]["target"]["tags"] == ["ettwatch", "deploy"]
    if board["uid"] == "ettwatch-job":
        assert {"Failures", "Restarts", "Deploys"} <= own.keys()
    for each in own.values():
        assert each["iconColor"].startswith("#")


def test_every_family_is_shown_or_left_out_for_a_reason():
    """What the exporter counts is on a board, itself or through a recorded series."""
    seen = {
        name
        for text in (*(query for board in boards(Config()) for query in _exprs(board)),)
        for name, _ in selectors(filled(text, CHOSEN))
    }
    seen |= {name for each in recorded(Config()) if each.record in seen for name, _ in selectors(each.expr)}
    left_out = {
        "ett_fleet_effective_ratio": "shares over several exporters are computed from seconds",
        "ett_fleet_reclassified_accelerator_seconds_total": "what final seconds lost again is of the app",
    }
    shown = {name for name in FAMILIES if set(series_names(name)) & seen}
    assert FAMILIES.keys() - shown == left_out.keys()
    assert all(FAMILIES[name].kind in (GAUGE, COUNTER) for name in left_out)


def _exprs(board):
    return [query.expr for section in board.sections for panel in section.panels for query in panel.queries]
