"""What a URL means, and that an error never repeats a password."""

from __future__ import annotations

import pytest

from workstealing.drivers.address import parse_address
from workstealing.errors import ConfigurationError


def test_a_plain_url_names_host_port_and_database() -> None:
    address = parse_address("redis://example.org:6380/3")

    assert address.form == "single"
    assert address.hosts == (("example.org", 6380),)
    assert dict(address.options) == {"db": 3}


def test_the_usual_port_may_be_left_out() -> None:
    assert parse_address("redis://example.org").hosts == (("example.org", 6379),)
    assert parse_address("redis+cluster://a,b").hosts == (("a", 6379), ("b", 6379))
    assert parse_address("redis+sentinel://a/main").hosts == (("a", 26379),)


def test_user_and_password_are_decoded() -> None:
    address = parse_address("redis://ann:p%40ss%2Fword@example.org/0")

    assert address.options["username"] == "ann"
    assert address.options["password"] == "p@ss/word"


def test_an_ipv6_host_stands_in_brackets() -> None:
    assert parse_address("redis://[::1]:6380/0").hosts == (("::1", 6380),)


@pytest.mark.parametrize(
    "url", ["rediss://h/0", "rediss+sentinel://h/main/0", "rediss+cluster://h"]
)
def test_a_second_s_in_the_scheme_means_tls(url: str) -> None:
    assert parse_address(url).options["ssl"] is True


def test_without_the_second_s_there_is_no_tls() -> None:
    assert "ssl" not in parse_address("redis://h/0").options


def test_a_unix_socket_has_a_path_and_no_hosts() -> None:
    address = parse_address("unix:///run/my%20redis.sock?db=2")

    assert address.hosts == ()
    assert dict(address.options) == {"unix_socket_path": "/run/my redis.sock", "db": 2}


def test_sentinels_are_listed_before_service_and_database() -> None:
    address = parse_address("redis+sentinel://ann:pw@a:1,b:2/main/4")

    assert address.form == "sentinel"
    assert address.hosts == (("a", 1), ("b", 2))
    assert address.service == "main"
    assert dict(address.options) == {"username": "ann", "password": "pw", "db": 4}


def test_nodes_of_a_cluster_are_listed() -> None:
    address = parse_address("redis+cluster://:pw@a:7000,b:7001")

    assert address.form == "cluster"
    assert address.hosts == (("a", 7000), ("b", 7001))
    assert dict(address.options) == {"password": "pw"}


def test_what_follows_a_question_mark_is_an_option() -> None:
    options = parse_address("redis+cluster://a?socket_timeout=1.5").options

    assert options["socket_timeout"] == 1.5


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:6379",
        "http://localhost",
        "redis:///0",
        "redis://a,b/0",
        "redis://host/zero",
        "redis://host:port/0",
        "redis://host:99999/0",
        "redis://host/0#part",
        "redis://host/0?db=zero",
        "unix://",
        "unix://host/path",
        "redis+sentinel://a:26379/main/zero",
        "redis+cluster://a,,b",
        "redis+cluster://a/1",
    ],
)
def test_what_cannot_be_read_is_refused_with_an_example(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"write redis://host:6379/0"):
        parse_address(url)


@pytest.mark.parametrize(
    "url",
    [
        "redis://:sesame",
        "redis://:sesame@host:port/0",
        "redis://:open/sesame@host/0",
        "redis://:open#sesame@host/0",
        "redis://:open?sesame@host/0?db=x",
        "sesame://host",
        "sesame",
        "redis+sentinel://:sesame@host",
        "redis://host/0?db=sesame",
        "redis+cluster://:sesame@a/1",
        "redis://:x@sesame@[host/0",
        "redis://ann:7/1?sesame=x@host",
        "redis://ann:7@x?sesame=x@host",
        "redis://ann:7?db=1&sesame=x@host/0",
        "redis+sentinel://ann:7/sesame@host",
        "unix:///run/s?sesame=x@y",
    ],
)
def test_an_error_never_repeats_a_password(url: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_address(url)

    assert "sesame" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_the_repr_of_an_address_has_no_password() -> None:
    assert "sesame" not in repr(parse_address("redis://:sesame@host/0"))


def test_an_unescaped_password_is_told_how_to_be_written() -> None:
    with pytest.raises(ConfigurationError, match="percent-encode special characters"):
        parse_address("redis://ann:7/1?sesame=x@host")


def test_sentinels_have_a_user_and_a_password_of_their_own() -> None:
    address = parse_address(
        "redis+sentinel://ann:pw@a:1/main?sentinel_username=bob&sentinel_password=p%26"
    )

    assert address.for_sentinels == {"username": "bob", "password": "p&"}
    assert (address.options["username"], address.options["password"]) == ("ann", "pw")
    assert "sentinel_username" not in address.options
    assert "p&" not in repr(address)


@pytest.mark.parametrize("form", ["redis://h/0", "redis+cluster://h"])
def test_only_sentinels_can_be_given_what_is_theirs(form: str) -> None:
    with pytest.raises(ConfigurationError, match="cannot set 'sentinel_password'"):
        parse_address(f"{form}?sentinel_password=sesame")


@pytest.mark.parametrize("url", ["redis+sentinel://a:1,b:2", "redis+sentinel://a/"])
def test_sentinels_without_a_service_are_told_what_is_missing(url: str) -> None:
    with pytest.raises(ConfigurationError, match="names the service that they watch"):
        parse_address(url)


def test_an_unknown_option_is_named() -> None:
    with pytest.raises(ConfigurationError, match="cannot set 'colour'"):
        parse_address("redis://ann:sesame@host/0?colour=red")


def test_an_escaped_at_sign_may_stand_in_an_option() -> None:
    options = parse_address("redis://host/0?client_name=a%40b").options

    assert options["client_name"] == "a@b"
