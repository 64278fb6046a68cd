"""crowdperf.harness.base.torch_cuda and backends.tensorrt on a device that is the processor: which copies, captures
and bindings they make, and that the figures are right. Not a GPU: streams, pinned memory and CUDA graphs are only
pretended."""

import contextlib
import ctypes
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace

import pytest
from harness_support import need

need("numpy", "torch")

import numpy as np  # noqa: E402
import torch  # noqa: E402
from backend_toys import backend_request, toy_on_path  # noqa: E402

from crowdperf.benchmarks.resnet50 import model as resnet50  # noqa: E402
from crowdperf.benchmarks.unet3d import model as unet3d  # noqa: E402
from crowdperf.benchmarks.unet3d_brats import model as unet3d_brats  # noqa: E402
from crowdperf.harness.backends.tensorrt import backend as tensorrt  # noqa: E402
from crowdperf.harness.base import torch_cuda  # noqa: E402
from crowdperf.harness.base.architecture import architecture_of  # noqa: E402
from crowdperf.harness.base.errors import HarnessError, OutOfDeviceMemory  # noqa: E402
from crowdperf.harness.base.model_facts import ModelFacts  # noqa: E402
from crowdperf.harness.base.tensors import NetworkSpec, Rows, TensorSpec  # noqa: E402
from crowdperf.harness.base.torch_cuda import Captured, EagerCall, GraphCall  # noqa: E402
from crowdperf.models import make_model  # noqa: E402
from crowdperf.models.make_model import ModelRequest  # noqa: E402


class FakeDevice:
    """Computes on the processor and counts; a replay runs the forward pass again and writes into the same outputs."""

    def __init__(self) -> None:
        self.captures = self.replays = self.buffers = 0
        self.is_in_use = False

    @contextlib.contextmanager
    def use(self):
        assert not self.is_in_use
        self.is_in_use = True
        try:
            with torch.inference_mode():
                yield
        finally:
            self.is_in_use = False

    def synchronize(self) -> None:
        assert not self.is_in_use

    def pinned(self, dtype: torch.dtype, shape: Sequence[int]) -> torch.Tensor:
        return torch.zeros(tuple(shape), dtype=dtype)

    def buffer(self, dtype: torch.dtype, shape: Sequence[int]) -> torch.Tensor:
        self.buffers += 1
        return torch.zeros(tuple(shape), dtype=dtype)

    def capture(self, run: Callable[[], Sequence[torch.Tensor]]) -> Captured:
        self.captures += 1
        with torch.inference_mode():
            outputs = tuple(answer.clone() for answer in run())

        def replay() -> None:
            assert self.is_in_use
            self.replays += 1
            for output, answer in zip(outputs, run(), strict=True):
                output.copy_(answer)

        return Captured(replay, outputs)


class Doubled(torch.nn.Module):
    """Twice the input, and how many rows it saw."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[int] = []

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor]:
        self.seen.append(len(x))
        return (x * 2,)


SPEC = NetworkSpec(
    name="model",
    inputs=(TensorSpec(name="x", dtype="float32", shape=(3,)),),
    outputs=(TensorSpec(name="y", dtype="float32", shape=(3,)),),
)


@pytest.fixture
def request_of(tmp_path):
    with toy_on_path(tmp_path):
        yield lambda **changes: replace(backend_request("image", None), **{"network": SPEC, **changes})


@pytest.fixture(autouse=True)
def one_thread():
    """The networks are tiny: threads would wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def rows(count: int) -> np.ndarray:
    return np.arange(count * 3, dtype=np.float32).reshape(count, 3) + 1


def test_every_size_is_captured_before_the_first_call(request_of) -> None:
    device, module = FakeDevice(), Doubled()
    call = GraphCall(module, request_of(largest_batch=12), device)
    assert module.seen == [12, 8, 4, 2, 1]  # the largest first
    for count in (1, 3, 12, 5, 2):
        assert (call.infer({"x": rows(count)})["y"] == 2 * rows(count)).all()
    assert (device.captures, device.replays) == (5, 5)
    assert module.seen[5:] == [1, 4, 12, 8, 2]  # padded to the next captured size


