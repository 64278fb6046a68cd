"""The constants of the benchmarks are the official checker's, and those of older rounds what they were then."""

import pytest

from crowdperf.rules.benchmarks import BENCHMARKS, RECORDS, benchmarks_of, model_of
from crowdperf.rules.names import Scenario, UnknownName
from crowdperf.rules.rounds import ROUNDS, rounds_of, rules_in, targets_of

# Newest round, targets, performance samples, data set, Offline minimum, Server limit in ms, as the official checkers
# have them (mlcommons/inference at b66003e1 and, for retired benchmarks, tag v4.0).
_GPTJ99 = (("ROUGE1", 42.556635), ("ROUGE2", 19.922265), ("ROUGEL", 29.688219), ("GEN_LEN", 3615190.2))
_GPTJ999 = (("ROUGE1", 42.9435135), ("ROUGE2", 20.1033765), ("ROUGEL", 29.9581119), ("GEN_LEN", 3615190.2))
_SDXL = (("CLIP_SCORE", 31.68631873), ("FID_SCORE", 23.01085758))
_LLAMA8B = (
    ("ROUGE1", 38.391408), ("ROUGE2", 15.748425), ("ROUGEL", 24.250743), ("ROUGELSUM", 35.43507),
    ("GEN_LEN", 7350879.6),
)  # fmt: skip
_LLAMA8B_EDGE = (
    ("ROUGE1", 38.6694), ("ROUGE2", 15.953553), ("ROUGEL", 24.391125), ("ROUGELSUM", 35.76276), ("GEN_LEN", 2746001.7),
)  # fmt: skip
_LLAMA70B = (
    ("ROUGE1", 44.3867688), ("ROUGE2", 22.0131648), ("ROUGEL", 28.5875838), ("TOKENS_PER_SAMPLE", 265.005),
)  # fmt: skip
_DEEPSEEK = (("exact_match", 80.544618), ("TOKENS_PER_SAMPLE", 3497.60466))
_NEWEST = [
    ("resnet50", "v6.1", (("acc", 75.6954),), 1024, 50_000, 24_576, 15),
    ("bert-99", "v6.1", (("F1", 89.96526),), 10_833, 10_833, 10_833, None),
    ("bert-99.9", "v6.1", (("F1", 90.783126),), 10_833, 10_833, 10_833, None),
    ("3d-unet-99", "v6.1", (("DICE", 0.853083),), 43, 43, 43, None),
    ("3d-unet-99.9", "v6.1", (("DICE", 0.8608383),), 43, 43, 43, None),
    ("3d-unet-brats-99", "v1.1", (("DICE", 0.84447),), 16, 67, 24_576, None),
    ("3d-unet-brats-99.9", "v1.1", (("DICE", 0.852147),), 16, 67, 24_576, None),
    ("dlrm-99", "v3.0", (("AUC", 79.4475),), 204_800, 330_067, 24_576, 30),
    ("dlrm-99.9", "v3.0", (("AUC", 80.16975),), 204_800, 330_067, 24_576, 30),
    ("dlrm-v2-99", "v5.1", (("AUC", 79.5069),), 204_800, 330_067, 24_576, 60),
    ("dlrm-v2-99.9", "v5.1", (("AUC", 80.22969),), 204_800, 330_067, 24_576, 60),
    ("rnnt", "v4.0", (("WER", 91.62252),), 2_513, 2_513, 2_513, 1000),
    ("ssd-mobilenet", "v2.0", (("mAP", 21.78),), 256, 5_000, 24_576, None),
    ("ssd-resnet34", "v2.0", (("mAP", 19.8),), 64, 5_000, 24_576, 100),
    ("retinanet", "v5.1", (("mAP", 37.1745),), 64, 24_781, 24_576, 100),
    ("yolo-95", "v6.1", (("mAP", 50.73),), 64, 1_525, 1_525, None),
    ("yolo-99", "v6.1", (("mAP", 52.866),), 64, 1_525, 1_525, None),
    ("llama3.1-8b", "v6.1", _LLAMA8B, 13_368, 13_368, 13_368, 20_000),
    ("llama3.1-8b-edge", "v6.1", _LLAMA8B_EDGE, 5_000, 5_000, 5_000, None),
    ("llama2-70b-99.9", "v6.1", _LLAMA70B, 24_576, 24_576, 24_576, 20_000),
    ("deepseek-r1", "v6.1", _DEEPSEEK, 4_388, 4_388, 4_388, 60_000),
    ("gpt-oss-120b", "v6.1", (("exact_match", 82.2987),), 6_396, 6_396, 6_396, 60_000),
    ("stable-diffusion-xl", "v6.1", _SDXL, 5_000, 5_000, 5_000, 20_000),
    ("whisper", "v6.1", (("ACCURACY", 96.953571),), 1_633, 1_633, 1_633, None),
    # The checker has 0.721314 and compares it with a line in percent.
    ("rgat", "v6.1", (("acc", 72.1314),), 788_379, 788_379, 788_379, None),
    ("gptj-99", "v5.0", _GPTJ99, 13_368, 13_368, 13_368, 20_000),
    ("gptj-99.9", "v5.0", _GPTJ999, 13_368, 13_368, 13_368, 20_000),
]


