"""What the app is told from outside: what to read, and how often."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit
from zoneinfo import available_timezones

import msgspec

from ett_core.credentials import TOKEN_FILE_VARIABLE, token_source
from ett_dashboard.prometheus.settings import PrometheusSettings

EXPORTER_VARIABLE = "ETT_EXPORTER_URL"
REFRESH_VARIABLE = "ETT_DASHBOARD_REFRESH_S"
PRICE_VARIABLE = "ETT_DASHBOARD_PRICE"
ZONE_VARIABLE = "ETT_DASHBOARD_ZONE"
GRAFANA_VARIABLE = "ETT_GRAFANA_URL"
LEAST_REFRESH_S = 0.5


@dataclass(frozen=True, kw_only=True)
class Address:
    """Where the app listens."""

    host: str = "127.0.0.1"
    """Address to listen on; the default is this machine only."""
    port: int = 8501
    """Port to listen on; 0 takes a free one."""

    def __post_init__(self) -> None:
        """Refuse what cannot work.

        Raises:
            ValueError: no host, or a port out of range; the message names the option.
        """
        if not self.host:
            raise ValueError("--host needs an address to listen on, such as 127.0.0.1")
        if not 0 <= self.port <= 65_535:  # noqa: PLR2004 - the range of ports
            raise ValueError(f"--port {self.port} is not between 0 and 65535")


class Source(msgspec.Struct, frozen=True):
    """What the pages are read from, as they call it; `is_whole`: whether it knows all that they can show."""

    name: str
    url: str
    is_whole: bool


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of the app."""

    exporter_url: str = "http://127.0.0.1:9410"
    """Scheme, host and port of the exporter whose jobs are shown."""
    token_file: Path | None = None
    """File of the token for the exporter; None: that of the environment, if any."""
    refresh_s: float = 5.0
    """Seconds between two refreshes of an open page."""
    price_per_hour: float | None = None
    """Price of an accelerator-hour, in any currency; None: only what the exporter knows of prices."""
    zone: str | None = None
    """Name of the time zone of all times, such as Europe/Berlin; None: that of each viewer's browser."""

    grafana_url: str | None = None
    """Address of the Grafana that has our boards, with its sub-path; None: no page links to one."""
    prometheus: PrometheusSettings | None = None
    """The server of metrics that is read instead of an exporter; None: the exporter is read."""

    def __post_init__(self) -> None:
        """Refuse what cannot work.

        Raises:
            ValueError: no http(s) address, no token in its file, a refresh faster than
                `LEAST_REFRESH_S`, no price, or no time zone; the message names the option.
        """
        for whose, url in (("the exporter's", self.exporter_url), ("Grafana's", self.grafana_url)):
            address = urlsplit(url or "")
            if url is not None and (address.scheme not in ("http", "https") or not address.netloc):
                raise ValueError(f"{whose} address {url!r} does not look like http://HOST:PORT")
        token_source(self.token_file)
        if not self.refresh_s >= LEAST_REFRESH_S:
            raise ValueError(
                f"--refresh-s needs seconds, at least {LEAST_REFRESH_S:g}, not {self.refresh_s:g}"
            )
        if self.price_per_hour is not None and not 0 < self.price_per_hour < math.inf:
            raise ValueError(f"--price {self.price_per_hour:g} is no price of an accelerator-hour")
        if self.zone is not None and self.zone not in available_timezones():
            raise ValueError(f"--zone {self.zone!r} is no time zone; one is Europe/Berlin")

    @property
    def source(self) -> Source:
        """What is read."""
        if self.prometheus is None:
            return Source("The exporter", self.exporter_url, is_whole=True)
        return Source("The server of metrics", self.prometheus.url, is_whole=False)

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> Settings:
        """The settings that `to_environment` left.

        >>> Settings.from_environment({"ETT_DASHBOARD_REFRESH_S": "2"}).refresh_s
        2.0
        """
        return cls(
            exporter_url=environ.get(EXPORTER_VARIABLE, cls.exporter_url),
            token_file=Path(environ[TOKEN_FILE_VARIABLE]) if environ.get(TOKEN_FILE_VARIABLE) else None,
            refresh_s=float(environ.get(REFRESH_VARIABLE, cls.refresh_s)),
            price_per_hour=float(environ[PRICE_VARIABLE]) if environ.get(PRICE_VARIABLE) else None,
            zone=environ.get(ZONE_VARIABLE) or None,
            grafana_url=environ.get(GRAFANA_VARIABLE) or None,
            prometheus=PrometheusSettings.from_environment(environ),
        )

    def to_environment(self) -> dict[str, str]:
        """These settings as environment variables."""
        told = {
            TOKEN_FILE_VARIABLE: None if self.token_file is None else str(self.token_file.absolute()),
            PRICE_VARIABLE: None if self.price_per_hour is None else repr(self.price_per_hour),
            ZONE_VARIABLE: self.zone,
            GRAFANA_VARIABLE: self.grafana_url,
        }
        given = {name: value for name, value in told.items() if value is not None}
        given |= {EXPORTER_VARIABLE: self.exporter_url, REFRESH_VARIABLE: f"{self.refresh_s:g}"}
        return given if self.prometheus is None else given | self.prometheus.to_environment()


@cache
def of_app() -> Settings:
    """The settings of this process, as its environment had them when they were first asked for."""
    return Settings.from_environment()
