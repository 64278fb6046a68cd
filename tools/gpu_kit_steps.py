"""The steps of the GPU kit (gpu_kit.py), each a process of its own: `python3 gpu_kit_steps.py STEP --device D --out F`.

A step writes its rows into steps/STEP.jsonl of the folder as they are known. On a processor the networks are the tiny
ones and the times short: that shows that the kit works, and says nothing about speed. Not run on hardware.
"""

import argparse
import functools
import importlib
import importlib.util
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from gpu_kit import CHECKOUT, FAIL, NEEDS_GPU, NETWORKS, PASS, SKIP, Kit, seconds_of
from gpu_kit_models import Processor, llama, opened_on, several, wait_of
from gpu_kit_runs import harness, quiet, refusals
from reader import exit_code

LARGEST_DIFFERENCE = {"fp32": 1e-4, "fp16": 2e-2, "bf16": 2e-2}
"""Of outputs on the GPU against the processor's in fp32, as part of the largest: ten (bf16: seven) bits of mantissa."""
MIN_PINNED_RATIO = 3.0
IMAGE, BATCH = (3, 224, 224), 128


def facts(kit: Kit) -> None:
    """Phase 0: what is there."""
    import torch

    versions = importlib.import_module("importlib.metadata")
    known = {"python": f"Python {platform.python_version()}", "torch": f"torch {torch.__version__}"}
    known["loadgen"] = f"LoadGen {versions.version('mlcommons-loadgen')}"
    importlib.import_module("mlperf_loadgen")
    if kit.is_gpu:
        if not torch.cuda.is_available():
            kit.tell("facts", FAIL, "", f"torch {torch.__version__} (CUDA {torch.version.cuda}) sees no GPU")
            return
        properties = torch.cuda.get_device_properties(0)
        known = {"gpu": properties.name, "cuda": f"CUDA {torch.version.cuda}", **known}
        known["cudnn"] = f"cuDNN {torch.backends.cudnn.version()}"
    known["cores"] = f"{len(os.sched_getaffinity(0))} cores"
    known["numa"] = f"{len(list(Path('/sys/devices/system/node').glob('node[0-9]*'))) or 1} NUMA nodes"
    kit.tell("facts", PASS, ", ".join(known.values()), **known)
    for name in ("safetensors", "pynvml"):
        is_there = importlib.util.find_spec(name) is not None
        kit.tell(f"package.{name}", PASS if is_there else SKIP, "", "" if is_there else "not in this Python")


def devices(kit: Kit) -> None:
    """Phase 0: the same GPU in torch, NVML and query.cu; the record of a run has the used one only."""
    if not kit.is_gpu:
        kit.tell("devices", SKIP, "", NEEDS_GPU)
        return
    import torch

    from crowdperf.harness.watch.nvml import Nvml, cuda_uuids

    properties = torch.cuda.get_device_properties(0)
    own = str(getattr(properties, "uuid", "")).removeprefix("GPU-").removeprefix("MIG-")
    (found,) = cuda_uuids([0])
    kit.check("devices.uuid", own in ("", found), found[:8] + "...", f"torch says {own}, the driver {found}")
    gpus = Nvml([0]).gpus
    kit.check("devices.used", len(gpus) == 1, f"{len(gpus)} recorded of {torch.cuda.device_count()} seen by CUDA")
    for gpu in gpus:
        kit.check("devices.name", properties.name.startswith(gpu.name[:12]), gpu.name, f"torch: {properties.name}")
        difference = abs(gpu.memory_bytes - properties.total_memory) / max(1, gpu.memory_bytes)
        kit.check("devices.memory", difference < 0.03, f"{gpu.memory_bytes / 1e9:.1f} GB",
                  f"torch: {properties.total_memory / 1e9:.1f} GB")  # fmt: skip
    query_cuda(kit, f"{properties.major}.{properties.minor}")
    for words in (("-q", "-d", "CLOCK"), ("mig", "-lgip"), ("topo", "-m")):  # into the log; nothing is changed
        subprocess.run(["nvidia-smi", *words], check=False, timeout=30)


