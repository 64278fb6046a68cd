"""crowdperf.logs.published_results: the published figures as data, and which of them a result may be set beside."""

import pytest

from crowdperf.logs.published_results import ANCHORS, find_anchors, hardware, speed_ratio
from crowdperf.logs.system_names import plain_name
from crowdperf.rules.benchmarks import BENCHMARKS
from crowdperf.rules.names import Scenario
from crowdperf.rules.rounds import rounds_of, rules_in


def test_every_anchor_is_of_a_benchmark_that_its_round_had_and_says_where_it_comes_from() -> None:
    for anchor in ANCHORS:
        assert anchor.round_name in rounds_of(anchor.benchmark), anchor
        assert anchor.scenario in rules_in(anchor.benchmark, anchor.round_name).both, anchor
        assert anchor.source.startswith(f"mlcommons/inference_results_{anchor.round_name}: closed/{anchor.submitter}/")
        assert anchor.value > 0
    keys = [(a.round_name, a.system, a.benchmark, a.scenario) for a in ANCHORS]
    assert len(keys) == len(set(keys)) > 200
    assert {anchor.benchmark for anchor in ANCHORS} <= set(BENCHMARKS)


def test_servers_rate_is_at_most_offlines() -> None:
    offline = {(a.round_name, a.system, a.benchmark): a.value for a in ANCHORS if a.scenario is Scenario.OFFLINE}
    for anchor in ANCHORS:
        if anchor.scenario is Scenario.SERVER:
            share = anchor.value / offline[anchor.round_name, anchor.system, anchor.benchmark]
            assert 0.4 < share <= 1.0, anchor


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("Intel(R) Xeon(R) Gold 6258R CPU @ 2.70GHz", "gold 6258r"),
        ("INTEL(R) XEON(R) PLATINUM 8592+", "platinum 8592+"),
        ("Intel Xeon Platinum 8480+ Processor", "platinum 8480+"),
        ("NVIDIA H100 80GB HBM3", "h100 80gb hbm3"),
        ("Tesla T4", "t4"),
        ("Intel(R) Xeon(R) Processor", ""),
    ],
)
def test_a_name_is_compared_without_its_maker_and_clock(name: str, plain: str) -> None:
    assert plain_name(name) == plain


@pytest.mark.parametrize(
    ("systems", "found", "expected"),
    [
        (["T4x1_TRT"], None, ["T4x1_TRT"]),
        (["mine"], hardware("Tesla T4", 1), ["T4x1_TRT"]),
        (["mine"], hardware("NVIDIA T4", 8), ["T4x8_TRT"]),
        (["mine"], hardware("NVIDIA T4", 2), []),
        (["mine"], hardware("NVIDIA H200 NVL", 1), []),
        (["mine"], hardware("Intel(R) Xeon(R) Processor", 1), []),
        (["t4x1_trt"], None, []),
        (["mine"], hardware("Intel(R) Xeon(R) Platinum 8380 CPU @ 2.30GHz", 2), ["Triton_CPU_2S_8380x1"]),
        (["mine"], hardware("Intel(R) Xeon(R) Platinum 8380H CPU @ 2.90GHz", 2), []),
    ],
)
def test_only_the_same_system_is_found(systems, found, expected) -> None:
    rows = find_anchors("resnet50", Scenario.OFFLINE, "samples/s", systems, found)
    assert [anchor.system for anchor in rows] == expected


def test_another_unit_or_benchmark_is_not_compared() -> None:
    assert find_anchors("resnet50", Scenario.MULTI_STREAM, "ms", ["T4x1_TRT"], None) == ()
    assert len(find_anchors("resnet50", Scenario.MULTI_STREAM, "samples", ["T4x1_TRT"], None)) == 1
    assert find_anchors("3d-unet-99", Scenario.OFFLINE, "samples/s", ["T4x1_TRT"], None) == ()  # KiTS, not BraTS


def test_half_the_latency_is_twice_as_fast() -> None:
    (stream,) = find_anchors("resnet50", Scenario.SINGLE_STREAM, "ms", ["T4x1_TRT"], None)
    (offline,) = find_anchors("resnet50", Scenario.OFFLINE, "samples/s", ["T4x1_TRT"], None)
    assert speed_ratio(stream, stream.value / 2) == pytest.approx(2)
    assert speed_ratio(offline, offline.value / 2) == pytest.approx(0.5)
    assert speed_ratio(stream, 0.0) is None
