"""Which files of native code a process uses, and how they come into another cache directory."""

import pytest

from ett_trainer_hooks.pipeline.bundle.native import (
    PROBE_SOURCE,
    PROBES,
    install_native,
    native_files,
    native_names,
)


@pytest.fixture
def cache(tmp_path):
    """A cache directory with a library of this process, one of another, and a probe."""
    root = tmp_path / "cache"
    for name, text in {
        "ab/cused.main.so": "used",
        "ab/cused.main.cpp": "source",
        "cd/cforeign.main.so": "of another program",
        "cd/cforeign.main.cpp": "source",
        "ef/cprobe.so": "probe",
        "ef/cprobe.cpp": "#include <immintrin.h>",
        "gh/clarge.so": "no probe",
        "gh/clarge.cpp": "x" * (PROBE_SOURCE + 1),
        "ij/conly.cpp": "a probe that failed",
        "fxgraph/ab/f1/entry": "torch's own",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def maps(tmp_path, *paths):
    lines = [f"7f00-7f10 r-xp 00000000 08:01 12   {path}" for path in paths]
    (tmp_path / "maps").write_text("\n".join([*lines, "7ffd-7ffe rw-p 00000000 00:00 0 [stack]", ""]))
    return tmp_path / "maps"


def test_libraries_in_use_and_probes_are_taken_and_nothing_else(cache, tmp_path):
    used = maps(tmp_path, cache / "ab/cused.main.so", "/usr/lib/libc.so.6", cache / "fxgraph/ab/f1/entry")
    assert native_files(cache, used) == {"ab/cused.main.so": b"used", "ef/cprobe.so": b"probe"}


def test_a_cache_behind_a_link_and_one_that_is_not_there(cache, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(cache)
    used = maps(tmp_path, cache / "ab/cused.main.so")
    assert "ab/cused.main.so" in native_files(link, used)
    assert native_files(tmp_path / "none", used) == {}


def test_names_are_told_without_reading_the_files(cache, tmp_path):
    used = maps(tmp_path, cache / "ab/cused.main.so")
    assert native_names(cache, used) == ["ab/cused.main.so", "ef/cprobe.so"]


def test_a_library_that_is_gone_is_left_out(cache, tmp_path):
    used = maps(tmp_path, cache / "ab/cused.main.so (deleted)", cache / "zz/cgone.main.so")
    assert list(native_files(cache, used)) == ["ef/cprobe.so"]


def test_probes_are_bounded(cache, tmp_path):
    for number in range(PROBES + 9):
        for kind in ("cpp", "so"):
            (cache / f"ef/cprobe{number}.{kind}").write_text("x")
    assert len(native_files(cache, maps(tmp_path))) == PROBES


def test_files_come_where_there_are_none_and_can_be_run(tmp_path):
    root = tmp_path / "new" / "cache"
    (tmp_path / "new").mkdir()
    assert install_native({"ab/c1.main.so": b"code"}, root) == 4
    assert (root / "ab/c1.main.so").stat().st_mode & 0o777 == 0o700
    assert install_native({"ab/c1.main.so": b"other code", "ab/c2.so": b"more"}, root) == 4
    assert (root / "ab/c1.main.so").read_bytes() == b"code"


def test_a_link_that_leads_out_of_the_cache_is_refused(tmp_path):
    root, outside = tmp_path / "cache", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (root / "ab").symlink_to(outside)
    with pytest.raises(OSError, match="leads out of"):
        install_native({"ab/c1.so": b"code"}, root)
    assert list(outside.iterdir()) == []
