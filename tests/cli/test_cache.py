"""`ett cache`: what it prints of a store, and its exit status."""

from __future__ import annotations

import json
import os

import msgspec
import pytest

from ett_cli.main import main
from ett_trainer_hooks.pipeline.bundle.contents import Contents
from ett_trainer_hooks.pipeline.bundle.entry import Entry
from ett_trainer_hooks.pipeline.bundle.fingerprint import digest, environment
from ett_trainer_hooks.pipeline.bundle.store import BundleStore

FACTS = {"torch": "2.13", "cpu": "avx avx2", "compiler": "g++ 12"}


def entry(name, **fields):
    standard = Entry(
        name=name,
        local_rank=0,
        rank=0,
        job_id="job",
        made_at=1_764_000_000.0,
        facts=FACTS,
        settings={},
        compile_s=87.25,
        artifacts={"inductor": ["f1", "f2"]},
        native=["ab/c1.so"],
        content=name.encode().hex().ljust(64, "0"),
        sha256="",
        size=0,
    )
    return msgspec.structs.replace(standard, **fields)


@pytest.fixture
def address(tmp_path):
    """A store with two bundles: `old` is used longer ago than `new`."""
    moments = iter(range(1_764_000_000, 1_765_000_000))
    store = BundleStore(str(tmp_path / "store"), now=lambda: next(moments))
    for name in ("old", "new"):
        store.put(entry(name), Contents(name.encode(), {"ab/c1.so": b"code"}))
    return store.address


@pytest.fixture
def ett(capsys):
    def run(*words):
        status = main(["cache", *words])
        told = capsys.readouterr()
        return status, told.out, told.err

    return run


def test_ls_shows_every_bundle_and_the_size_of_the_store(ett, address):
    status, out, _ = ett("ls", address)
    head, *rows, sum_ = out.splitlines()
    assert status == 0
    assert head.split()[:3] == ["name", "rank", "environment"]
    cells = [row.split() for row in rows]
    assert [row[:3] for row in cells] == [["new", "0", digest(FACTS)], ["old", "0", digest(FACTS)]]
    assert cells[0][3:] == ["2025-11-24", "16:00", "2025-11-24", "16:00", "0.0", "2", "1", "87.2"]
    assert sum_ == "2 bundles of 2 objects, 0.0 MB"


def test_ls_as_json_and_by_name(ett, address):
    status, out, _ = ett("ls", address, "--json", "--name", "new")
    told = json.loads(out)
    [row] = told["bundles"]
    assert (status, row["name"], row["graphs"], row["compile_s"], row["signed"]) == (
        0,
        "new",
        2,
        87.25,
        False,
    )
    assert told["objects"] == 2


def test_ls_of_a_place_without_bundles_says_so_and_makes_nothing(ett, tmp_path):
    place = tmp_path / "none"
    nothing = f"There are no bundles in {place}."
    place.mkdir()
    assert ett("ls", str(place)) == (0, f"{nothing}\n", "")
    (place / "bundles").mkdir()
    for command in ("ls", "verify", "gc"):
        assert ett(command, str(place)) == (0, f"{nothing} {place / 'bundles'} is a store, too.\n", "")


@pytest.mark.parametrize("command", ["ls", "verify", "gc"])
def test_a_store_that_is_not_there_is_no_store_without_bundles(ett, tmp_path, command):
    place = tmp_path / "none"
    assert ett(command, str(place)) == (1, "", f"ett cache: {place}: there is no such directory\n")
    assert ett(command, f"file://{place}")[0] == 1
    assert not place.exists()


def test_verify_finds_the_one_that_was_changed(ett, address, tmp_path):
    assert ett("verify", address) == (0, "2 bundles checked, 0 refused\n", "")
    [first, _] = sorted((tmp_path / "store" / "objects").iterdir())
    first.write_bytes(b"changed")
    status, out, _ = ett("verify", address)
    assert status == 1
    assert "refused, its content has been changed or cut short: the hash is another" in out
    assert out.endswith("2 bundles checked, 1 refused\n")
    status, out, _ = ett("verify", address, "--json")
    assert (status, json.loads(out)["checked"], len(json.loads(out)["refused"])) == (1, 2, 1)


def test_verify_with_a_key_refuses_what_is_not_signed(ett, address, tmp_path):
    key = tmp_path / "key"
    key.write_text("k" * 32)
    key.chmod(0o600)
    status, out, _ = ett("verify", address, "--key-file", str(key))
    assert (status, out.count("refused, it is not signed")) == (1, 2)


def test_a_store_or_a_key_that_cannot_be_used_is_one_sentence(ett, tmp_path):
    assert ett("verify", "s3://team/bundles") == (
        1,
        "",
        "ett cache: s3://team/bundles can be written by others: it needs the key of a team\n",
    )
    status, _, err = ett("verify", str(tmp_path), "--key-file", str(tmp_path / "none"))
    assert (status, err.startswith("ett cache: the key in ")) == (2, True)


