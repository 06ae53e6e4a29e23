"""`ett grafana push`, `deploy` and `failures` against a pretended Grafana that checks every request."""

from __future__ import annotations

import json
import logging
from argparse import Namespace

import pytest
from fake_grafana import FakeGrafana, said, serving

from ett_cli.grafana_publishing import failures as failures_command
from ett_cli.main import main
from ett_grafana.publishing.steps import lacks

BOARDS = sorted(
    f"ettwatch-{name}" for name in ("fleet", "job", "failures", "caches", "checkpoints", "exporter")
)
EVERYTHING = ("--data-source", "--alert-rules")
FAILURE = {
    "id": "nightly~0", "job_id": "nightly", "time": 1_764_000_000.0, "team": "ads", "cluster": "",
    "node": "n1", "cause": "rank 3 <b>ran</b> out of memory", "diagnosis": {"failure_class": "gpu_oom"},
}  # fmt: skip


@pytest.fixture
def grafana():
    """What Grafana holds; every request and answer fitted the description of its API."""
    fake = FakeGrafana()
    yield fake
    assert fake.violations == []


@pytest.fixture
def url(grafana):
    with serving(grafana) as address:
        yield address


@pytest.fixture
def ett(url, monkeypatch, capsys):
    """Runs `ett grafana`: the exit status and what was printed."""
    monkeypatch.setenv("ETT_GRAFANA_TOKEN", "admin-token")

    def run(*words, at=url):
        status = main(["grafana", words[0], "--url", at, *words[1:]])
        printed = capsys.readouterr()
        return status, printed.out + printed.err

    return run


def edited(grafana, uid, message="made it prettier"):
    """What a person in the browser leaves behind."""
    board = {**grafana.boards[uid]["dashboard"], "title": "Edited"}
    grafana.save(board, grafana.boards[uid]["meta"]["folderUid"], message)


def test_a_second_push_changes_nothing(ett, grafana):
    """Folder, boards, data sources and alert rules are made once, whatever Grafana adds to them."""
    status, said_first = ett("push", *EVERYTHING)
    assert status == 0, said_first
    assert sorted(grafana.boards) == BOARDS
    assert {board["meta"]["folderUid"] for board in grafana.boards.values()} == {"ettwatch"}
    assert grafana.sources.keys() == {"ettwatch-prometheus", "ettwatch-alertmanager"}
    assert {name for _, name in grafana.groups} == {"ett-jobs", "ett-fleet"}
    grafana.asked.clear()
    status, said_second = ett("push", *EVERYTHING)
    assert (status, grafana.changes) == (0, [])
    assert "0 changes made, 0 refused" in said_second


def test_only_boards_are_published_unless_more_is_asked_for(ett, grafana):
    """Data sources need the role Admin, and alert rules may be evaluated elsewhere."""
    assert ett("push")[0] == 0
    assert (grafana.sources, grafana.groups) == ({}, {})


def test_what_changed_here_is_changed_there_and_nothing_else(ett, grafana):
    """Another address of the app is on every board; their ids stay, their versions grow."""
    ett("push", *EVERYTHING)
    ids = {uid: board["dashboard"]["id"] for uid, board in grafana.boards.items()}
    grafana.asked.clear()
    status, _ = ett("push", "--data-source", "--app-url", "https://app.example")
    assert status == 0
    assert grafana.changes == ["POST /api/dashboards/db"] * len(BOARDS)
    assert {uid: board["dashboard"]["id"] for uid, board in grafana.boards.items()} == ids
    assert {board["dashboard"]["version"] for board in grafana.boards.values()} == {2}
    assert all("https://app.example" in json.dumps(board["dashboard"]) for board in grafana.boards.values())


def test_changed_sources_and_rules_are_replaced_and_keep_what_is_not_ours(ett, grafana):
    """A secret and a setting of somebody else's stay; thresholds of rules follow."""
    ett("push", *EVERYTHING)
    source = grafana.sources["ettwatch-prometheus"]
    source["jsonData"]["tlsSkipVerify"] = False
    source["secureJsonFields"] = {"basicAuthPassword": True}
    rule = grafana.groups["ettwatch", "ett-jobs"]["rules"][0]
    rule["for"] = "30m"
    grafana.asked.clear()
    status, _ = ett("push", *EVERYTHING, "--prometheus-url", "https://mimir.example")
    assert status == 0
    assert grafana.changes == [
        "PUT /api/datasources/uid/ettwatch-prometheus",
        "PUT /api/v1/provisioning/folder/ettwatch/rule-groups/ett-jobs",
    ]
    changed = grafana.sources["ettwatch-prometheus"]
    assert (changed["url"], changed["jsonData"]["tlsSkipVerify"]) == ("https://mimir.example", False)
    assert changed["secureJsonFields"] == {"basicAuthPassword": True}
    assert grafana.groups["ettwatch", "ett-jobs"]["rules"][0]["for"] == "1m"


