"""What all tests share: services that a machine may lack.

`@pytest.mark.service("chromium")` says what a test needs. Where it is missing the test is
skipped with the reason; with ETT_REQUIRE_SERVICES=1, as in CI, it fails, and any skipped test
at all fails the run.

Signals that whoever started the tests ignores (a background job, `nohup`) come to the processes that
tests start as they come to any other.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import sys
import sysconfig
from collections.abc import Generator
from pathlib import Path

import hypothesis
import pytest

# How long an example takes is measured in benchmarks, never by a test: machines are shared.
hypothesis.settings.register_profile(
    "untimed", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("untimed")

# How torch compiles in all that tests start, unless they say otherwise: code without vectors, whose headers
# take most of a compilation, and in the process itself, as each worker of the compiler imports torch.
for name, text in {"ATEN_CPU_CAPABILITY": "default", "TORCHINDUCTOR_COMPILE_THREADS": "1"}.items():
    os.environ.setdefault(name, text)

HERE = Path(__file__).parent
REQUIRED = os.environ.get("ETT_REQUIRE_SERVICES") == "1"
PROGRAMS = (
    "chromium", "prometheus", "prometheus-alertmanager", "promtool", "amtool", "victoria-metrics", "vmalert"
)  # fmt: skip
LONG_FIRST = ("system", "trainer_hooks", "examples", "dashboard")
"""Folders whose files take long: they come first, so that several workers end at about the same time."""
CHANGED = ("exporter", "chromium")
"""Fixtures that tests share and change: one knows what it was told, one may have stopped to answer."""
OFTEN_IGNORED = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM)
TORCHREC_PARTS = ("torch", "torchrec", "fbgemm_gpu")
FRAMEWORKS = ("lightning", "transformers", "accelerate")


def what_is_missing(service: str) -> str | None:
    """Why a service cannot be used here, None where it can.

    Raises:
        ValueError: no such service is known.
    """
    if service in PROGRAMS:
        return None if shutil.which(service) else f"{service} is not on PATH"
    if service in ("torch", "torchtitan", *FRAMEWORKS):
        parts = TORCHREC_PARTS if service == "torch" else (service,)
        absent = [name for name in parts if importlib.util.find_spec(name) is None]
        return f"not installed: {', '.join(absent)}" if absent else None
    if service == "postgresql":
        import postgresql  # noqa: PLC0415 - a copy of this file alone has no support beside it

        absent = [name for name in ("psycopg",) if importlib.util.find_spec(name) is None]
        absent += [] if postgresql.programs() else ["the programs of a PostgreSQL server"]
        return f"not installed: {', '.join(absent)}" if absent else None
    if service == "py-spy":
        places = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
        return None if shutil.which(service, path=places) else "py-spy is not installed"
    if service == "compiler":
        header = Path(sysconfig.get_path("include")) / "Python.h"
        absent = [
            name for name, there in (("g++", shutil.which("g++")), (header, header.is_file())) if not there
        ]
        return f"not there: {', '.join(map(str, absent))}" if absent else None
    known = ", ".join([*PROGRAMS, "torch", "torchtitan", "compiler", "postgresql", "py-spy", *FRAMEWORKS])
    raise ValueError(f"no service {service!r} is known to tests/conftest.py (known: {known})")


def pytest_configure(config: pytest.Config) -> None:
    """Ignored signals stay so here, by a handler that does nothing: unlike ignoring, no child inherits that.

    A process that only has others run the tests leaves it to them.
    """
    if config.getoption("dist", "no") != "no":
        return
    for number in OFTEN_IGNORED:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda _number, _frame: None)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What runs, in which order, and how: sweeps are left out unless ETT_FULL=1.

    In CI a test in a browser may fail twice, some seconds apart, as a shared machine can stand still for as
    long: the summary counts reruns, which are to be looked at.
    """
    if os.environ.get("ETT_FULL") != "1":
        left_out = [item for item in items if item.get_closest_marker("sweep")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("sweep")]
    items.sort(key=lambda item: _turn(item.path))
    for item in items:
        if any("chromium" in marker.args for marker in item.iter_markers("service")) and "CI" in os.environ:
            item.add_marker(pytest.mark.flaky(reruns=2, reruns_delay=15))


def _turn(path: Path) -> int:
    folder = path.relative_to(HERE).parts[0] if path.is_relative_to(HERE) else ""
    return LONG_FIRST.index(folder) if folder in LONG_FIRST else len(LONG_FIRST)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Before the fixtures of a test: are the services there? A test that runs again has them begun anew.

    What it tells an exporter is known there already else, from the first time.
    """
    if getattr(item, "execution_count", 1) > 1:
        for name in CHANGED:
            for fixture in item._fixtureinfo.name2fixturedefs.get(name, ()):
                fixture.finish(item._request)
    services = [name for marker in item.iter_markers("service") for name in marker.args]
    reasons = [reason for name in services if (reason := what_is_missing(name))]
    if reasons and REQUIRED:
        pytest.fail(f"a required service is missing: {'; '.join(reasons)}", pytrace=False)
    if reasons:
        pytest.skip("; ".join(reasons))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, object, object]:
    """Where every service is required, a skipped test fails the run."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = len(reporter.stats.get("skipped", ())) if REQUIRED and reporter else 0
    if skipped and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        reporter.write_line("")
        reporter.write_line(f"{skipped} skipped although every service is required: this run fails", red=True)
    return (yield)
