"""Tokens: what their file may hold, what each allows, and what is said to others."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from ett_exporter.api import make_app
from ett_exporter.endpoints import ENDPOINTS
from ett_exporter.tokens import SCOPES, TokensError, grant, hash_of, line_of, new_token, parse, read

ETT = str(Path(sys.executable).with_name("ett"))
SECRETS = {scope: f"ett_secret-of-{scope}" for scope in SCOPES}


def tokens_file(**limits):
    lines = ["# who may what", ""]
    lines += [line_of(SECRETS[s], grant(s, [s], **(limits if s == "ingest" else {}))) for s in SCOPES]
    return "\n".join(lines)


def ask(service, method, path, token=None, **more):
    """One request to an application with the tokens above."""
    app = make_app(service, tokens=parse(tokens_file(jobs="ads/", team="ads")))
    headers = {"Authorization": f"Bearer {token}"} if token else {}

    async def request():
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://exporter") as client:
            return await client.request(method, path, headers=headers, **more)

    return asyncio.run(request())


def path_of(endpoint):
    path = endpoint.path.replace("{job_id}", "ads/1").replace("{failure_id}", "ads/1~0")
    return path + ("?one=ads/1~0&two=ads/1~1" if endpoint.name == "cache_comparison" else "")


CLOSED = [endpoint for endpoint in ENDPOINTS if endpoint.scope]
OPEN = [endpoint for endpoint in ENDPOINTS if not endpoint.scope]


@pytest.mark.parametrize("endpoint", CLOSED, ids=lambda e: e.name)
def test_without_the_right_token_nothing_is_told_or_taken(service, endpoint):
    """No token and an unknown one are answered 401, one for something else 403, each in words."""
    opened = service()
    wrong = SECRETS["ingest" if endpoint.scope == "read" else "read"]
    for token, status in ((None, 401), ("ett_guess", 401), (wrong, 403)):
        answer = ask(opened, endpoint.method, path_of(endpoint), token)
        assert answer.status_code == status
        assert answer.headers["www-authenticate"].startswith('Bearer realm="ettwatch"')
        assert answer.json()["error"]
    assert opened.stats.events == 0


@pytest.mark.parametrize("scheme", ["Basic", "bearer", "BEARER", "Bearer  ", ""])
def test_the_scheme_of_a_token_is_bearer_in_any_case(scheme):
    """Only the scheme Bearer is understood."""
    tokens = parse(tokens_file())
    found = tokens.grant_of(f"{scheme} {SECRETS['read']}")
    assert (found is not None) == (scheme.strip().lower() == "bearer")


@pytest.mark.parametrize("endpoint", OPEN, ids=lambda e: e.name)
def test_probes_and_descriptions_need_no_token(service, endpoint):
    """What tells of no job answers everybody."""
    opened = service()
    opened.upkeep.build()
    assert ask(opened, endpoint.method, path_of(endpoint)).status_code == 200


@pytest.mark.parametrize("scope", ["read", "admin"])
def test_readers_read(service, story, scope):
    """A token for reading, and one for everything, reads what is there."""
    opened = service()
    for body in story("ads/1").bodies().values():
        opened.ingest(body)
    for endpoint in CLOSED:
        if endpoint.method == "GET":
            assert ask(opened, "GET", path_of(endpoint), SECRETS[scope]).status_code == 200


def test_a_segment_of_a_job_beyond_the_prefix_is_refused_whole(service, story):
    """The sender learns whose jobs the token is for, and nothing is kept."""
    opened = service()
    body = next(iter(story("web/1").bodies().values()))
    answer = ask(opened, "POST", "/api/v1/segments", SECRETS["ingest"], content=body)
    assert answer.status_code == 403
    assert answer.json() == {"error": "the token 'ingest' is for jobs whose id begins with 'ads/'"}
    assert opened.job_count == 0


def test_lines_that_a_token_may_not_send_are_named_among_others(service, story):
    """Of a body with many jobs, the lines of foreign ones are rejected with the reason."""
    opened = service()
    mixed = [next(iter(story(name).bodies().values())) for name in ("ads/1", "web/1", "ads/2")]
    answer = ask(opened, "POST", "/api/v1/events", SECRETS["ingest"], content=b"".join(mixed)).json()
    assert answer["accepted"] == mixed[0].count(b"\n") + mixed[2].count(b"\n")
    assert answer["rejected_total"] == mixed[1].count(b"\n")
    assert "whose id begins with 'ads/'" in answer["rejected"][0]["reason"]
    assert opened.knows("ads/1")
    assert not opened.knows("web/1")


def test_a_job_of_another_team_is_refused(service, story):
    """An attempt that says that it is another team's is not taken in; one that says nothing is."""
    opened = service()
    body = next(iter(story("ads/1").bodies().values()))
    foreign = body.replace(b'"team":"ads"', b'"team":"web"')
    assert foreign != body
    answer = ask(opened, "POST", "/api/v1/segments", SECRETS["ingest"], content=foreign).json()
    assert "of the team 'ads'" in answer["rejected"][0]["reason"]
    assert opened.view("ads/1", 2e9) is None or opened.view("ads/1", 2e9).label("team") == ""
    assert ask(opened, "POST", "/api/v1/segments", SECRETS["ingest"], content=body).json()["rejected"] == []


