"""What the app is told from outside: which exporter to read, and how often."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from ett_core.credentials import TOKEN_FILE_VARIABLE, token_source

EXPORTER_VARIABLE = "ETT_EXPORTER_URL"
REFRESH_VARIABLE = "ETT_DASHBOARD_REFRESH_S"
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


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of the app."""

    exporter_url: str = "http://127.0.0.1:9410"
    """Scheme, host and port of the exporter whose jobs are shown."""
    token_file: Path | None = None
    """File of the token for the exporter; None: that of the environment, if any."""
    refresh_s: float = 5.0
    """Seconds between two refreshes of an open page."""

    def __post_init__(self) -> None:
        """Refuse what cannot work.

        Raises:
            ValueError: no http(s) address, no token in its file, or a refresh faster than `LEAST_REFRESH_S`.
        """
        address = urlsplit(self.exporter_url)
        if address.scheme not in ("http", "https") or not address.netloc:
            raise ValueError(
                f"the exporter's address {self.exporter_url!r} does not look like http://HOST:PORT"
            )
        token_source(self.token_file)
        if not self.refresh_s >= LEAST_REFRESH_S:
            raise ValueError(
                f"--refresh-s needs seconds, at least {LEAST_REFRESH_S:g}, not {self.refresh_s:g}"
            )

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
        )

    def to_environment(self) -> dict[str, str]:
        """These settings as environment variables."""
        file = {} if self.token_file is None else {TOKEN_FILE_VARIABLE: str(self.token_file.absolute())}
        return {EXPORTER_VARIABLE: self.exporter_url, REFRESH_VARIABLE: f"{self.refresh_s:g}", **file}