def test_the_sizes_share_one_set_of_buffers(request_of) -> None:
    device = FakeDevice()
    GraphCall(Doubled(), request_of(largest_batch=64), device)
    assert device.buffers == 1


def test_more_samples_than_asked_for_are_refused(request_of) -> None:
    call = GraphCall(Doubled(), request_of(largest_batch=4), FakeDevice())
    with pytest.raises(HarnessError, match="got a batch of 5 samples, but at most 4"):
        call.infer({"x": rows(5)})


def test_an_eager_call_copies_in_and_out(request_of) -> None:
    call = EagerCall(Doubled(), request_of(), FakeDevice())
    for count in (2, 5, 1):
        assert (call.infer({"x": rows(count)})["y"] == 2 * rows(count)).all()


class Steps(torch.nn.Module):
    """A step of a loop: the state so far and a number to add to it."""

    def forward(self, state: torch.Tensor, number: torch.Tensor) -> tuple[torch.Tensor]:
        return (state + number[:, None],)


LOOP = NetworkSpec(
    name="model",
    inputs=(
        TensorSpec(name="state", dtype="float32", shape=(3,), is_state=True),
        TensorSpec(name="number", dtype="int64", shape=()),
    ),
    outputs=(TensorSpec(name="next_state", dtype="float32", shape=(3,), is_state=True),),
)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_step_of_a_loop_is_captured_and_its_states_stay_as_they_were(request_of, precision) -> None:
    device = FakeDevice()
    call = GraphCall(Steps(), request_of(network=LOOP, largest_batch=4, precision=precision), device)
    for count in (3, 1, 4):  # padded; as large as one was captured
        states = [rows(count)]
        for number in (1, 2, 3):
            states.append(call.infer({"state": states[-1], "number": np.full(count, number)})["next_state"])
        for state, added in zip(states, (0, 1, 3, 6), strict=True):
            assert np.array_equal(np.asarray(torch.as_tensor(state).float()), rows(count) + added)
    assert (device.captures, device.replays) == (3, 9)


def test_a_network_that_cannot_be_captured_runs_eagerly_and_says_so(request_of, capsys) -> None:
    class Uncapturable(FakeDevice):
        def capture(self, run: Callable[[], Sequence[torch.Tensor]]) -> Captured:
            raise RuntimeError("operation not permitted when stream is capturing")

    opened = torch_cuda.GpuBackend({0: Doubled()}, request_of(), lambda gpu: Uncapturable())
    assert (opened.instance(0)({"x": rows(3)})["y"] == 2 * rows(3)).all()
    assert "torch: no CUDA graphs of network model: operation not permitted" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("architecture", "kinds"),
    [
        ("stable_diffusion_xl", {"texts": EagerCall, "step": GraphCall, "image": GraphCall}),
        ("rnnt", {"encoder": EagerCall, "prediction": GraphCall, "joint": EagerCall}),
        ("whisper", {"encoder": EagerCall, "decoder": EagerCall}),
    ],
)
def test_networks_of_loops_answer_as_their_modules_do(tmp_path, request_of, architecture, kinds) -> None:
    made = ModelRequest(architecture=architecture, config="tiny", framework="pytorch", output_dir=tmp_path)
    for spec in make_model.network_specs(made):
        module = architecture_of(architecture).build(spec.name, made.values)
        inputs = make_model.example_inputs(made, spec, 2)
        asked = request_of(network=spec, largest_batch=2)
        opened = torch_cuda.GpuBackend({0: module}, asked, lambda gpu: FakeDevice())
        infer = opened.instance(0)
        named = {tensor.name: value.numpy() for tensor, value in zip(spec.inputs, inputs, strict=True)}
        with torch.inference_mode():
            wanted = module(*inputs)
        for _ in range(2):
            found = infer(named)
            answers = wanted if isinstance(wanted, tuple) else (wanted,)
            for output, answer in zip(spec.outputs, answers, strict=True):
                assert torch.allclose(torch.as_tensor(found[output.name]), answer, atol=1e-4), output.name
        assert type(opened._calls[0]) is kinds[spec.name]


