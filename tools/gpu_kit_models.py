"""The steps of the GPU kit for benchmarks of several networks and for a language model: see gpu_kit.py. All weights are
random and made on the device. Not run on hardware."""

import contextlib
import copy
import functools
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from gpu_kit import PASS, Kit, seconds_of

SEVERAL = ("whisper", "unet3d", "retinanet", "stable_diffusion_xl")
SIZES: Mapping[str, tuple[Mapping[str, int], int]] = {
    "tiny": ({"vocab": 256, "hidden": 64, "layers": 2, "heads": 4, "kv_heads": 2, "head_size": 16}, 128),
    "1b": ({"vocab": 128_256, "hidden": 2048, "layers": 16, "heads": 32, "kv_heads": 8, "head_size": 64}, 8192),
    "8b": ({"vocab": 128_256, "hidden": 4096, "layers": 32, "heads": 32, "kv_heads": 8, "head_size": 128}, 14_336),
}
"""Sizes of a Llama, and those between its layers: config.json of Llama-3.2-1B and Llama-3.1-8B (read 2026-11-29)."""
SAME_TOKENS = 32


def wait_of(kit: Kit) -> Callable[[], object]:
    """What waits for the device."""
    import torch

    return torch.cuda.synchronize if kit.is_gpu else (lambda: None)


def _time_and_busy(kit: Kit, run: Callable[[], object], wait: Callable[[], object]) -> tuple[float, float]:
    """The time of a call in s, and the percentage of it that the device computes. The rest is the host's."""
    from torch.profiler import ProfilerActivity, profile

    median_s = seconds_of(run, wait, 5) if kit.is_gpu else 0.0
    with profile(activities=[ProfilerActivity.CUDA if kit.is_gpu else ProfilerActivity.CPU]) as found:
        started_s = time.perf_counter()
        run()
        wait()
        took_s = time.perf_counter() - started_s
    name = "self_cpu_time_total"
    events = found.key_averages()
    if kit.is_gpu:  # the older name is that of torch up to 2.3
        is_new = all(hasattr(event, "self_device_time_total") for event in events)
        name = "self_device_time_total" if is_new else "self_cuda_time_total"
    computed_us = sum(getattr(event, name) for event in events)
    return median_s or took_s, min(100.0, computed_us / took_s / 1e4)


class Processor:
    """What torch_cuda asks of a device, on the processor: nothing is copied, a replay runs again."""

    @contextlib.contextmanager
    def use(self) -> Iterator[None]:
        """Compute without gradients."""
        import torch

        with torch.inference_mode():
            yield

    def synchronize(self) -> None:
        """Nothing is queued."""

    def pinned(self, dtype: Any, shape: Sequence[int]) -> Any:
        """Zeros."""
        import torch

        return torch.zeros(tuple(shape), dtype=dtype)

    buffer = pinned

    def capture(self, run: Callable[[], Sequence[Any]]) -> Any:
        """A recording that computes anew."""
        import torch

        from crowdperf.harness.base.torch_cuda import Captured

        with torch.inference_mode():
            outputs = tuple(answer.clone() for answer in run())

        def replay() -> None:
            for kept, answer in zip(outputs, run(), strict=True):
                kept.copy_(answer)

        return Captured(replay, outputs)


def opened_on(request: Any, module: Any) -> Any:
    """The backend of a network on the GPU, or the same code on the processor."""
    from crowdperf.harness.base import torch_cuda

    if request.device == "cuda":
        return torch_cuda.open_on_gpus(request, copy.deepcopy(module).to)
    return torch_cuda.GpuBackend({0: module}, request, lambda gpu: Processor())


def several(kit: Kit) -> None:
    """Phase 5: each network of benchmarks with several, or with large samples, once: finite numbers, and how much of
    the time the device computes. A NaN in fp16 only is an overflow: its network then needs `overflows_in_fp16`."""
    import torch

    from crowdperf.models.make_model import ModelRequest, network_specs

    if not kit.is_gpu:
        torch.set_num_threads(1)
    for architecture in SEVERAL:
        made = ModelRequest(architecture=architecture, config=kit.config, framework="pytorch", output_dir=kit.out)
        for spec in network_specs(made):
            for precision in ("bf16", "fp16") if kit.is_gpu else ("bf16",):
                _one_network(kit, made, spec, precision)
    reduced(kit)