@pytest.mark.parametrize(
    ("name", "round_name", "targets", "samples", "dataset", "offline", "server_ms"),
    _NEWEST,
    ids=[r[0] for r in _NEWEST],
)
def test_newest_round_is_the_official_table(name, round_name, targets, samples, dataset, offline, server_ms):
    row, rules = BENCHMARKS[name], rules_in(name, round_name)
    assert rounds_of(name)[-1] in (round_name, "v6.0")
    assert [(t.metric, pytest.approx(t.target, rel=1e-12)) for t in rules.targets] == list(targets)
    assert (rules.performance_sample_count, rules.dataset_count) == (samples, dataset)
    assert (rules.offline_min_sample_count, rules.server_target_latency_ms) == (offline, server_ms)
    assert rules.targets == row.targets()


def test_table_has_every_benchmark():
    assert sorted(row[0] for row in _NEWEST) == sorted(BENCHMARKS)


def test_rounds_of_a_benchmark():
    spans = {name: (rounds_of(name)[0], rounds_of(name)[-1]) for name in BENCHMARKS if not name.endswith("-99.9")}
    assert spans == {
        "resnet50": ("v0.7", "v6.1"),
        "bert-99": ("v0.7", "v6.1"),
        "3d-unet-99": ("v2.0", "v6.1"),
        "3d-unet-brats-99": ("v0.7", "v1.1"),
        "dlrm-99": ("v0.7", "v3.0"),
        "dlrm-v2-99": ("v3.1", "v5.1"),
        "rnnt": ("v0.7", "v4.0"),
        "ssd-mobilenet": ("v0.7", "v2.0"),
        "ssd-resnet34": ("v0.7", "v2.0"),
        "retinanet": ("v2.1", "v6.0"),
        "gptj-99": ("v3.1", "v5.0"),
        "rgat": ("v5.0", "v6.1"),
        "stable-diffusion-xl": ("v4.0", "v6.1"),
        "whisper": ("v5.1", "v6.1"),
        "yolo-95": ("v6.0", "v6.1"),
        "yolo-99": ("v6.0", "v6.1"),
        "llama3.1-8b": ("v5.1", "v6.1"),
        "llama3.1-8b-edge": ("v5.1", "v6.1"),
        "deepseek-r1": ("v5.1", "v6.1"),
        "gpt-oss-120b": ("v6.0", "v6.1"),
    }
    for name in BENCHMARKS:
        assert [rules_in(name, round_name).targets for round_name in rounds_of(name)], name


def test_first_kits_round_had_42_cases_and_another_reference():
    first = rules_in("3d-unet-99.9", "v2.0")
    assert (first.dataset_count, first.performance_sample_count) == (42, 42)
    assert first.targets[0].target == pytest.approx(0.86244669)
    assert targets_of("3d-unet-99", "v2.0")[0].target == pytest.approx(0.8546769)


def test_offline_minimum_was_one_number_up_to_v31():
    assert rules_in("bert-99", "v3.1").offline_min_sample_count == 24_576
    assert rules_in("bert-99", "v4.0").offline_min_sample_count == 10_833
    assert rules_in("3d-unet-99", "v2.1").offline_min_sample_count == 24_576


def test_v07_asked_for_a_minute_and_later_rounds_for_ten():
    assert rules_in("resnet50", "v0.7").min_duration_ms == 60_000
    assert rules_in("resnet50", "v1.0").min_duration_ms == 600_000


def test_multi_stream_had_a_fixed_rate_before_v20():
    rates = {
        round_name: rules_in("ssd-resnet34", round_name).multi_stream_target_latency_ms for round_name in ROUNDS[:4]
    }
    assert rates == {"v0.7": 66.0, "v1.0": 66.0, "v1.1": 66.0, "v2.0": None}
    assert rules_in("resnet50", "v1.0").multi_stream_target_latency_ms == 50.0


def test_scenarios_change_with_the_rounds():
    server, single = Scenario.SERVER, Scenario.SINGLE_STREAM
    assert server in rules_in("bert-99", "v4.1").datacenter
    assert rules_in("bert-99", "v5.0").datacenter == ()
    assert single not in rules_in("bert-99.9", "v4.1").both
    assert single in rules_in("bert-99.9", "v5.0").edge
    resnet = rules_in("resnet50", "v6.1")
    assert (server in resnet.datacenter, server in resnet.edge, server in resnet.both) == (False, False, True)
    assert Scenario.MULTI_STREAM not in rules_in("ssd-mobilenet", "v1.1").edge


@pytest.mark.parametrize(
    ("name", "round_name", "said"),
    [
        ("rnnt", "v4.1", "unknown round of rnnt 'v4.1'; known: v0.7"),
        ("resnet50", "v9.9", "unknown round of resnet50 'v9.9'"),
        ("resnet", "v6.1", "unknown benchmark 'resnet' (did you mean resnet50?); known: 3d-unet-99, "),
        ("resnet51", "v6.1", "unknown benchmark 'resnet51'; known: 3d-unet-99, "),
    ],
)
def test_unknown_round_names_the_known_ones(name, round_name, said):
    with pytest.raises(UnknownName) as raised:
        targets_of(name, round_name)
    assert str(raised.value).startswith(said)


def test_a_model_file_serves_its_levels():
    assert [row.name for row in benchmarks_of("bert")] == ["bert-99", "bert-99.9"]
    assert benchmarks_of("digits") == ()
    assert (model_of("3d-unet-brats-99"), model_of("digits")) == ("unet3d_brats", "digits")


@pytest.mark.parametrize("name", sorted(RECORDS))
def test_a_server_limit_stands_where_a_round_has_the_scenario_and_nowhere_else(name):
    record = RECORDS[name]
    if record.is_official:
        has_server = any(Scenario.SERVER in span.scenarios for span in (*record.spans, *record.spans_of_999))
        assert (record.server_target_latency_ms is not None) == has_server
    elif record.generation is not None:
        assert record.server_target_latency_ms is None  # the limits of tokens count