class Scores(torch.nn.Module):
    """Scores of a window's voxels in three classes, often equal ones, by their value and place."""

    def forward(self, window: torch.Tensor) -> torch.Tensor:
        window = window + torch.linspace(-2, 2, window.shape[-1], dtype=window.dtype)
        return torch.cat((window.round(), -window.round(), (window * window).round() - 3), 1)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize(("window", "sides"), [(128, [(128, 128, 192)]), (16, [(24, 16, 32), (16, 16, 16)])])
def test_volumes_are_summed_on_the_device_as_they_are_on_the_host(request_of, window, sides, precision) -> None:
    """A real size, and a batch of volumes in several windows; a window's scores are never copied to the host."""
    model = unet3d.Unet3d(window=window, classes=3)
    random = np.random.default_rng(0)
    inputs = model.collate([{"volume": random.standard_normal(shape, dtype=np.float32) * 2} for shape in sides])
    asked = request_of(network=model.networks[0], largest_batch=1, precision=precision)
    opened = torch_cuda.GpuBackend({0: Scores()}, asked, lambda gpu: FakeDevice())
    respond = opened.responding(model.device_post, 0)
    respond(inputs)
    found = respond(inputs)
    assert "out output" not in opened._calls[0]._io._on_host
    wanted = model.predict({"model": opened.instance(0)}, inputs)
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype == np.uint8 and np.array_equal(one, other)
        assert len(np.unique(other)) == 3


@pytest.mark.parametrize("first", [0.0, float("nan")])
def test_a_score_that_is_no_number_gives_the_same_class_on_the_device(first) -> None:
    volume, weights = np.zeros(8, np.float32), np.ones((2, 2, 2), np.float32)
    scores = torch.tensor([first, 1.0, float("nan"), 2.0])[:, None, None, None].expand(4, 2, 2, 2)
    model = unet3d.Unet3d(window=2, classes=4)
    model._weights = weights
    networks = {"model": lambda inputs: {"output": scores[None]}}
    (found,) = model.device_post(
        networks, {"voxels": volume, "shapes": np.array([[2, 2, 2]])}, lambda name, value: torch.from_numpy(value)
    )
    assert np.array_equal(found.numpy(), unet3d.classes_of(scores.contiguous().numpy(), weights))


class Given(torch.nn.Module):
    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return images.reshape(len(images), -1)[:, : self.classes].clone()

    classes = 1001


@pytest.mark.parametrize("config", [{"classes": 1000}, {"classes": 1001, "input_name": "x"}])
def test_labels_of_images_are_those_of_the_host(request_of, config) -> None:
    """Scores with many equal ones; images as rows of pinned samples, and fewer than were captured."""
    model = resnet50.open_model(ModelFacts(config={"side": 32, **config}))
    module = Given()
    module.classes = config["classes"]
    opened = torch_cuda.GpuBackend(
        {0: module}, request_of(network=model.networks[0], largest_batch=8), lambda gpu: FakeDevice()
    )
    images = np.random.default_rng(1).integers(0, 40, (9, 3, 32, 32)).astype(np.float32)
    for value in (images[:5], Rows(images, np.array([7, 2, 3])), images[:8]):
        found = opened.responding(model.device_post, 0)({"image": value})
        wanted = model.predict({"model": opened.instance(0)}, {"image": value})
        assert found.dtype == wanted.dtype == np.float32 and np.array_equal(found, wanted)


def test_scores_are_halved_on_the_device(request_of) -> None:
    model = unet3d_brats.UnetBrats((8, 8, 8))
    opened = torch_cuda.GpuBackend(
        {0: torch.nn.Identity()}, request_of(network=model.networks[0]), lambda gpu: FakeDevice()
    )
    inputs = {"input": np.random.default_rng(2).standard_normal((1, 4, 8, 8, 8), dtype=np.float32) * 1e3}
    found = opened.responding(model.device_post, 0)(inputs)
    assert found.dtype == np.float16
    assert np.array_equal(found, model.predict({"model": opened.instance(0)}, inputs))


