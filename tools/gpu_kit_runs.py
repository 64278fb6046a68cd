"""The steps of the GPU kit that run the harness or watch the GPU as it does: see gpu_kit.py. Not run on hardware."""

import importlib.util
import itertools
import json
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpu_kit import FAIL, NEEDS_GPU, NETWORKS, PASS, SKIP, Kit, rows_of

MIN_SHARE_OF_BEST = 0.9
MAX_ENERGY_DIFFERENCE = 0.05


def run_harness(kit: Kit, name: str, **changes: Any) -> tuple[subprocess.CompletedProcess[str], Path]:
    """Run the harness once, as a user without recipes would: python3 -m crowdperf.harness run.json."""
    benchmark = next((known for known in NETWORKS if name.startswith(known)), "resnet50")
    folder = kit.out / "runs" / name
    folder.mkdir(parents=True, exist_ok=True)
    pictures = benchmark == "resnet50"
    content: dict[str, Any] = {
        "format": 3, "model": NETWORKS[benchmark], "backend": "pytorch", "device": kit.device, "scenario": "Offline",
        "mode": "performance", "execution_mode": "test", "compliance_test": None, "find": False, "model_path": None,
        "model_info_path": str(kit.out / benchmark / "model.json"),
        "dataset_path": str(kit.out / ("pictures" if pictures else "squad")),
        "preprocessed_path": str(kit.out / "store") if pictures else None, "output_dir": str(folder),
        "precision": "fp32", "gpus": [0] if kit.is_gpu else None, "batch_size": None, "instances": None,
        "threads": None, "batch_timeout_us": None, "target_qps": None, "target_latency_ms": None,
        "min_duration_ms": 10_000 if kit.is_gpu else 300, "min_query_count": None,
        "performance_sample_count": None, "user_conf": None, **changes,
    }  # fmt: skip
    (folder / "run.json").write_text(json.dumps(content))
    command = [sys.executable, "-m", "crowdperf.harness", str(folder / "run.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)
    print(f"--- {name}: code {done.returncode}\n{done.stdout}{done.stderr}")
    return done, folder / "result.json"


def harness(kit: Kit) -> None:
    """Phase 4: the same networks through LoadGen."""
    bare = {row.id.removeprefix("loops."): row.values for row in rows_of(kit.out / "steps" / "loops.jsonl")}
    scenarios = {
        "resnet50": ("SingleStream", "MultiStream", "Offline", "Server"), "bert": ("SingleStream", "Offline"),
    }  # fmt: skip
    given = {} if kit.is_gpu else {"instances": 1, "threads": 1}
    for network, names in scenarios.items():
        for precision in kit.precisions:
            for scenario in names:
                own = {"batch_size": 8} if not kit.is_gpu and scenario in ("Offline", "Server") else {}
                name = f"{network}.{precision}.{scenario}"
                done, path = run_harness(kit, name, scenario=scenario, precision=precision, **given, **own)
                judge(kit, f"harness.{name}", done, path, bare.get(f"{network}.{precision}", {}))


def judge(
    kit: Kit, name: str, done: subprocess.CompletedProcess[str], path: Path, bare: Mapping[str, Any]
) -> None:  # fmt: skip
    """Add the row of a run: VALID, and on a GPU not much slower than the bare loop."""
    if done.returncode != 0 or not path.is_file():
        said = ((done.stderr.strip() or "it printed no output").splitlines())[-1]
        kit.tell(name, FAIL, "", f"code {done.returncode}: {said[:200]}")
        return
    result = json.loads(path.read_text(encoding="utf-8"))
    metric, gpus = result["metric"] or {}, result["load"]["gpus"]
    figure, batch = float(metric.get("value") or 0.0), result["run"]["batch_size"]["value"]
    watts = gpus[0].get("mean_w") if gpus else None
    values = {"measured": figure, "batch": batch, "candidates": result["shape_candidates"], "watts": watts}
    invalid = "" if result["valid"] else f"INVALID: {'; '.join(map(str, result['invalid_reasons']))}"
    if not kit.is_gpu:  # short, beside whatever else the machine does
        kit.tell(name, PASS if metric else FAIL, f"{figure:,.3f} {metric.get('unit', '')}", invalid, **values)
        return
    why = invalid
    if not why and bare and name.endswith(".Offline") and figure < MIN_SHARE_OF_BEST * bare["best"]:
        why = f"{100 * figure / bare['best']:.0f} % of the bare loop ({bare['how']})"
    if not why and len(gpus) != 1:
        why = f"the record of the machine has {len(gpus)} GPUs, but this run used one"
    kit.check(name, not why, f"{figure:,.3f} {metric.get('unit', '')}, batch {batch}", why, **values)


BUSY = """
import sys, time, torch
one = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
end_s = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end_s:
    for _ in range(20):
        one @ one
    torch.cuda.synchronize()
"""


def quiet(kit: Kit) -> None:
    """Phase 7: power by two ways, and another program on the GPU."""
    if not kit.is_gpu or importlib.util.find_spec("pynvml") is None:
        kit.tell("quiet", SKIP, "", NEEDS_GPU if not kit.is_gpu else "needs the package nvidia-ml-py")
        return
    import torch

    from crowdperf.harness.watch.monitor import Monitor
    from crowdperf.logs.interference import disturbances

    torch.zeros(1, device="cuda")
    work = ["-c", BUSY, "20"]
    with Monitor(gpus=(0,), interval_s=0.1) as watched:
        subprocess.run([sys.executable, *work], check=True, timeout=60)
    content, (gpu,) = watched.record().content(), watched.record().summary()["gpus"]
    place = content["columns"].index(f"gpu{gpu['index']}_w")
    moments = [(row[0], row[place]) for row in content["rows"] if row[place] is not None]
    sampled_j = sum((later[0] - one[0]) * later[1] for one, later in itertools.pairwise(moments))
    counted_j = gpu["energy_j"] or 0.0
    gap = abs(sampled_j - counted_j) / max(1.0, counted_j)
    kit.check("quiet.energy", gap <= MAX_ENERGY_DIFFERENCE, f"{counted_j:,.0f} J, samples {sampled_j:,.0f} J",
              f"{100 * gap:.0f} % apart", **gpu)  # fmt: skip
    result = {"metric": {}, "duration_s": 20.0, "load": {"gpus": [gpu]}}
    kit.check("quiet.alone", not disturbances(result), "no disturbance", "; ".join(map(str, disturbances(result))))
    words = ["sh", "-c", 'exec "$0" "$@" & exit 0', sys.executable, "-c", BUSY, "8"]  # its parent ends: not our child
    subprocess.run(words, check=True, timeout=10)
    time.sleep(4)
    with Monitor(gpus=(0,), interval_s=0.1) as watched:
        time.sleep(2)
    (gpu,) = watched.record().summary()["gpus"]
    others = gpu["other_processes"]
    kit.tell("quiet.foreign", SKIP if others is None else PASS if others else FAIL, f"{others} other programs",
             "NVML shows no process numbers of this container" if others is None else "")  # fmt: skip


def refusals(kit: Kit) -> None:
    """Phase 8: what cannot work is refused with words, code 1 or 2, no traceback and no result."""
    absent = [name for name in ("onnxruntime", "tensorrt") if importlib.util.find_spec(name) is None]
    cases: dict[str, tuple[dict[str, Any], str]] = {
        "gpu_99": ({"device": "cuda", "gpus": [99]}, "99"),
        "int8_on_pytorch": ({"precision": "int8"}, "int8"),
        "no_model": ({"model_info_path": str(kit.out / "nowhere" / "model.json")}, "nowhere"),
        "no_store": ({"preprocessed_path": str(kit.out / "nowhere")}, "nowhere"),
        **{f"no_{name}": ({"backend": name, "device": "cuda", "gpus": [0]}, name) for name in absent},
    }
    for name, (changes, word) in cases.items():
        done, path = run_harness(kit, f"refusal-{name}", **changes)
        said = next((line for line in done.stderr.splitlines() if "error" in line), "no error in what it printed")
        is_right = done.returncode in (1, 2) and word in done.stderr and "Traceback" not in done.stderr
        kit.check(f"refusals.{name}", is_right and not path.exists(), f"code {done.returncode}", said[:160])
    for name in ("onnxruntime", "tensorrt"):
        if name not in absent:
            kit.tell(f"refusals.no_{name}", SKIP, "", f"{name} is in this Python")
