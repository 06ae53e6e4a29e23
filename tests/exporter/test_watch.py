"""Following journals on disk instead of taking them in over HTTP."""

from __future__ import annotations

import gzip
import os

import pytest
from msgspec.structs import replace

from ett_exporter import journal_files, watch
from ett_exporter.errors import StoreError
from ett_exporter.journal_files import new_pieces
from ett_exporter.reached import WRITTEN_TOGETHER
from ett_exporter.watch import READERS, Known, Troubles, look

NOW = 1_764_000_200.0


@pytest.fixture
def journals(tmp_path):
    directory = tmp_path / "journals"
    (directory / "node1").mkdir(parents=True)
    return directory


def count(service, job_id="a"):
    return sum(len(batch) for batch in service.store.events(job_id))


def test_watching_a_directory_gives_the_account_of_sending_it(service, story, journals):
    """The journals of a job, read from disk, give the answer that its segments give over HTTP."""
    opened = service()
    for place, (writer, body) in enumerate(story("watched").bodies().items()):
        (journals / ("node1" if place else ".") / f"{writer.replace('/', '-')}.jsonl").write_bytes(body)
    look(opened, [journals])
    for body in story("sent").bodies().values():
        opened.ingest(body)
    watched, sent = (opened.page(name, NOW).view.account for name in ("watched", "sent"))
    assert watched.components == sent.components
    assert watched.failures == sent.failures


def test_a_torn_last_line_waits_for_its_end(service, story, journals):
    """Half a line is not read; once its rest is there it counts, and no line counts twice."""
    body = next(iter(story("a").bodies().values()))
    lines = body.count(b"\n")
    journal = journals / "w.jsonl"
    opened = service()
    journal.write_bytes(body[:-10])
    look(opened, [journals])
    look(opened, [journals])
    assert count(opened) == lines - 1
    assert opened.stats.rejected_lines == 0
    with journal.open("ab") as file:
        file.write(body[-10:])
    look(opened, [journals])
    assert count(opened) == lines
    assert opened.stats.duplicates == 0


def test_a_restart_goes_on_where_the_last_look_ended(service, story, journals):
    """Offsets are remembered in the store: nothing is read again after a restart."""
    (journals / "w.jsonl").write_bytes(next(iter(story("a").bodies().values())))
    look(service(), [journals])
    again = service()
    look(again, [journals])
    assert again.stats.segments == 0
    assert count(again) > 0


def test_a_replaced_journal_is_read_from_its_beginning(service, story, journals):
    """A shorter file under the same name is new; what it repeats counts once."""
    first, second = list(story("a").bodies().values())[:2]
    journal = journals / "w.jsonl"
    opened = service()
    journal.write_bytes(second + b"\n" * len(first))
    look(opened, [journals])
    journal.write_bytes(first)
    look(opened, [journals])
    assert count(opened) == (first + second).count(b"\n")


@pytest.mark.parametrize("more", [0, 5000])
@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_journal_that_is_written_anew_is_read_from_its_beginning(
    service, story, journals, more, is_restarted
):
    """In the same file, which is no shorter: nothing but what stands in it tells that it is another."""
    first, second = list(story("a").bodies().values())[:2]
    journal, opened = journals / "w.jsonl", service()
    journal.write_bytes(first + b"\n" * max(len(second) - len(first), 0))
    look(opened, [journals])
    inode = journal.stat().st_ino
    journal.write_bytes(second + b"\n" * (max(len(first) - len(second), 0) + more))
    assert journal.stat().st_ino == inode
    look(service() if is_restarted else opened, [journals])
    assert count(service()) == (first + second).count(b"\n")


