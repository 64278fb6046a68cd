"""Made-up results for the tests of the pages: a database with published ones, volunteers' ones and a curve."""

import dataclasses
import hashlib
import random
from pathlib import Path
from typing import Any

from crowdperf.store.model import Accuracy, Configuration, CurvePoint, Figure, File, NewResult, Signer, Source, System
from crowdperf.store.store import Store

ROOT = Path(__file__).resolve().parents[2]
HOST = System(accelerator="", accelerator_count=0, nodes=1, cpu="AMD EPYC 9654", sockets=2, cores=192,
              memory_gib=768, facts={"operating_system": "Debian 12"})  # fmt: skip
SOURCE = Source(kind="bundle", name="20261123T101500Z-digits-onnxruntime-cpu", digest="0" * 64)
SUMMARY = Source(kind="inference-csv", name="summary.csv of v6.1", digest="1" * 64)
DIGITS = Configuration(
    suite="inference", benchmark="digits", round="", division="", category="", scenario="Offline", precision="fp32",
    tier="", stack="onnxruntime", device="cpu", data_kind="synthetic", run_class="test", model_digest="ab" * 32,
    settings={"batch_size": "32"}, system=HOST,
)  # fmt: skip


def signer(number: int = 1, alias: str = "") -> Signer:
    """A signer with a made-up key."""
    key = bytes([number]) * 32
    return Signer(key_id=hashlib.sha256(key).hexdigest()[:16], public_key=key, alias=alias)


def crowd_result(run_id: str = "run-1", **changes: Any) -> NewResult:
    """A volunteer's result of digits, with every part that a result can have."""
    log = b"::MLLOG a made-up line\n"
    made = NewResult(
        run_id=run_id,
        kind="crowd",
        configuration=DIGITS,
        labels=("unofficial", "test run"),
        made_utc="2026-11-23T10:15:00Z",
        stack_version="onnxruntime 1.31.1",
        metric="throughput",
        value=172_084.0,
        unit="samples/s",
        higher_is_better=True,
        valid=True,
        verification="logs consistent",
        command="cm run script --tags=run,mlperf,inference --model=digits --scenario=Offline",
        figures=(Figure(name="50", value=1.2, unit="ms"), Figure(name="90", value=2.0, unit="ms"),
                 Figure(name="99", value=4.5, unit="ms"), Figure(name="99.9", value=9.5, unit="ms")),
        accuracy=(Accuracy(name="acc", value=99.33, target=98.34, passed=True, basis="recomputed"),),
        files=(
            File(name="digits/Offline/performance/run_1/mlperf_log_detail.txt", size_bytes=len(log), body=log,
                 sha256=hashlib.sha256(log).hexdigest()),
            File(name="digits/Offline/accuracy/mlperf_log_accuracy.json", size_bytes=120_000, body=None,
                 sha256="2" * 64),
        ),
        curve=(),
        notes=(),
        raw={},
    )  # fmt: skip
    return dataclasses.replace(made, **changes)


def system(accelerator: str, count: int, nodes: int = 1) -> System:
    """A system with accelerators."""
    return dataclasses.replace(HOST, accelerator=accelerator, accelerator_count=count, nodes=nodes)


ACCELERATORS = ("NVIDIA H200-SXM-141GB", "NVIDIA B200-SXM-180GB", "AMD Instinct MI355X", "NVIDIA L40S")
BENCHMARKS = (("llama2-70b", "99", "Tokens/s", 8_000.0), ("resnet50", "", "Samples/s", 80_000.0),
              ("whisper", "", "Tokens/s", 3_000.0))  # fmt: skip
VENDORS = ("NVIDIA", "Dell", "HPE", "Supermicro", "Azure", "CoreWeave", "Oracle")


def published_results(count: int = 60) -> list[NewResult]:
    """Made-up rows of a summary."""
    chance = random.Random(7)
    found = []
    for number in range(count):
        benchmark, tier, unit, base = chance.choice(BENCHMARKS)
        accelerators = chance.choice((1, 4, 8, 8, 16))
        name = chance.choice(ACCELERATORS)
        vendor = chance.choice(VENDORS)
        configuration = dataclasses.replace(
            DIGITS, benchmark=benchmark, tier=tier, round="v6.1", division=chance.choice(("closed", "closed", "open")),
            category="datacenter", scenario=chance.choice(("Offline", "Server")), stack="TensorRT",
            precision=chance.choice(("fp8", "fp4")), device="cuda", data_kind="real", run_class="valid",
            settings={}, system=system(name, accelerators, max(1, accelerators // 8)), model_digest=benchmark,
        )  # fmt: skip
        found.append(
            crowd_result(
                f"row-{number}",
                kind="published",
                configuration=configuration,
                labels=(),
                metric="throughput",
                value=round(base * accelerators * chance.uniform(0.6, 1.3), 2),
                unit=unit,
                verification="published",
                command="",
                figures=(),
                accuracy=(),
                files=(),
                stack_version=f"TensorRT 10.{chance.randint(8, 14)}",
                made_utc="",
                submitter=vendor,
                system_name=f"{vendor} server, {accelerators} x {name}",
                raw={"Organization": vendor, "Result": "1.0"},
            )
        )
    return found


def curve_result(run_id: str, name: str, scale: float) -> NewResult:
    """An Endpoints result with its points."""
    points = tuple(
        CurvePoint(concurrency=users, region=region, system_tps=scale * users**0.72, tps_per_user=scale / users**0.28,
                   ttft_p90_ms=40 + 3.0 * users + scale / 1000, accuracy=0.78)
        for users, region in ((1, "low_latency"), (4, "low_concurrency"), (12, "med_concurrency"),
                              (32, "med_concurrency"), (64, "high_concurrency"))
    )  # fmt: skip
    configuration = dataclasses.replace(
        DIGITS, suite="endpoints", benchmark="gpt-oss-120b", scenario="curve", stack="vLLM", device="cuda",
        data_kind="real", run_class="valid", precision="fp4", settings={}, system=system(name, 8),
    )  # fmt: skip
    return crowd_result(
        run_id, configuration=configuration, curve=points, metric="greatest system throughput",
        value=max(point.system_tps for point in points), unit="tokens/s", verification="summary",
        labels=("unofficial",), stack_version="vLLM 0.15.0", figures=(), accuracy=(),
    )  # fmt: skip


def fill(store: Store) -> list[str]:
    """Some of everything; the ids of what was added: crowd results first, then curves, then published ones."""
    chance = random.Random(3)
    ids = []
    for number in range(14):
        version = f"onnxruntime 1.{29 + number % 3}"
        value = 150_000 + 9_000 * (number % 3) + chance.gauss(0, 2_500)
        made = crowd_result(f"run-{number}", value=value, stack_version=version,
                            made_utc=f"2026-{9 + number % 3:02d}-1{number % 9}T10:15:00Z")  # fmt: skip
        ids.append(store.add(made, SOURCE, signer(number % 4, f"volunteer {number % 4}")).id)
    for place, name in enumerate(ACCELERATORS[:2]):
        made = curve_result(f"curve-{place}", name, 180.0 - 50 * place)
        ids.append(store.add(made, dataclasses.replace(SOURCE, kind="endpoints-tree"), signer(9)).id)
    ids += [store.add(made, SUMMARY).id for made in published_results()]
    return ids