def test_a_board_that_was_edited_by_hand_is_kept_until_told(ett, grafana):
    """The others are published all the same; --force overwrites, and the next push is quiet."""
    ett("push")
    edited(grafana, "ettwatch-job")
    status, told = ett("push", "--app-url", "https://app.example")
    assert status == 1
    assert "refuse  board ettwatch-job: somebody saved it since the last push; --force overwrites it" in told
    assert grafana.boards["ettwatch-job"]["dashboard"]["title"] == "Edited"
    assert "https://app.example" in json.dumps(grafana.boards["ettwatch-fleet"]["dashboard"])
    assert ett("push", "--force")[0] == 0
    assert grafana.boards["ettwatch-job"]["dashboard"]["title"] == "ettwatch / Job"
    grafana.asked.clear()
    assert ett("push")[0] == 0
    assert grafana.changes == []


def test_a_dry_run_says_what_would_change_and_changes_nothing(ett, grafana):
    """Of a board the lines that differ, without what Grafana adds."""
    status, told = ett("push", "--dry-run", *EVERYTHING)
    assert (status, grafana.changes) == (0, [])
    assert "create  folder ettwatch" in told
    assert "changes would be made" in told
    ett("push")
    grafana.asked.clear()
    status, told = ett("push", "--dry-run", "--app-url", "https://app.example")
    assert (status, grafana.changes) == (0, [])
    assert '+        "query": "https://app.example"' in told
    assert "weekStart" not in told


def test_only_boards_of_ours_that_are_made_no_more_are_removed(ett, grafana):
    """Not those of others in the folder, nor copies elsewhere, nor what somebody edited."""
    ett("push")

    def add(uid, tags, folder="ettwatch", message="ett grafana push 0123456789abcdef"):
        grafana.save({"uid": uid, "title": uid, "tags": tags}, folder, message)

    add("ettwatch-old", ["ettwatch"])
    add("ettwatch-edited", ["ettwatch"], message="mine now")
    add("own", ["ettwatch"], message="")
    add("ettwatch-untagged", [])
    add("ettwatch-copy", ["ettwatch"], folder="elsewhere")
    status, told = ett("push")
    assert status == 1
    assert "delete  board ettwatch-old: it is made no more" in told
    assert "refuse  board ettwatch-edited" in told
    left = {"ettwatch-edited", "own", "ettwatch-untagged", "ettwatch-copy", *BOARDS}
    assert grafana.boards.keys() == left


def test_an_answer_without_a_body_is_one(ett, grafana):
    """A deletion may be answered by 204 and nothing."""
    ett("push")
    grafana.has_empty_deletions = True
    grafana.save(
        {"uid": "ettwatch-old", "title": "x", "tags": ["ettwatch"]}, "ettwatch", "ett grafana push 1"
    )
    assert ett("push")[0] == 0
    assert "ettwatch-old" not in grafana.boards


def test_newer_answers_with_versions_in_an_envelope_are_understood(ett, grafana):
    """Grafana 12 wraps the list."""
    ett("push")
    grafana.has_enveloped_versions = True
    grafana.asked.clear()
    assert ett("push")[0] == 0
    assert grafana.changes == []


def test_a_board_that_was_moved_comes_back(ett, grafana):
    """Boards belong into the folder, where they are found and pruned."""
    ett("push")
    board = grafana.boards["ettwatch-job"]
    board["meta"] |= {"folderUid": "other", "folderTitle": "Other"}
    status, told = ett("push")
    assert status == 0
    assert "change  board ettwatch-job: moved here from folder Other" in told
    assert grafana.boards["ettwatch-job"]["meta"]["folderUid"] == "ettwatch"


def test_boards_and_sources_from_files_are_left_alone(ett, grafana):
    """Grafana would refuse; it is said before anything is tried, with what to do."""
    ett("push", *EVERYTHING)
    grafana.boards["ettwatch-job"]["meta"]["provisioned"] = True
    grafana.sources["ettwatch-prometheus"]["readOnly"] = True
    status, told = ett("push", *EVERYTHING, "--prometheus-url", "https://other.example")
    assert status == 1
    for thing in ("board ettwatch-job", "data source ettwatch-prometheus"):
        assert f"refuse  {thing}: Grafana reads it from a file; change that file instead" in told


def test_somebody_who_saves_at_the_same_moment_wins(ett, grafana):
    """The version that was looked at is sent along, so nothing is overwritten unseen."""
    ett("push")
    grafana.before_saving = lambda: edited(grafana, "ettwatch-fleet")
    status, told = ett("push", "--app-url", "https://app.example")
    assert status == 1
    assert "changed by somebody else at the same moment: run it again" in told
    assert grafana.boards["ettwatch-fleet"]["dashboard"]["title"] == "Edited"


def test_a_folder_that_goes_away_in_between_is_said(ett, grafana):
    """The save fails with what to look at; how far it got is told."""
    grafana.before_saving = grafana.folders.clear
    status, told = ett("push")
    assert status == 1
    assert "is the folder still there? (POST /api/dashboards/db: 404, folder not found) (1 changes" in told


