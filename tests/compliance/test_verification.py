"""crowdperf.compliance.verification: the official verdict on the same logs, or a stricter one that is listed here."""

import json

import pytest
from compliance_cases import (
    PERFORMANCE_TESTS,
    VERDICTS,
    answer_cases,
    entry,
    log_text,
    performance_cases,
    read_logs,
    response_cases,
)

from crowdperf.compliance.answer_checks import verify_answers
from crowdperf.compliance.verification import (
    baseline_lines,
    verify_performance,
    verify_responses,
    verify_scores,
)
from crowdperf.logs.accuracy_log import DamagedLog, entries
from crowdperf.logs.run_log import LogError, parse_detail_log
from crowdperf.rules.names import Scenario, parse_scenario

OFFICIAL: dict[str, bool] = json.loads(VERDICTS.read_text())
"""Recorded by compliance_cases.py from mlcommons/inference b66003e1 (TEST05: tag v4.0)."""

STRICTER = {
    # the official scripts for TEST04 and TEST05 only warn of errors, and their pattern for the limit matches nothing
    *(f"{test} {scenario} the test's run has errors" for test in ("TEST04", "TEST05") for scenario in (
        "SingleStream", "MultiStream", "Offline", "Server")),
    *(f"{test} Server another latency limit" for test in ("TEST04", "TEST05")),
    # a missing score counts as 0 there, which is slower than any
    *(f"TEST04 {scenario} no score" for scenario in ("SingleStream", "MultiStream", "Offline", "Server")),
    *(f"TEST05 {scenario} no score" for scenario in ("SingleStream", "MultiStream")),
    # one sample that both know is enough there, even one that only the test knows, if it comes twice
    *(f"responses {what}, {element}" for element in ("byte", "float32") for what in (
        "a sample the accuracy run lacks", "rows left out of the accuracy run", "no accuracy run")),
}  # fmt: skip
"""Where the official script says pass and ours does not."""


def performance_verdict(test, reference, tested) -> bool:
    try:
        logs = parse_detail_log(reference.detail), parse_detail_log(tested.detail)
    except LogError:
        return False
    return verify_performance(test, *logs).is_passed


def all_verdicts() -> dict[str, bool]:
    found = {}
    for name, reference, tested in performance_cases():
        for test in PERFORMANCE_TESTS:
            found[f"{test} {name}"] = performance_verdict(test, reference, tested)
    for name, element, reference, tested in response_cases():
        verdict = verify_responses(reference.splitlines(), tested.splitlines(), element)
        found[f"responses {name}"] = verdict.is_passed
        assert verdict.is_passed == (verdict.lines[-1] == "TEST PASS")
    for name, scenario, tested in answer_cases():
        found[f"answers {name}"] = verify_answers(tested.splitlines(), parse_scenario(scenario)).is_passed
    return found


def test_verdicts_are_the_official_ones_but_where_ours_is_stricter():
    found = all_verdicts()
    assert found.keys() == OFFICIAL.keys()
    assert {name for name in found if found[name] != OFFICIAL[name]} == STRICTER
    assert not any(found[name] for name in STRICTER)
    assert sum(OFFICIAL.values()) > 100 and len(OFFICIAL) - sum(OFFICIAL.values()) > 100


def test_a_response_that_differs_after_its_first_number_passes_as_official_but_is_not_identical():
    logs = (log_text([entry(0, b"\0\0\x80\x3f\1\0\0\0")]), log_text([entry(0, b"\0\0\x80\x3f\2\0\0\0")]))
    verdict = verify_responses(logs[0].splitlines(), logs[1].splitlines(), "float32")
    assert verdict.is_passed and not verdict.is_identical
    assert "num_perf_log_whole_response_mismatch = 1" in verdict.lines


