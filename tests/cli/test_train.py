"""`ett train`: what its configuration says, and what is started with it."""

import gzip
import json
import os
import time
from dataclasses import fields
from pathlib import Path

import pytest

from ett_cli.commands import train
from ett_cli.main import main
from ett_cli.training.attempts import told_attempt
from ett_cli.training.command import environment, launcher_grace_s, torchrun
from ett_cli.training.config import TRAINER, Config, parts_in, read, written
from ett_trainer_hooks import Recorder
from ett_trainer_hooks.journal.segments import acknowledge
from ett_trainer_hooks.pipeline import takes
from ett_trainer_hooks.pipeline.checkpoint.sole_writer import claim
from ett_trainer_hooks.pipeline.parts import PARTS
from ett_trainer_hooks.pipeline.takes import Machine
from ett_trainer_hooks.reference.settings import Settings, parse, words_of
from ett_trainer_hooks.shipping.pruning import prune

EXAMPLES = sorted(Path(__file__).parents[2].glob("examples/train/*.toml"))
OTHERS = {"backend": "eager", "pipeline": "base", "checkpoint_mode": "sync", "parts": "stages"}


def other(field):
    """A value of a setting that is not its default."""
    default = field.default
    if field.name in OTHERS:
        return OTHERS[field.name]
    if isinstance(default, Path):
        return default / "x"
    return not default if isinstance(default, bool) else default * 2 or type(default)(1)


def printed(capsys, *words):
    status = main(["train", "--print-config", "--job-id", "j", *map(str, words)])
    assert status == 0
    return read(capsys.readouterr().out)


def refused(capsys, *words):
    assert main(["train", *map(str, words)]) == 2
    return capsys.readouterr().err


def test_all_parts_are_on_by_default():
    assert read("") == Config()
    assert all(Config().settings("j").uses(part) for part in PARTS)


@pytest.mark.parametrize("part", PARTS)
def test_every_part_can_be_switched_off(part, tmp_path, capsys):
    file = tmp_path / "train.toml"
    file.write_text(f"[parts]\n{part} = false\n")
    assert printed(capsys, "--config", file).parts == set(PARTS) - {part}
    assert printed(capsys, "--config", file, "--parts", part).parts == {part}
    assert printed(capsys, "--config", file, "--plain").parts == set()


def test_what_is_printed_is_read_as_the_same():
    every = {field.name: other(field) for field in fields(Settings) if field.name in TRAINER}
    every["publish_to"] = ""  # not with a disk of a node
    config = Config(
        ranks=3, rank_restarts=0, run_dir='a "b"\\é\x7f\t', trainer=every, parts=frozenset(["stages"])
    )
    assert read(written(config, "j")) == config


def test_what_follows_from_the_job_is_printed_but_not_said():
    text = written(Config(), "team/run")
    assert '# checkpoint_dir = "runs/team_run/checkpoints"' in text
    assert read(text).settings("team/run") == Config().settings("team/run")


