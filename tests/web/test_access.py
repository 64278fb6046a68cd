"""Tokens, limits and what a collector may be started with."""

import os
from pathlib import Path

import pytest

from crowdperf.web.access import AddressHash, Limit, TokenFileError, tokens_of
from crowdperf.web.settings import SettingsError, settings_of


def test_tokens_are_made_once_for_their_owner_only(tmp_path: Path) -> None:
    made, is_new = tokens_of(tmp_path / "tokens")
    assert is_new and made.upload != made.moderation and len(made.upload) >= 32
    assert (tmp_path / "tokens").stat().st_mode & 0o777 == 0o600
    assert tokens_of(tmp_path / "tokens") == (made, False)
    assert made.allows("upload", made.upload) and not made.allows("upload", made.moderation)
    assert not made.allows("moderation", "") and not made.allows("upload", "\ud800é")
    assert os.listdir(tmp_path) == ["tokens"]


@pytest.mark.parametrize(
    "text",
    ["", "upload short\nmoderation alsoshort\n", "upload " + "a" * 20 + "\n", "\0" * 9, "upload\n",
     "upload {0}\nmoderation {0}\n".format("a" * 20)],
)  # fmt: skip
def test_a_damaged_token_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "tokens"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(TokenFileError, match="tokens"):
        tokens_of(path)


def test_a_token_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    tokens_of(tmp_path / "tokens")
    (tmp_path / "tokens").chmod(0o640)
    with pytest.raises(TokenFileError, match="chmod 600"):
        tokens_of(tmp_path / "tokens")


def test_a_limit_counts_within_its_time_and_forgets_the_oldest_keys() -> None:
    now = [0.0]
    limit = Limit(2, 10.0, clock=lambda: now[0], max_keys=3)
    for moment in (0.0, 4.0):
        now[0] = moment
        assert limit.wait_s("a") == 0
        limit.count("a")
    assert limit.wait_s("a") == 6.0 and limit.wait_s("b") == 0
    now[0] = 10.0
    assert limit.wait_s("a") == 0
    for key in "bcde":
        limit.count(key)
    assert len(limit._events) == 3


def test_an_address_is_a_word_that_says_nothing_tomorrow() -> None:
    words = AddressHash()
    first = words.word("203.0.113.7")
    assert words.word("203.0.113.7") == first != words.word("203.0.113.8")
    assert words.word("2001:db8:1:2::7") == words.word("2001:db8:1:2:3:4:5:6") != words.word("2001:db8:1:3::7")
    assert words.word("::ffff:203.0.113.7") == first and words.word("testclient") != first
    words.day -= 1
    assert words.word("203.0.113.7") != first


GOOD = (
    {},
    {"host": "127.0.0.2", "token": "none"},
    {"host": "localhost"},
    {"host": "::1", "port": "0"},
    {"host": "0.0.0.0", "behind_proxy": "yes"},
    {"host": "0.0.0.0", "behind_proxy": "yes", "open_uploads": "yes", "hold_new": "yes"},
    {"origin": "https://results.example.org"},
)
BAD = (
    ({"host": "0.0.0.0"}, "--behind_proxy"),
    ({"host": "203.0.113.7", "token": "none"}, "--token=none"),
    ({"host": "0.0.0.0", "token": "none", "behind_proxy": "yes"}, "--token=none"),
    ({"host": "example.org"}, "--behind_proxy"),
    ({"port": "70000"}, "0 to 65535"),
    ({"port": "²"}, "whole number"),
    ({"port": "9" * 5_000}, "whole number"),
    ({"read_only": "maybe"}, "yes, no"),
    ({"read_only": "yes"}, "does not exist"),
    ({"read_only": "yes", "open_uploads": "yes"}, "does not accept uploads"),
    ({"origin": "*"}, "a scheme and a host"),
    ({"origin": "https://a@b"}, "a scheme and a host"),
    ({"origin": "https://["}, "a scheme and a host"),
    ({"origin": "https://a?b=c"}, "a scheme and a host"),
    ({"path": "gone"}, "gone does not exist"),
    ({"db": "gone/results.db"}, "gone is not a folder\nhint: mkdir -p '"),
    ({"path": ".", "read_only": "yes"}, "does not write to"),
)


@pytest.mark.parametrize("given", GOOD)
def test_what_a_collector_may_be_started_with(tmp_path: Path, given: dict[str, str]) -> None:
    made = settings_of({"db": "results.sqlite"} | given, tmp_path)
    assert made.database == tmp_path / "results.sqlite"


@pytest.mark.parametrize(("given", "words"), BAD)
def test_what_a_collector_may_not_be_started_with(tmp_path: Path, given: dict[str, str], words: str) -> None:
    with pytest.raises(SettingsError, match=words.replace("(", r"\(")):
        settings_of({"db": "results.sqlite"} | given, tmp_path)
