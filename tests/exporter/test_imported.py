"""What `ett import` sends to a real exporter."""

from pathlib import Path

from ett_cli.main import main

SACCT = Path(__file__).parents[1] / "data" / "imports" / "sacct.txt"


def test_an_imported_job_is_there_and_a_second_import_counts_once(exporter, capsys):
    """Its account is that of `ett account`; the exporter knows the lines of the second import."""
    words = ["import", str(SACCT), "--timezone", "UTC", "--exporter", exporter.url]
    assert main(words) == 0
    first = exporter.job("slurm-alpha-4001")
    assert first["components"] == {"recover.queue": 2100.0, "unobserved": 23_400.0}
    assert (first["state"], first["failures"]) == ("succeeded", 2)
    capsys.readouterr()
    assert main(words) == 0
    said = capsys.readouterr().out
    assert said == f"ett import: 34 events sent to {exporter.url}, 34 of them known there already\n"
    assert exporter.job("slurm-alpha-4001")["components"] == first["components"]


def test_an_exporter_that_is_not_there_is_told(capsys):
    """Status 1, with the last answer."""
    nowhere = ["--exporter", "http://127.0.0.1:9", "--timeout-s", "0.1"]
    assert main(["import", str(SACCT), "--timezone", "UTC", *nowhere]) == 1
    assert "not acknowledged" in capsys.readouterr().err
