"""The MLPerf Inference benchmarks this project runs: names, constants of the rules, accuracy references and targets.

Rows stand for the newest round that has the benchmark (`round_name`); rounds.py has what was asked before. Sources: the
tables of the official submission checker of mlcommons/inference (tools/submission/submission_checker/constants.py, read
at b66003e1, August 2026) for rounds since v5.0; the checker of tag v4.0 for older rounds; LoadGen's embedded
mlperf.conf (6.0.17) for sample counts and latencies it repeats. Times in ms, accuracies in the units of the official
accuracy script's line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from mlperf_results.names import Scenario

_SS, _MS, _OFF, _SRV = Scenario.SINGLE_STREAM, Scenario.MULTI_STREAM, Scenario.OFFLINE, Scenario.SERVER


@dataclass(frozen=True, slots=True, kw_only=True)
class AccuracyTarget:
    """What the closed division asks of one metric.

    metric: as the official checker calls it. reference: the fp32 reference model's score. target: the least accepted
    value. upper_limit: the greatest accepted value, None where there is none.
    """

    metric: str
    reference: float
    target: float
    upper_limit: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """One benchmark at one accuracy level.

    model: the file in harness/models. loadgen_name: the name in LoadGen's embedded table. performance_sample_count:
    None stands for the whole validation set. scenarios: those of edge and datacenter systems and of all rounds
    together; `rounds.rules_in` says what one round asks for.
    """

    name: str
    model: str
    loadgen_name: str
    round_name: str
    dataset_count: int
    performance_sample_count: int | None
    offline_min_sample_count: int
    server_target_latency_ms: float
    scenarios: tuple[Scenario, ...]
    targets: tuple[AccuracyTarget, ...]


def _target(metric: str, reference: float, ratio: float) -> AccuracyTarget:
    return AccuracyTarget(metric=metric, reference=reference, target=reference * ratio)


def _gptj_targets(ratio: float) -> tuple[AccuracyTarget, ...]:
    length = AccuracyTarget(metric="GEN_LEN", reference=4016878, target=4016878 * 0.9)
    rouge = (("ROUGE1", 42.9865), ("ROUGE2", 20.1235), ("ROUGEL", 29.9881))
    return (*(_target(metric, reference, ratio) for metric, reference in rouge), length)


def _levels(stem: str, ratios: tuple[float, ...]) -> Iterable[tuple[str, float]]:
    return ((f"{stem}-{'99' if ratio == 0.99 else '99.9'}", ratio) for ratio in ratios)


def _rows() -> Iterable[Benchmark]:
    both = (0.99, 0.999)
    yield Benchmark(
        name="resnet50", model="resnet50", loadgen_name="resnet50", round_name="v6.1", dataset_count=50_000,
        performance_sample_count=1024, offline_min_sample_count=24_576, server_target_latency_ms=15.0,
        scenarios=(_SS, _MS, _OFF, _SRV), targets=(_target("acc", 76.46, 0.99),),
    )  # fmt: skip
    for name, ratio in _levels("bert", both):
        yield Benchmark(
            name=name, model="bert", loadgen_name="bert", round_name="v6.1", dataset_count=10_833,
            performance_sample_count=10_833, offline_min_sample_count=10_833, server_target_latency_ms=130.0,
            scenarios=(_SS, _OFF, _SRV), targets=(_target("F1", 90.874, ratio),),
        )  # fmt: skip
    for name, ratio in _levels("3d-unet", both):
        yield Benchmark(
            name=name, model="unet3d", loadgen_name="3d-unet", round_name="v6.1", dataset_count=43,
            performance_sample_count=43, offline_min_sample_count=43, server_target_latency_ms=30_000.0,
            scenarios=(_SS, _OFF), targets=(_target("DICE", 0.86170, ratio),),
        )  # fmt: skip
    for name, ratio in _levels("3d-unet-brats", both):
        yield Benchmark(
            name=name, model="unet3d_brats", loadgen_name="3d-unet", round_name="v1.1", dataset_count=67,
            performance_sample_count=16, offline_min_sample_count=24_576, server_target_latency_ms=30_000.0,
            scenarios=(_SS, _OFF), targets=(_target("DICE", 0.85300, ratio),),
        )  # fmt: skip
    for name, ratio in _levels("dlrm", both):
        yield Benchmark(
            name=name, model="dlrm", loadgen_name="dlrm", round_name="v3.0", dataset_count=330_067,
            performance_sample_count=204_800, offline_min_sample_count=24_576, server_target_latency_ms=30.0,
            scenarios=(_OFF, _SRV), targets=(_target("AUC", 80.25, ratio),),
        )  # fmt: skip
    for name, ratio in _levels("dlrm-v2", both):
        yield Benchmark(
            name=name, model="dlrm_v2", loadgen_name="dlrm-v2", round_name="v5.1", dataset_count=330_067,
            performance_sample_count=204_800, offline_min_sample_count=24_576, server_target_latency_ms=60.0,
            scenarios=(_OFF, _SRV), targets=(_target("AUC", 80.31, ratio),),
        )  # fmt: skip
    yield Benchmark(
        name="rnnt", model="rnnt", loadgen_name="rnnt", round_name="v4.0", dataset_count=2_513,
        performance_sample_count=2_513, offline_min_sample_count=2_513, server_target_latency_ms=1000.0,
        scenarios=(_SS, _OFF, _SRV), targets=(_target("WER", 100.0 - 7.452, 0.99),),
    )  # fmt: skip
    yield Benchmark(
        name="ssd-mobilenet", model="ssd_mobilenet", loadgen_name="ssd-mobilenet", round_name="v2.0",
        dataset_count=5_000, performance_sample_count=256, offline_min_sample_count=24_576,
        server_target_latency_ms=100.0, scenarios=(_SS, _MS, _OFF), targets=(_target("mAP", 22.0, 0.99),),
    )  # fmt: skip
    yield Benchmark(
        name="ssd-resnet34", model="ssd_resnet34", loadgen_name="ssd-resnet34", round_name="v2.0",
        dataset_count=5_000, performance_sample_count=64, offline_min_sample_count=24_576,
        server_target_latency_ms=100.0, scenarios=(_SS, _MS, _OFF, _SRV), targets=(_target("mAP", 20.0, 0.99),),
    )  # fmt: skip
    yield Benchmark(
        name="retinanet", model="retinanet", loadgen_name="retinanet", round_name="v5.1", dataset_count=24_781,
        performance_sample_count=64, offline_min_sample_count=24_576, server_target_latency_ms=100.0,
        scenarios=(_SS, _MS, _OFF, _SRV), targets=(_target("mAP", 37.55, 0.99),),
    )  # fmt: skip
    for name, ratio in _levels("gptj", both):
        yield Benchmark(
            name=name, model="gptj", loadgen_name="gptj", round_name="v5.0", dataset_count=13_368,
            performance_sample_count=13_368, offline_min_sample_count=13_368, server_target_latency_ms=20_000.0,
            scenarios=(_SS, _OFF, _SRV), targets=_gptj_targets(ratio),
        )  # fmt: skip


BENCHMARKS: Mapping[str, Benchmark] = MappingProxyType({row.name: row for row in _rows()})
"""Every benchmark by its official name."""


def benchmarks_of(model: str) -> tuple[Benchmark, ...]:
    """Return the benchmarks that one file of harness/models serves, empty for a model MLPerf does not know."""
    return tuple(row for row in BENCHMARKS.values() if row.model == model)


def model_of(name: str) -> str:
    """Return the file in harness/models for a benchmark's name; a name without a row is its own file."""
    row = BENCHMARKS.get(name)
    return name if row is None else row.model
