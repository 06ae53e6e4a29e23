"""How a server of metrics is reached, and which of its series are the fleet's."""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from ett_core.credentials import token_source
from ett_core.reasons import reason_of

URL_VARIABLE = "ETT_PROMETHEUS_URL"
TOKEN_VARIABLE = "ETT_PROMETHEUS_TOKEN"  # noqa: S105 - a name
TOKEN_FILE_VARIABLE = f"{TOKEN_VARIABLE}_FILE"
BASIC_AUTH_VARIABLE = "ETT_PROMETHEUS_BASIC_AUTH_FILE"
CA_VARIABLE = "ETT_PROMETHEUS_CA_FILE"
TENANT_VARIABLE = "ETT_PROMETHEUS_TENANT"
MATCHERS_VARIABLE = "ETT_PROMETHEUS_MATCHERS"
_MATCHER = re.compile(r'[a-zA-Z_]\w*\s*(?:=~|!~|!=|=)\s*"(?:[^"\\\n]|\\.)*"', re.ASCII)


@dataclass(frozen=True, kw_only=True)
class PrometheusSettings:
    """Where the server is, who asks it, and what chooses the series of the fleet."""

    url: str
    """Address that `/api/v1/query` is added to, with its path: https://mimir.example/prometheus."""
    token_file: Path | None = None
    """File of a bearer token, read anew for each request; None: that of the environment, if any."""
    basic_auth_file: Path | None = None
    """File of `user:password`, read anew for each request."""
    ca_file: Path | None = None
    """Certificates that are trusted instead of those of the system."""
    tenant: str | None = None
    """Name of the tenant, where the server has several."""
    matchers: tuple[str, ...] = ()
    """Matchers of labels that every series of the fleet bears, such as `cluster="a"`."""

    def __post_init__(self) -> None:
        """Refuse what cannot work.

        Raises:
            ValueError: no http(s) address or one with a password, no token or no user in its file, two
                ways to say who asks, no certificates, or no matcher; the message names the option.
        """
        address = urlsplit(self.url)
        if address.scheme not in ("http", "https") or not address.netloc:
            raise ValueError(f"--prometheus {self.url!r} does not look like http://HOST:PORT")
        if address.username or address.password:
            raise ValueError("--prometheus holds a user or password; use --prometheus-basic-auth-file")
        if self.basic_auth_file is not None:
            if self.token_file is not None:
                raise ValueError(
                    "--prometheus-token-file and --prometheus-basic-auth-file exclude each other"
                )
            self._credentials(self.basic_auth_file)
        token_source(self.token_file, variable=TOKEN_VARIABLE)
        self.trusted()
        for matcher in self.matchers:
            if not _MATCHER.fullmatch(matcher):
                raise ValueError(f'--prometheus-matcher {matcher!r} is no matcher; one is cluster="a"')

    def trusted(self) -> ssl.SSLContext | bool:
        """The certificates that are trusted; True for those of the system.

        Raises:
            ValueError: the file cannot be read, or holds none.
        """
        if self.ca_file is None:
            return True
        try:
            return ssl.create_default_context(cafile=self.ca_file)
        except OSError as error:
            why = "it holds no certificates" if isinstance(error, ssl.SSLError) else error.strerror
            raise ValueError(f"--prometheus-ca-file {self.ca_file}: {why}") from error

    @staticmethod
    def _credentials(file: Path) -> None:
        try:
            user_and_password(file)
        except OSError as error:
            raise ValueError(f"basic auth file {file}: {reason_of(error)}") from error

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> PrometheusSettings | None:
        """The settings that `to_environment` left; None where no server is named.

        >>> PrometheusSettings.from_environment({"ETT_PROMETHEUS_URL": "http://p:9090"}).url
        'http://p:9090'
        """
        url = environ.get(URL_VARIABLE)
        if not url:
            return None

        def file(variable: str) -> Path | None:
            return Path(environ[variable]) if environ.get(variable) else None

        return cls(
            url=url,
            token_file=file(TOKEN_FILE_VARIABLE),
            basic_auth_file=file(BASIC_AUTH_VARIABLE),
            ca_file=file(CA_VARIABLE),
            tenant=environ.get(TENANT_VARIABLE) or None,
            matchers=msgspec.json.decode(environ.get(MATCHERS_VARIABLE) or "[]", type=tuple[str, ...]),
        )

    def to_environment(self) -> dict[str, str]:
        """These settings as environment variables."""
        return dict(self._told())

    def _told(self) -> Iterator[tuple[str, str]]:
        yield URL_VARIABLE, self.url
        for variable, file in (
            (TOKEN_FILE_VARIABLE, self.token_file),
            (BASIC_AUTH_VARIABLE, self.basic_auth_file),
            (CA_VARIABLE, self.ca_file),
        ):
            if file is not None:
                yield variable, str(file.absolute())
        if self.tenant is not None:
            yield TENANT_VARIABLE, self.tenant
        if self.matchers:
            yield MATCHERS_VARIABLE, msgspec.json.encode(self.matchers).decode()


def user_and_password(file: Path) -> tuple[str, str]:
    """What a file of `user:password` holds.

    Raises:
        OSError: it cannot be read, or holds no user.
    """
    user, colon, password = file.read_text(encoding="utf-8", errors="replace").strip().partition(":")
    if not user or not colon:
        raise OSError(0, "it holds no user:password", str(file))
    return user, password