def test_a_journal_whose_beginning_stays_and_whose_end_is_another_is_read_again(service, story, journals):
    """As one of a program that always begins in the same words."""
    body = max(story("a").bodies().values(), key=len)
    lines = body.splitlines(keepends=True)
    journal, opened, half = journals / "w.jsonl", service(), len(lines) // 2
    journal.write_bytes(b"".join(lines[:half]) + b"x" * len(lines[-1]) + b"\n")
    look(opened, [journals])
    assert count(opened) == half
    journal.write_bytes(body + b"\n" * len(lines[-1]))
    look(opened, [journals])
    assert count(opened) == len(lines)


def test_a_journal_that_is_written_anew_while_it_is_read_is_read_again(service, story, journals, monkeypatch):
    """What is remembered of it is what was read, not what lies there by then."""
    first, second = list(story("a").bodies().values())[:2]
    journal, opened = journals / "w.jsonl", service()
    journal.write_bytes(first)
    longer = second + b"\n" * max(len(first) - len(second), 0) + b"\n"

    def take(path, reached):
        for piece in new_pieces(path, reached):
            journal.write_bytes(longer)
            yield piece

    known = Known(opened)
    with monkeypatch.context() as patched:
        patched.setattr(watch, "new_pieces", take)
        look(opened, [journals], known=known)
    look(opened, [journals], known=known)
    look(service(), [journals])
    assert count(service()) == (first + second).count(b"\n")


def test_a_packed_journal_that_is_another_of_the_same_size_is_read(service, story, journals):
    first, second = (gzip.compress(body, mtime=0) for body in list(story("a").bodies().values())[:2])
    journal, size = journals / "w.jsonl.gz", max(len(first), len(second))
    for packed in (first, second):
        journal.write_bytes(packed + b"\0" * (size - len(packed)))
        opened = service()
        known = Known(opened)
        for _ in range(2):
            look(opened, [journals], known=known)
    assert count(service()) == sum(gzip.decompress(each).count(b"\n") for each in (first, second))


def test_what_an_earlier_version_has_read_is_not_read_again(service, story, journals):
    """It kept no fingerprints."""
    journal, opened = journals / "w.jsonl", service()
    journal.write_bytes(next(iter(story("a").bodies().values())))
    look(opened, [journals])
    reached = opened.store.journal_offset(str(journal))
    opened.store.set_journal_offsets({str(journal): replace(reached, fingerprint=None)})
    again = service()
    look(again, [journals])
    assert again.stats.segments == 0


def test_bad_lines_are_named_and_skipped(service, story, journals, caplog):
    """A damaged line is logged with file and number, the lines after it are taken in."""
    body = next(iter(story("a").bodies().values()))
    (journals / "w.jsonl").write_bytes(b"\x00garbage\n" + body)
    opened = service()
    look(opened, [journals])
    assert count(opened) == body.count(b"\n")
    assert "w.jsonl: 1 lines are no events; line 1:" in caplog.text


def test_long_journals_are_read_in_pieces_and_endless_lines_are_skipped(
    service, story, journals, monkeypatch
):
    """Chunks end at lines; a line longer than a chunk is rejected and does not stop the file."""
    monkeypatch.setattr(journal_files, "CHUNK_BYTES", 1000)
    body = next(iter(story("a").bodies().values()))
    (journals / "w.jsonl").write_bytes(body + b"x" * 2500 + b"\n")
    (journals / "z.jsonl").write_bytes(b"\n" * 100 + body)
    opened = service()
    look(opened, [journals])
    assert count(opened) == body.count(b"\n")
    assert opened.stats.duplicates == body.count(b"\n")
    assert opened.stats.rejected_lines == 3


def test_a_journal_that_cannot_be_read_is_left_for_later(service, story, journals):
    """A journal that vanished hurts no other."""
    (journals / "a.jsonl").symlink_to(journals / "nowhere.jsonl")
    (journals / "w.jsonl").write_bytes(next(iter(story("a").bodies().values())))
    opened = service()
    look(opened, [journals])
    assert count(opened) > 0


