"""crowdperf.rules.compliance: the settings of the official audit.config files, and the tests the checkers ask for."""

import pytest

from crowdperf.rules import compliance
from crowdperf.rules.benchmarks import BENCHMARKS
from crowdperf.rules.compliance import TESTS, audit_text, audit_values
from crowdperf.rules.names import UnknownName
from crowdperf.rules.rounds import rounds_of

LOG_SEED = 720381539243781796
TARGETS = {
    "3d-unet": 64, "bert": 4096, "dlrm": 4096, "dlrm-v2": 4096, "gpt-j": 4096, "pointpainting": 256,
    "resnet50": 4096, "retinanet": 256, "rnnt": 4096, "ssd-mobilenet": 1024, "ssd-resnet34": 256,
    "stable-diffusion-xl": 128, "wan-2.2-t2v-a14b": 50, "yolo": 64, "rgat": 4096, "whisper": 4096,
}  # fmt: skip
"""accuracy_log_sampling_target in compliance/TEST01/<model>/audit.config of mlcommons/inference, b66003e1; the two ssd
models in compliance/nvidia/TEST01 at v2.0."""

FOLDERS = {"gptj": "gpt-j"}


WITH_TEST01 = [name for name, row in BENCHMARKS.items() if row.record.generation is None]


@pytest.mark.parametrize("benchmark", [*WITH_TEST01, "pointpainting", "wan-2.2-t2v-a14b"])
def test_test01_has_the_settings_of_the_official_file(benchmark):
    name = BENCHMARKS[benchmark].record.loadgen_name if benchmark in BENCHMARKS else benchmark
    assert audit_values("TEST01", benchmark, "6.0.17") == {
        "mode": 2,
        "accuracy_log_rng_seed": LOG_SEED,
        "accuracy_log_sampling_target": TARGETS[FOLDERS.get(name, name)],
    }


def test_the_other_tests_have_the_settings_of_the_official_files():
    assert audit_values("TEST04", "resnet50", "6.0.17") == {
        "mode": 2, "performance_issue_unique": 0, "performance_issue_same": 1, "performance_issue_same_index": 3,
    }  # fmt: skip
    assert audit_values("TEST06", "gptj-99", "5.0.25") == {
        "mode": 2, "accuracy_log_rng_seed": LOG_SEED, "accuracy_log_sampling_target": 100, "min_query_count": 100,
        "min_duration": 0, "sample_concatenate_permutation": 0,
    }  # fmt: skip
    assert audit_values("TEST05", "bert-99", "4.1.30") == {"test05": 1}
    assert audit_values("TEST05", "bert-99", "2.1") == {
        "mode": 2, "qsl_rng_seed": 313588358309856706, "sample_index_rng_seed": 471397156132239067,
        "schedule_rng_seed": 413914573387865862,
    }  # fmt: skip


@pytest.mark.parametrize(("test", "count", "logged"), [("TEST07", 990, 990), ("TEST09", 6_396, 10_000)])
def test_a_test_of_a_whole_data_set_issues_each_sample_once(test, count, logged):
    official = {
        "mode": 2, "accuracy_log_rng_seed": LOG_SEED, "accuracy_log_sampling_target": logged, "min_query_count": count,
        "min_duration": 0, "performance_issue_unique": 1, "sample_concatenate_permutation": 0,
    }  # fmt: skip
    assert audit_values(test, "gpt-oss-120b", "6.0.17") == {**official, "performance_sample_count_override": count}
    small = audit_values(test, "gpt-oss-120b", "6.0.17", 10)
    assert (small["min_query_count"], small["performance_sample_count_override"]) == (10, 10)
    assert small["accuracy_log_sampling_target"] >= 10


def test_a_test_that_is_not_made_here_is_refused():
    with pytest.raises(UnknownName, match="TEST01, TEST04"):
        audit_values("TEST08", "resnet50", "6.0.17")


def test_the_file_has_blanks_around_equal_signs_which_loadgen_needs():
    assert audit_text({"mode": 2, "test05": 1}).splitlines()[1:] == ["*.*.mode = 2", "*.*.test05 = 1"]


@pytest.mark.parametrize(
    ("benchmark", "round_name", "expected"),
    [
        ("resnet50", "v0.7", "TEST01 TEST04-A TEST04-B TEST05"),
        ("resnet50", "v2.0", "TEST01 TEST04-A TEST04-B TEST05"),
        ("ssd-mobilenet", "v2.0", "TEST01 TEST04-A TEST04-B TEST05"),
        ("resnet50", "v2.1", "TEST01 TEST04 TEST05"),
        ("resnet50", "v4.1", "TEST01 TEST04 TEST05"),
        ("resnet50", "v5.0", "TEST01 TEST04"),
        ("resnet50", "v6.1", "TEST01 TEST04"),
        ("retinanet", "v4.0", "TEST01 TEST05"),
        ("retinanet", "v6.0", "TEST01"),
        ("bert-99.9", "v4.1", "TEST01 TEST05"),
        ("bert-99", "v6.1", "TEST01"),
        ("rnnt", "v3.1", "TEST01 TEST05"),
        ("dlrm-v2-99", "v5.1", "TEST01"),
        ("3d-unet-99.9", "v6.1", "TEST01"),
        ("yolo-95", "v6.1", "TEST01"),
        ("rgat", "v6.1", "TEST01"),
        ("whisper", "v6.1", "TEST01"),
        ("stable-diffusion-xl", "v4.0", ""),
        ("stable-diffusion-xl", "v4.1", "TEST01 TEST04"),
        ("stable-diffusion-xl", "v6.1", "TEST01 TEST04"),
        ("gptj-99", "v3.1", ""),
        ("gptj-99.9", "v4.1", ""),
        ("gptj-99", "v5.0", "TEST06"),
        ("llama3.1-8b", "v6.1", "TEST06"),
        ("llama3.1-8b-edge", "v6.1", ""),
        ("llama2-70b-99.9", "v5.0", "TEST06"),
        ("deepseek-r1", "v5.1", "TEST06"),
        ("gpt-oss-120b", "v6.1", "TEST07 TEST09"),
    ],
)
def test_the_tests_of_a_benchmark_in_a_round(benchmark, round_name, expected):
    assert compliance.tests_needed(benchmark, round_name, "closed") == tuple(expected.split())
    assert compliance.tests_needed(benchmark, round_name, "network") == tuple(expected.split())
    assert compliance.tests_needed(benchmark, round_name, "open") == ()


def test_since_v21_every_needed_test_is_made_here():
    for name in BENCHMARKS:
        for round_name in rounds_of(name):
            needed = set(compliance.tests_needed(name, round_name, "closed"))
            assert needed <= {*TESTS, "TEST04-A", "TEST04-B"}
            assert round_name < "v2.1" or needed <= set(TESTS)


def test_a_round_without_the_benchmark_is_refused():
    with pytest.raises(UnknownName, match="round of rnnt"):
        compliance.tests_needed("rnnt", "v6.1", "closed")