def test_the_command_line_goes_before_the_file(tmp_path, capsys):
    file = tmp_path / "train.toml"
    file.write_text("ranks = 4\nrank_restarts = 1\n[trainer]\nsteps = 7\nrows = 50\n")
    config = printed(capsys, "--config", file, "--steps", 9, "--ranks", 1, "--cache", "here")
    assert (config.ranks, config.rank_restarts) == (1, 1)
    settings = config.settings("j")
    assert (settings.steps, settings.rows, settings.cache) == (9, 50, "here")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("rank = 2", "there is no 'rank'; the nearest is 'ranks'"),
        ("[trainer]\nstesp = 2", "there is no 'trainer.stesp'; the nearest is 'trainer.steps'"),
        ("[trainer]\nparts = 'all'", "there is no 'trainer.parts'; there is 'parts'"),
        ("steps = 2", "there is no 'steps'; there is 'trainer.steps'"),
        ("stages = false", "there is no 'stages'; there is 'parts.stages'"),
        ("[trainer]\npreemption = true", "there is no 'trainer.preemption'; there is 'parts.preemption'"),
        ("[parts]\nstagse = true", "there is no 'parts.stagse'; the nearest is 'parts.stages'"),
        ("[parts]\nxyzzy = true", "there is no 'parts.xyzzy'; there are stages, toolchain, "),
        ("[parts]\nstages = 1", "parts.stages: Expected `bool`, got `int`"),
        ("parts = 1", "parts: Expected a table, got `int`"),
        ("[trainer]\nsteps = 'x'", "trainer.steps: Expected `int`, got `str`"),
        ("[trainer]\nsteps = 1.5", "trainer.steps: Expected `int`, got `float`"),
        ("[trainer]\ncheckpoint_dir = 1", "trainer.checkpoint_dir: Expected `str`, got `int`"),
        ("[trainer]\nsteps = 0", "trainer: steps is 0, must be at least 1"),
        ("[trainer]\ngrace_s = inf", "trainer: grace_s is inf, must be finite"),
        ("[trainer]\nlearning_rate = -0.1", "trainer: learning_rate is -0.1, must be above 0"),
        ('[trainer]\ncache = "a\\u0000b"', "trainer: cache holds a NUL"),
        ('run_dir = "a\\u0000b"', "run_dir holds a NUL"),
        ("x = " + 5000 * "[", "it is nested too deeply"),
        ("ranks = 0", "ranks is 0, must be at least 1"),
        ("ranks = ", "Invalid value (at end of document)"),
    ],
)
def test_what_no_file_can_say_is_refused_by_name(text, complaint, tmp_path, capsys):
    file = tmp_path / "train.toml"
    file.write_text(text)
    assert refused(capsys, "--config", file).startswith(f"ett train: {file}: {complaint}")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--config", "nowhere.toml"], "nowhere.toml: No such file or directory"),
        (["--parts", "all,-stagse"], "there is no 'stagse'; the nearest is 'stages'"),
        (["--steps", "0"], "steps is 0, must be at least 1"),
        (["--ranks", "0"], "ranks is 0, must be at least 1"),
        (["--rank-restarts", "-1"], "rank_restarts is -1, must be at least 0"),
        (["--checkpoint-every-s", "nan"], "checkpoint_every_s is nan, must be finite"),
        (["--close-patience-s", "1e10"], "close_patience_s is 10000000000.0, must be at most 1,000,000,000"),
        (["--seed", "-1"], "seed is -1, must not be below 0"),
        (["--publish-to", "nosuch://models"], "publish_to: nosuch://models: Protocol not known: nosuch"),
        (["--checkpoint-remote", "nosuch://c"], "checkpoint_remote: nosuch://c: Protocol not known: nosuch"),
    ],
)
def test_what_no_command_line_can_say_is_refused(words, complaint, capsys):
    assert complaint in refused(capsys, *words)


def test_what_the_launcher_refuses_is_told_under_the_name_of_the_command(monkeypatch, capsys):
    monkeypatch.setattr(train, "NEEDED", ())
    assert refused(capsys, "--drain", "nan") == "ett train: drain=nan is not 0 to 1,000,000,000 seconds\n"


def test_beside_ranks_of_an_earlier_start_nothing_is_started(tmp_path, monkeypatch, capsys):
    """As when their launcher was killed; it is told at once who they are."""
    monkeypatch.setattr(train, "NEEDED", ())
    monkeypatch.setattr(train, "run_under_observation", lambda *_, **__: pytest.fail("it was started"))
    lease = claim(tmp_path / "j" / "checkpoints", Recorder.from_env({}))
    assert main(["train", "--job-id", "j", "--run-dir", str(tmp_path)]) == 1
    told = f"ett train: another start writes to {tmp_path}/j/checkpoints: process {os.getpid()} on "
    assert capsys.readouterr().err.startswith(told)
    lease.release()


