"""Settings of a bundle, and what the compiler is told."""

import pytest

from ett_trainer_hooks.pipeline.bundle.settings import (
    CACHE_DIR,
    KEY_FILE,
    BundleSettings,
    compiler_settings,
    prepare_compiler,
)


@pytest.mark.parametrize(
    "wrong", [{"address": ""}, {"name": ""}, {"limit_bytes": 0}, {"patience_s": 0.0}, {"patience_s": -1.0}]
)
def test_what_makes_no_sense_is_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        BundleSettings(**{"address": "/x", "name": "dlrm", **wrong})


def test_the_key_comes_from_the_settings_before_the_environment(tmp_path):
    paths = [tmp_path / name for name in "ab"]
    for path in paths:
        path.write_text(path.name * 64)
        path.chmod(0o600)
    environ = {KEY_FILE: str(paths[1])}
    settings = BundleSettings(address="/x", name="n")
    assert settings.key({}) is None
    assert settings.key(environ) == b"b" * 64
    assert BundleSettings(address="/x", name="n", key_file=paths[0]).key(environ) == b"a" * 64


def test_what_the_user_has_set_stays(tmp_path):
    environ = {"TORCHINDUCTOR_VEC_ISA_OK": "0", CACHE_DIR: str(tmp_path / "mine")}
    assert prepare_compiler(environ) == tmp_path / "mine"
    assert environ["TORCHINDUCTOR_VEC_ISA_OK"] == "0"


def test_without_a_setting_the_cache_is_where_torch_would_keep_it():
    environ = {}
    assert prepare_compiler(environ).name.startswith("torchinductor_")
    assert compiler_settings(environ) == {"TORCHINDUCTOR_VEC_ISA_OK": "1"}