def test_a_name_that_is_no_text_is_followed_like_others(service, story, journals):
    """A journal whose name holds any byte is read, once, and keeps no other from being read."""
    bodies = list(story("a").bodies().values())
    for number, body in enumerate(bodies):
        (journals / f"{number}-\udcff.jsonl").write_bytes(body)
    opened = service()
    look(opened, [journals])
    look(opened, [journals])
    assert count(opened) == sum(body.count(b"\n") for body in bodies)
    assert opened.stats.duplicates == 0


def test_a_store_that_takes_nothing_is_told_once(service, story, journals, caplog, monkeypatch):
    """Many journals and many looks while the disk is full are one line of log; the end of it is another."""
    bodies = list(story("a").bodies().values())
    for number, body in enumerate(bodies):
        (journals / f"{number}.jsonl").write_bytes(body)
    opened, troubles = service(), Troubles()

    def full(*_arguments):
        raise StoreError("cannot write to the database: database or disk is full")

    with monkeypatch.context() as broken:
        broken.setattr(opened.store, "append_all", full)
        for _ in range(50):
            look(opened, [journals], troubles)
    assert count(opened) == 0
    assert [record.message for record in caplog.records] == [
        "watching: cannot write to the database: database or disk is full; it is tried again"
    ]
    look(opened, [journals], troubles)
    assert count(opened) == sum(body.count(b"\n") for body in bodies)
    assert caplog.records[-1].message == "watching: works again"
    assert len(caplog.records) == 2


def test_a_watcher_that_is_stopped_leaves_the_rest_for_the_next_one(service, story, journals):
    """Told to stop, a look ends after the piece that it has begun, and nothing is lost."""
    for number, body in enumerate(story("a").bodies().values()):
        (journals / f"{number}.jsonl").write_bytes(body)
    answers = iter([True])
    opened = service()
    look(opened, [journals], go_on=lambda: next(answers, False))
    first = count(opened)
    look(opened, [journals])
    assert 0 < first < count(opened)
    assert opened.stats.duplicates == 0


def test_a_directory_that_goes_away_is_told_and_stops_nothing(service, story, journals, tmp_path, caplog):
    """One that is gone, or a file in its place, is told once; the others are read, and it once it is back."""
    first, second = list(story("a").bodies().values())[:2]
    (journals / "w.jsonl").write_bytes(first)
    place = tmp_path / "place"
    opened, troubles = service(), Troubles()
    for _ in range(3):
        look(opened, [place, journals], troubles)
    assert count(opened) == first.count(b"\n")
    place.write_bytes(b"")
    for _ in range(3):
        look(opened, [place, journals], troubles)
    place.unlink()
    place.mkdir()
    (place / "v.jsonl").write_bytes(second)
    look(opened, [place, journals], troubles)
    assert count(opened) == (first + second).count(b"\n")
    assert [record.message for record in caplog.records] == [
        f"{place}: No such file or directory; it is tried again",
        f"{place}: Not a directory; it is tried again",
        f"{place}: works again",
    ]


def test_a_folder_that_may_not_be_looked_into_is_told(service, story, journals, caplog, monkeypatch):
    """What lies in it is unknown, which nobody would notice otherwise."""
    (journals / "w.jsonl").write_bytes(next(iter(story("a").bodies().values())))
    scan = os.scandir

    def refusing(path):
        if str(path).endswith("node1"):
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", refusing)
    opened, troubles = service(), Troubles()
    for _ in range(2):
        look(opened, [journals], troubles)
    assert count(opened) > 0
    assert [record.message for record in caplog.records] == [
        f"{journals / 'node1'}: Permission denied; it is tried again"
    ]


def test_a_journal_that_may_not_be_looked_at_is_told_and_read_once_it_may(service, story, journals, caplog):
    """As one in a folder that can be listed but not entered; here its name is a link that is too long."""
    journal, body = journals / "w.jsonl", next(iter(story("a").bodies().values()))
    journal.symlink_to("x" * 300)
    opened, troubles = service(), Troubles()
    for _ in range(2):
        look(opened, [journals], troubles)
    assert [record.message.partition(":")[0] for record in caplog.records] == [str(journal)]
    journal.unlink()
    journal.write_bytes(body)
    look(opened, [journals], troubles)
    assert caplog.records[-1].message == f"{journal}: works again"
    assert count(opened) == body.count(b"\n")