def test_beside_ranks_on_another_machine_nothing_is_started_by_hand(tmp_path, monkeypatch, capsys):
    """They would be overtaken by those of a start that no scheduler has numbered."""
    monkeypatch.setattr(train, "NEEDED", ())
    monkeypatch.setattr(train, "run_under_observation", lambda *_, **__: pytest.fail("it was started"))
    monkeypatch.setattr(takes, "RENEWALS", 600)
    elsewhere, journals = Machine("n7", "another kernel"), tmp_path / "journals"
    journal(journals, "a", "j", 0)
    lease = claim(tmp_path / "j" / "checkpoints", Recorder.from_env({}), here=elsewhere)
    words = ["--job-id", "j", "--run-dir", str(tmp_path), "--journal-dir", str(journals)]
    assert main(["train", *words]) == 1
    watched, refused_for = capsys.readouterr().err.splitlines()
    assert watched.startswith(f"ettwatch: process {os.getpid()} on n7, of job -, since ")
    assert refused_for.startswith(
        f"ett train: another start writes to {tmp_path}/j/checkpoints: process {os.getpid()} on n7"
    )
    lease.release()


def test_where_no_checkpoint_can_be_written_nothing_is_started(tmp_path, monkeypatch, capsys):
    """The ranks would train up to the first save, fail, and do so again at each restart."""
    monkeypatch.setattr(train, "NEEDED", ())
    monkeypatch.setattr(train, "run_under_observation", lambda *_, **__: pytest.fail("it was started"))
    (tmp_path / "file").touch()
    for place in (tmp_path / "file" / "x", Path("/proc/x")):
        assert main(["train", "--job-id", "j", "--checkpoint-dir", str(place)]) == 1
        told = capsys.readouterr().err
        assert told.startswith(f"ett train: checkpoints cannot be written to {place}: ")
        assert told.count("\n") == 1


@pytest.mark.service("torch")
def test_a_compiler_that_torch_does_not_know_is_refused_before_anything_starts(tmp_path, monkeypatch, capsys):
    """With the names of those that it knows; not where nothing is compiled, and any torch has will do."""
    started = []
    monkeypatch.setattr(train, "NEEDED", ())
    monkeypatch.setattr(train, "run_under_observation", lambda *_, **__: started.append(1) or 0)
    words = ["train", "--job-id", "j", "--run-dir", str(tmp_path)]
    assert main([*words, "--backend", "nope"]) == 1
    told = capsys.readouterr().err
    assert told.startswith("ett train: backend is 'nope', which torch does not know: name one of inductor, ")
    assert "aot_eager" in told
    assert not started
    for more in (["--no-compile", "--backend", "nope"], ["--backend", "eager_noexcept"]):
        assert main([*words, *more]) == 0
    assert started == [1, 1]


def test_a_file_that_is_no_text_is_named(tmp_path, capsys):
    (tmp_path / "train.toml").write_bytes(b"\xff\xfe")
    assert refused(capsys, "--config", tmp_path / "train.toml").startswith(
        f"ett train: {tmp_path}/train.toml: 'utf-8' codec can't decode byte 0xff"
    )


def test_parts_are_named_as_the_trainer_names_them():
    assert parts_in("all,-stages") == set(PARTS) - {"stages"}
    assert parts_in("") == set()


@pytest.mark.parametrize("file", EXAMPLES, ids=[file.name for file in EXAMPLES])
def test_the_examples_can_be_used(file):
    read(file.read_text()).settings("j")


def test_ranks_are_told_every_setting():
    for field in fields(Settings):
        needed = {"cache": "here", "checkpoint_remote": "there"}
        settings = Settings(**{**needed, field.name: other(field)})
        command = torchrun(settings, job_id="team/run", ranks=2, restarts=1)
        assert parse(command[command.index("ett_trainer_hooks.reference") + 1 :]) == settings
        assert ("torch.distributed.run" in command) is not settings.uses("quick_exit")
    assert words_of(Settings()) == []


def test_ranks_are_told_words_that_look_like_options():
    settings = Settings(checkpoint_dir=Path("-d"), publish_to="--all parts -v", learning_rate=1e-5)
    assert parse(words_of(settings)) == settings