def test_a_batch_without_memory_for_what_follows_the_network_is_told_apart(request_of) -> None:
    def post(networks, inputs, to_device):
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    opened = torch_cuda.GpuBackend({0: Doubled()}, request_of(), lambda gpu: FakeDevice())
    with pytest.raises(OutOfDeviceMemory, match="a batch of 3 samples"):
        opened.responding(post, 0)({"voxels": np.zeros(99), "shapes": rows(3)})


class FakeContext:
    """TensorRT's execution context: y = 2x on the memory whose addresses it was given."""

    def __init__(self, largest: int) -> None:
        self._largest = largest
        self.profile = 0
        self.shape: tuple[int, ...] = ()
        self.addresses: dict[str, int] = {}
        self.calls: list[str] = []

    def set_optimization_profile_async(self, profile: int, handle: int) -> bool:
        self.profile = profile
        return True

    def set_input_shape(self, name: str, shape: tuple[int, ...]) -> bool:
        self.calls.append("shape")
        self.shape = shape
        return shape[0] <= self._largest

    def get_tensor_shape(self, name: str) -> tuple[int, ...]:
        return self.shape

    def set_tensor_address(self, name: str, address: int) -> None:
        self.calls.append(f"address of {name}")
        self.addresses[name] = address

    def execute_async_v3(self, handle: int) -> bool:
        assert handle == 77
        count = int(np.prod(self.shape))
        x, y = (np.ctypeslib.as_array((ctypes.c_float * count).from_address(self.addresses[name])) for name in "xy")
        y[:] = 2 * x
        return True


class FakeEngine:
    """Two tensors, x and y; contexts are remembered in the order in which they were made."""

    def __init__(
        self, largest: int = 8, profiles: int = 1, types: tuple[type, type] = (np.float32, np.float32)
    ) -> None:
        self.num_optimization_profiles, self.num_io_tensors = profiles, 2
        self._largest, self._types = largest, dict(zip("xy", types, strict=True))
        self.contexts: list[FakeContext] = []

    def create_execution_context(self) -> FakeContext:
        self.contexts.append(FakeContext(self._largest))
        return self.contexts[-1]

    def get_tensor_name(self, number: int) -> str:
        return "xy"[number]

    def get_tensor_mode(self, name: str) -> str:
        return "in" if name == "x" else "out"

    def get_tensor_dtype(self, name: str) -> type:
        return self._types[name]


LIBRARY = SimpleNamespace(TensorIOMode=SimpleNamespace(INPUT="in", OUTPUT="out"), nptype=lambda dtype: dtype)
FREE = replace(SPEC, inputs=(replace(SPEC.inputs[0], shape=("n",)),), outputs=(replace(SPEC.outputs[0], shape=("n",)),))


def test_tensorrt_keeps_its_bindings_between_calls(request_of) -> None:
    engine, device = FakeEngine(), FakeDevice()
    call = tensorrt.Call(engine, request_of(network=FREE), device, 77)
    context = engine.contexts[0]
    for count in (4, 4, 4):
        assert (call.infer({"x": rows(count)})["y"] == 2 * rows(count)).all()
    assert context.calls == ["shape", "address of x", "address of y"]
    assert (call.infer({"x": rows(2)})["y"] == 2 * rows(2)).all()  # fits into the buffers
    assert context.calls[3:] == ["shape"]
    assert (call.infer({"x": rows(8)})["y"] == 2 * rows(8)).all()  # larger ones are made
    assert context.calls[4:] == ["shape", "address of x", "address of y"]
    assert device.buffers == 4


def test_tensorrt_captures_fixed_sizes_before_the_first_call_and_runs_others_layer_by_layer(request_of) -> None:
    engine, device = FakeEngine(), FakeDevice()
    call = tensorrt.Call(engine, request_of(largest_batch=8), device, 77)
    assert (device.captures, device.buffers) == (4, 2)
    for count in (8, 1, 3, 4, 5):
        assert (call.infer({"x": rows(count)})["y"] == 2 * rows(count)).all()
    assert (device.replays, device.buffers) == (3, 2)
    call.close()


