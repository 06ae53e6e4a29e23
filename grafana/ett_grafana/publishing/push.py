"""One push: all that would be done, found out before anything is done."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from ett_grafana.board import text_of
from ett_grafana.build import boards
from ett_grafana.config import Config
from ett_grafana.managed import PROMETHEUS_UID, managed_rules
from ett_grafana.provisioning import datasources
from ett_grafana.publishing.boards import board_steps, folder_step
from ett_grafana.publishing.connection import Grafana
from ett_grafana.publishing.others import rule_steps, source_step
from ett_grafana.publishing.steps import Step


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """What to publish beside the boards, and what may be overwritten."""

    with_source: bool = False
    """Also the data source, as provisioning files have it."""
    with_rules: bool = False
    """Also the alerts, as rules that Grafana evaluates."""
    source_uid: str = PROMETHEUS_UID
    """The data source that those rules ask."""
    force: bool = False
    """Also over boards that somebody edited by hand."""


def planned(grafana: Grafana, config: Config, wishes: Wishes) -> Iterator[Step]:
    """Every step, in an order in which they can be taken; asks Grafana and changes nothing.

    Raises:
        PublishError: Grafana refused to answer, or could not be reached.
    """
    yield folder_step(grafana)
    if wishes.with_source:
        yield from (source_step(grafana, dict(source)) for source in datasources(config))
    made = [json.loads(text_of(board)) for board in boards(config)]
    yield from board_steps(grafana, made, force=wishes.force)
    if wishes.with_rules:
        yield from rule_steps(grafana, managed_rules(config, wishes.source_uid))
