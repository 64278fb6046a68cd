"""A guess at a misspelt name is printed as a line that can be pasted: it must be near, and not the opposite."""

import pytest
from recipe_engine.rules.spelling import errors_between, meant

INPUTS = [
    "batch_size", "batching", "endpoint", "gpus", "level", "max_batch_size", "max_in_flight", "md5sum",
    "min_duration_ms", "min_query_count", "mode", "model", "model_path", "offline_target_qps", "results_dir",
    "scenario", "server_target_qps", "single_stream_target_latency", "source",
]  # fmt: skip
VALUES = ["sdxl", "ssd-large", "ssd-small", "resnet50", "gptj-99", "Offline", "Server", "cpu", "cuda"]


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("modle", "model"), ("mdoel", "model"), ("modl", "model"), ("lvl", "level"),
        ("moe", "mode"), ("scenaro", "scenario"),
        ("batchsize", "batch_size"), ("bath_size", "batch_size"), ("min_duraton_ms", "min_duration_ms"),
        ("results_dirs", "results_dir"), ("result_dir", "results_dir"), ("md5", "md5sum"),
        ("min_query", "min_query_count"),
        ("max_duration_ms", ""),  # the opposite
        ("max_query_count", ""), ("multi_stream_target_latency", ""), ("offline_target_latency", ""),
        ("max_path_size", ""),  # path is spelled right
        ("machine", ""),  # far from batching
        ("network", ""), ("x", ""), ("", ""),
    ],
)  # fmt: skip
def test_a_name_is_offered_where_it_is_near_and_no_other_is_meant(word: str, name: str) -> None:
    assert meant(word, INPUTS) == name


@pytest.mark.parametrize(
    ("word", "name"), [("ssd", ""), ("gpu", ""), ("resnet", "resnet50"), ("gptj-9", "gptj-99"), ("ofline", "Offline")]
)
def test_so_is_a_value(word: str, name: str) -> None:
    assert meant(word, VALUES) == name


@pytest.mark.parametrize(
    ("one", "other", "errors"),
    [("", "", 0), ("a", "", 1), ("ab", "ba", 1), ("modle", "model", 1), ("abc", "axc", 1), ("max", "min", 2),
     ("kitten", "sitting", 3)],
)  # fmt: skip
def test_errors_are_counted_both_ways(one: str, other: str, errors: int) -> None:
    assert errors_between(one, other) == errors_between(other, one) == errors
