"""The upload token of a collector on this machine is found by who started it, and by nobody else."""

import stat
from pathlib import Path

import pytest

from crowdperf.store.local_tokens import forget_token, known_token, remember_token


def test_the_token_of_a_port_is_found_at_every_loopback_address_and_is_private(tmp_path: Path) -> None:
    environ = {"XDG_CONFIG_HOME": str(tmp_path)}
    remember_token(8090, "first", environ)
    remember_token(8090, "second", environ)
    for collector in ("http://127.0.0.1:8090/", "http://localhost:8090", "http://[::1]:8090/"):
        assert known_token(collector, environ) == "second"
    (path,) = (tmp_path / "crowdperf" / "collectors").iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    forget_token(8090, environ)
    forget_token(8090, environ)
    assert known_token("http://127.0.0.1:8090/", environ) == ""


@pytest.mark.parametrize("collector", ["http://127.0.0.1:8091/", "http://example.org:8090/", "http://127.0.0.1/"])
def test_other_collectors_have_none(tmp_path: Path, collector: str) -> None:
    environ = {"XDG_CONFIG_HOME": str(tmp_path)}
    remember_token(8090, "mine", environ)
    assert known_token(collector, environ) == ""


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "crowdperf").write_text("")
    remember_token(8090, "mine", {"XDG_CONFIG_HOME": str(tmp_path)})
    assert known_token("http://127.0.0.1:8090/", {"XDG_CONFIG_HOME": str(tmp_path)}) == ""