def reduced(kit: Kit) -> None:
    """Sum and classes of a volume's windows on the device (`device_post` of 3d-unet) against those on the host, of the
    same network: how many labels differ, and how long both take."""
    import numpy as np

    from crowdperf.benchmarks.unet3d.model import open_model
    from crowdperf.harness.base.architecture import architecture_of
    from crowdperf.harness.base.backend import BackendRequest
    from crowdperf.harness.base.model_facts import ModelFacts
    from crowdperf.models.make_model import ModelRequest

    made = ModelRequest(architecture="unet3d", config=kit.config, framework="pytorch", output_dir=kit.out)
    model = open_model(ModelFacts(config=made.values))
    request = BackendRequest(
        network=model.networks[0], path=None, architecture="unet3d", config=made.values, precision="fp32",
        device=kit.device, gpus=(0,) if kit.is_gpu else (), instances=1, threads=1, cores=(), is_spinning=False,
        largest_batch=1,
    )  # fmt: skip
    backend = opened_on(request, architecture_of("unet3d").build("model", made.values).eval())
    side = made.values["window"]
    volume = np.random.default_rng(0).standard_normal((side, side, 3 * side // 2), dtype=np.float32)
    batch = model.collate([{"volume": volume}])
    on_host = functools.partial(model.predict, {"model": backend.instance(0)}, batch)
    on_device = functools.partial(backend.responding(model.device_post, 0), batch)
    differing = int((on_host()[0] != on_device()[0]).sum())
    host_s, device_s = (seconds_of(run, lambda: None, 2) for run in (on_host, on_device))
    kit.check("several.unet3d.device_post", not differing,
              f"{1e3 * device_s:.1f} ms, on the host {1e3 * host_s:.1f} ms", f"{differing} labels differ",
              device_ms=1e3 * device_s, host_ms=1e3 * host_s)  # fmt: skip


def _one_network(kit: Kit, made: Any, spec: Any, precision: str) -> None:
    import torch

    from crowdperf.harness.base.architecture import architecture_of
    from crowdperf.models.make_model import example_inputs

    names = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
    dtype, wait = names[spec.precision_in(precision)], wait_of(kit)
    torch.manual_seed(0)
    with torch.device(kit.device):
        module = architecture_of(made.architecture).build(spec.name, made.values).eval().to(dtype)
    rows = [row.to(kit.device) for row in example_inputs(made, spec, 1)]
    rows = [row.to(dtype) if row.is_floating_point() else row for row in rows]
    with torch.inference_mode():
        answers = module(*rows)
        run = functools.partial(module, *rows)
        took_s, busy = _time_and_busy(kit, run, wait)
    answers = answers if isinstance(answers, tuple) else (answers,)
    is_finite = all(bool(torch.isfinite(answer).all()) for answer in answers if answer.is_floating_point())
    kit.check(f"several.{made.architecture}.{spec.name}.{precision}", is_finite,
              f"{1e3 * took_s:.1f} ms, {busy:.0f} % of it on the device", "NaN or infinity",
              ms=1e3 * took_s, busy_percent=busy)  # fmt: skip


def _random_llama(kit: Kit, size: str, dtype: Any) -> tuple[Any, int]:
    """A model with random weights, and their bytes."""
    import torch

    from crowdperf.harness.backends.torch_llm.llama import Llama, LlamaConfig

    sizes, between = SIZES[size]
    config = LlamaConfig(
        **sizes, longest=4096, norm_epsilon=1e-5, rope_base=500_000.0, rope_scaling=None, is_tied=True, end_tokens=()
    )
    hidden, queries, keys = config.hidden, config.heads * config.head_size, config.kv_heads * config.head_size
    shapes = {"model.embed_tokens": (config.vocab, hidden), "model.norm": (hidden,)}
    for number in range(config.layers):
        shapes |= {
            f"model.layers.{number}.{name}": shape
            for name, shape in {
                "input_layernorm": (hidden,), "post_attention_layernorm": (hidden,),
                "self_attn.q_proj": (queries, hidden), "self_attn.k_proj": (keys, hidden),
                "self_attn.v_proj": (keys, hidden), "self_attn.o_proj": (hidden, queries),
                "mlp.gate_proj": (between, hidden), "mlp.up_proj": (between, hidden),
                "mlp.down_proj": (hidden, between),
            }.items()
        }  # fmt: skip
    device = torch.device(kit.device)
    generator = torch.Generator(device).manual_seed(0)
    weights = {
        f"{name}.weight": torch.randn(shape, generator=generator, device=device, dtype=dtype) / math.sqrt(hidden)
        if len(shape) > 1 else torch.ones(shape, device=device, dtype=dtype)
        for name, shape in shapes.items()
    }  # fmt: skip
    return Llama(config, weights, dtype, device), sum(weight.nbytes for weight in weights.values())


def _differing_tokens(model: Any, prompt: Sequence[int]) -> int:
    """How many of the next tokens, one after the other from the cache, are others than of the whole text each time."""
    model.make_cache(2, len(prompt) + SAME_TOKENS)
    tokens = [int(model.prompt(0, prompt).argmax())]
    whole = [int(model.prompt(1, prompt).argmax())]
    for number in range(1, SAME_TOKENS):
        tokens.append(int(model.following(tokens[-1:], [len(prompt) + number - 1]).argmax()))
        whole.append(int(model.prompt(1, [*prompt, *whole]).argmax()))
    return sum(one != other for one, other in zip(tokens, whole, strict=True))


def _bandwidth(kit: Kit, count: int, wait: Callable[[], object]) -> float:
    """Bytes/s that the device's memory reads and writes, by copies of `count` bytes."""
    import torch

    source, target = torch.empty((2, count), dtype=torch.uint8, device=kit.device)
    took_s: float = seconds_of(lambda: target.copy_(source), wait)
    return 2 * count / took_s


def llama(kit: Kit) -> None:
    """Phase 6: the engine torch_llm without LoadGen: equal tokens from its cache, prompts and answers in tokens/s, and
    answers as a part of what reading weights and cache once for each token allows. The engine captures no graphs, so
    that part has no limit here."""
    import torch

    wait = wait_of(kit)
    if not kit.is_gpu:
        torch.set_num_threads(1)
    with torch.inference_mode():
        model, _ = _random_llama(kit, "tiny", torch.float32)
        wrong = _differing_tokens(model, list(range(1, 20)))
        kit.check("llama.tokens", not wrong, f"{SAME_TOKENS} tokens, {wrong} differ", "the cache gives other tokens")
        bytes_per_s = _bandwidth(kit, 1 << 29 if kit.is_gpu else 1 << 22, wait)
        kit.tell("llama.bandwidth", PASS, f"{bytes_per_s / 1e9:,.1f} GB/s", gb_per_s=bytes_per_s / 1e9)
        del model
        for size in ("1b", "8b") if kit.is_gpu else ("tiny",):
            _speed(kit, size, torch.bfloat16, bytes_per_s, wait)


def _speed(kit: Kit, size: str, dtype: Any, bytes_per_s: float, wait: Callable[[], object]) -> None:
    length, batches = (1024, (1, 16, 64, 256)) if kit.is_gpu else (32, (1, 4))
    model, weight_bytes = _random_llama(kit, size, dtype)
    model.make_cache(batches[-1], length + 1)
    prompt = [number % model.config.vocab for number in range(length)]
    took_s = seconds_of(lambda: model.prompt(0, prompt), wait, 5)
    kit.tell(f"llama.{size}.prompt", PASS, f"{length / took_s:,.0f} tokens/s", tokens_per_s=length / took_s)
    for rows in batches:
        run = functools.partial(model.following, [1] * rows, [length] * rows)
        took_s = seconds_of(run, wait, 10)
        least_s = (weight_bytes + rows * model.config.cache_bytes(length, dtype)) / bytes_per_s
        share, rate = 100 * least_s / took_s, rows / took_s
        kit.tell(f"llama.{size}.answers.{rows}", PASS, f"{rate:,.0f} tokens/s, {share:.0f} % of the bandwidth",
                 tokens_per_s=rate, bandwidth_percent=share)  # fmt: skip