def test_tensorrt_answers_single_samples_with_the_profile_that_is_tuned_for_them(request_of) -> None:
    engine = FakeEngine(profiles=2)
    call = tensorrt.Call(engine, request_of(network=FREE), FakeDevice(), 77)
    assert [context.profile for context in engine.contexts] == [0, 1]
    for count in (4, 1):
        assert (call.infer({"x": rows(count)})["y"] == 2 * rows(count)).all()
    assert [context.shape for context in engine.contexts] == [(4, 3), (1, 3)]


@pytest.mark.parametrize(("largest", "replays"), [(3, 2), (1, 0)])  # captured; layer by layer
def test_tensorrt_reads_tensors_that_a_device_post_gives_it(request_of, largest: int, replays: int) -> None:
    """Also one that is not contiguous: the engine reads memory one value after the other."""

    def post(networks, inputs, to_device):
        twice = networks["model"]({"x": to_device("all", inputs["x"]).t()})["y"].t()
        return networks["model"]({"x": twice})["y"] + 1

    device = FakeDevice()
    call = tensorrt.Call(FakeEngine(), request_of(largest_batch=largest), device, 77)
    assert (call.respond(post, {"x": rows(3)}) == 4 * rows(3) + 1).all()
    assert device.replays == replays


@pytest.mark.parametrize(("largest", "replays"), [(8, 2), (1, 0)])  # captured; layer by layer
def test_tensorrt_gives_each_state_memory_of_its_own(request_of, largest: int, replays: int) -> None:
    state = NetworkSpec(
        name="model",
        inputs=(TensorSpec(name="x", dtype="float32", shape=(3,), is_state=True),),
        outputs=(TensorSpec(name="y", dtype="float32", shape=(3,), is_state=True),),
    )
    device = FakeDevice()
    call = tensorrt.Call(FakeEngine(), request_of(network=state, largest_batch=largest), device, 77)
    first = call.infer({"x": torch.from_numpy(rows(2))})["y"]
    second = call.infer({"x": first})["y"]
    assert (first.numpy() == 2 * rows(2)).all()
    assert (second.numpy() == 4 * rows(2)).all()
    assert device.replays == replays


def test_a_shape_that_the_engine_was_not_built_for_is_named(request_of) -> None:
    call = tensorrt.Call(FakeEngine(largest=2), request_of(network=FREE), FakeDevice(), 77)
    with pytest.raises(HarnessError, match=r"not built for x\[3, 3\]"):
        call.infer({"x": rows(3)})


@pytest.mark.parametrize(
    ("network", "types", "said"),
    [
        (SPEC, (np.float32, np.float16), "outputs of other types than the benchmark: y is float16, not float32"),
        (SPEC, (np.int32, np.float32), "inputs of other types than the benchmark: x is int32, not float32"),
        (
            replace(SPEC, outputs=(replace(SPEC.outputs[0], name="z"),)),
            (np.float32, np.float32),
            "has no output z, only",
        ),
        (replace(SPEC, inputs=()), (np.float32, np.float32), "needs inputs that the benchmark does not provide: x"),
    ],
)
def test_an_engine_whose_tensors_are_not_the_benchmarks_is_refused(network, types, said: str) -> None:
    """float16 in the memory of a float32 output was read as other numbers, without a word."""
    tensorrt.require_tensors(LIBRARY, FakeEngine(), SPEC)
    with pytest.raises(HarnessError, match=said):
        tensorrt.require_tensors(LIBRARY, FakeEngine(types=types), network)


def test_rows_of_a_larger_array_are_copied_as_they_lie(request_of) -> None:
    device = FakeDevice()
    io, array = torch_cuda.DeviceIo(device), rows(10)
    chosen = Rows(array, np.array([7, 2, 3, 4, 0]))
    with device.use():
        assert (io.to_device("x", chosen).numpy() == array[[7, 2, 3, 4, 0]]).all()
    for call in (
        GraphCall(Doubled(), request_of(), FakeDevice()),
        EagerCall(Doubled(), request_of(), FakeDevice()),
        tensorrt.Call(FakeEngine(), request_of(), FakeDevice(), 77),
    ):
        assert (call.infer({"x": chosen})["y"] == 2 * array[[7, 2, 3, 4, 0]]).all()
    assert list(chosen.runs()) == [(0, 7, 1), (1, 2, 3), (4, 0, 1)]
    assert (np.asarray(chosen) == array[[7, 2, 3, 4, 0]]).all()
    assert (chosen.shape, chosen.dtype) == ((5, 3), np.float32)


