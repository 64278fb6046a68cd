"""Sizes and ages as people write them."""

from __future__ import annotations

import pytest
from recipe_engine.rules.amounts import parse_age_s, parse_size_bytes
from recipe_engine.rules.errors import RequestError


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("0", 0),
        ("1234", 1234),
        (1234, 1234),
        ("10B", 10),
        ("1k", 1000),
        ("1kB", 1000),
        ("1KiB", 1024),
        ("512 MiB", 512 << 20),
        ("20GB", 20_000_000_000),
        ("20gb", 20_000_000_000),
        ("1.5 GB", 1_500_000_000),
        (" 2TB ", 2_000_000_000_000),
        ("1TiB", 1 << 40),
    ],
)
def test_sizes(text: object, size_bytes: int) -> None:
    assert parse_size_bytes(text, "max-size") == size_bytes


@pytest.mark.parametrize(
    "text", ["", "GB", "-1GB", "20 parsecs", "1,5GB", "1e9", "GB20", "20GBGB", "yes", True, None, "٣GB"]
)
def test_what_is_no_size_is_an_error_with_an_example(text: object) -> None:
    with pytest.raises(RequestError, match="is not a valid size") as caught:
        parse_size_bytes(text, "max-size")
    assert caught.value.message.startswith("--max-size=")
    assert "--max-size=20GB" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "age_s"),
    [
        ("0s", 0),
        ("90s", 90),
        ("5min", 300),
        ("5m", 300),
        ("12h", 43_200),
        ("30d", 2_592_000),
        ("30 days", 2_592_000),
        ("2w", 1_209_600),
        ("1d12h", 129_600),
        ("1h 30min", 5_400),
        ("1.5h", 5_400),
        ("1Y", 31_536_000),
    ],
)
def test_ages(text: str, age_s: float) -> None:
    assert parse_age_s(text, "older-than") == age_s


@pytest.mark.parametrize("text", ["", "30", 30, "d", "-1d", "30 moons", "1month", "1d,2h", "d30", True, None, "1d 5"])
def test_what_is_no_age_is_an_error_with_an_example(text: object) -> None:
    with pytest.raises(RequestError, match="is not a valid age") as caught:
        parse_age_s(text, "older-than")
    assert "--older-than=30d" in caught.value.hint
