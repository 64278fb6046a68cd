"""The backend neuron without NeuronCores: the layout of its repository, its tensors, the split of the cores, what its
model's process does with them, and what is traced where AWS's compiler would stand."""

import io
import json
import os
import sys
import types
from pathlib import Path

import pytest
from harness_support import need
from recipe_programs import loaded

from crowdperf.harness.backends.neuron import layout
from crowdperf.harness.backends.triton import repository
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.tensors import NetworkSpec, TensorSpec
from crowdperf.models import neuron_inputs, triton_repository
from crowdperf.rules.backends import BACKENDS, STAND_IN_BACKENDS, misfit, simulated
from crowdperf.rules.server_settings import ServedModel

(np,) = need("numpy")

NAMES = ("input_ids", "input_mask", "segment_ids")
BERT = NetworkSpec(
    name="model",
    inputs=tuple(TensorSpec(name=name, dtype="int64", shape=("tokens",)) for name in NAMES),
    outputs=tuple(TensorSpec(name=name, dtype="float32", shape=("tokens",)) for name in ("start", "end")),
)
RESNET = NetworkSpec(
    name="model",
    inputs=(TensorSpec(name="image", dtype="float32", shape=(3, 224, 224)),),
    outputs=(TensorSpec(name="scores", dtype="float32", shape=(1000,)),),
)
SIZES = {"tokens": 384}


def test_tensors_are_called_and_typed_as_nvidias_document_has_them() -> None:
    wire = layout.wire_network(BERT, SIZES)
    assert [(spec.name, spec.dtype, spec.shape) for spec in wire.inputs] == [
        (f"INPUT__{number}", "int32", (384,)) for number in range(3)
    ]
    assert [(spec.name, spec.dtype, spec.shape) for spec in wire.outputs] == [("OUTPUT__0", "float32", (384, 2))]
    plain = layout.wire_network(RESNET, {})
    assert [(spec.name, spec.shape) for spec in (*plain.inputs, *plain.outputs)] == [
        ("INPUT__0", (3, 224, 224)), ("OUTPUT__0", (1000,)),
    ]  # fmt: skip
    with pytest.raises(HarnessError, match="the size tokens of input_ids has no bound"):
        layout.wire_network(BERT, {})


def test_a_batch_is_padded_on_its_way_and_its_answer_cut() -> None:
    wire = layout.wire_network(BERT, SIZES)
    inputs = {name: np.arange(10, dtype=np.int64).reshape(2, 5) + number for number, name in enumerate(NAMES)}
    sent = layout.to_wire(BERT, wire, inputs)
    assert sent["INPUT__2"].shape == (2, 384) and sent["INPUT__2"].dtype == np.int32
    assert sent["INPUT__1"][1, :5].tolist() == [6, 7, 8, 9, 10] and not sent["INPUT__1"][:, 5:].any()
    answer = np.arange(2 * 384 * 2, dtype=np.float32).reshape(2, 384, 2)
    found = layout.from_wire(BERT, inputs, {"OUTPUT__0": answer})
    assert found["start"].shape == (2, 5)
    assert np.array_equal(found["end"], answer[:, :5, 1])


def settings_of(cores: int, count: int) -> layout.NeuronSettings:
    served = ServedModel(instance_count=count, max_batch_size=5)
    return layout.NeuronSettings(served=served, cores=cores, threads_per_core=1, library="torch_neuron")


def test_the_config_has_the_four_parameters_and_reads_back() -> None:
    text = layout.config_text("resnet50", "resnet50.pt", layout.wire_network(RESNET, {}), settings_of(16, 2))
    assert 'backend: "python"' in text and "count: 2 kind: KIND_MODEL" in text and "dims: [ 3, 224, 224 ]" in text
    for key, value in (
        ("COMPILED_MODEL", "resnet50.pt"), ("NEURON_CORE_START_INDEX", "0"), ("NEURON_CORE_END_INDEX", "15"),
        ("NUM_THREADS_PER_CORE", "1"),
    ):  # fmt: skip
        assert f'key: "{key}" value {{ string_value: "{value}" }}' in text


