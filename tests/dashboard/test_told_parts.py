"""Decisions and what was compiled again, as pieces of a page."""

from datetime import timezone

from ett_core.compile_log import CompileLine
from ett_core.decision_log import DecisionLine
from ett_core.events import CompileInput
from ett_dashboard.job import told

AT = 1764000000.0
MISMATCH = "0/{}: tensor 'x' size mismatch at index 0. expected {}, actual {}  # y = x * 2  # train.py:8"


def decided(**fields):
    given = {"attempt": 0, "time": AT, "rank": 0, "node": "n", "what": "interval", "why": "it pays"}
    return DecisionLine(**{**given, **fields})


def compiled(nth, reason=None, *, size=64, attempt=0, inputs=True):
    return CompileLine(
        attempt=attempt,
        rank=0,
        time=AT + nth,
        writer=f"w{attempt}",
        seq=nth,
        graph=f"0/{nth}",
        code="f (a.py:1)",
        seconds=1.0,
        native_s=0.0,
        recompile_reason=reason,
        inputs=(CompileInput("L['x']", (size,)),) if inputs else None,
    )


def test_who_decided_is_named_by_the_first_and_the_number_of_the_others():
    assert told.who(decided()) == "rank 0"
    assert told.who(decided(rank=-1)) == "launcher"
    assert told.who(decided(rank=3, ranks=1001)) == "rank 3 and 1,000 more"


def test_a_decision_is_a_row_with_its_figures_over_it():
    table = told.decisions_table([decided(values={"interval_s": 93.25})], timezone.utc)
    assert "2025-11-24 16:00:00" in table
    assert 'title="interval_s 93.25"' in table


def test_words_of_a_job_are_inert():
    table = told.decisions_table([decided(what="<b>", why="<img src=x>", values={'">': 1.0})], timezone.utc)
    assert "<b>" not in table.replace("<bdi>", "")
    assert "<img" not in table
    assert "&lt;img" in table
    assert 'title="&quot;&gt; 1"' in table


def test_reasons_are_joined_by_what_differed_in_the_latest_attempt():
    lines = [
        compiled(0, MISMATCH.format(0, 1, 2)),
        compiled(0, attempt=1),
        compiled(1, MISMATCH.format(0, 64, 65), attempt=1, size=65),
        compiled(2, MISMATCH.format(1, 65, 66), attempt=1, size=66),
        compiled(3, "0/2: len(ys) == 1  # y", attempt=1),
    ]
    rows = told.again(lines)
    assert [(row.what, row.values, row.times) for row in rows] == [
        ("L['x'], dimension 0", (64, 65, 66), 2),
        ("len(ys) == 1", (), 1),
    ]
    assert "<td><bdi>L[&#x27;x&#x27;], dimension 0: 64, 65, 66</bdi></td>" in told.again_table(rows)


def test_the_setting_is_that_of_the_advice_counted_or_estimated():
    lines = [compiled(0), compiled(1, MISMATCH.format(0, 64, 65), size=65)]
    said, line = told.setting(lines, "2.13.0")
    assert said == "2 graphs there; 1 where what varied is left open from the start:"
    assert line == """export TORCH_COMPILE_DYNAMIC_SOURCES="L['x']:0\""""
    bare = [compiled(0, inputs=False), compiled(1, MISMATCH.format(0, 64, 65), inputs=False)]
    assert "at least 1" in told.setting(bare, "2.9.1")[0]
    assert told.setting(bare, "2.9.1")[1].endswith("""="L['x']\"""")
    assert told.setting([compiled(0)], "2.13.0") == told.setting([], "") == ("", "")
