import argparse
import importlib
import os
import subprocess
import sys

import pytest

from ett_cli.main import COMMANDS, main, module_of


def test_the_names_of_the_commands_are_frozen():
    assert list(COMMANDS) == [
        "demo",
        "simulate",
        "run",
        "env",
        "ship",
        "exporter",
        "dashboard",
        "grafana",
        "account",
        "diagnose",
        "failures",
        "report",
        "import",
        "train",
        "interval",
        "advise",
        "cache",
        "publish",
    ]


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_can_be_loaded_and_explains_itself(name, capsys):
    importlib.import_module(module_of(name))
    with pytest.raises(SystemExit) as stop:
        main([name, "--help"])
    assert stop.value.code == 0
    assert f"usage: ett {name}" in capsys.readouterr().out


def test_help_lists_every_command(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    out = capsys.readouterr().out
    assert stop.value.code == 0
    assert all(f"  {name} " in out for name in COMMANDS)


def test_an_unknown_command_is_status_two(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["fly"])
    assert stop.value.code == 2
    assert "invalid choice: 'fly'" in capsys.readouterr().err


def test_the_version_is_told(capsys):
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out.startswith("ettwatch 0.")


def test_a_light_command_loads_neither_the_service_nor_the_app_nor_torch():
    heavy = "{'torch', 'torchrec', 'streamlit', 'pandas', 'starlette', 'sqlalchemy', 'prometheus_client'}"
    code = (
        "import sys; from ett_cli.main import main; "
        "main(['interval', '--blocking-s', '1', '--mtbf-s', '9']); "
        f"sys.exit(repr(sorted({heavy} & sys.modules.keys())) if {heavy} & sys.modules.keys() else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_missing_package_is_named_in_one_sentence_with_what_to_install():
    code = (
        "import sys; sys.modules['sqlalchemy'] = None; from ett_cli.main import main; "
        "sys.exit(main(['exporter', '--port', '0']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "ett exporter: needs the package sqlalchemy." in done.stderr
    assert "pip install '.[all]'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "encoding", "name"),
    [
        ([], "ascii:strict", r"gr\xf6\xdfe-\xff.log"),
        ([], "utf-8:strict", r"größe-\xff.log"),
        (["--json"], "utf-8:strict", r"größe-\\xff.log"),
    ],
)
def test_a_name_that_is_no_text_is_told_with_escapes(words, encoding, name, tmp_path):
    """A path may hold any byte, and a terminal may have few letters; neither breaks an answer off."""
    (tmp_path / "größe-\udcff.log").write_text("RuntimeError: CUDA out of memory. Tried to allocate 2 GiB\n")
    ett = [sys.executable, "-c", "import sys; from ett_cli.main import main; sys.exit(main())"]
    done = subprocess.run(
        [*ett, "diagnose", str(tmp_path), *words],
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": encoding},
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert name in done.stdout.decode()


def test_a_reader_that_leaves_early_sees_no_traceback(tmp_path):
    journal = tmp_path / "j.jsonl"
    journal.write_text(
        "".join(
            f'{{"v":1,"job_id":"job-{n}","writer":"w{n}","seq":0,"attempt":0,"rank":0,"time":1.7e9,'
            '"kind":"heartbeat"}\n'
            for n in range(300)
        )
    )
    ett = f"{sys.executable} -c 'from ett_cli.main import main; main()' account"
    done = subprocess.run(
        ["bash", "-c", f"{ett} {journal} --json | head -1"], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("{\n", "")


@pytest.mark.parametrize("name", ["dashboard", "failures", "report"])
def test_whatever_asks_an_exporter_looks_for_it_in_the_same_places(name, monkeypatch):
    """The one that is named, else that of the environment, else the usual address of this machine."""

    def asked(*words):
        parser = argparse.ArgumentParser()
        importlib.import_module(module_of(name)).add_arguments(parser)
        return parser.parse_args(["--out", "r.html", *words] if name == "report" else words).exporter

    monkeypatch.delenv("ETT_EXPORTER_URL", raising=False)
    assert asked() == "http://127.0.0.1:9410"
    monkeypatch.setenv("ETT_EXPORTER_URL", "http://ett.example")
    assert asked() == "http://ett.example"
    assert asked("--exporter", "http://other.example") == "http://other.example"