@pytest.mark.parametrize(
    ("cores", "count", "expected"),
    [(4, 1, ["0-3"]), (4, 2, ["0-1", "2-3"]), (16, 3, ["0-4", "5-9", "10-14"]), (4, 4, ["0-0", "1-1", "2-2", "3-3"])],
)
def test_each_instance_gets_its_part_of_the_cores(cores: int, count: int, expected: list[str]) -> None:
    assert list(layout.core_ranges(settings_of(cores, count))) == expected


def test_more_instances_than_cores_are_refused() -> None:
    with pytest.raises(HarnessError, match="5 instances share 4 NeuronCores"):
        layout.core_ranges(settings_of(4, 5))


def test_a_repository_can_be_moved(tmp_path: Path) -> None:
    compiled = tmp_path / "resnet50.pt"
    compiled.write_bytes(b"compiled")
    layout.write_repository(tmp_path / "repository", "resnet50", compiled, "text")
    version = tmp_path / "repository" / "resnet50" / "1"
    assert (version / "resnet50.pt").read_bytes() == b"compiled"
    assert (version / "model.py").read_bytes() == layout.PROGRAM.read_bytes()
    assert (version.parent / "config.pbtxt").read_text() == "text"


def compiled_info(folder: Path, **engine: object) -> Path:
    """The model.json of BERT as generate-engine,_neuron leaves it, with another content in the place of the network."""
    (folder / "bert.pt").write_bytes(b"compiled")
    facts = {"runs_with": "torch_neuron", "compiled_batch": 1, "sizes": SIZES, **engine}
    rows = {
        "format": 1,
        "name": "bert",
        "framework": "neuron",
        "files": {"model": {"file": "bert.pt"}},
        "engine": facts,
    }
    path = folder / "model.json"
    path.write_text(json.dumps(rows))
    return path


@pytest.fixture(autouse=True)
def _without_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    """Triton's schema comes with tritonclient, which the recipe installs and these tests do without."""
    monkeypatch.setattr(repository, "require_valid", lambda text, model: None)


def generated(tmp_path: Path, *words: str, **engine: object) -> Path:
    """The model's folder of a repository that is made to keep."""
    info = compiled_info(tmp_path, **engine)
    asked = ["--model=bert-99", f"--model_info={info}", f"--output_dir={tmp_path}"]
    return triton_repository.generate(triton_repository.parse([*asked, *words])) / "bert"


def test_a_repository_to_keep_has_nvidias_layout(tmp_path: Path) -> None:
    """As gen_triton_model.py is called for bert by harness_triton_inferentia of v2.0: three INT32 of 384 in, FP32 of
    384 x 2 out, the cores and instances that are given."""
    words = ("--neuron_core_range=4:7", "--instance_count=2", "--threads_per_core=3", "--max_batch_size=4")
    folder = generated(tmp_path, *words)
    text = (folder / "config.pbtxt").read_text()
    assert text.count("TYPE_INT32") == 3 and "dims: [ 384, 2 ]" in text and "max_batch_size: 4" in text
    for key, value in (("NEURON_CORE_START_INDEX", 4), ("NEURON_CORE_END_INDEX", 7), ("NUM_THREADS_PER_CORE", 3)):
        assert f'key: "{key}" value {{ string_value: "{value}" }}' in text
    assert "count: 2 kind: KIND_MODEL" in text and '"torch_neuron"' in text and "dynamic_batching" not in text
    assert str(tmp_path) not in text
    assert not (folder / "1" / "bert.pt").is_symlink() and (folder / "1" / "bert.pt").read_bytes() == b"compiled"
    assert "class TritonPythonModel" in (folder / "1" / "model.py").read_text()
    again = (folder / "config.pbtxt").read_bytes()
    assert (generated(tmp_path, *words) / "config.pbtxt").read_bytes() == again