def query_cuda(kit: Kit, capability: str) -> None:
    """Build and run the program of get-cuda-devices, and compare what it says."""
    if (compiler := shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")) is None:
        kit.tell("devices.query_cu", SKIP, "", "no nvcc")
        return
    program = kit.out / "query"
    source = CHECKOUT / "script" / "get-cuda-devices" / "query.cu"
    subprocess.run([compiler, str(source), "-o", str(program)], check=True, timeout=60)
    said = subprocess.run([str(program)], capture_output=True, text=True, check=True, timeout=30).stdout
    print(said)
    kit.check("devices.query_cu", capability in said, f"compute capability {capability}", "query.cu says another one")


def models(kit: Kit) -> None:
    """Phase 0: random weights, a store of noise as pictures, made questions; nothing is downloaded."""
    from crowdperf.kit.rooms import MissingRoom, require_room
    from crowdperf.models.make_model import ModelRequest, make_model

    for name in NETWORKS:
        started_s = time.monotonic()
        make_model(ModelRequest(architecture=name, config=kit.config, framework="pytorch", output_dir=kit.out / name))
        kit.tell(f"models.{name}", PASS, f"{kit.config}, {time.monotonic() - started_s:.1f} s")
    write_pictures(kit.out, 1024 if kit.is_gpu else 32, 224 if kit.is_gpu else 64)
    try:
        require_room("standins", "the data set of bert", "leave out the steps of bert")
    except MissingRoom as error:
        kit.tell("models.data", SKIP, "", str(error).partition("\n")[0])
        return
    (kit.out / "squad").mkdir(exist_ok=True)
    words = ["--kind", "synthetic" if kit.is_gpu else "tiny", "--count", "2000" if kit.is_gpu else "40"]
    squad = importlib.import_module("crowdperf.standins.datasets.squad")
    assert squad.MADE.main("", [*words, "--output_dir", str(kit.out / "squad")]) == 0
    kit.tell("models.data", PASS)


def write_pictures(out: Path, count: int, side: int) -> None:
    """Write a data set of files that are no pictures, and a store of noise that says it was made from them."""
    from crowdperf.harness.base.identity import identity_of
    from crowdperf.harness.base.store import FORMAT, INDEX_FILE, write_chunk
    from crowdperf.harness.datasets.imagenet import open_dataset

    folder, store = out / "pictures", out / "store"
    for made in (folder, store):
        made.mkdir(exist_ok=True)
    (folder / "dataset.json").write_text(json.dumps({"name": "noise", "is_synthetic": True}))
    names = [f"noise_{number:05d}.JPEG" for number in range(count)]
    for number, name in enumerate(names):
        (folder / name).write_bytes(b"noise %d" % number)
    (folder / "val_map.txt").write_text("".join(f"{name} {number % 1000}\n" for number, name in enumerate(names)))
    noise = np.random.default_rng(0).standard_normal((count, 3, side, side), dtype=np.float32) * np.float32(60)
    write_chunk(store, 0, {"image": noise})
    content = {
        "format": FORMAT, "model": "resnet50", "count": count, "chunks": 1, "chunk_samples": count,
        "tensors": ["image"], "is_ragged": False, "sha256": "",
        "dataset": {"folder": str(folder), **asdict(identity_of(folder, open_dataset(folder)))},
    }  # fmt: skip
    (store / INDEX_FILE).write_text(json.dumps(content))


class Plain:
    """Samples in the shape of ResNet-50's; each is its index, 150,528 times."""

    count = 256

    def load(self, indices: Sequence[int]) -> dict[str, np.ndarray]:
        """The samples of `indices`."""
        numbers = np.asarray(indices, dtype=np.float32)
        return {"image": np.broadcast_to(numbers[:, None, None, None], (len(numbers), *IMAGE))}


def host_work(kit: Kit) -> None:
    """What a batch costs the thread that brings it to the GPU, in processor time: gathered into an array that is copied
    into pinned memory, or copied row by row from where the samples lie. On a processor the GPU's memory keeps nothing,
    so that only what the host does is left."""
    from crowdperf.harness.base.tensors import NetworkSpec, TensorSpec
    from crowdperf.harness.base.torch_cuda import Cuda, DeviceIo, sample_memory
    from crowdperf.harness.runner.qsl import DenseLibrary, PinnedLibrary

    image = TensorSpec(name="image", dtype="float32", shape=IMAGE)
    memory: Any = functools.partial(sample_memory, 0) if kit.is_gpu else np.empty
    libraries = {
        "gathered": DenseLibrary(Plain()),
        "rows": PinnedLibrary(Plain(), memory, [NetworkSpec(name="model", inputs=(image,), outputs=())]),
    }
    device: Any = Cuda(0) if kit.is_gpu else Nowhere()
    order, took_ms, wrong = np.random.default_rng(1).permutation(Plain.count), {}, 0
    for name, library in libraries.items():
        library.load(range(Plain.count))
        gather, io, times = library.fixed_gather(BATCH), DeviceIo(device), []
        for number in range(23):
            indices = np.roll(order, 43 * number)[:BATCH]
            started_s = time.thread_time()
            with device.use():
                given = io.to_device(image.name, (batch := gather(indices))[image.name])
            times.append(1e3 * (time.thread_time() - started_s))
            device.synchronize()
        found = np.asarray(given.cpu() if kit.is_gpu else batch[image.name])
        wrong += int((found.reshape(BATCH, -1) != indices[:, None]).any(axis=1).sum())
        took_ms[name] = statistics.median(times[3:])
        kit.tell(f"copies.host.{name}", PASS, f"{took_ms[name]:.2f} ms for {BATCH} images", ms=took_ms[name])
    kit.check("copies.host", not wrong, f"gathered costs {took_ms['gathered'] / took_ms['rows']:.0f} x rows",
              f"{wrong} of {2 * BATCH} images are others")  # fmt: skip


def copies(kit: Kit) -> None:
    """Phase 1: how fast data comes to the GPU and back, and what a launch, a replay and a wait cost."""
    host_work(kit)
    if not kit.is_gpu:
        kit.tell("copies", SKIP, "", NEEDS_GPU)
        return
    import torch

    shape, wait = (128, 3, 224, 224), torch.cuda.synchronize
    gpu, pageable = torch.empty(shape, device="cuda"), torch.empty(shape)
    pinned, size_gb = torch.empty(shape, pin_memory=True), gpu.nbytes / 1e9

    def rows() -> None:
        for number in range(shape[0]):
            gpu[number].copy_(pinned[number], non_blocking=True)

    rates = {
        "pageable": size_gb / seconds_of(lambda: gpu.copy_(pageable), wait),
        "pinned": size_gb / seconds_of(lambda: gpu.copy_(pinned, non_blocking=True), wait),
        "rows": size_gb / seconds_of(rows, wait),
        "back": size_gb / seconds_of(lambda: pinned.copy_(gpu, non_blocking=True), wait),
    }
    for name, rate in rates.items():
        kit.tell(f"copies.{name}", PASS, f"{rate:.1f} GB/s", gb_per_s=rate)
    one, graph = torch.zeros(1, device="cuda"), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        one.add_(1)
    for name, run in (("launch", lambda: one.add_(1)), ("replay", graph.replay), ("sync", lambda: None)):
        kit.tell(f"copies.{name}", PASS, f"{1e6 * seconds_of(run, wait, 1000):.1f} us")
    ratio = rates["pinned"] / rates["pageable"]
    kit.check("copies.ratio", ratio >= MIN_PINNED_RATIO, f"pinned is {ratio:.1f} x pageable",
              f"{MIN_PINNED_RATIO:g} x expected. Look at the PCIe generation and width: nvidia-smi -q")  # fmt: skip


def request_of(kit: Kit, name: str, precision: str, largest_batch: int) -> Any:
    """The backend's request for a network of the kit."""
    from crowdperf.harness.base.backend import BackendRequest
    from crowdperf.harness.base.model_facts import read_model_facts
    from crowdperf.models.make_model import ModelRequest, network_specs

    made = ModelRequest(architecture=name, config=kit.config, framework="pytorch", output_dir=kit.out / name)
    known = read_model_facts(None, kit.out / name / "model.json")
    (network,) = network_specs(made)
    return BackendRequest(
        network=network, path=known.files[network.name].path, architecture=name, config=known.config,
        precision=precision, device=kit.device, gpus=(0,) if kit.is_gpu else (), instances=2, threads=1, cores=(),
        is_spinning=False, largest_batch=largest_batch,
    )  # fmt: skip


def inputs_of(request: Any, count: int, tokens: int) -> dict[str, np.ndarray]:
    """Samples for a network: noise, ones for whole numbers, `tokens` for a size that is open."""
    made, random = {}, np.random.default_rng(count)
    for spec in request.network.inputs:
        shape = (count, *(size if isinstance(size, int) else tokens for size in spec.shape))
        is_float = spec.dtype.startswith("float")
        made[spec.name] = (random.standard_normal(shape) * 60 if is_float else np.ones(shape)).astype(spec.dtype)
    return made


class Nowhere(Processor):
    """The same, with device memory that takes copies and keeps nothing."""

    def buffer(self, dtype: Any, shape: Sequence[int]) -> Any:
        """A tensor without values."""
        import torch

        return torch.empty(tuple(shape), dtype=dtype, device="meta")


def difference(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> float:
    """The largest difference of all outputs, as part of the largest value."""
    pairs = [(np.asarray(found[name], np.float64), np.asarray(wanted[name], np.float64)) for name in wanted]
    return max(float(np.abs(one - two).max() / max(1e-9, np.abs(two).max())) for one, two in pairs)


def calls(kit: Kit) -> None:
    """Phase 2: the calls of the backend against plain torch on the processor."""
    import torch

    from crowdperf.harness.backends.pytorch.backend import build_module

    for name in NETWORKS:
        for precision in kit.precisions:
            request, tokens = request_of(kit, name, precision, 8), 128 if kit.is_gpu else 16
            before = torch.cuda.memory_allocated() if kit.is_gpu else 0
            backend = opened_on(request, build_module(request))
            infers = [backend.instance(number) for number in range(2)]
            module, worst = build_module(request_of(kit, name, "fp32", 8)), 0.0
            for count in range(1, 9):
                samples = inputs_of(request, count, tokens)
                with torch.inference_mode():
                    answers = module(*(torch.from_numpy(array) for array in samples.values()))
                answers = answers if isinstance(answers, tuple) else (answers,)
                specs = request.network.outputs
                wanted = {spec.name: answer.numpy() for spec, answer in zip(specs, answers, strict=True)}
                worst = max(worst, difference(infers[0](samples), wanted))
            most = LARGEST_DIFFERENCE[precision]
            stem = f"calls.{name}.{precision}"
            kit.check(f"{stem}.equal", worst <= most, f"largest difference {worst:.1e}", f"{most:.0e} allowed")
            wrong = differing_repeats(infers, inputs_of(request, 3, tokens), 1000 if kit.is_gpu else 20)
            kit.check(f"{stem}.repeats", wrong == 0, f"{wrong} differing", "two instances at once disturb each other")
            refuse_too_many(kit, stem, request, infers[0], tokens)
            del backend, infers, module
            if kit.is_gpu:
                torch.cuda.empty_cache()
                left_mb = (torch.cuda.memory_allocated() - before) / 1e6
                kit.check(f"{stem}.freed", abs(left_mb) <= 10, f"{left_mb:.0f} MB left", "10 MB allowed")
    loop_states(kit)


def loop_states(kit: Kit) -> None:
    """Steps of a loop whose states stay on the GPU (RNN-T's prediction network): each state is the processor's, also
    after the steps that follow."""
    import torch

    from crowdperf.harness.base.architecture import architecture_of
    from crowdperf.models.make_model import ModelRequest, network_specs

    made = ModelRequest(architecture="rnnt", config=kit.config, framework="pytorch", output_dir=kit.out)
    network = next(one for one in network_specs(made) if one.name == "prediction")
    module = architecture_of("rnnt").build(network.name, made.values)
    infer = opened_on(replace(request_of(kit, "resnet50", "fp32", 8), network=network), module).instance(0)
    here: list[Any] = [np.zeros((5, *spec.fixed_shape), np.float32) for spec in network.inputs[2:]]
    there, pairs, is_new = list(here), [], np.ones(5, np.bool_)
    for label in (1, 2, 3):
        labels = np.full(5, label)
        there = list(infer({"label": labels, "is_new": is_new, "hidden": there[0], "cell": there[1]}).values())
        with torch.inference_mode():
            here = list(module(*(torch.as_tensor(value) for value in (labels, is_new, *here))))
        pairs += zip(there, here, strict=True)
    worst = max(float((found.cpu() - wanted).abs().max()) for found, wanted in pairs)
    most = LARGEST_DIFFERENCE["fp32"]
    kit.check("calls.rnnt.states", worst <= most, f"largest difference {worst:.1e}", f"{most:.0e} allowed")


def differing_repeats(infers: Sequence[Any], samples: Mapping[str, np.ndarray], repeats: int) -> int:
    """How many answers of instances that compute at the same time differ from their first one."""
    wrong = [0] * len(infers)

    def repeat(place: int) -> None:
        first = {name: np.array(array) for name, array in infers[place](samples).items()}
        for _ in range(repeats):
            wrong[place] += difference(infers[place](samples), first) > 0

    threads = [threading.Thread(target=repeat, args=(place,)) for place in range(len(infers))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(wrong)


def refuse_too_many(kit: Kit, stem: str, request: Any, infer: Any, tokens: int) -> None:
    """A batch that was not captured is an error with words, and the next one works."""
    from crowdperf.harness.base.errors import HarnessError
    from crowdperf.harness.base.torch_cuda import is_capturable

    if not is_capturable(request.network):
        return
    try:
        infer(inputs_of(request, 9, tokens))
        is_refused = False
    except HarnessError:
        is_refused = True
    infer(inputs_of(request, 1, tokens))
    kit.check(f"{stem}.too_many", is_refused, "a batch of 9 of 8 is refused", "it was answered")


def loops(kit: Kit) -> None:
    """Phase 3: plain torch, without harness and LoadGen."""
    for name in NETWORKS:
        for precision in kit.precisions:
            rates = bare_rates(kit, name, precision)
            how, best = max(rates.items(), key=lambda pair: pair[1])
            eager = max(rate for key, rate in rates.items() if key.startswith("eager"))
            figure = f"{best:,.1f} samples/s ({how})"
            kit.tell(f"loops.{name}.{precision}", PASS, figure, best=best, how=how, eager=eager, rates=rates)


def bare_rates(kit: Kit, name: str, precision: str) -> dict[str, float]:
    """Samples a second by way and batch: eager, and on a GPU as a graph and compiled."""
    import torch

    from crowdperf.harness.backends.pytorch.backend import build_module
    from crowdperf.harness.base.torch_cuda import set_fp32

    if kit.is_gpu:
        set_fp32(has_tf32=False)
        torch.backends.cudnn.benchmark = True
    wait = wait_of(kit)
    request, rates = request_of(kit, name, precision, 1), {}
    module = build_module(request).to(kit.device)
    dtype = getattr(torch, {"fp32": "float32", "bf16": "bfloat16"}[precision])
    for batch in (1, 8, 32, 128, 512) if kit.is_gpu else (1, 8):
        samples = inputs_of(request, batch, 384 if kit.is_gpu else 32)
        rows = [torch.from_numpy(array).to(kit.device) for array in samples.values()]
        rows = [row.to(dtype) if row.is_floating_point() else row for row in rows]
        if kit.is_gpu:
            rows = [row.contiguous(memory_format=torch.channels_last) if row.dim() == 4 else row for row in rows]
        with torch.inference_mode():
            rates[f"eager {batch}"] = batch / seconds_of(lambda: module(*rows), wait)  # noqa: B023
            if kit.is_gpu:
                rates[f"graph {batch}"] = batch / seconds_of(captured(module, rows), wait)
    if kit.is_gpu:
        rates |= compiled_rate(module, rows, wait)
    return rates


def captured(module: Any, rows: Sequence[Any]) -> Callable[[], None]:
    """The replay of a captured forward pass."""
    import torch

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            module(*rows)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        module(*rows)
    return graph.replay


def compiled_rate(module: Any, rows: Sequence[Any], wait: Callable[[], object]) -> dict[str, float]:
    """The rate of torch.compile at the largest batch; nothing where it cannot compile here."""
    import torch

    try:
        fast = torch.compile(module)
        with torch.inference_mode():
            return {f"compiled {len(rows[0])}": len(rows[0]) / seconds_of(lambda: fast(*rows), wait)}
    except Exception as error:  # a compiler that is missing, or any of torch's own errors
        print(f"torch.compile: {error}")
        return {}


PHASES: Mapping[str, Callable[[Kit], None]] = {
    one.__name__: one
    for one in (facts, devices, models, copies, calls, loops, harness, several, llama, quiet, refusals)
}


def main(words: Sequence[str] | None = None) -> int:
    """Command line entry of one step."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("step", choices=list(PHASES))
    parser.add_argument("--device", required=True, choices=("cuda", "cpu"))
    parser.add_argument("--out", required=True, type=Path)
    given = parser.parse_args(words)
    PHASES[given.step](Kit(given.device, given.out, given.step))
    return 0


if __name__ == "__main__":
    sys.exit(exit_code(main))
