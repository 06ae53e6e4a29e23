"""Advice from traces that torch 2.13 wrote, and from journals.

The traces in `tests/data/torch_traces` are of small programs, a log each, cut down to the lines and
fields that are read. What is expected with the advice was seen when each program ran again with it.
"""

import json
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from ett_cli.compile_traces import parse_trace, read_trace
from ett_cli.main import main
from ett_core.events import AttemptStart, Cache, Compile, CompileInput, encode
from ett_core.shapes import advise
from ett_core.shapes.reasons import parse

TRACES = Path(__file__).parents[1] / "data" / "torch_traces"
HEAD = {"job_id": "j", "writer": "w", "attempt": 0, "rank": 0, "node": "n", "time": 1.0}
MISMATCH = "0/0: tensor 'x' size mismatch at index 0. expected 64, actual 65"


def told(words, capsys):
    status = main(["advise", "dynamic", *map(str, words)])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def journal(path, *events):
    path.write_bytes(b"".join(encode(event) + b"\n" for event in events))
    return path


@pytest.mark.parametrize(
    ("name", "graphs", "expected", "value"),
    [
        ("sequential", 3, 2, "L['args'][0]:0"),
        ("arguments", 3, 2, "L['a']:0,L['b']:1"),
        ("buffer", 5, 2, "L['s']._buffers['b']:0"),
        ("break", 6, 4, "L['x']:0,L['y']:0"),
        ("number", 2, 1, "L['n']"),
        ("two_dimensions", 6, 4, "L['x']:0,L['x']:1"),
        ("zero", 4, 3, "L['x']:0"),
        ("items", 2, 1, "L['ys'][0]:0,L['ys'][1]:0"),
        ("keys", 2, 1, r"L\['d'\]\['a.b..c'\]$:0"),
        ("numpy", 2, 1, "___from_numpy(L['a']):0"),
        ("one_first", 2, 2, ""),
        ("lengths", 3, 3, ""),
        ("dtypes", 5, 5, ""),
        ("fraction", 2, 2, ""),
    ],
)
def test_a_trace_gives_the_value_and_the_graphs_that_were_seen_with_it(name, graphs, expected, value):
    trace = read_trace(TRACES / f"{name}.log")
    advice = advise(trace.compilations, torch_version=trace.torch_version)
    assert (advice.graphs, advice.expected, advice.value) == (graphs, expected, value)
    assert advice.counted


@pytest.mark.parametrize("log", sorted(TRACES.glob("*.log")), ids=lambda log: log.stem)
def test_names_in_reasons_are_found_as_frames_know_them(log):
    for item in read_trace(log).compilations:
        reason = parse(item.reason or "")
        if reason.kind in {"size", "small", "tensor"}:
            assert reason.source in {each.source for each in item.inputs}


def test_words_say_what_to_set_what_it_saves_and_what_remains(capsys):
    status, out, err = told([TRACES / "sequential.log"], capsys)
    assert (status, err) == (0, "")
    assert "3 graphs; 2 where this is set before the program starts" in out
    assert """  export TORCH_COMPILE_DYNAMIC_SOURCES="L['args'][0]:0"\n""" in out
    assert "left open  L['args'][0], dimension 0: 1, 64, 65" in out
    assert "is 0 or 1: torch makes a graph of its own" in out
    assert "wrap them in a class" in out


def test_words_name_the_call_that_marks_an_argument(capsys):
    _, out, _ = told([TRACES / "arguments.log"], capsys)
    assert "or in code torch._dynamo.maybe_mark_dynamic(b, 1)" in out


def test_what_no_setting_cures_is_said_plainly(capsys):
    status, out, _ = told([TRACES / "dtypes.log"], capsys)
    assert status == 0
    assert "nothing to set" in out
    assert "dtype mismatch. expected Float, actual Double: make the tensors alike" in out
    assert "export" not in out


def test_a_directory_is_all_of_its_logs(tmp_path, capsys):
    for rank in (0, 1):
        (tmp_path / f"rank{rank}").mkdir()
        (tmp_path / f"rank{rank}" / "raw.log").write_bytes((TRACES / "arguments.log").read_bytes())
    status, out, _ = told([tmp_path, "--json"], capsys)
    answer = json.loads(out)
    assert status == 0
    assert (answer["processes"], answer["graphs"], answer["expected_graphs"]) == (2, 6, 4)
    assert answer["value"] == "L['a']:0,L['b']:1"
    assert answer["torch"] == "2.13.0"
    assert len(answer["frames"]) == 1
    assert answer["frames"][0]["opened"][0] == {"source": "L['a']", "dim": 0, "values": [1, 64, 65]}


def test_a_journal_gives_an_estimate_and_says_so(tmp_path, capsys):
    path = journal(
        tmp_path / "w.jsonl",
        AttemptStart(**HEAD, seq=0, versions={"torch": "2.9.1"}),
        Compile(**HEAD, seq=1, graph="0/0"),
        Compile(**HEAD, seq=2, graph="0/1", recompile_reason=MISMATCH),
    )
    for place in (path, tmp_path):
        status, out, err = told([place], capsys)
        assert (status, err) == (0, "")
        assert "2 graphs; at least 1 where" in out
        assert """TORCH_COMPILE_DYNAMIC_SOURCES="L['x']"\n""" in out
        assert "TORCH_TRACE" in out