def test_the_largest_batch_is_what_all_cores_take_at_once(tmp_path: Path) -> None:
    assert "max_batch_size: 20" in (generated(tmp_path, compiled_batch=5) / "config.pbtxt").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--neuron_core_range=3",), "--neuron_core_range='3'; allowed: FIRST:LAST"),
        (("--neuron_core_range=4:3",), "--neuron_core_range='4:3'; allowed: FIRST:LAST"),
        (("--neuron_core_range=0:1", "--instance_count=3"), "3 instances share 2 NeuronCores"),
        (("--batching=server",), "processes requests one at a time"),
        (("--threads_per_core=0",), "--threads_per_core"),
        (("--instance_count=0",), "instance_count: found 0; allowed: a whole number from 1"),
        (("--max_queue_delay_us=5",), "serving.max_queue_delay_us: found 5"),
    ],
)
def test_what_a_compiled_network_cannot_be_served_with_is_refused(
    tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    with pytest.raises(HarnessError, match=said):
        generated(tmp_path, *words)


def test_the_stand_in_is_one_and_takes_the_place_of_neuron_alone() -> None:
    assert "neuron_simulated" in STAND_IN_BACKENDS and "neuron" not in STAND_IN_BACKENDS
    assert "SIMULATED" in BACKENDS["neuron_simulated"].stand_in
    assert simulated("neuron", "neuron", "inferentia") == ("neuron_simulated", "cpu")
    assert simulated("", "neuron", "inferentia") == ("neuron", "inferentia")
    with pytest.raises(ValueError, match="found 'neuron' with backend onnxruntime; allowed: neuron with backend"):
        simulated("neuron", "onnxruntime", "cpu")


def test_only_the_two_benchmarks_of_the_document_run_on_it() -> None:
    assert misfit("neuron", "bert-99.9", "inferentia") == misfit("neuron", "resnet50", "inferentia") == ""
    assert misfit("neuron", "retinanet", "inferentia").endswith("cannot run retinanet: it runs bert, resnet50")
    assert "--simulate=neuron" in misfit("neuron", "resnet50", "cpu")


def test_samples_are_written_as_nvidias_code_reads_them(tmp_path: Path) -> None:
    images = np.arange(2 * 3 * 4, dtype=np.float64).reshape(2, 3, 2, 2)
    dense = types.SimpleNamespace(load=lambda some: {"image": images[list(some)]})
    assert neuron_inputs.write_each(dense, ["a_1", "a_2"], tmp_path) == 2
    second = np.load(tmp_path / "a_2.npy")
    assert second.dtype == np.float32 and np.array_equal(second, images[1])
    questions = [{name: np.arange(1, size + 1) for name in NAMES} for size in (2, 4)]
    ragged = types.SimpleNamespace(load=lambda some: [questions[number] for number in some])
    assert neuron_inputs.write_stacked(ragged, 2, 5, tmp_path) == 2
    ids = np.load(tmp_path / "segment_ids.npy")
    assert ids.dtype == np.int32 and ids.tolist() == [[1, 2, 0, 0, 0], [1, 2, 3, 4, 0]]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "a_1.npy", "a_2.npy", "input_ids.npy", "input_mask.npy", "segment_ids.npy",
    ]  # fmt: skip


class _Refused(Exception):
    """Stands for TritonModelException."""


def model_program(monkeypatch: pytest.MonkeyPatch):
    """The program of a model's process, with a stand-in for what Triton's stub offers it."""
    said: list[str] = []
    utils = types.SimpleNamespace(
        TritonModelException=_Refused,
        TritonError=str,
        Logger=types.SimpleNamespace(log_info=said.append),
        triton_string_to_numpy={"TYPE_FP32": np.float32}.__getitem__,
        Tensor=lambda name, array: (name, array),
        InferenceResponse=lambda output_tensors=None, error=None: error or dict(output_tensors),
        get_input_tensor_by_name=lambda request, name: types.SimpleNamespace(as_numpy=lambda: request[name]),
    )
    monkeypatch.setitem(sys.modules, "triton_python_backend_utils", utils)
    monkeypatch.setenv("NEURON_RT_VISIBLE_CORES", "")
    return loaded(layout.PROGRAM), said


def arguments(tmp_path: Path, instance: int, **changes: object) -> dict[str, str]:
    """What Triton's stub hands to `initialize`."""
    parameters = {
        "COMPILED_MODEL": "m.pt", "NEURON_CORE_START_INDEX": "0", "NEURON_CORE_END_INDEX": "3",
        "NUM_THREADS_PER_CORE": "1", "NEURON_LIBRARY": "simulated", **changes,
    }  # fmt: skip
    config = {
        "instance_group": [{"count": 2}],
        "input": [{"name": f"INPUT__{number}"} for number in (1, 0)],
        "output": [{"name": "OUTPUT__0", "data_type": "TYPE_FP32"}],
        "parameters": {name: {"string_value": value} for name, value in parameters.items()},
    }
    return {
        "model_config": json.dumps(config), "model_instance_name": f"m_0_{instance}",
        "model_repository": str(tmp_path), "model_version": ".",
    }  # fmt: skip


