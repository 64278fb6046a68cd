"""crowdperf.rules.names: the closed sets and how text becomes one of their members."""

import pytest
from recipe_engine.rules import errors

from crowdperf.rules.names import (
    METRIC_OF_SCENARIO,
    ExecutionMode,
    Mode,
    Scenario,
    UnknownName,
    counted,
    duration_text,
    parse_execution_mode,
    parse_mode,
    parse_modes,
    parse_scenario,
    plain_text,
    printable,
    with_problems,
)


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 tokens"), (1, "1 token"), (999, "999 tokens"), (62_464, "62,464 tokens"), (1_000_000, "1,000,000 tokens")],
)
def test_numbers_that_people_read_have_separators(number: int, text: str) -> None:
    assert counted(number, "token") == text


@pytest.mark.parametrize(
    ("text", "scenario"),
    [
        ("Offline", Scenario.OFFLINE),
        ("offline", Scenario.OFFLINE),
        ("SERVER", Scenario.SERVER),
        ("singlestream", Scenario.SINGLE_STREAM),
        ("single-stream", Scenario.SINGLE_STREAM),
        ("Multi_Stream", Scenario.MULTI_STREAM),
        ("interactive", Scenario.INTERACTIVE),
    ],
)
def test_a_scenario_is_found_in_any_common_spelling(text: str, scenario: Scenario) -> None:
    assert parse_scenario(text) is scenario


@pytest.mark.parametrize("text", ["", "Inter active s", "off line s"])
def test_an_unknown_scenario_names_the_known_ones(text: str) -> None:
    with pytest.raises(UnknownName) as caught:
        parse_scenario(text)
    assert caught.value.allowed == ("SingleStream", "MultiStream", "Offline", "Server", "Interactive")
    assert repr(text) in str(caught.value)
    assert "Offline" in str(caught.value)


def test_modes_and_execution_modes_are_parsed() -> None:
    assert parse_mode("Accuracy") is parse_mode("AccuracyOnly") is Mode.ACCURACY
    assert parse_execution_mode("valid") is ExecutionMode.VALID
    with pytest.raises(UnknownName, match="test, fast, valid"):
        parse_execution_mode("quick")


def test_every_scenario_has_a_metric_with_a_unit() -> None:
    assert {scenario: METRIC_OF_SCENARIO[scenario].unit for scenario in Scenario} == {
        Scenario.SINGLE_STREAM: "ms",
        Scenario.MULTI_STREAM: "ms",
        Scenario.OFFLINE: "samples/s",
        Scenario.SERVER: "queries/s",
        Scenario.INTERACTIVE: "queries/s",
    }
    assert [s for s in Scenario if s.is_server] == [s for s in Scenario if s.issued_as is Scenario.SERVER]
    assert [s for s in Scenario if s.issued_as is not s] == [Scenario.INTERACTIVE]
    assert [s.is_stream for s in Scenario] == [not METRIC_OF_SCENARIO[s].higher_is_better for s in Scenario]


def test_a_valid_run_is_as_long_as_the_rules_ask() -> None:
    assert [mode.min_duration_ms for mode in ExecutionMode] == [2_000, 60_000, 600_000]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("résumé of π, 深度", "résumé of π, 深度"),
        ("\x1b]0;evil\x07", "\\x1b]0;evil\\x07"),
        ("a\nverdict: accepted\r\tb", "a\\nverdict: accepted\\r\\tb"),
        ("\x9b31m\x85\x7f", "\\x9b31m\\x85\\x7f"),
        ("a\u202etxt.exe\u2066\u200b\ufeff", "a\\u202etxt.exe\\u2066\\u200b\\ufeff"),
        ("bad\udcff\ud800", "bad\\udcff\\ud800"),
        ("\u2028\U000e0041", "\\u2028\\U000e0041"),
        ("", ""),
    ],
)
def test_a_foreign_name_is_shown_on_one_line_without_control_or_invisible_characters(text: str, shown: str) -> None:
    assert printable(text) == errors.printable(text) == shown
    assert printable(text).isprintable()
    printable(text).encode()


def test_the_engine_shows_foreign_names_in_the_same_way() -> None:
    every = "".join(map(chr, (*range(0x3000), *range(0xD7F0, 0xE010), *range(0xFE00, 0x10100), 0xE0001, 0x10FFFF)))
    assert printable(every) == errors.printable(every)


@pytest.mark.parametrize(
    ("text", "modes"),
    [
        ("all", (Mode.PERFORMANCE, Mode.ACCURACY)),
        ("SubmissionRun", (Mode.PERFORMANCE, Mode.ACCURACY)),
        ("accuracy, PerformanceOnly", (Mode.PERFORMANCE, Mode.ACCURACY)),
        ("AccuracyOnly", (Mode.ACCURACY,)),
        ("performanceonly", (Mode.PERFORMANCE,)),
    ],
)
def test_loadgens_names_of_modes_mean_ours(text, modes):
    assert parse_modes(text) == modes


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("FindPeakPerformance", "is a search, not a mode: give --find=yes"),
        ("Accuracy,Foo", "unknown mode 'Foo'; known: performance, accuracy, all"),
        ("", "unknown mode ''"),
    ],
)
def test_other_modes_are_refused_with_what_to_give(text, said):
    with pytest.raises(UnknownName, match=said):
        parse_modes(text)


def test_a_single_problem_stands_in_the_first_line_which_may_be_all_that_is_shown() -> None:
    assert with_problems("cannot run", ["--model: no"]) == "cannot run: --model: no"
    assert with_problems("cannot run", ["--a: no", "--b: no"]) == "cannot run:\n  --a: no\n  --b: no"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "1 s"), (2.4, "2 s"), (99.4, "99 s"), (600, "10 min"), (3590, "1 h 0 min"), (9000, "2 h 30 min")],
)
def test_durations_are_told_in_words(seconds, words):
    assert duration_text(seconds) == words


@pytest.mark.parametrize("unseen", ["\u00ad", "\u00ad\u200b*_`\\", "".join(map(chr, range(0x2066, 0x2070)))])
def test_a_text_is_read_without_characters_that_take_no_room(unseen: str) -> None:
    assert plain_text(f"Syn{unseen}th&eacute;tic\n {unseen} DA\\u0054A") == "synth\u00e9tic data"
