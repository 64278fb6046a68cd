"""An address of a server is one, or it is not; what is shown of it holds no password."""

import pytest

from crowdperf.kit.server_address import server_parts, without_login


@pytest.mark.parametrize(
    "url", ["http://host", "https://host:8000/v1", "http://[::1]:8000", "http://me:word@host/?a=b"]
)
def test_an_address_has_a_scheme_a_host_and_perhaps_a_port(url: str) -> None:
    parts = server_parts(url)
    assert parts is not None and parts.hostname in ("host", "::1")


@pytest.mark.parametrize(
    "url",
    ["", "host:8000", "ftp://host", "http://", "http://HOST:PORT", "http://host:99999", "http://host:0", "http://[::1"],
)
def test_anything_else_is_none(url: str) -> None:
    assert server_parts(url) is None


def test_what_is_shown_holds_no_login() -> None:
    assert without_login("ftp://me:se@cret@host:1/x") == "host:1/x"
    assert without_login("http://host:PORT") == "http://host:PORT"
