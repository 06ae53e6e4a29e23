"""The files for systemd, compose, Kubernetes, Prometheus, Alertmanager and Grafana: what they say is true."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from ett_cli.commands.exporter import add_arguments
from ett_exporter.endpoints import ENDPOINTS
from ett_exporter.owners import Shard
from ett_grafana.config import Config
from ett_grafana.provisioning import DATASOURCES_FILE, PROVIDER_FILE, datasources
from ett_grafana.rules import alerts

DEPLOY = Path(__file__).parents[2] / "examples" / "deploy"
GRAFANA = Path(__file__).parents[2] / "grafana"
SCHEMAS_OF = "1.33"
OPEN_PATHS = {endpoint.path for endpoint in ENDPOINTS if not endpoint.scope}


def kubernetes():
    return {each["kind"]: each for each in yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text())}


def pod():
    return kubernetes()["StatefulSet"]["spec"]["template"]["spec"]


def words_of_systemd():
    line = re.search(r"^ExecStart=(.*)$", (DEPLOY / "ettwatch-exporter.service").read_text(), re.MULTILINE)
    return shlex.split(line[1])[1:]


def words_of_compose():
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["exporter"]["command"]


def words_of_kubernetes():
    (script,) = pod()["containers"][0]["args"]
    done = subprocess.run(
        ["/bin/sh", "-c", script.replace("exec ett ", "printf '%s\\n' ")],
        env={"POD_NAME": "ettwatch-exporter-1"}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout.splitlines()


@pytest.mark.parametrize("words", [words_of_systemd, words_of_compose, words_of_kubernetes])
def test_each_command_is_one_that_the_exporter_takes(words):
    """Every option exists, and beyond loopback there are tokens."""
    command, *options = words()
    assert command == "exporter"
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_arguments(parser)
    given = parser.parse_args(options)
    assert given.host == "0.0.0.0"  # noqa: S104 - what is written there
    assert given.tokens is not None
    assert not given.insecure
    assert given.port == 9410


def test_the_share_of_a_pod_is_its_number_of_all_replicas():
    """`--shard` is made of the pod's name and the number of replicas."""
    options = words_of_kubernetes()
    shard = Shard.parse(options[options.index("--shard") + 1])
    replicas = kubernetes()["StatefulSet"]["spec"]["replicas"]
    assert str(shard) == f"1/{replicas}"


def test_probes_ask_what_needs_no_token_and_exists():
    """Kubelet and compose have no token."""
    container = pod()["containers"][0]
    ports = {port["name"] for port in container["ports"]}
    for probe in ("livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"]["path"] in OPEN_PATHS
        assert container[probe]["httpGet"]["port"] in ports
    check = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["exporter"]["healthcheck"][
        "test"
    ]
    assert re.search(r"http://127\.0\.0\.1:9410(/\w+)", check[-1])[1] in OPEN_PATHS


def test_services_and_monitors_find_the_pods():
    """Selectors match the labels, names of ports those of the service."""
    parts = kubernetes()
    labels = parts["StatefulSet"]["spec"]["template"]["metadata"]["labels"]
    assert parts["StatefulSet"]["spec"]["selector"]["matchLabels"] == labels
    assert parts["Service"]["spec"]["selector"] == labels
    assert parts["StatefulSet"]["spec"]["serviceName"] == parts["Service"]["metadata"]["name"]
    monitor, of_service = parts["ServiceMonitor"]["spec"], parts["Service"]["metadata"]["labels"]
    assert monitor["selector"]["matchLabels"].items() <= of_service.items()
    assert of_service[monitor["jobLabel"]] == Config().scrape_job
    ports = {port["name"] for port in parts["Service"]["spec"]["ports"]}
    assert {each["port"] for each in parts["ServiceMonitor"]["spec"]["endpoints"]} <= ports