WRONG_FILES = {
    "empty": ("", "no token in it"),
    "too short": ("a read", "tokens:1: a line holds"),
    "a token itself": ("a read ett_secret", "third word is not sha256"),
    "unknown scope": (f"a write sha256:{'0' * 64}", "'write' is none of the scopes"),
    "prefix without ingest": (f"a read sha256:{'0' * 64} jobs=x", "need the scope ingest"),
    "unknown limit": (f"a ingest sha256:{'0' * 64} user=x", "nothing but jobs=PREFIX and team=TEAM"),
    "impossible prefix": (f"a ingest sha256:{'0' * 64} jobs=a%", "begins no id"),
    "the same name twice": (
        f"a read sha256:{'0' * 64}\na read sha256:{'1' * 64}",
        "two tokens have the name 'a'",
    ),
}


@pytest.mark.parametrize(("text", "said"), WRONG_FILES.values(), ids=WRONG_FILES.keys())
def test_a_wrong_file_is_refused_with_its_line_and_tells_no_secret(text, said):
    """What cannot work is said, without repeating a word that might be a secret."""
    with pytest.raises(TokensError, match=said) as refused:
        parse(text)
    assert "ett_secret" not in str(refused.value)


def test_tokens_are_long_random_and_kept_as_hashes_only():
    """Two tokens differ, hold 256 random bits, and their lines do not hold them."""
    first, second = new_token(), new_token()
    assert first != second
    assert len(first) >= 4 + 43
    line = line_of(first, grant("a", ["ingest", "read"], jobs="ads/", team="ads"))
    assert first not in line
    assert line == f"a ingest,read sha256:{hash_of(first)} jobs=ads/ team=ads"
    assert parse(line).grant_of(f"Bearer {first}") == grant("a", ["ingest", "read"], "ads/", "ads")


def test_the_command_makes_a_token_that_an_exporter_knows(tmp_path):
    """The token comes alone on standard output, its line goes to the file."""
    file = tmp_path / "tokens"
    words = [ETT, "exporter", "token", "ads", "--scope", "ingest", "--jobs", "ads/", "--file", str(file)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=30, check=True)
    assert done.stderr == ""
    found = read(file).grant_of(f"Bearer {done.stdout.strip()}")
    assert found == grant("ads", ["ingest"], "ads/")


def test_a_file_that_is_not_there_is_said_so(tmp_path):
    """A missing file ends the start with one sentence."""
    words = [ETT, "exporter", "--port", "0", "--tokens", str(tmp_path / "none")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"ett exporter: {tmp_path / 'none'}: No such file or directory\n"


def made(file, name="ads"):
    command = [ETT, "exporter", "token", name, "--file", str(file)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_a_token_is_added_only_where_the_file_can_be_used_then(tmp_path):
    """A name that is there, a last line without an end, a line that is none: the file stays usable."""
    file = tmp_path / "tokens"
    first = made(file)
    again = made(file)
    assert (again.returncode, again.stdout) == (1, "")
    assert again.stderr == f"ett exporter token: {file}: two tokens have the name 'ads'\n"
    file.write_text(file.read_text().rstrip("\n"))
    second = made(file, "web")
    tokens = read(file)
    for answer, name in ((first, "ads"), (second, "web")):
        assert tokens.grant_of(f"Bearer {answer.stdout.strip()}").name == name
    file.write_text("a password\n")
    refused = made(file, "web")
    assert (refused.returncode, file.read_text()) == (1, "a password\n")
    assert made(tmp_path / "nowhere" / "tokens").returncode == 1
