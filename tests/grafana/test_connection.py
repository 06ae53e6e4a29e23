"""How a Grafana is reached: what is tried again, what is not, and what each failure is called."""

from __future__ import annotations

import socket
import subprocess

import pytest
from fake_grafana import Answer, FakeGrafana, said, serving
from processes import free_address

from ett_grafana.publishing.connection import TRIES, Grafana
from ett_grafana.publishing.errors import PublishError, RefusedError, UnreachableError

FOLDER = {"uid": "f", "title": "F"}


@pytest.fixture
def fake():
    return FakeGrafana()


@pytest.fixture
def pauses():
    return []


@pytest.fixture
def grafana(fake, pauses):
    with serving(fake) as url:
        yield Grafana(url, lambda: "editor-token", pause=pauses.append)


def test_what_passes_is_waited_for(grafana, fake, pauses):
    """Reading is tried again, with longer pauses, or as long as Grafana asks for."""
    fake.folders["f"] = FOLDER
    fake.next_answers = [said(503, "starting"), None, Answer(429, {"message": "slow"}, {"Retry-After": "7"})]
    assert grafana.get("/folders/f") == FOLDER
    assert pauses == [0.5, 1.0, 7.0]


def test_what_does_not_pass_is_given_up(grafana, fake, pauses):
    """After a few tries the error of the last one is told."""
    fake.next_answers = [said(502, "no backend")] * TRIES
    with pytest.raises(RefusedError, match=r"fails: try again later.*502, no backend"):
        grafana.get("/folders/f")
    assert len(pauses) == TRIES - 1


@pytest.mark.parametrize("answer", [said(500, "x"), said(503, "x"), None])
def test_what_may_have_been_done_is_not_done_again(grafana, fake, answer):
    """A POST that failed somehow is not repeated: it might make two."""
    fake.next_answers = [answer]
    with pytest.raises(PublishError):
        grafana.create("/folders", FOLDER)
    assert fake.asked == ["POST /api/folders"]


def test_what_was_surely_not_done_is_done_again(grafana, fake):
    """Too many requests: none of them was carried out."""
    fake.next_answers = [said(429, "slow")]
    assert grafana.create("/folders", FOLDER)["uid"] == "f"


def test_what_is_missing_is_none_where_that_is_asked(grafana):
    assert grafana.find("/folders/none") is None
    with pytest.raises(RefusedError, match="404, folder not found") as caught:
        grafana.get("/folders/none")
    assert caught.value.status == 404


@pytest.mark.parametrize("text", [b'<html>a "message" of a proxy</html>', b'["message"]', b'"message"', b""])
def test_errors_that_grafana_did_not_write_are_errors_all_the_same(grafana, fake, text):
    """Pages of proxies, with words that grafana-api trips over."""
    fake.next_answers = [Answer(400, text)]
    with pytest.raises(RefusedError, match=r"\(GET /api/folders/f: 400\)"):
        grafana.get("/folders/f")


def test_a_page_instead_of_an_answer_is_said(grafana, fake):
    """The login page of something in front of Grafana is no JSON."""
    fake.next_answers = [Answer(200, b"<html>Sign in</html>")]
    with pytest.raises(PublishError, match="something else than JSON"):
        grafana.get("/folders/f")


def test_a_redirect_is_not_followed(grafana, fake):
    """It would turn a POST into a GET, and might lead anywhere."""
    fake.next_answers = [Answer(301, None, {"Location": "https://grafana.example/"})]
    with pytest.raises(PublishError, match=r"on to https://grafana.example/: give the address behind it"):
        grafana.create("/folders", FOLDER)
    assert fake.asked == ["POST /api/folders"]


def test_an_address_below_another_works(fake):
    """Grafana behind a path of a server that has more."""
    with serving(fake, prefix="/tools/grafana") as url:
        fake.folders["f"] = FOLDER
        assert Grafana(f"{url}/", lambda: "viewer-token").get("/folders/f") == FOLDER


def test_nobody_there_is_said(pauses):
    grafana = Grafana(f"http://{free_address()}", lambda: "x", pause=pauses.append)
    with pytest.raises(UnreachableError, match="cannot be reached: Connection refused"):
        grafana.create("/folders", FOLDER)
    assert len(pauses) == TRIES - 1  # nothing arrived, so it may be tried again


def test_somebody_who_never_answers_is_said(pauses):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        grafana = Grafana(url, lambda: "x", timeout_s=0.05, pause=pauses.append)
        with pytest.raises(UnreachableError, match="does not answer in time"):
            grafana.create("/folders", FOLDER)
    assert pauses == []


def test_certificates_are_checked(fake, tmp_path, pauses):
    """One that nobody vouches for is refused with what to do; the file of its authority is enough."""
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    made = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=x -addext subjectAltName=IP:127.0.0.1"
    subprocess.run(
        [*made.split(), "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True
    )
    fake.folders["f"] = FOLDER
    with serving(fake, certificate=(certificate, key)) as url:
        with pytest.raises(UnreachableError, match=r"is not trusted here: name the file .* by --ca-file"):
            Grafana(url, lambda: "viewer-token", pause=pauses.append).get("/folders/f")
        trusting = Grafana(url, lambda: "viewer-token", verify=str(certificate))
        assert trusting.get("/folders/f") == FOLDER


def test_nothing_shows_the_token(grafana):
    """Neither the object nor its errors."""
    assert "editor-token" not in repr(grafana) + str(vars(grafana)["_token"])


def test_the_pretended_grafana_notices_requests_that_do_not_fit(grafana, fake):
    """A field of another type, a field that nobody knows, an address that is not there."""
    grafana.create("/folders", {"uid": "a", "title": 3})
    grafana.create("/folders", {"uid": "b", "title": "b", "tilte": "b"})
    grafana.find("/folder/a")
    assert len(fake.violations) == 3
