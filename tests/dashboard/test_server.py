"""How `ett dashboard` says that it cannot serve: one sentence and a status, never a traceback."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from ett_dashboard.server import ServeError, check
from ett_dashboard.settings import Address

ETT = Path(sys.executable).with_name("ett")


def refusal(*words: str, status: int) -> str:
    """The one line that `ett dashboard` says before it ends with `status`."""
    done = subprocess.run([ETT, "dashboard", *words], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (status, ""), done.stderr
    (line,) = done.stderr.splitlines()
    return line


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--port", "70000"), "--port 70000 is not between 0 and 65535"),
        (("--host", ""), "--host needs an address to listen on, such as 127.0.0.1"),
        (("--exporter", "there"), "the exporter's address 'there' does not look like http://HOST:PORT"),
        (("--grafana", "there"), "Grafana's address 'there' does not look like http://HOST:PORT"),
        (("--refresh-s", "nan"), "--refresh-s needs seconds, at least 0.5, not nan"),
        (("--price", "-1"), "--price -1 is no price of an accelerator-hour"),
        (("--zone", "Mars/Base"), "--zone 'Mars/Base' is no time zone; one is Europe/Berlin"),
    ],
)
def test_settings_that_cannot_work_are_status_two(words, said):
    """Out of range, empty or no address: one sentence says which."""
    assert refusal(*words, status=2) == f"ett dashboard: {said}"


def test_a_port_in_use_is_status_one():
    """An address that somebody else listens on is named."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        said = refusal("--port", str(port), status=1)
    assert said == f"ett dashboard: cannot listen on 127.0.0.1:{port}: the port is in use"


@pytest.mark.parametrize("host", ["192.0.2.1", "a..b"])
def test_an_address_that_is_not_ours_is_status_one(host):
    """Another machine's address and what is no name of a host are named."""
    assert refusal("--host", host, status=1).startswith(f"ett dashboard: cannot listen on {host}:8501: ")


@pytest.mark.skipif(
    int(Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text()) <= 80,
    reason="port 80 is free to all",
)
def test_a_port_that_needs_rights_is_said_so():
    """Who may not have a low port learns that."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65_534)
    try:
        with pytest.raises(ServeError, match=r"127\.0\.0\.1:80: (Permission denied|the port is in use)"):
            check(Address(port=80))
    finally:
        os.seteuid(user)
