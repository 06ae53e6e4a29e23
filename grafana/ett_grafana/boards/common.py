"""What several boards share: variables, annotations, links, words and colours from core."""

from __future__ import annotations

from collections.abc import Mapping

from ett_core.boards import BOARD_TAG, board_uid
from ett_core.colours import DOMAIN_COLOURS, component_colour, state_group
from ett_core.components import COMPONENTS, GROUP_COLOURS
from ett_core.failures.classes import CLASSES
from ett_core.metrics import FAMILIES
from ett_grafana.model import NEUTRAL, Annotation, Link, Variable

CLUSTER = Variable(
    name="cluster",
    label="Cluster",
    description="Clusters, by the label of the jobs.",
    query="label_values(ett:jobs:sum, cluster)",
    is_multi=True,
    has_all=True,
)
TEAM = Variable(
    name="team",
    label="Team",
    description="Teams, by the label of the jobs.",
    query='label_values(ett:jobs:sum{cluster=~"$cluster"}, team)',
    is_multi=True,
    has_all=True,
)
MODEL = Variable(
    name="model",
    label="Model",
    description="Models, by the label of the jobs.",
    query='label_values(ett:time_to_start_seconds:p50{cluster=~"$cluster"}, model)',
    is_multi=True,
    has_all=True,
)
JOB = Variable(
    name="job_id",
    label="Job",
    description="One job, or a few beside each other.",
    query='label_values(ett_job_info{cluster=~"$cluster"}, job_id)',
    is_multi=True,
)
DEPLOYS = Annotation("Deploys", NEUTRAL, tags=(BOARD_TAG, "deploy"))

OF_ROW = "${__data.fields.job_id:percentencode}"
OF_SERIES = "${__field.labels.job_id:percentencode}"
COMPONENT_COLOURS: Mapping[str, str] = {name: component_colour(name) for name in COMPONENTS}
CLASS_COLOURS: Mapping[str, str] = {name: DOMAIN_COLOURS[row.domain] for name, row in CLASSES.items()}
"""Classes of failures in the colour of whose they are, as in the app."""


def help_of(family: str) -> str:
    """What a metric means, in core's words."""
    return FAMILIES[family].help


def job_links(job_id: str) -> tuple[Link, ...]:
    """From a job to its page in the app and to its board."""
    board = f"/d/{board_uid('job')}?var-datasource=${{datasource}}&var-job_id={job_id}&${{__url_time_range}}"
    return (Link("Job in the app", f"${{app}}/job?id={job_id}"), Link("Board of the job", board))


def app_link(title: str, page: str) -> tuple[Link, ...]:
    """To a page of the app."""
    return (Link(title, f"${{app}}/{page}"),)


def state_colour(state: str) -> str:
    """The colour of a state's group."""
    return GROUP_COLOURS[state_group(state)]
