"""Published results of MLPerf Inference as data: what a measured figure can be set beside. Pure.

Each row is a VALID result of the closed division; its source is the folder of the round's results repository with the
log. Only a result of the same hardware may be compared: `find_anchors` wants the name of the published system, or its
processors or accelerators and their number, exactly. 3D-UNet up to v1.0 (BraTS) is another benchmark than later ones.
Figures of v0.7: closed/NVIDIA/results_summary.csv of its repository; others from the logs (read November 2026).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from crowdperf.logs.system_names import plain_name
from crowdperf.rules.benchmarks import BENCHMARKS
from crowdperf.rules.names import METRIC_OF_SCENARIO, Scenario
from crowdperf.rules.official_names import checker_name

_SS, _OFF, _SRV, _MS = Scenario.SINGLE_STREAM, Scenario.OFFLINE, Scenario.SERVER, Scenario.MULTI_STREAM


@dataclass(frozen=True, slots=True)
class Hardware:
    """What computes: `count` accelerators, or processors of a machine without any; `name` as of `plain_name`."""

    name: str
    count: int


def hardware(name: str, count: int) -> Hardware:
    """The hardware of this name in any of its spellings."""
    return Hardware(plain_name(name), count)


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """One published figure. system: its folder. unit: as METRIC_OF_SCENARIO has it.

    metric: what was counted, where rounds differ: Server's rate is the scheduled one up to v3.1, the completed one in
    v4.1; MultiStream counted samples per query up to v1.1.
    """

    round_name: str
    submitter: str
    system: str
    hardware: Hardware | None
    benchmark: str
    scenario: Scenario
    metric: str
    value: float
    unit: str
    software: str

    @property
    def source(self) -> str:
        """The repository at github.com, and the folder with the log in it."""
        is_alias = self.benchmark in BENCHMARKS[self.benchmark].record.checker_aliases
        has_alias = is_alias and (self.round_name, self.submitter) != ("v0.7", "Intel")
        folder = self.benchmark if has_alias else checker_name(self.benchmark)
        place = f"closed/{self.submitter}/results/{self.system}/{folder}/{self.scenario.value}"
        return f"mlcommons/inference_results_{self.round_name}: {place}"


@dataclass(frozen=True, slots=True)
class _System:
    round_name: str
    submitter: str
    name: str
    hardware: Hardware | None
    software: str


_TRT72, _OPENVINO, _PYTORCH, _TRITON = "TensorRT 7.2", "OpenVINO INT8", "PyTorch INT8", "Triton with OpenVINO INT8"


def _nvidia(name: str, accelerator: str | None, count: int = 1) -> _System:
    """A system of v0.7; without the name of an accelerator it is compared by the name of the system alone."""
    return _System("v0.7", "NVIDIA", name, None if accelerator is None else hardware(accelerator, count), _TRT72)


def _cpu(round_name: str, submitter: str, name: str, processor: str, count: int, software: str) -> _System:
    return _System(round_name, submitter, name, hardware(processor, count), software)


_SINGLE = (
    _nvidia("DGX-A100_A100-SXM4x1_TRT", "A100-SXM4-40GB"),
    _nvidia("A100-PCIex1_TRT", "A100-PCIE-40GB"),
    _nvidia("DGX-A100_A100-SXM4x1-MIG_1x1g.5gb_TRT", None),
    _nvidia("T4x1_TRT", "T4"),
    _nvidia("AGX_Xavier_TRT", None),
    _nvidia("Xavier_NX_TRT", None),
)
_SINGLE_FIGURES: Mapping[str, tuple[tuple[float, float], ...]] = {
    "resnet50": (
        (37479.5, 0.507), (32008.2, 0.519), (4966.4, 0.740), (6035.6, 1.086), (2074.5, 2.145), (1032.3, 3.206),
    ),
    "bert-99": ((3335.2, 1.741), (2859.2, 1.760), (464.3, 6.760), (443.1, 6.460), (91.0, 30.81), (50.6, 48.88)),
    "ssd-mobilenet": (
        (51204.6, 0.313), (44370.9, 0.350), (6939.3, 0.489), (7959.8, 0.550), (2532.7, 1.245), (1266.8, 1.674),
    ),
    "ssd-resnet34": ((980.6, 1.762), (852.2, 1.988), (134.4, 8.342), (135.5, 8.417), (51.0, 28.53), (26.8, 46.91)),
    "rnnt": ((10413.4, 27.4), (8650.5, 31.5), (1133.9, 95.4), (1502.9, 62.7), (419.3, 179.3), (195.2, 375.6)),
    "3d-unet-brats-99": ((41.8, 27.4), (38.2, 35.3), (5.19, 192.9), (7.20, 157.8), (2.29, 439.3), (1.29, 771.5)),
}  # fmt: skip
"""v0.7, one accelerator: Offline samples/s and SingleStream p90 in ms, in the order of _SINGLE."""

_MULTI_STREAM_SAMPLES: Mapping[str, tuple[float | None, ...]] = {
    "resnet50": (1760, 1344, None, 272, 96, 50),
    "ssd-mobilenet": (2368, 1600, None, 368, 107, 60),
    "ssd-resnet34": (60, 48, None, 8, 2, 1),
}
"""v0.7, MultiStream: samples per query, in the order of _SINGLE."""

_SEVERAL = (
    _nvidia("DGX-A100_A100-SXM4x8_TRT", "A100-SXM4-40GB", 8),
    _nvidia("A100-PCIex2_TRT", "A100-PCIE-40GB", 2),
    _nvidia("T4x8_TRT", "T4", 8),
    _nvidia("T4x20_TRT", "T4", 20),
)
_SEVERAL_FIGURES: Mapping[str, tuple[tuple[float, float | None], ...]] = {
    "resnet50": ((298647, 255061), (63782, 52425), (48898, 44505), (121564, 111496)),
    "bert-99": ((26625, 24757), (5665, 5200), (3495, 3097), (8899, 7596)),
    "bert-99.9": ((13538, 11502), (2815, 2428), (1603, 1419), (4197, 3647)),
    "dlrm-99": ((2113510, 2102386), (458955, 385085), (272416, 250062), (665646, 600250)),
    "dlrm-99.9": ((2113510, 2102386), (458955, 385085), (272416, 250062), (665646, 600250)),
    "rnnt": ((82401, 71510), (17207, 15002), (11963, 8660), (28532, 20002)),
    "ssd-resnet34": ((7788, 7546), (1689, 1599), (1112, 1029), (2774, 2518)),
    "3d-unet-brats-99": ((328.3, None), (75.1, None), (58.4, None), (145.5, None)),
    "3d-unet-brats-99.9": ((328.3, None), (75.1, None), (58.4, None), (145.5, None)),
}
"""v0.7, several accelerators: Offline samples/s and Server queries/s, in the order of _SEVERAL."""

_CLX, _CPX = ("Gold 6258R", 2), ("Platinum 8380H", 4)
_SPR = _cpu("v3.1", "Intel", "1-node-2S-SPR-PyTorch-INT8", "Platinum 8480+", 2, _PYTORCH)
_EMR = _cpu("v4.1", "Intel", "1-node-2S-EMR-PyTorch", "Platinum 8592+", 2, _PYTORCH)
_GNR = _cpu("v4.1", "Intel", "1-node-2S-GNR-PyTorch", "6980P", 2, _PYTORCH)
_ICX = _cpu("v2.0", "NVIDIA", "Triton_CPU_2S_8380x1", "Platinum 8380", 2, _TRITON)
_CPX_TRITON = _cpu("v2.0", "NVIDIA", "Triton_CPU_4S_8380Hx1", "Platinum 8380H", 4, _TRITON)
_INF1 = _System("v2.0", "NVIDIA", "Triton_Inferentia_INF1_2XLARGEx1", None, "Triton with Neuron 1.9.1")
_INF4 = _System("v2.0", "NVIDIA", "Triton_Inferentia_INF1_6XLARGEx1", None, "Triton with Neuron 1.9.1")
_AZURE_A100 = _System("v2.0", "Azure", "ND96asr_v4_TRT", hardware("A100-SXM4-40GB", 8), "TensorRT")
_AZURE_H100 = _System("v3.1", "Azure", "ND_H100_v5_TRT", hardware("H100 80GB HBM3", 8), "TensorRT, FP8")
_DGX_H100 = _System("v4.1", "NVIDIA", "DGX-H100_H100-SXM-80GBx8_TRT", hardware("H100 80GB HBM3", 8), "TensorRT")
_H200_1 = _System("v4.1", "NVIDIA", "H200-SXM-141GBx1_TRT", hardware("H200", 1), "TensorRT")
_H200_8 = _System("v4.1", "NVIDIA", "H200-SXM-141GBx8_TRT", hardware("H200", 8), "TensorRT")

_OTHERS: tuple[tuple[_System, str, float, float | None], ...] = (
    (_cpu("v0.7", "Intel", "1-node-2s-clx-ov-int8", *_CLX, _OPENVINO), "resnet50", 2810.9, 2078.1),
    (_cpu("v0.7", "Intel", "1-node-2s-clx-mx-int8", *_CLX, "MXNet INT8"), "resnet50", 2812.4, 1798.4),
    (_cpu("v0.7", "Intel", "1-node-2s-clx-tf-int8", *_CLX, "TensorFlow INT8"), "resnet50", 2714.2, 1728.5),
    (_cpu("v0.7", "Intel", "1-node-4s-cpx-ov-int8", *_CPX, _OPENVINO), "resnet50", 5668.6, 4296.2),
    (_cpu("v0.7", "Intel", "1-node-4s-cpx-ov-bf16", *_CPX, "OpenVINO BF16"), "resnet50", 2375.7, 1748.4),
    (_cpu("v0.7", "Intel", "1-node-8s-cpx-mx-int8", "Platinum 8380H", 8, "MXNet INT8"), "resnet50", 11181.3, 7847.2),
    (_cpu("v0.7", "Intel", "1-node-8s-cpx-tf-int8", "Platinum 8380H", 8, "TensorFlow INT8"), "resnet50", 10667.7,
     7515.8),
    (_cpu("v0.7", "Intel", "1-node-8s-cpx-tf-bf16", "Platinum 8380H", 8, "TensorFlow BF16"), "resnet50", 5319.4,
     3147.2),
    (_cpu("v0.7", "DellEMC", "R640_6248R-openvino-2020", "Gold 6248R", 2, "OpenVINO"), "resnet50", 2467.9, 1497.7),
    (_cpu("v0.7", "DellEMC", "R740xd8280M_openvino", "Platinum 8280M", 2, "OpenVINO"), "resnet50", 2562.4, 1523.6),
    (_System("v0.7", "Dividiti", "aws-g4dn.4xlarge-openvino-2020", None, "OpenVINO"), "resnet50", 513.1, 278.8),
    (_ICX, "resnet50", 3823.3, 3137.4), (_ICX, "bert-99", 75.31, 39.00),
    (_CPX_TRITON, "resnet50", 5640.3, 4947.2), (_CPX_TRITON, "bert-99", 114.75, 79.00),
    (_SPR, "resnet50", 20565.5, 16505.9), (_SPR, "bert-99", 1357.3, 1089.8),
    (_EMR, "resnet50", 25204.5, 22501.8), (_EMR, "bert-99", 1666.8, 1281.6),
    (_GNR, "resnet50", 45617.3, 39798.3), (_GNR, "bert-99", 3024.0, 2437.0),
    (_INF1, "resnet50", 1101.76, 485.17), (_INF1, "bert-99", 63.7585, 37.39), (_INF1, "bert-99.9", 63.7585, 37.39),
    (_INF4, "resnet50", 3646.3, 2497.66), (_INF4, "bert-99", 250.817, 129.99), (_INF4, "bert-99.9", 250.817, 129.99),
    (_AZURE_A100, "resnet50", 297934, 256029), (_AZURE_A100, "3d-unet-99", 23.92, None),
    (_AZURE_H100, "gptj-99", 105.756, 84.22), (_AZURE_H100, "gptj-99.9", 105.756, 84.22),
    (_DGX_H100, "gptj-99", 286.084, 278.75), (_DGX_H100, "gptj-99.9", 286.084, 278.75),
    (_H200_1, "gptj-99", 37.384, 34.87), (_H200_1, "gptj-99.9", 37.384, 34.87),
    (_H200_8, "gptj-99", 291.103, 278.89), (_H200_8, "gptj-99.9", 291.103, 278.89),
    (_H200_8, "resnet50", 756960, 632229), (_H200_8, "bert-99", 73309.5, 57609), (_H200_8, "bert-99.9", 63950, 51212),
    (_H200_8, "3d-unet-99", 54.71, None),
)  # fmt: skip
"""Offline samples/s and Server queries/s."""


def _anchor(system: _System, benchmark: str, scenario: Scenario, value: float) -> Anchor:
    is_old = system.round_name == "v0.7"
    metric, unit = METRIC_OF_SCENARIO[scenario].name, METRIC_OF_SCENARIO[scenario].unit
    if scenario is _SRV and system.round_name != "v4.1":
        metric = "scheduled queries per second"
    elif scenario is _SS and is_old:
        metric = "90th percentile latency"
    elif scenario is _MS and is_old:
        metric, unit = "samples per query", "samples"
    return Anchor(
        round_name=system.round_name,
        submitter=system.submitter,
        system=system.name,
        hardware=system.hardware,
        benchmark=benchmark,
        scenario=scenario,
        metric=metric,
        value=value,
        unit=unit,
        software=system.software,
    )


def _rows() -> Iterator[Anchor]:
    for benchmark, pairs in _SINGLE_FIGURES.items():
        for system, (offline, latency_ms) in zip(_SINGLE, pairs, strict=True):
            yield _anchor(system, benchmark, _OFF, offline)
            yield _anchor(system, benchmark, _SS, latency_ms)
    for benchmark, samples in _MULTI_STREAM_SAMPLES.items():
        for system, count in zip(_SINGLE, samples, strict=True):
            if count is not None:
                yield _anchor(system, benchmark, _MS, count)
    several = [
        (s, name, *row) for name, rows in _SEVERAL_FIGURES.items() for s, row in zip(_SEVERAL, rows, strict=True)
    ]
    for system, benchmark, offline, server in (*several, *_OTHERS):
        yield _anchor(system, benchmark, _OFF, offline)
        if server is not None:
            yield _anchor(system, benchmark, _SRV, server)


ANCHORS: tuple[Anchor, ...] = tuple(_rows())
"""Every published figure known here."""


def find_anchors(
    benchmark: str, scenario: Scenario, unit: str, systems: Iterable[str], found: Hardware | None
) -> tuple[Anchor, ...]:
    """Return the figures of the same system: one of these names, or the same hardware; in the same unit."""
    names = set(systems)
    return tuple(
        anchor
        for anchor in ANCHORS
        if (anchor.benchmark, anchor.scenario, anchor.unit) == (benchmark, scenario, unit)
        and (anchor.system in names or (found is not None and found.name and anchor.hardware == found))
    )


def speed_ratio(anchor: Anchor, value: float) -> float | None:
    """How many times as fast as the published figure; of a latency its inverse; None for a latency of 0."""
    is_latency = anchor.unit == "ms"
    above, below = (anchor.value, value) if is_latency else (value, anchor.value)
    return above / below if below else None
