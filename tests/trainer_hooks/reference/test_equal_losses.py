"""With code that the compiler has made, with every part, each of them and none: the job learns the same."""

from __future__ import annotations

import pytest
from reference_runs import train

from ett_trainer_hooks.pipeline.parts import PARTS

PATIENCE_S = 900.0
STEPS = 20
NEEDS = {"no_wait_staging": "async_checkpoint,no_wait_staging"}
OFTEN = ["--checkpoint-every-s", "0.001"]
"""A save at each agreement of the ranks."""


@pytest.mark.sweep
@pytest.mark.service("torch")
@pytest.mark.service("compiler")
def test_all_parts_learn_what_a_plain_trainer_learns(tmp_path, events_in):
    """On hosts without caches: a plain start, one that makes a bundle, and one that finds it."""
    pytest.importorskip("torchrec")

    def trained(name, *words):
        host = tmp_path / name
        (host / "tmp").mkdir(parents=True)
        environ = {"TMPDIR": host / "tmp", "TORCHINDUCTOR_CACHE_DIR": host / "inductor"}
        environ |= {"ETT_JOB_ID": name, "ETT_JOURNAL_DIR": host / "journal"}
        told = {variable: str(text) for variable, text in environ.items()}
        losses = train(host, STEPS, *words, backend="inductor", limit_s=PATIENCE_S, **told)
        return losses, events_in(host / "journal")

    def whys(events, what):
        return {event.why for event in events if event.kind == "decision" and event.what == what}

    parts = ["--parts", "all", "--cache", str(tmp_path / "store")]
    plain, _ = trained("plain")
    first, made = trained("first", *parts)
    again, found = trained("again", *parts)
    assert [*plain] == [5, 10, 15, 20]
    assert first == plain
    assert again == plain
    assert whys(made, "fast batch") == whys(found, "fast batch") == {"used: the first step compiled nothing"}
    assert {event.misses for event in found if event.kind == "cache" and event.cache == "fx_graph"} <= {0}
    assert len(list((tmp_path / "first" / "tmp").rglob("*.gch"))) == 1
    assert list((tmp_path / "again" / "tmp").rglob("*.gch")) == []


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    """How to start on a host where starts find each other's code, and what one without parts learns there."""
    pytest.importorskip("torchrec")
    folder = tmp_path_factory.mktemp("host")
    environ = {"TMPDIR": folder / "tmp", "TORCHINDUCTOR_CACHE_DIR": folder / "inductor"}
    (folder / "tmp").mkdir()

    def trained(name, *words):
        place = folder / name
        place.mkdir()
        told = environ | {"ETT_JOB_ID": name, "ETT_JOURNAL_DIR": place / "journal"}
        told = {variable: str(text) for variable, text in told.items()}
        more = ["--cache", str(place / "cache"), *OFTEN, *words]
        return train(place, STEPS, *more, backend="inductor", limit_s=PATIENCE_S, **told)

    return trained, trained("none")


@pytest.mark.sweep
@pytest.mark.service("torch")
@pytest.mark.service("compiler")
@pytest.mark.parametrize("part", PARTS)
def test_each_part_learns_what_a_trainer_without_it_learns(host, part):
    trained, plain = host
    assert [*plain] == [5, 10, 15, 20]
    assert trained(part, "--parts", NEEDS.get(part, part)) == plain