@pytest.mark.service("promtool")
def test_prometheus_takes_its_configuration(tmp_path):
    """Promtool finds nothing wrong, once the token is where the file says."""
    token = tmp_path / "token"
    token.write_text("ett_x")
    config = tmp_path / "prometheus.yaml"
    text = (DEPLOY / "prometheus.yaml").read_text()
    assert "/run/secrets/prometheus" in text
    text = text.replace("/run/secrets/prometheus", str(token))
    config.write_text(text.replace("/etc/prometheus/rules", str(GRAFANA / "rules")))
    done = subprocess.run(
        ["promtool", "check", "config", str(config)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert f"{len(list((GRAFANA / 'rules').glob('*.yaml')))} rule files found" in done.stdout


def test_prometheus_scrapes_the_job_that_rules_and_boards_name():
    """`up{job="ettwatch"}` is what the alert on a dead exporter asks for."""
    (job,) = yaml.safe_load((DEPLOY / "prometheus.yaml").read_text())["scrape_configs"]
    assert job["job_name"] == Config().scrape_job


def test_compose_takes_its_file():
    """The schema of the Compose specification finds nothing wrong."""
    check = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    done = subprocess.run([*check, str(DEPLOY / "compose.yaml")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def services():
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]


def test_everything_that_compose_mounts_is_there():
    """Files and folders of the checkout that services read, their named volumes and secrets."""
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    for service in compose["services"].values():
        for source, *_ in (volume.split(":") for volume in service.get("volumes", ())):
            assert (DEPLOY / source).exists() if source.startswith(".") else source in compose["volumes"]
        assert set(service.get("secrets", ())) <= compose["secrets"].keys()
        assert set(service.get("depends_on", ())) <= compose["services"].keys()


def test_the_head_of_the_compose_file_makes_its_secrets(tmp_path):
    """Run in the root of a checkout, its commands leave every secret where compose looks for it, readable."""
    text = (DEPLOY / "compose.yaml").read_text()
    place = tmp_path / "examples" / "deploy"
    place.mkdir(parents=True)
    commands = "\n".join(re.findall(r"^#   (.*)$", text, re.MULTILINE))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    script = f"set -e; umask 022\n{commands}"
    subprocess.run(["/bin/sh", "-c", script], cwd=tmp_path, env={**os.environ, "PATH": path}, check=True)
    for secret in yaml.safe_load(text)["secrets"].values():
        file = place / secret["file"]
        assert file.read_text().strip()
        assert file.stat().st_mode & 0o004
        ignored = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
        assert str(file.parent.relative_to(tmp_path)) in ignored


def test_secrets_that_monitors_name_are_told_in_the_head_of_the_file():
    """Whoever applies the file has made every secret before."""
    head = (DEPLOY / "kubernetes.yaml").read_text().partition("apiVersion")[0]
    (endpoint,) = kubernetes()["ServiceMonitor"]["spec"]["endpoints"]
    credentials = endpoint["authorization"]["credentials"]
    (tokens,) = pod()["volumes"]
    for name, key in [
        (credentials["name"], credentials["key"]),
        (tokens["secret"]["secretName"], tokens["secret"]["items"][0]["key"]),
    ]:
        assert f"kubectl create secret generic {name} --from-file={key}" in head


def test_services_of_compose_find_each_other():
    """Addresses in the files of Prometheus and Grafana are names and ports of services."""
    prometheus = yaml.safe_load((DEPLOY / "prometheus.yaml").read_text())
    named = [prometheus["scrape_configs"][0], *prometheus["alerting"]["alertmanagers"]]
    targets = [target for each in named for target in each["static_configs"][0]["targets"]]
    targets += [each["url"].removeprefix("http://") for each in datasources(Config())]
    ports = {"exporter": "9410", "prometheus": "9090", "alertmanager": "9093"}
    assert ports.keys() <= services().keys()
    assert sorted(targets) == sorted(
        [*(f"{name}:{port}" for name, port in ports.items()), "alertmanager:9093"]
    )


def test_grafana_in_compose_starts_with_everything():
    """Data sources, the provider of boards and the boards lie where Grafana and the provider look."""
    grafana = services()["grafana"]
    mounts = {place: source for source, place, *_ in (volume.split(":") for volume in grafana["volumes"])}
    (provider,) = yaml.safe_load((GRAFANA / PROVIDER_FILE).read_text())["providers"]
    boards = provider["options"]["path"]
    assert (DEPLOY / mounts[boards]).resolve() == GRAFANA / "boards"
    for file in (PROVIDER_FILE, DATASOURCES_FILE):
        place = f"/etc/grafana/{Path(file).parent}"
        assert (DEPLOY / mounts[place]).resolve() == (GRAFANA / file).parent
    home = grafana["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]
    assert (GRAFANA / "boards" / Path(home).relative_to(boards)).is_file()


@pytest.mark.service("amtool")
@pytest.mark.parametrize(
    ("labels", "receiver"),
    [
        ("alertname=EttJobStalled severity=critical team=ads job_id=a", "ads"),
        ("alertname=EttCheckpointFailing severity=critical team=feed job_id=a", "feed"),
        ("alertname=EttStartSlow severity=warning team=ads job_id=a", "ads"),
        ("alertname=EttJobLost severity=critical team=unknown job_id=a", "platform"),
        ("alertname=EttJobLost severity=critical job_id=a", "platform"),
        ("alertname=EttSuspectNode severity=warning node=n1", "platform"),
        ("alertname=EttExporterDown severity=critical", "platform"),
        ("alertname=EttCheckpointIntervalFarFromOptimal severity=info team=ads", "weekly"),
    ],
)
def test_alerts_go_to_the_team_of_the_job_or_to_the_platform(labels, receiver):
    """Amtool, asked for the route of the labels that our alerts carry."""
    command = ["amtool", "config", "routes", "test", f"--config.file={DEPLOY / 'alertmanager.yaml'}"]
    done = subprocess.run([*command, *labels.split()], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == receiver


@pytest.mark.service("amtool")
def test_alertmanager_takes_its_configuration_and_names_alerts_that_exist():
    """Amtool finds nothing wrong; every alert that a route or an inhibition names is one of ours."""
    config = DEPLOY / "alertmanager.yaml"
    done = subprocess.run(
        ["amtool", "check-config", str(config)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    named = set(re.findall(r"Ett\w+", config.read_text()))
    assert named <= {alert.name for alert in alerts(Config())}


MOST_EXPOSED = 20
"""In tenths, as `systemd-analyze security` rates units from 0 to 10; more than 4 is `medium`."""


def test_systemd_takes_the_unit(tmp_path):
    """systemd-analyze understands every line, and finds that little is exposed; where there is one."""
    program = shutil.which("systemd-analyze")
    unit = (DEPLOY / "ettwatch-exporter.service").read_text()
    assert {"[Unit]", "[Service]", "[Install]"} <= set(unit.splitlines())
    if program is None:
        return
    copy = tmp_path / "ettwatch-exporter.service"
    copy.write_text(unit.replace("/opt/ettwatch/bin/ett", "/bin/true"))
    for words in (["verify", "--man=no"], ["security", "--offline=true", f"--threshold={MOST_EXPOSED}"]):
        done = subprocess.run(
            [program, *words, "--no-pager", str(copy)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_unit_reads_the_tokens_that_systemd_hands_on():
    """Where the file of tokens lies, and where the exporter finds it."""
    unit = (DEPLOY / "ettwatch-exporter.service").read_text()
    name, _, source = re.search(r"^LoadCredential=(.*)$", unit, re.MULTILINE)[1].partition(":")
    words = words_of_systemd()
    assert words[words.index("--tokens") + 1] == f"${{CREDENTIALS_DIRECTORY}}/{name}"
    assert f"--file {source}" in unit


@pytest.mark.parametrize("kind", ["StatefulSet", "Service"])
def test_kubernetes_takes_its_objects(kind):
    """The schemas of Kubernetes find nothing wrong, and no field that they do not know."""
    kubernetes_validate.validate(kubernetes()[kind], SCHEMAS_OF, strict=True)


def test_a_wrong_field_is_noticed_by_the_schemas():
    """A misspelt field of a probe is refused: the check above means something."""
    wrong = kubernetes()["StatefulSet"]
    wrong["spec"]["template"]["spec"]["containers"][0]["readinessProbe"]["httpget"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, SCHEMAS_OF, strict=True)