def test_the_process_of_an_instance_takes_its_cores_and_answers_in_the_order_of_the_arguments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (torch,) = need("torch")

    class Difference(torch.nn.Module):
        def forward(self, first, second):
            return first - second

    torch.jit.save(torch.jit.script(Difference()), tmp_path / "m.pt")
    module, said = model_program(monkeypatch)
    model = module.TritonPythonModel()
    model.initialize(arguments(tmp_path, 1))
    assert os.environ["NEURON_RT_VISIBLE_CORES"] == "2-3" and '"cores": "2-3"' in said[0]
    request = {"INPUT__0": np.full((2, 3), 5.0, np.float32), "INPUT__1": np.full((2, 3), 2.0, np.float32)}
    (answer,) = model.execute([request])
    assert answer["OUTPUT__0"].tolist() == [[3.0] * 3] * 2
    (failed,) = model.execute([{**request, "INPUT__1": np.zeros((4, 5), np.float32)}])
    assert failed.startswith("RuntimeError")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"NEURON_CORE_END_INDEX": "0"}, "2 instances cannot share the NeuronCores 0-0"),
        ({"COMPILED_MODEL": "gone.pt"}, "simulated cannot open"),
        ({"NEURON_LIBRARY": "torch_neuronx"}, "torch_neuronx cannot open .*No module named 'torch_neuronx'"),
    ],
)
def test_a_model_that_cannot_be_served_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict, words: str
) -> None:
    need("torch")
    module, _ = model_program(monkeypatch)
    with pytest.raises(_Refused, match=words):
        module.TritonPythonModel().initialize(arguments(tmp_path, 0, **changes))


def test_aws_library_is_asked_for_the_cores_of_the_instance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for torch_neuronx notes what it is asked; what the real one does with it is not proved here."""
    (torch,) = need("torch")
    asked: list[object] = []

    class DataParallel:
        def __init__(self, loaded, device_ids):
            asked.append((loaded, device_ids))

    monkeypatch.setitem(sys.modules, "torch_neuronx", types.SimpleNamespace(DataParallel=DataParallel))
    monkeypatch.setattr(torch.jit, "load", lambda path: Path(path).name)
    module, _ = model_program(monkeypatch)
    model = module.TritonPythonModel()
    model.initialize(arguments(tmp_path, 0, NEURON_LIBRARY="torch_neuronx", NUM_THREADS_PER_CORE="3"))
    assert asked == [("m.pt", [0, 1])] and model._module.num_workers == 6


@pytest.mark.full
def test_what_is_traced_answers_as_the_network_does(tmp_path: Path) -> None:
    """BERT (tiny): int32 in, both logits side by side out, the same for a batch that was not compiled for."""
    (torch,) = need("torch")
    need("safetensors")
    from crowdperf.harness.base.model_facts import read_model_facts
    from crowdperf.harness.runner.registry import load_model
    from crowdperf.models import make_model as makemodel
    from crowdperf.models.engines import build, torchscript
    from crowdperf.models.engines.task import Task

    made = makemodel.make_model(
        makemodel.ModelRequest(architecture="bert", config="tiny", framework="pytorch", output_dir=tmp_path / "model")
    )
    task = Task(model="bert-99", model_info=made, output_dir=tmp_path / "out", library="neuron_simulated")
    facts = read_model_facts(None, build.build(task))
    assert facts.framework == "neuron_simulated" and facts.engine["compiler"] == "SIMULATED"
    assert (facts.engine["compiled_batch"], facts.engine["sizes"]) == (1, {"tokens": 384})
    (network,) = load_model("bert-99").open_model(facts).networks
    module, _ = torchscript.module_and_example(task, network)
    traced = torch.jit.load(io.BytesIO(facts.files["model"].path.read_bytes()))
    inputs = [torch.ones((3, 384), dtype=torch.int32) * number for number in (7, 1, 0)]
    with torch.no_grad():
        assert torch.allclose(traced(*inputs), module(*inputs), atol=1e-5)
        assert traced(*inputs).shape == (3, 384, 2)
    with pytest.raises(HarnessError, match="does not have torch_neuron"):
        build.build(Task(model="bert-99", model_info=made, output_dir=tmp_path, library="neuron"))
