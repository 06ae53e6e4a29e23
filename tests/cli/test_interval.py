import json

import pytest

from ett_cli.main import main


def interval(capsys, words: str) -> tuple[int, str, str]:
    status = main(["interval", *words.split()])
    out, err = capsys.readouterr()
    return status, out, err


def test_worked_figures_come_out_as_json(capsys):
    status, out, _ = interval(capsys, "--blocking-s 15 --failures 3 --train-s 86400 --json")
    answer = json.loads(out)
    assert status == 0
    assert round(answer["optimal_interval_s"], 1) == 929.5
    assert round(answer["wasted_percent"], 3) == 3.227


def test_worked_figures_come_out_in_words(capsys):
    status, out, _ = interval(capsys, "--blocking-s 30 --failures 4 --train-s 86400")
    assert status == 0
    assert out.splitlines() == [
        "Save every 1,138.4 s.",
        "That wastes 4,553.7 s (5.270 %) of 86,400 s:",
        "  blocked by 75.9 saves: 2,276.8 s",
        "  lost in 4 failures: 2,276.8 s",
        "Refined (Daly): 1,118.5 s of training between two saves.",
        "Expected ETTR: 94.86 %, the queue aside.",
    ]


def test_the_mean_time_between_failures_does_instead_of_their_number(capsys):
    _, out, _ = interval(capsys, "--blocking-s 120 --mtbf-s 21600")
    assert out.startswith("Save every 2,276.8 s.")


def test_the_number_of_nodes_does_instead_of_the_failures(capsys):
    """Figures of Kokolis et al., and the hour at which many save."""
    words = "--blocking-s 300 --nodes 256 --restart-s 300 --interval-s 3600"
    _, out, _ = interval(capsys, words)
    assert "Expected ETTR: 89.25 %, the queue aside." in out
    assert "Expected ETTR now: 88.57 %." in out
    _, out, _ = interval(capsys, words + " --json")
    answer = json.loads(out)
    assert round(answer["optimal_interval_s"] / 60, 1) == 93.0
    assert round(answer["expected_ettr"], 4) == 0.8925
    assert round(answer["current"]["expected_ettr"], 4) == 0.8857
    assert round(answer["wasted_restart_s"], 1) == 499.2


def test_the_refined_interval_is_that_of_the_literature(capsys):
    _, out, _ = interval(capsys, "--blocking-s 300 --mtbf-s 86400 --json")
    assert round(json.loads(out)["refined_interval_s"] / 60, 1) == 116.7


def test_an_interval_in_use_is_compared_with_the_optimum(capsys):
    words = "--blocking-s 15 --failures 3 --train-s 86400 --upload-s 60 --interval-s 3600"
    _, out, _ = interval(capsys, words)
    assert "Now, every 3,600.0 s: 5,940.0 s (6.875 %), 2,971.5 s more than needed." in out
    _, out, _ = interval(capsys, words + " --json")
    current = json.loads(out)["current"]
    assert (current["wasted_s"], round(current["saving_s"], 1)) == (5940.0, 2971.5)


def test_what_a_save_in_the_background_slows_is_part_of_its_cost(capsys):
    words = "--blocking-s 5 --slowed-s 10 --failures 3 --train-s 86400"
    _, out, _ = interval(capsys, words)
    assert out.startswith("Save every 929.5 s.")
    assert "  blocked by 93.0 saves: 464.8 s\n  slowed beside them: 929.5 s\n" in out
    _, out, _ = interval(capsys, words + " --json")
    answer = json.loads(out)
    assert (answer["slowed_s"], round(answer["wasted_slowed_s"], 1)) == (10.0, 929.5)
    assert answer["wasted_s"] == pytest.approx(
        sum(answer[f"wasted_{n}_s"] for n in ("blocking", "slowed", "lost"))
    )


def test_without_failures_words_say_that_there_is_no_optimum(capsys):
    status, out, _ = interval(capsys, "--blocking-s 15 --failures 0 --train-s 86400")
    assert status == 0
    assert out == "Nothing fails, so no checkpoint pays for itself: there is no optimal interval.\n"
    _, out, _ = interval(capsys, "--blocking-s 15 --failures 0 --train-s 86400 --json")
    assert json.loads(out)["optimal_interval_s"] is None


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (
            "--blocking-s 0 --failures 3 --train-s 9",
            "blocking time must be a finite number above zero, not 0",
        ),
        (
            "--blocking-s nan --failures 3 --train-s 9",
            "blocking time must be a finite number above zero, not nan",
        ),
        (
            "--blocking-s 1 --failures -3 --train-s 9",
            "number of failures must be a finite number, zero or more",
        ),
        ("--blocking-s 1 --slowed-s -1 --mtbf-s 9", "slowing of steps must be a finite number, zero or more"),
        ("--blocking-s 1 --failures 3", "--failures needs --train-s"),
        ("--blocking-s 1 --mtbf-s 0", "mean time between failures must be a finite number above zero, not 0"),
        ("--blocking-s 1 --nodes 0", "number of nodes must be a finite number above zero, not 0"),
        ("--blocking-s 1 --mtbf-s 9 --restart-s -1", "recovery time must be a finite number, zero or more"),
        ("--blocking-s 1 --mtbf-s 9 --interval-s 0", "interval must be a finite number above zero, not 0"),
    ],
)
def test_a_figure_that_makes_no_sense_is_status_two_with_the_reason(words, reason, capsys):
    status, out, err = interval(capsys, words)
    assert (status, out) == (2, "")
    assert reason in err


def test_large_numbers_of_failures_are_readable(capsys):
    _, out, _ = interval(capsys, "--blocking-s 1 --failures 28800 --train-s 31536000")
    assert "  lost in 28,800 failures: " in out
    _, out, _ = interval(capsys, "--blocking-s 1 --failures 1 --train-s 86400")
    assert "  lost in 1 failure: " in out
