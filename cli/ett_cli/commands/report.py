"""`ett report`: a job or a fleet in one file of HTML that opens without a network."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from zoneinfo import ZoneInfo

from ett_cli.exporter_option import add_exporter
from ett_cli.saying import complain
from ett_cli.token_file import add_token_file
from ett_core.reasons import reason_of

WINDOWS = ("1h", "24h", "7d", "30d", "90d")
PATIENCE_S = 60.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `ett report`."""
    parser.epilog = (
        "Of a job whose events no exporter has yet: ett ship DIR --exporter URL --once, with the directory "
        "that `ett run` has named. `ett account DIR` needs no exporter."
    )
    parser.add_argument("job", nargs="?", metavar="JOB", help="id of the job to report on")
    parser.add_argument("--fleet", choices=WINDOWS, help="report on all jobs, so far back, instead of one")
    parser.add_argument(
        "--out", type=Path, required=True, metavar="FILE", help="the file to write, for example report.html"
    )
    add_exporter(parser, "the exporter that is asked")
    add_token_file(parser)
    parser.add_argument(
        "--time-zone",
        default="UTC",
        metavar="NAME",
        help="zone of the times in the report, for example Europe/Berlin (default: %(default)s)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Write the report; 1 where the exporter or the disk fails, 2 for settings that cannot work."""
    from ett_core.credentials import token_source
    from ett_dashboard.client import Client, ExporterError
    from ett_dashboard.report.reading import fleet_report, job_report, write
    from ett_dashboard.settings import Settings

    try:
        settings = Settings(exporter_url=arguments.exporter, token_file=arguments.token_file)
        zone = _zone(arguments.time_zone)
    except ValueError as error:
        return complain("report", error, 2)
    if (arguments.job is None) == (arguments.fleet is None):
        return complain("report", "give the id of a job, or --fleet with a window such as 7d", 2)
    client = Client(settings.exporter_url, PATIENCE_S, token=token_source(settings.token_file))
    try:
        if arguments.job is not None:
            content = job_report(client, arguments.job, zone)
        else:
            content = fleet_report(client, arguments.fleet, zone, time.time())
        write(arguments.out, content)
    except ExporterError as error:
        return complain("report", error, 1)
    except OSError as error:
        return complain("report", f"{arguments.out} cannot be written: {reason_of(error)}", 1)
    finally:
        client.close()
    print(f"ett report: {arguments.out}, {len(content) / 1e6:.1f} MB; it opens in any browser, also offline")
    return 0


def _zone(name: str) -> ZoneInfo:
    """The time zone of a name.

    Raises:
        ValueError: there is none.
    """
    try:
        return ZoneInfo(name)
    except (KeyError, OSError, ValueError) as error:
        raise ValueError(f"--time-zone {name!r} is no zone such as UTC or Europe/Berlin") from error