def test_links_to_journals_are_followed_and_those_to_folders_are_not(service, story, journals, tmp_path):
    """A link to a folder above would have no end."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    first, second = list(story("a").bodies().values())[:2]
    (elsewhere / "a.jsonl").write_bytes(first)
    (journals / "link.jsonl").symlink_to(elsewhere / "a.jsonl")
    (journals / "up").symlink_to(journals)
    (elsewhere / "b.jsonl").write_bytes(second)
    (journals / "away").symlink_to(elsewhere)
    opened = service()
    look(opened, [journals])
    assert count(opened) == first.count(b"\n")
    look(opened, [journals / "away"])
    assert count(opened) == (first + second).count(b"\n")


def test_what_is_no_journal_is_passed_over(service, story, journals):
    """Directories, pipes and links in circles that are called like journals."""
    (journals / "w.jsonl").write_bytes(next(iter(story("a").bodies().values())))
    (journals / "folder.jsonl").mkdir()
    (journals / "circle.jsonl").symlink_to(journals / "circle.jsonl")
    (journals / "node1" / "up").symlink_to(journals)
    os.mkfifo(journals / "pipe.jsonl")
    opened, troubles = service(), Troubles()
    look(opened, [journals], troubles)
    assert count(opened) > 0
    assert (opened.stats.duplicates, troubles._said) == (0, {})


def test_a_journal_that_is_as_it_was_is_not_opened_again(service, story, journals, monkeypatch):
    """Ten thousand journals that nobody writes to cost the store nothing; one that grows is read on."""
    body = next(iter(story("a").bodies().values()))
    lines = body.splitlines(keepends=True)
    for number in range(20):
        (journals / f"{number}.jsonl").write_bytes(b"\n")
    (journals / "w.jsonl").write_bytes(b"".join(lines[:3]) + lines[3][:5])
    opened = service()
    known, read = Known(opened), []
    monkeypatch.setattr(watch, "new_pieces", lambda path, at: read.append(path) or new_pieces(path, at))
    for _ in range(2):
        look(opened, [journals], known=known)
        assert len(read) == 21
    with (journals / "w.jsonl").open("ab") as file:
        file.write(lines[3][5:])
    (journals / "0.jsonl").unlink()
    look(opened, [journals], known=known)
    assert read[21:] == [str(journals / "w.jsonl")]
    assert (count(opened), len(known.read)) == (4, 20)


def test_the_name_of_a_journal_makes_up_no_line_of_the_log(service, journals, caplog):
    """Line ends and what a terminal obeys are escapes there."""
    (journals / "a\nett exporter: all is well\x1b[2J.jsonl").write_bytes(b"garbage\n")
    look(service(), [journals])
    (record,) = caplog.records
    assert record.message.startswith(f"{journals}/a\\nett exporter: all is well.jsonl: 1 lines are no events")


def test_a_packed_journal_is_read_as_if_it_were_plain(service, story, journals):
    """Also of several gzip members, with a last line that lacks its end; and only once."""
    bodies = list(story("a").bodies().values())
    whole = b"".join(bodies)
    half = len(bodies[0])
    packed = gzip.compress(whole[:half]) + gzip.compress(whole[half:-1])
    (journals / "w.jsonl.gz").write_bytes(packed)
    opened = service()
    known = Known(opened)
    for _ in range(3):
        look(opened, [journals], known=known)
    assert count(opened) == whole.count(b"\n")
    again = service()
    known = Known(again)
    for _ in range(3):
        look(again, [journals], known=known)
    assert (again.stats.segments, again.stats.duplicates, again.stats.rejected_lines) == (0, 0, 0)


def test_a_journal_that_is_packed_later_counts_once(service, story, journals):
    """As a job of cron does that packs what is old."""
    body = next(iter(story("a").bodies().values()))
    journal, packed = journals / "w.jsonl", journals / "w.jsonl.gz"
    journal.write_bytes(body)
    opened = service()
    known = Known(opened)
    look(opened, [journals], known=known)
    packed.write_bytes(gzip.compress(body))
    journal.unlink()
    for _ in range(2):
        look(opened, [journals], known=known)
    assert count(opened) == opened.stats.duplicates == body.count(b"\n")


def test_a_packed_journal_waits_until_it_is_no_longer_written(service, story, journals, caplog):
    """What grows from look to look is not read, and not told as broken."""
    packed = gzip.compress(next(iter(story("a").bodies().values())))
    opened, troubles = service(), Troubles()
    known = Known(opened)
    for size in range(20, len(packed) + 20, 20):
        (journals / "w.jsonl.gz").write_bytes(packed[:size])
        look(opened, [journals], troubles, known=known)
    assert count(opened) == 0
    look(opened, [journals], troubles, known=known)
    assert count(opened) > 0
    assert caplog.records == []


@pytest.mark.parametrize("spoilt", [lambda packed: packed[:-20], lambda packed: packed + b"more"])
def test_a_packed_journal_that_is_not_whole_gives_what_it_has_and_is_told_once(
    spoilt, service, story, journals, caplog
):
    """It is not read again before it changes; then it counts whole, and no line twice."""
    body = b"".join(story("a").bodies().values()) * 20
    journal, packed = journals / "w.jsonl.gz", gzip.compress(body)
    journal.write_bytes(spoilt(packed))
    opened, troubles = service(), Troubles()
    known = Known(opened)
    for _ in range(5):
        look(opened, [journals], troubles, known=known)
    first = opened.stats.segments
    assert 0 < count(opened) <= body.count(b"\n") / 20
    (record,) = caplog.records
    assert record.message.startswith(f"{journal}: it ")
    assert record.message.endswith("; it is read again once it changes")
    journal.write_bytes(packed)
    for _ in range(3):
        look(opened, [journals], troubles, known=known)
    assert count(opened) == body.count(b"\n") / 20
    assert opened.stats.segments > first
    assert caplog.records[-1].message == f"{journal}: works again"


def test_what_is_called_packed_and_is_not_is_told(service, journals, caplog):
    (journals / "w.jsonl.gz").write_bytes(b"garbage\n")
    opened, troubles = service(), Troubles()
    known = Known(opened)
    for _ in range(3):
        look(opened, [journals], troubles, known=known)
    (record,) = caplog.records
    assert record.message == (
        f"{journals}/w.jsonl.gz: it is no gzip stream: Not a gzipped file (b'ga'); "
        "it is read again once it changes"
    )


def test_how_far_journals_were_read_is_written_some_hundred_at_a_time(service, story, journals, monkeypatch):
    """A look at many that grew costs few transactions; what a store refused is written with the next look."""
    bodies = list(story("a").bodies().values())
    for number in range(600):
        (journals / f"{number}.jsonl").write_bytes(bodies[number % len(bodies)].splitlines(keepends=True)[0])
    opened = service()
    known, write, sizes = Known(opened), opened.store.set_journal_offsets, []

    def failing(_places):
        raise StoreError("cannot write to the database: database or disk is full")

    with monkeypatch.context() as broken:
        broken.setattr(opened.store, "set_journal_offsets", failing)
        look(opened, [journals], known=known)
    monkeypatch.setattr(
        opened.store, "set_journal_offsets", lambda places: sizes.append(len(places)) or write(places)
    )
    look(opened, [journals], known=known)
    assert sum(sizes) == 600
    assert len(sizes) <= 600 / WRITTEN_TOGETHER + READERS
    assert opened.store.journal_offset(str(journals / "599.jsonl")).lines == 1
