"""Sizes and ages as people write them."""

import pytest
from recipe_engine.actions.journals import parse_last
from recipe_engine.rules.amounts import age_text, parse_age_s, parse_size_bytes, size_text, whole_number
from recipe_engine.rules.errors import RequestError

TOO_LONG = pytest.param("9" * 5000 + "d", id="too long")


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
    "text", ["", "GB", "-1GB", "20 parsecs", "1,5GB", "1e9", "GB20", "20GBGB", "yes", True, None, "٣GB", TOO_LONG]
)
def test_what_is_no_size_is_an_error_with_an_example(text: object) -> None:
    with pytest.raises(RequestError, match="is not a size") as caught:
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


@pytest.mark.parametrize(
    "text", ["", "30", 30, "d", "-1d", "30 moons", "1d 2moons", "1month", "1d,2h", "d30", True, None, "1d 5", TOO_LONG]
)
def test_what_is_no_age_is_an_error_with_an_example(text: object) -> None:
    with pytest.raises(RequestError, match="is not an age") as caught:
        parse_age_s(text, "older-than")
    assert "--older-than=30d" in caught.value.hint


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (26_000_000, "26.0 MB"), (1.5e9, "1.5 GB"), (2e15, "2000.0 TB")],
)
def test_a_size_is_written_with_its_unit(size_bytes: float, text: str) -> None:
    assert size_text(int(size_bytes)) == text


@pytest.mark.parametrize(
    ("age_s", "text"),
    [(-1, "0 s"), (59, "59 s"), (61, "1 min 1 s"), (3600, "1 h 0 min"), (90061, "1 d 1 h"), (8_640_000, "100 d 0 h")],
)
def test_an_age_is_written_in_its_two_largest_units(age_s: float, text: str) -> None:
    assert age_text(age_s) == text


@pytest.mark.parametrize("text", ["", "-1", "1.5", "²", "٣", pytest.param("9" * 5000, id="too long")])
def test_what_is_no_whole_number_is_none(text: str) -> None:
    assert whole_number(text) is None
    if text:
        with pytest.raises(RequestError, match="--last must be a positive integer"):
            parse_last(text)


def test_whole_numbers_begin_at_0() -> None:
    assert (whole_number("0"), whole_number("18")) == (0, 18)
    with pytest.raises(RequestError, match="--last must be a positive integer"):
        parse_last("0")