def test_nobody_ends_the_ranks_before_the_time_that_they_count_on():
    settings = Settings(parts="preemption", grace_s=100.0)
    assert launcher_grace_s(settings, None) == 105.0
    assert launcher_grace_s(settings, 110.0) == 110.0
    assert environment(2, 105.0)["TORCH_ELASTIC_SHUTDOWN_TIMEOUT"] == "105"
    assert launcher_grace_s(Settings(grace_s=100.0), None) == 30.0
    assert launcher_grace_s(Settings(grace_s=100.0), 1.0) == 1.0


def test_less_time_than_the_ranks_count_on_is_refused(capsys):
    complaint = "ett train: grace_s is 25: the ranks would be ended before, as --grace is 20\n"
    assert refused(capsys, "--grace", "20") == complaint


def test_the_rendezvous_has_the_name_of_the_job():
    command = torchrun(Settings(), job_id="team/run", ranks=2, restarts=1)
    assert command[command.index("--rdzv-id") + 1] == "team_run"


def journal(folder, name, job_id, attempt):
    folder.mkdir(exist_ok=True)
    event = {"v": 1, "kind": "heartbeat", "job_id": job_id, "writer": name, "seq": 0, "attempt": attempt}
    (folder / f"{name}.jsonl").write_text(json.dumps({**event, "rank": 0, "time": 1.7e9}) + "\n")


def test_a_job_that_is_started_again_numbers_its_attempts_on(tmp_path):
    """Else those of two starts would be taken for one."""
    assert told_attempt("j", tmp_path / "none", {}) == {}
    journal(tmp_path, "a", "j", 0)
    journal(tmp_path, "b", "other", 7000)
    (tmp_path / "c.jsonl").write_text('{"torn')
    (tmp_path / "d.jsonl").write_text("")
    (tmp_path / "unreadable.jsonl").symlink_to("/proc/self/mem")
    assert told_attempt("j", tmp_path, {}) == {"ETT_ATTEMPT": "1000"}
    journal(tmp_path, "e", "j", 1002)
    assert told_attempt("j", tmp_path, {}) == {"ETT_ATTEMPT": "2000"}


def test_journals_that_were_packed_tell_of_earlier_starts_as_well(tmp_path):
    journal(tmp_path, "a", "j", 0)
    journal(tmp_path, "b", "j", 1000)
    for plain in tmp_path.glob("*.jsonl"):
        plain.with_name(f"{plain.name}.gz").write_bytes(gzip.compress(plain.read_bytes()))
        plain.unlink()
    (tmp_path / "torn.jsonl.gz").write_bytes(gzip.compress(b"x" * 500)[:20])
    (tmp_path / "no_gzip.jsonl.gz").write_bytes(b"x")
    assert told_attempt("j", tmp_path, {}) == {"ETT_ATTEMPT": "2000"}


def test_journals_that_were_removed_tell_of_earlier_starts_as_well(tmp_path):
    """Removed once an exporter held them: what is left of them is the number of their attempt."""
    below = tmp_path / "below"
    below.mkdir()
    for name, attempt in (("a", 0), ("b", 2000), ("c", 1000)):
        journal(below, name, "j", attempt)
        path = below / f"{name}.jsonl"
        acknowledge(path, "http://exporter", path.stat().st_size)
    journal(below, "kept", "other", 5000)
    removed = prune(sorted(below.glob("*.jsonl")), "http://exporter", before=time.time() + 60)
    assert len(removed) == 3
    (below / "pruned.attempts.new").write_text("torn")
    assert told_attempt("j", tmp_path, {}) == {"ETT_ATTEMPT": "3000"}
    assert told_attempt("other", tmp_path, {}) == {"ETT_ATTEMPT": "6000"}
    (below / "pruned.attempts").write_text("of somebody else")
    assert told_attempt("j", tmp_path, {}) == {}


@pytest.mark.parametrize("environ", [{"ETT_ATTEMPT": "3"}, {"SLURM_RESTART_COUNT": "2"}])
def test_where_somebody_else_counts_the_starts_nothing_is_told(environ, tmp_path):
    journal(tmp_path, "a", "j", 0)
    assert told_attempt("j", tmp_path, environ) == {}
