"""Reads the URL of a server, a Sentinel-watched primary or a Cluster; does no I/O.

An error says what to write. It never repeats what was written, because a password that
was not escaped can end up in any part of a URL. Only the name of an option is repeated,
and only where no "@" follows, so that it cannot be part of a password.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import parse_qsl, unquote, urlsplit

from redis import connection

from workstealing.errors import ConfigurationError

__all__ = ("OPTIONS", "Address", "parse_address", "target_of")

Form = Literal["single", "sentinel", "cluster"]

# What redis-py takes as text or number; the rest are objects, or said by the scheme.
OPTIONS = frozenset(
    (
        *("db", "username", "password", "client_name", "protocol"),
        *("encoding", "encoding_errors", "decode_responses", "legacy_responses"),
        *("socket_timeout", "socket_connect_timeout", "socket_keepalive"),
        *("socket_read_size", "max_connections", "health_check_interval"),
        *("ssl_keyfile", "ssl_certfile", "ssl_password", "ssl_cert_reqs"),
        *("ssl_ca_certs", "ssl_ca_path", "ssl_ca_data", "ssl_check_hostname"),
        *("ssl_min_version", "ssl_ciphers"),
        *("ssl_include_verify_flags", "ssl_exclude_verify_flags"),
        *("ssl_validate_ocsp", "ssl_validate_ocsp_stapled", "ssl_ocsp_expected_cert"),
    )
)

# User and password of the Sentinels themselves.
_OF_SENTINELS = {"sentinel_username": "username", "sentinel_password": "password"}

_FORMS: dict[str, tuple[Form, str, int]] = {
    "redis": ("single", "redis", 6379),
    "rediss": ("single", "rediss", 6379),
    "unix": ("single", "unix", 0),
    "redis+sentinel": ("sentinel", "redis", 26379),
    "rediss+sentinel": ("sentinel", "rediss", 26379),
    "redis+cluster": ("cluster", "redis", 6379),
    "rediss+cluster": ("cluster", "rediss", 6379),
}
_EXAMPLES = (
    "write redis://host:6379/0, rediss://host:6379/0 (TLS), unix:///path/to/socket,"
    " redis+sentinel://host1:26379,host2:26379/service/0"
    " or redis+cluster://host1:6379,host2:6379"
)


@dataclass(frozen=True, slots=True)
class Address:
    """Where to connect to, and the options that the URL carries.

    `options` are what redis-py's clients take: user, password, database, TLS and what
    stands after the question mark. `for_sentinels` are those that a client of the
    Sentinels takes instead. A Unix socket has no hosts.
    """

    form: Form
    hosts: tuple[tuple[str, int], ...]
    service: str
    options: Mapping[str, Any] = field(repr=False)
    for_sentinels: Mapping[str, str] = field(repr=False, default_factory=dict)


def parse_address(url: str) -> Address:
    """Return the address that a URL means.

    Raises:
        ConfigurationError: it is malformed, or of an unknown kind.
    """
    scheme, separator, _ = url.partition("://")
    if not separator:
        raise ConfigurationError(f"a Redis URL starts with a scheme: {_EXAMPLES}")
    if scheme not in _FORMS:
        raise ConfigurationError(f"unknown scheme of a Redis URL: {_EXAMPLES}")
    form, plain, default_port = _FORMS[scheme]
    # Not chained: the text of the original could hold a part of the password.
    try:
        return _parsed(url, form, plain, default_port)
    except ConfigurationError:
        raise
    except ValueError:
        raise ConfigurationError(
            f"a {scheme}:// URL cannot be read: percent-encode special characters of"
            f" user, password and options, and {_EXAMPLES}"
        ) from None


def target_of(client: Any) -> str:
    """Return a short name of the server behind a sync or asyncio client.

    "host:port/db", "unix:/path/db", "sentinel:service/db" or "cluster:host:port"; never
    a password.
    """
    own: str | None = vars(client).get("target")
    if own is not None:
        # Of a client that connect() has made for a Cluster; it may not be open yet.
        return own
    if hasattr(client, "nodes_manager"):
        return f"cluster:{min(client.nodes_manager.startup_nodes)}"
    pool = client.connection_pool
    options = pool.connection_kwargs
    database = options.get("db") or 0
    if hasattr(pool, "sentinel_manager"):
        return f"sentinel:{pool.service_name}/{database}"
    if "path" in options:
        return f"unix:{options['path']}/{database}"
    host, port = options.get("host", "localhost"), options.get("port", 6379)
    return f"{host}:{port}/{database}"


def _parsed(url: str, form: Form, plain: str, default_port: int) -> Address:
    parts = urlsplit(url)
    # A password with a question mark has the rest of itself here, and then the host.
    _check(not parts.fragment and "@" not in parts.query)
    _check_names(parts.query, form)
    credentials, at, names = parts.netloc.rpartition("@")
    if plain == "unix":
        _check(not names and len(parts.path) > 1)
        options = _options(f"unix://{credentials}{at}{parts.path}?{parts.query}")
        options["unix_socket_path"] = options.pop("path")
        return Address(form, (), "", options)
    hosts = tuple(_host(name, default_port) for name in names.split(","))
    _check(form != "single" or len(hosts) == 1)
    _check("@" not in parts.path)
    service, database = "", parts.path.strip("/")
    if form == "sentinel":
        service, _, database = database.partition("/")
        if not service:
            raise ConfigurationError(
                "a URL with Sentinels names the service that they watch, after the"
                " hosts: redis+sentinel://host1:26379,host2:26379/service/0"
            )
    _check(not database or database.isdecimal())
    options = _options(f"{plain}://{credentials}{at}h/{database}?{parts.query}")
    if form == "cluster":
        _check(not options.pop("db", 0))
    for_sentinels = {
        name: options.pop(option)
        for option, name in _OF_SENTINELS.items()
        if option in options
    }
    return Address(form, hosts, unquote(service), options, for_sentinels)


def _check_names(query: str, form: Form) -> None:
    known = OPTIONS | _OF_SENTINELS.keys() if form == "sentinel" else OPTIONS
    for option, _ in parse_qsl(query):
        if option not in known:
            raise ConfigurationError(
                f"a URL cannot set {option!r}: it can set {', '.join(sorted(known))}"
            )


def _options(url: str) -> dict[str, Any]:
    """Let redis-py read what one server's URL says beside its host."""
    redis_py: Any = connection
    options: dict[str, Any] = redis_py.parse_url(url)
    options.pop("host", None)
    if options.pop("connection_class", None) is connection.SSLConnection:
        options["ssl"] = True
    return options


def _host(name: str, default_port: int) -> tuple[str, int]:
    parts = urlsplit(f"//{name}")
    _check(bool(parts.hostname) and "@" not in name)
    return unquote(parts.hostname or ""), parts.port or default_port


def _check(good: bool) -> None:
    if not good:
        raise ValueError