class OutOfMemory(Doubled):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor]:
        if len(x) > 4:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")
        return super().forward(x)


@pytest.mark.parametrize("kind", [EagerCall, GraphCall])
def test_a_batch_that_the_gpu_has_no_memory_for_is_told_apart_from_other_errors(request_of, kind) -> None:
    call = kind(OutOfMemory(), request_of(largest_batch=16), FakeDevice())
    assert (call.infer({"x": rows(3)})["y"] == 2 * rows(3)).all()
    with pytest.raises(OutOfDeviceMemory, match="a batch of 16 samples"):
        call.infer({"x": rows(16)})


def test_instances_are_added_to_a_network_that_is_open_and_freed_from_the_end(request_of) -> None:
    devices: list[FakeDevice] = []

    def device_of(gpu: int) -> FakeDevice:
        devices.append(FakeDevice())
        return devices[-1]

    opened = torch_cuda.GpuBackend({0: Doubled()}, request_of(), device_of)
    first = opened.instance(0)
    assert opened.instance(0) == first
    second = opened.instance(1)
    assert (second({"x": rows(2)})["y"] == 2 * rows(2)).all()
    opened.keep(1)
    assert opened.instance(0) == first
    assert (first({"x": rows(2)})["y"] == 2 * rows(2)).all()
    opened.close()
    assert len(devices) == 2


class Machine:
    """A GPU of stand-ins for `run.Opener`: the networks that were opened, and the devices of their instances."""

    def __init__(self, request_of, monkeypatch, memory: int = 9, device: str = "cuda") -> None:
        """memory: how many instances it has room for at once."""
        need("mlperf_loadgen")
        from crowdperf.harness.runner import components, run

        monkeypatch.setattr(components, "near_gpus", lambda gpus, instances: ())
        self.opened: list[torch_cuda.GpuBackend] = []
        self.devices: list[FakeDevice] = []
        self._request_of, self._memory = request_of, memory
        self._opening = components
        config = SimpleNamespace(
            model="digits", device=device, gpus=(0,), serving=None, precision="fp32", output_dir=None, threads=None
        )
        model = SimpleNamespace(
            networks=[SPEC], predict=lambda networks, inputs: networks["model"](inputs)["y"], response=SPEC.outputs[0]
        )
        parts = SimpleNamespace(
            config=config, facts=SimpleNamespace(files={}, config={}, engine={}), model=model, backend=self
        )
        library = SimpleNamespace(loaded=[0], single={0: {"x": rows(1)}})
        self.opener = run.Opener(parts, library, 4, 60.0)

    def open_backend(self, request) -> torch_cuda.GpuBackend:
        self.opened.append(torch_cuda.GpuBackend({0: Doubled()}, self._request_of(largest_batch=4), self._device))
        return self.opened[-1]

    def _device(self, gpu: int) -> FakeDevice:
        if len(self.devices) >= self._memory:
            raise OutOfDeviceMemory("no room for another instance")
        self.devices.append(FakeDevice())
        return self.devices[-1]

    def open(self, instances: int):
        return self.opener.open(self._opening.Layout(instances, 1))

    @staticmethod
    def answers(work) -> list[bool]:
        """Whether each instance's answer is right; the call of a freed one raises."""
        return [bool((networks["model"]({"x": rows(3)})["y"] == 2 * rows(3)).all()) for networks in work.networks]