def test_of_several_jobs_one_must_be_chosen(tmp_path, capsys):
    journal(
        tmp_path / "w.jsonl",
        Compile(**HEAD, seq=1, graph="0/0"),
        Compile(**{**HEAD, "job_id": "k"}, seq=2, graph="0/0"),
    )
    status, _, err = told([tmp_path], capsys)
    assert status == 2
    assert "2 jobs in there: choose one with --job, such as j" in err
    status, out, _ = told([tmp_path, "--job", "k"], capsys)
    assert status == 0
    assert "1 graph, none compiled again: nothing to advise." in out
    assert told([tmp_path, "--job", "z"], capsys)[0] == 1


def test_a_place_without_compilations_is_status_one(tmp_path, capsys):
    (tmp_path / "train.log").write_text("step 1\n")
    status, out, err = told([tmp_path / "train.log"], capsys)
    assert (status, out) == (1, "")
    assert "no compilation in there" in err
    status, _, err = told([tmp_path / "none.log"], capsys)
    assert (status, err) == (1, f"ett advise: {tmp_path / 'none.log'}: no such file or directory\n")


def test_lines_that_are_no_trace_are_passed_over():
    good = (TRACES / "number.log").read_bytes().splitlines(keepends=True)
    noise = [b"\xff\xfe\n", b'V0101 00:00:00.0 1 a.py:1] {"describe_tensor": {\n', b"", b"{}\n"]
    mixed = [line for pair in zip(good, noise * len(good), strict=False) for line in pair]
    assert parse_trace(mixed, process="p") == parse_trace(good, process="p")


def test_the_topic_must_be_named(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["advise"])
    assert stop.value.code == 2
    assert "TOPIC" in capsys.readouterr().err


@pytest.fixture(scope="module")
def exporter(tmp_path_factory):
    """A real exporter that knows a job `team/j`, of which a size varied."""
    command = [Path(sys.executable).with_name("ett"), "exporter", "--port", "0", "--database"]
    database = str(tmp_path_factory.mktemp("exporter") / "ett.sqlite")
    with subprocess.Popen([*command, database], stdout=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline()
            url = next(word for word in line.split() if word.startswith("http://"))
            sizes = ((64, None), (65, MISMATCH))
            head = {**HEAD, "job_id": "team/j"}
            events = [AttemptStart(**head, seq=0, versions={"torch": "2.13.0"})]
            for nth, (size, reason) in enumerate(sizes):
                inputs = (CompileInput("L['x']", (size,)),)
                fields = {"code": "f (a.py:1)", "inputs": inputs, "recompile_reason": reason}
                events.append(Compile(**head, seq=nth + 1, graph=f"0/{nth}", **fields))
            events.append(Cache(**head, seq=9, cache="autotune", hits=30, misses=4))
            lines = b"".join(encode(event) + b"\n" for event in events)
            told = httpx.post(f"{url}/api/v1/events", content=lines, timeout=60.0)
            assert told.status_code == 200
            yield url
        finally:
            process.terminate()
            process.wait(60)


def test_an_exporter_tells_what_a_journal_does(exporter, capsys):
    status, out, err = told(["--exporter", exporter, "--job", "team/j", "--json"], capsys)
    assert (status, err) == (0, "")
    answer = json.loads(out)
    assert (answer["value"], answer["counted"], answer["torch"]) == ("L['x']:0", True, "2.13.0")
    assert (answer["graphs"], answer["expected_graphs"]) == (2, 1)


def test_an_exporter_tells_how_much_was_tuned(exporter, capsys):
    """All attempts as one, and no names of kernels."""
    assert main(["advise", "autotune", "--exporter", exporter, "--job", "team/j"]) == 0
    first, *_, last = capsys.readouterr().out.splitlines()
    assert first == "The job tuned kernels 4 times, and found what had won before 30 times."
    assert last.startswith("Which kernels, and what won, is in the cache directory")


def test_a_job_that_an_exporter_does_not_know_is_status_one(exporter, capsys):
    status, out, err = told(["--exporter", exporter, "--job", "nobody"], capsys)
    assert (status, out) == (1, "")
    assert "no job 'nobody' is known here" in err


NOWHERE = "http://127.0.0.1:1"


@pytest.mark.parametrize(
    "words", [[], ["--exporter", NOWHERE], ["--exporter", NOWHERE, "--job", "j", "place"]]
)
def test_where_to_look_must_be_clear(words, capsys):
    status, _, err = told(words, capsys)
    assert status == 2
    assert "--exporter" in err


def test_an_exporter_that_does_not_answer_is_status_one(capsys):
    status, _, err = told(["--exporter", NOWHERE, "--job", "j"], capsys)
    assert status == 1
    assert f"nothing answers at {NOWHERE}; " in err