def test_logs_are_read_line_by_line_without_keeping_responses():
    """100 MB of responses go through in little memory."""
    import tracemalloc

    big = entry(0, b"\1" * 50_000)

    def lines(count: int):
        yield "[\n"
        for index in range(count):
            yield json.dumps({**big, "qsl_idx": index}) + ("," if index < count - 1 else "") + "\n"
        yield "]\n"

    tracemalloc.start()
    verdict = verify_responses(lines(1000), lines(300))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert verdict.is_identical
    assert peak < 5_000_000


@pytest.mark.parametrize(
    ("benchmark", "baseline", "compliance", "is_passed"),
    [
        ("resnet50", {"acc": 76.0}, {"acc": 76.5}, True),
        ("resnet50", {"acc": 76.0}, {"acc": 77.0}, False),
        ("bert-99", {"F1": 90.0}, {"F1": 89.2}, True),
        ("bert-99.9", {"F1": 90.0}, {"F1": 89.95}, True),
        ("bert-99.9", {"F1": 90.0}, {"F1": 89.8}, False),
        ("gptj-99", {"ROUGE1": 43.0, "ROUGE2": 20.0}, {"ROUGE1": 43.0, "ROUGE2": 21.0}, False),
        ("stable-diffusion-xl", {"CLIP_SCORE": 31.7, "FID_SCORE": 23.0}, {"CLIP_SCORE": 31.7, "FID_SCORE": 23.4}, True),
        ("stable-diffusion-xl", {"CLIP_SCORE": 31.7, "FID_SCORE": 23}, {"CLIP_SCORE": 32.1, "FID_SCORE": 23}, False),
        ("digits", {"acc": 98.0}, {"acc": 97.5}, True),
        ("resnet50", {"acc": 0.0}, {"acc": 0.0}, False),
        ("resnet50", {}, {}, False),
        ("resnet50", {"acc": 76.0}, {"F1": 76.0}, False),
    ],
)
def test_scores_of_a_model_that_does_not_repeat_itself_may_be_a_percent_apart(
    benchmark, baseline, compliance, is_passed
):
    verdict = verify_scores(benchmark, baseline, compliance)
    assert verdict.is_passed is is_passed
    assert verdict.lines[-1] == ("TEST PASS" if is_passed else "TEST FAIL")


def test_the_baseline_holds_each_sampled_sample_once_with_the_accuracy_runs_response():
    whole = log_text([entry(index, bytes([index])) for index in range(9)])
    sampled = log_text([entry(index, b"x") for index in (7, 2, 7)])
    text = "".join(baseline_lines(whole.splitlines(), sampled.splitlines()))
    assert [(row["qsl_idx"], row["data"]) for row in json.loads(text)] == [(2, "02"), (7, "07")]
    assert list(entries(text.splitlines(), "the baseline"))


@pytest.mark.parametrize("text", ["", "[\n", "[\n{}\n...", "[\n7\n]\n", "[" * 100_000])
def test_a_damaged_log_is_refused(text):
    with pytest.raises(DamagedLog):
        list(entries(text.splitlines(), "a log"))


@pytest.mark.parametrize(
    "damage", ['{"qsl_idx": [1], "data": "00"}', '{"qsl_idx": "x", "data": "00"}', '{"data": "00"}']
)
def test_an_entry_without_a_sample_is_damage_in_either_log(damage):
    good, damaged = log_text([entry(1, b"x")]).splitlines(), ["[", damage, "]"]
    for logs in ((good, damaged), (damaged, good)):
        verdict = verify_responses(*logs)
        assert not verdict.is_passed and "an entry of" in verdict.text
        with pytest.raises(DamagedLog):
            list(baseline_lines(*logs))


def test_an_accuracy_run_is_no_performance_run():
    good, other = (parse_detail_log(read_logs(name).detail) for name in ("valid-offline", "accuracy-offline"))
    verdict = verify_performance("TEST01", good, other)
    assert not verdict.is_passed and "not a performance run" in verdict.text


def test_answers_are_none_where_nothing_was_logged():
    assert not verify_answers(["[", "]"], Scenario.OFFLINE).is_passed