def test_layouts_on_a_gpu_share_the_networks_and_the_loser_frees_only_what_is_its_own(request_of, monkeypatch) -> None:
    gpu = Machine(request_of, monkeypatch)
    one, two = gpu.open(1), gpu.open(2)
    assert (len(gpu.opened), len(gpu.devices)) == (1, 2)  # the weights once, a stream for each instance
    assert gpu.answers(one) == [True] and gpu.answers(two) == [True, True]
    gpu.opener.close(two)
    assert gpu.answers(one) == [True]
    with pytest.raises(OutOfDeviceMemory):
        gpu.answers(two)  # its second instance is freed
    assert gpu.answers(gpu.open(2)) == [True, True]
    assert (len(gpu.opened), len(gpu.devices)) == (1, 3)


def test_the_layout_that_won_keeps_the_networks_that_the_first_one_opened(request_of, monkeypatch) -> None:
    gpu = Machine(request_of, monkeypatch)
    one, two = gpu.open(1), gpu.open(2)
    gpu.opener.close(one)
    assert gpu.answers(two) == [True, True]
    gpu.opener.opened(two).close()
    with pytest.raises(OutOfDeviceMemory):
        gpu.answers(two)
    assert not gpu.opened[0]._modules


def test_a_layout_that_the_gpu_has_no_memory_for_leaves_the_open_one_as_it_was(request_of, monkeypatch) -> None:
    gpu = Machine(request_of, monkeypatch, memory=2)
    one = gpu.open(1)
    with pytest.raises(OutOfDeviceMemory):
        gpu.open(3)
    assert gpu.answers(one) == [True]
    assert len(gpu.opened[0]._calls) == 1
    alone = Machine(request_of, monkeypatch, memory=0)
    with pytest.raises(OutOfDeviceMemory):
        alone.open(1)
    assert not alone.opened[0]._modules  # nothing is left open


def test_layouts_on_the_processor_open_their_own_networks(request_of, monkeypatch) -> None:
    processor = Machine(request_of, monkeypatch, device="cpu")
    one, two = processor.open(1), processor.open(2)
    assert len(processor.opened) == 2
    processor.opener.close(one)
    assert processor.answers(two) == [True, True]


@pytest.mark.parametrize(("has_post", "is_able", "more"), [(True, True, 1), (True, False, 0), (False, True, 0)])
def test_a_models_device_post_answers_where_the_backend_can_use_it(
    request_of, monkeypatch, has_post, is_able, more
) -> None:
    gpu = Machine(request_of, monkeypatch)
    if has_post:
        gpu.opener._parts.model.device_post = lambda networks, inputs, to_device: networks["model"](inputs)["y"] + 1
    if not is_able:
        plain = torch_cuda.GpuBackend({0: Doubled()}, request_of(), lambda gpu: FakeDevice())
        gpu.open_backend = lambda request: SimpleNamespace(
            instance=plain.instance, versions=plain.versions, close=plain.close
        )
    work = gpu.open(2)
    for networks in work.networks:
        assert (work.predict(networks, {"x": rows(3)}) == 2 * rows(3) + more).all()


@pytest.mark.parametrize(("has_tf32", "wanted"), [(True, "tf32"), (False, "ieee")])
def test_every_switch_of_torch_for_fp32_is_set(has_tf32: bool, wanted: str) -> None:
    """cuDNN's convolutions and recurrent networks are "tf32" until somebody says otherwise."""
    cudnn = torch.backends.cudnn
    parts = (torch.backends, torch.backends.cuda.matmul, cudnn, cudnn.conv, cudnn.rnn)
    before = [part.fp32_precision for part in parts]
    torch_cuda.set_fp32(has_tf32)
    found = [part.fp32_precision for part in parts]
    for part, value in zip(parts, before, strict=True):
        part.fp32_precision = value
    assert found == [wanted] * len(parts)


def test_an_older_torch_has_two_switches(monkeypatch) -> None:
    matmul, cudnn = SimpleNamespace(allow_tf32=True), SimpleNamespace(allow_tf32=True)
    backends = SimpleNamespace(cuda=SimpleNamespace(matmul=matmul), cudnn=cudnn)
    monkeypatch.setattr(torch_cuda, "torch", SimpleNamespace(backends=backends))
    torch_cuda.set_fp32(has_tf32=False)
    assert (matmul.allow_tf32, cudnn.allow_tf32) == (False, False)