def test_gc_takes_away_what_was_used_longest_ago(ett, address):
    size = sum(BundleStore(address).objects().values())
    limit = ["--limit", str(size - 1)]
    status, out, _ = ett("gc", address, *limit, "--dry-run")
    assert (status, out) == (0, "1 object would go (0.0 MB), 1 left (0.0 MB)\n")
    status, out, _ = ett("gc", address, *limit, "--json")
    assert (status, json.loads(out)["objects"], json.loads(out)["objects_left"]) == (0, 1, 1)
    _, out, _ = ett("ls", address)
    assert "old" not in out
    assert ett("gc", address, "--limit", "much")[0] == 2


def test_why_miss_compares_stores_names_entries_and_this_environment(ett, address, tmp_path):
    BundleStore(address).put(
        entry("other", facts={**FACTS, "torch": "2.14"}, made_at=1_764_000_009.0), Contents(b"other", {})
    )
    reason = "'other' cannot use code of 'new': torch is 2.14, was 2.13."
    status, out, _ = ett("why-miss", f"{address}#new", f"{address}#other")
    assert (status, out.splitlines()[0]) == (0, reason)
    assert ett("why-miss", "new", "other", "--store", address)[1].splitlines()[0] == reason
    assert json.loads(ett("why-miss", "new", "other", "--store", address, "--json")[1])["reasons"] == [reason]
    file = tmp_path / f"store/entries/new/{digest(FACTS)}/0.json"
    assert "torch is 2.14, was 2.13" in ett("why-miss", str(file), address)[1]
    assert "this environment cannot use code of 'new'" in ett("why-miss", f"{address}#new", "here")[1]
    BundleStore(address).put(entry("mine", facts=environment()), Contents(b"mine", {}))
    assert ett("why-miss", f"{address}#mine", "here")[1].startswith("Nothing differs: it fits.")


def test_why_miss_of_a_name_that_is_not_there(ett, address):
    status, _, err = ett("why-miss", f"{address}#none", "here")
    assert (status, err) == (1, f"ett cache: {address} holds no bundle of the name 'none'\n")


def test_why_miss_of_a_name_without_its_store_says_what_is_lacking(ett):
    reason = "there is no directory 'dlrm' here; if it is a name, give the --store that it lies in"
    assert ett("why-miss", "dlrm", "here") == (1, "", f"ett cache: {reason}\n")


def test_of_a_bundle_of_several_ranks_the_first_is_compared(ett, address):
    facts = {**FACTS, "torch": "2.14"}
    for local_rank in (0, 1):
        moment = 1_764_000_010.0 + local_rank
        fields = {"local_rank": local_rank, "content": str(local_rank) * 64, "made_at": moment}
        artifacts = {"inductor": ["f1", "f2"][local_rank:]}
        ranked = entry("ranked", facts=facts, artifacts=artifacts, **fields)
        BundleStore(address).put(ranked, Contents(b"ranked", {}))
    told = json.loads(ett("why-miss", address, address, "--json")[1])
    assert told["common"] == {"inductor": 2}


def test_gc_of_a_directory_that_is_no_store_takes_nothing_away(ett, tmp_path):
    """Whatever lies there, old as it may be."""
    names = ("a.partial", "objects/photos.zip", "objects/b.partial", "used/notes")
    files = [tmp_path / name for name in names]
    for file in files:
        file.parent.mkdir(exist_ok=True)
        file.write_text("kept")
        os.utime(file, (0, 0))
    assert ett("gc", str(tmp_path), "--limit", "0") == (0, f"There are no bundles in {tmp_path}.\n", "")
    assert all(file.exists() for file in files)


def test_what_a_store_says_is_one_line_that_a_terminal_only_shows(ett, tmp_path):
    """Others may have written it."""
    store = BundleStore(str(tmp_path / "store"))
    store.put(
        entry("\x1b[2Jgone\nrow", facts=FACTS | {"torch": "\x1b]0;x\x07\nno reason"}),
        Contents(b"", {}),
    )
    (tmp_path / "store/entries/a\x1b[2J\nb/0123456789abcdef").mkdir(parents=True)
    (tmp_path / "store/entries/a\x1b[2J\nb/0123456789abcdef/0.json").write_text("{")
    for words in (["ls", store.address], ["verify", store.address], ["why-miss", store.address, "here"]):
        _, out, _ = ett(*words)
        assert "\x1b" not in out
        assert not [line for line in out.splitlines() if line.startswith(("row", "no reason", "b"))]
    assert "gone\\nrow" in ett("ls", store.address)[1]
