"""Texts from elsewhere: what is wrong is said in words, with the line; what other programs write is read."""

import os
from pathlib import Path

import pytest

from crowdperf.kit.canonical_json import canonical_json
from crowdperf.kit.text_documents import given_bytes, given_object, given_text, json_for_yaml, utf8_text, yaml_mapping


def test_a_byte_order_mark_is_no_part_of_a_text_and_another_encoding_is_named_with_its_line() -> None:
    assert utf8_text("\ufeffé\n".encode()) == "é\n"
    with pytest.raises(ValueError, match=r"not UTF-8 text \(byte 0xfc in line 3\)\. Save it as UTF-8"):
        utf8_text("a\nb\nfür".encode("latin-1"))
    with pytest.raises(ValueError, match="byte 0xff in line 1"):
        utf8_text("a: 1".encode("utf-16"))


def test_json_with_tabs_is_read_as_yaml_and_yaml_is_left_alone() -> None:
    assert yaml_mapping(json_for_yaml('\n{\n\t"a":\t"b\\tc"\n}')) == {"a": "b\tc"}
    assert json_for_yaml("a:\t1") == "a:\t1"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: 1\nb: c: d\n", r"not valid YAML \(line 2: mapping values are not allowed here\)"),
        ("a: [1\nb: 2\n", r"not valid YAML \(line 2: "),
        ("", "^nothing, not a mapping"),
        ("- a", "^a YAML list, not a mapping"),
    ],
)
def test_what_is_no_mapping_is_said_with_its_line(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        yaml_mapping(text)


def test_equal_values_have_one_json_text_and_a_value_without_a_form_has_none() -> None:
    assert canonical_json({"b": [1.5, None], "a": "é"}) == canonical_json({"a": "é", "b": (1.5, None)})
    assert canonical_json({"b": [1.5, None], "a": "é"}) == '{"a":"\\u00e9","b":[1.5,null]}'
    for value in (float("nan"), float("inf")):
        with pytest.raises(ValueError):
            canonical_json({"a": value})


def test_a_pipe_a_device_a_folder_and_a_file_above_the_limit_are_refused_at_once(tmp_path: Path) -> None:
    pipe, large = tmp_path / "pipe", tmp_path / "large"
    os.mkfifo(pipe)
    large.write_text("12345")
    cases = (
        (pipe, 4, "a pipe, allowed: a regular file"),
        (Path("/dev/zero"), 4, "a device, allowed: a regular file"),
        (tmp_path, 4, "a folder, allowed: a regular file"),
        (large, 4, "it has 5 bytes, allowed: at most 4 bytes"),
    )
    for path, limit, words in cases:
        with pytest.raises(OSError, match=words) as caught:
            given_bytes(path, limit)
        assert caught.value.filename == str(path)
    assert given_text(large, 5) == "12345"


def test_the_object_in_a_file_or_the_reason_why_there_is_none(tmp_path: Path) -> None:
    path = tmp_path / "facts.json"
    assert given_object(path, ValueError, is_needed=False) == {}
    for text, words in ((None, "cannot read .*facts.json: .*No such file"), ("{", "cannot read .*: Expecting property"),
                        ("[1]", "facts.json does not contain a JSON object")):  # fmt: skip
        if text is not None:
            path.write_text(text)
        with pytest.raises(KeyError, match=words):
            given_object(path, KeyError)
    path.write_text('{"a": 1}')
    assert given_object(path, KeyError) == {"a": 1}
