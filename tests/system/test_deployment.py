"""The files for systemd, compose, Kubernetes and Prometheus: what they say of the exporter is true."""

from __future__ import annotations

import argparse
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from ett_cli.commands.exporter import add_arguments
from ett_exporter.endpoints import ENDPOINTS
from ett_exporter.owners import Shard

DEPLOY = Path(__file__).parents[2] / "examples" / "deploy"
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
    assert (
        parts["ServiceMonitor"]["spec"]["selector"]["matchLabels"] == parts["Service"]["metadata"]["labels"]
    )
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
    config.write_text(text.replace("/run/secrets/prometheus", str(token)))
    done = subprocess.run(
        ["promtool", "check", "config", str(config)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_systemd_takes_the_unit(tmp_path):
    """systemd-analyze finds nothing wrong, where there is one."""
    program = shutil.which("systemd-analyze")
    unit = (DEPLOY / "ettwatch-exporter.service").read_text()
    assert {"[Unit]", "[Service]", "[Install]"} <= set(unit.splitlines())
    if program is None:
        return
    copy = tmp_path / "ettwatch-exporter.service"
    copy.write_text(unit.replace("/opt/ettwatch/bin/ett", "/bin/true"))
    done = subprocess.run(
        [program, "verify", "--man=no", str(copy)], capture_output=True, text=True, check=False
    )
    assert "Unknown" not in done.stderr
