"""The command line of the reference trainer."""

import pytest

from ett_trainer_hooks.reference.settings import Settings, parse


def test_without_words_the_defaults_hold():
    """The command line repeats no default of its own."""
    assert parse([]) == Settings()


def test_every_setting_can_be_given(tmp_path):
    """Numbers, paths and switches arrive with their type."""
    words = ["--steps", "9", "--checkpoint-every-s", "1.5", "--checkpoint-dir", str(tmp_path), "--no-compile"]
    settings = parse(words)
    given = (settings.steps, settings.checkpoint_every_s, settings.checkpoint_dir, settings.compile)
    assert given == (9, 1.5, tmp_path, False)


@pytest.mark.parametrize(
    "words",
    [
        ["--steps", "0"],
        ["--checkpoint-every-s", "0"],
        ["--checkpoint-at-least-every-s", "0"],
        ["--grace-s", "-1"],
        ["--rows", "many"],
        ["--pipeline", "long"],
        ["--checkpoint-mode", "slow"],
        ["--close-patience-s", "-1"],
        ["--checkpoint-disk", "here"],
        ["--checkpoint-disk", "here", "--checkpoint-remote", "there", "--publish-to", "models"],
    ],
)
def test_what_cannot_train_is_refused_with_status_2(words, capsys):
    """The message names the setting."""
    with pytest.raises(SystemExit) as ended:
        parse(words)
    assert ended.value.code == 2
    assert words[0].strip("-").replace("-", "_") in capsys.readouterr().err.replace("-", "_")