@pytest.mark.parametrize(
    "case",
    [
        ("viewer-token", (), 1, "does not let this token do it: its service account needs the role Editor"),
        ("editor-token", ("--data-source",), 1, "for data sources Admin"),
        ("another-token", (), 1, "does not know the token: make a service account"),
        ("", (), 2, "a token is needed: ETT_GRAFANA_TOKEN, or a file named by --token-file"),
        ("two words", (), 2, "ETT_GRAFANA_TOKEN holds characters that no token has"),
    ],
)
def test_what_a_token_may_not_do_is_said_without_the_token(ett, grafana, monkeypatch, caplog, case):
    """The sentence names what to change in Grafana; no log of any library holds the token."""
    token, words, status, part = case
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("ETT_GRAFANA_TOKEN", token)
    got, told = ett("push", *words)
    assert got == status
    assert part in told
    assert not token or token not in told + caplog.text
    assert grafana.changes in ([], ["POST /api/folders"])


def test_a_token_file_is_read_for_each_request_and_kept_out_of_logs(
    ett, grafana, monkeypatch, caplog, tmp_path
):
    """Also of the debugging output of the libraries below."""
    caplog.set_level(logging.DEBUG)
    monkeypatch.delenv("ETT_GRAFANA_TOKEN")
    file = tmp_path / "token"
    file.write_text("editor-token\n")
    status, told = ett("push", "--token-file", str(file))
    assert status == 0
    assert {each["authorization"] for each in grafana.headers} == {"Bearer editor-token"}
    assert "editor-token" not in told + caplog.text


@pytest.mark.parametrize(
    ("answer", "part"),
    [
        (said(400, "bad board"), "does not take it (POST /api/folders: 400, bad board)"),
        (said(404, "Not found"), "has nothing there: is it the address of Grafana"),
        (said(409, "a folder of this name exists"), "another one of this name or uid already"),
        (said(412, "name exists", status="name-exists"), "had it changed by somebody else"),
        (said(422, "no"), "does not take it"),
        (
            said(500, "disk full"),
            "fails: try again later, and look into its log (POST /api/folders: 500, disk full)",
        ),
    ],
)
def test_what_grafana_refuses_is_told_in_a_sentence(ett, grafana, answer, part):
    """With what it means, the request, the status and Grafana's own words."""
    grafana.answer_to_changes = answer
    status, told = ett("push")
    assert status == 1
    assert part in told


def test_nothing_at_the_address_is_said(ett):
    """Whoever misspelt the host or the port reads what is wrong."""
    status, told = ett("push", at="ftp://grafana")
    assert (status, "is no address of Grafana" in told) == (2, True)
    status, told = ett("push", at="http://user:secret@127.0.0.1")
    assert (status, "secret" in told) == (2, False)
    assert "give a token instead" in told


def test_marks_are_made_once_and_shown_as_they_are_written(ett, grafana):
    """A deploy and a failure, with tags that boards and searches go by; no HTML of others gets in."""
    words = ("deploy", "torch <2.13>", "--at", "2026-11-30T08:15:00Z", "--tag", "torch")
    for _ in range(2):
        assert ett(*words)[0] == 0
    (mark,) = grafana.marks
    assert mark["text"] == "torch &lt;2.13&gt;"
    assert mark["tags"] == ["ettwatch", "deploy", "torch"]
    assert mark["time"] == 1_796_026_500_000
    assert ett("deploy", "another", "--at", "yesterday")[0] == 2


def test_failures_of_an_exporter_are_marked_once(url, grafana, monkeypatch, capsys):
    """By their ids, with class, job, team and node as tags."""
    monkeypatch.setenv("ETT_GRAFANA_TOKEN", "editor-token")
    arguments = Namespace(
        url=url, token_file=None, ca_file=None, timeout_s=10.0, dry_run=False,
        exporter="http://x", window="24h",
    )  # fmt: skip
    for failures in ([FAILURE], [FAILURE, {**FAILURE, "id": "nightly~1"}], []):
        assert failures_command(arguments, ask=lambda *_, rows=failures: {"failures": rows}) == 0
    first, second = grafana.marks
    assert first["text"] == "nightly: gpu_oom. rank 3 &lt;b&gt;ran&lt;/b&gt; out of memory"
    assert first["tags"] == [
        "ettwatch",
        "failure",
        "gpu_oom",
        "id:nightly~0",
        "job:nightly",
        "team:ads",
        "node:n1",
    ]
    assert "id:nightly~1" in second["tags"]
    assert "0 changes made" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("there", "wanted", "expected"),
    [
        ({"a": 1, "b": 2}, {"a": 1}, False),
        ({"a": 1}, {"a": 1, "b": None}, True),
        ({"a": [{"x": 1, "y": 2}]}, {"a": [{"x": 1}]}, False),
        ({"a": [1]}, {"a": [1, 2]}, True),
        ({"a": {"b": 1}}, {"a": [1]}, True),
        (None, {}, True),
    ],
)
def test_what_is_wanted_is_looked_for_in_what_is_there(there, wanted, expected):
    """More may be there; nothing that is wanted may be missing."""
    assert lacks(there, wanted) is expected
