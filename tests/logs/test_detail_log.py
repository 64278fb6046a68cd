"""The one reader of LoadGen's detail log: by the form of its lines and by JSON it finds the same."""

import json
from pathlib import Path

import pytest

from crowdperf.logs.detail_log import MARKER, DamagedLine, DetailLog, LogError, LogEvent, LoggedValues
from crowdperf.logs.run_log import read_detail_log

FIXTURES = Path(__file__).parent / "fixtures"
LINE = (
    ':::MLLOG {"key": "a", "value": 1, "time_ms": 2.500000, "namespace": "mlperf::logging", "event_type": '
    '"POINT_IN_TIME", "metadata": {"is_error": false, "is_warning": true, "file": "x.cc", "line_no": 3, "pid": 7, '
    '"tid": 8}}'
)
EVENT = LogEvent("a", 1, 2.5, False, True, 1, 7)


@pytest.mark.parametrize("name", sorted(path.name for path in FIXTURES.iterdir() if path.is_dir()))
def test_the_form_of_a_line_says_what_json_says(name: str) -> None:
    text = (FIXTURES / name / "mlperf_log_detail.txt").read_text()
    found = list(DetailLog(text))
    assert list(DetailLog(text.replace(f"{MARKER} {{", f"{MARKER}  {{"))) == found  # which no LoadGen writes
    assert [event.line for event in found] == list(range(1, len(text.splitlines()) + 1))
    assert len(found) > 30


@pytest.mark.parametrize(
    ("line", "changes"),
    [
        (LINE + " \t\r", {}),
        (LINE.replace('"value": 1', '"value": {"b": [1, "c"]}'), {"value": {"b": [1, "c"]}}),
        (LINE.replace('"value": 1', r'"value": "\u003a \", \"time_ms\": 1"'), {"value": ': ", "time_ms": 1'}),
        (LINE.replace('"value": 1', '"value": ", \\"time_ms\\": "'), {"value": ', "time_ms": '}),
        (LINE.replace('"key": "a"', r'"key": "\u0061"'), {}),
        (LINE.replace('{"key": "a", "value": 1,', '{"value": 1, "key": "a",'), {}),
        (LINE.replace(":::MLLOG {", ":::MLLOG{"), {}),
        (LINE.replace("2.500000", "25e-1"), {}),
        (LINE.replace("2.500000", "-2.5"), {"time_ms": -2.5}),
        (LINE.replace("2.500000", '"2.5"'), {"time_ms": "2.5"}),
        (LINE.replace(', "is_warning": true', ""), {"is_warning": False}),
        (LINE.replace(', "pid": 7', ""), {"process": None}),
        (LINE.replace('"pid": 7', '"pid": "7"'), {"process": None}),
        (LINE.replace('"value": 1', '"value": 1, "value": 2'), {"value": 2, "doubled": ("'value': 1, then 2",)}),
        (LINE.replace('"value": 1', '"value": {"b": 1, "b": 2}'), {"value": {"b": 2}, "doubled": ("'b': 1, then 2",)}),
        (LINE.replace('"pid": 7', '"pid": 6, "pid": 7'), {"doubled": ("'pid': 6, then 7",)}),
        (LINE.replace('"value": 1', '"value": 1, "time_ms": 1.0'), {"doubled": ("'time_ms': 1.0, then 2.5",)}),
    ],
)
def test_lines_of_any_form_are_read_as_json(line: str, changes: dict[str, object]) -> None:
    assert list(DetailLog(line + "\n")) == [EVENT._replace(**changes)]
    assert json.loads(line.removeprefix(MARKER))["value"] == changes.get("value", 1)


@pytest.mark.parametrize(
    "line",
    [
        LINE[:-1],
        LINE + "}",
        LINE.replace('"value": 1', '"value": '),
        LINE.replace('"value": 1', '"value": 1 2'),
        LINE.replace('"value": 1', '"value": 01'),
        LINE.replace('"value": 1', '"value": "a\tb"'),
        LINE.replace('"value": 1', '"value": [1'),
        LINE.replace('"value": 1', '"value": ' + "[" * 100_000),
        LINE.replace("2.500000", "02.5"),
        LINE.replace('"pid": 7', '"pid": 07'),
        LINE.replace("2.500000", "\u0662.5"),
        LINE.replace('"is_error": false', '"is_error": "false"'),
        LINE.replace('"is_error": false, ', ""),
        LINE.replace('"key": "a"', '"key": 1'),
        ":::MLLOG 1",
        ":::MLLOG",
    ],
)
def test_a_line_that_is_no_message_is_damaged_wherever_it_is_asked_for(line: str) -> None:
    log = DetailLog(f"{LINE}\n\n{line}\n{LINE}\n")
    for _ in range(2):
        with pytest.raises(DamagedLine, match="line 3 of the detail log is damaged") as caught:
            log.values  # noqa: B018
        assert caught.value.number == 3
    assert list(log.last) == ["a"]


def test_a_message_is_read_once_by_whoever_comes_first() -> None:
    log = DetailLog("".join(f"{LINE.replace('1,', f'{value},', 1)}\n" for value in range(5)))
    first = iter(log)
    assert [next(first).value, next(first).value] == [0, 1]
    first.close()
    assert [event.value for event in log] == [2, 3, 4]
    assert list(log) == [] and log.values.number("a") == 4 and log.last["a"].line == 5
    assert log.warnings == ["0", "1", "2", "3", "4"]


def test_no_more_lines_are_read_than_may_be_there() -> None:
    log = DetailLog(f"{LINE}\n\n{LINE}\n", most_lines=2)
    with pytest.raises(DamagedLine, match="more than 2 lines, so the rest was not read") as caught:
        log.read()
    assert (caught.value.number, log.last["a"].line) == (3, 1)


def test_a_message_behind_something_else_is_hidden() -> None:
    log = DetailLog(f"x {LINE}\nplain\n{LINE}\n" + f" {LINE}\n" * 200).read()
    assert log.hidden[:2] == [(1, f"x {LINE}"[:200]), (4, f" {LINE}"[:200])]
    assert len(log.hidden) == 100 and log.last["a"].line == 3


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "1", None, True])
def test_a_count_that_is_no_number_is_an_error_of_the_log(value: object) -> None:
    with pytest.raises(LogError, match="the detail log's 'a' should be a"):
        LoggedValues([EVENT._replace(value=value)]).integer("a")


def test_a_log_that_is_no_text_is_named(tmp_path: Path) -> None:
    path = tmp_path / "mlperf_log_detail.txt"
    path.write_bytes(LINE.encode() + b"\xff\n")
    with pytest.raises(LogError, match=f"mlperf_log_detail.txt is not UTF-8 text .byte {len(LINE)}."):
        read_detail_log(path)
