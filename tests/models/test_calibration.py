"""Calibration: ranges of known distributions, the neutral file, and quantised models that still answer right."""

import json
from pathlib import Path
from types import SimpleNamespace

import harness_support
import numpy as np
import onnx
import onnxruntime
import pytest
from backend_toys import toy_on_path
from recipe_programs import program

from crowdperf.benchmarks.digits import model as digits
from crowdperf.harness.backends.onnxruntime import backend
from crowdperf.harness.base.backend import BackendRequest
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.model_facts import CalibrationSource, read_model_facts
from crowdperf.harness.datasets.digits import open_dataset
from crowdperf.harness.runner import components
from crowdperf.harness.watch import processor
from crowdperf.models import calibrate, model_json, quantize
from crowdperf.models import make_model as makemodel
from crowdperf.models.calibration import (
    METHODS,
    Calibration,
    Observed,
    entropy_limit,
    magnitudes,
    range_of,
    read_calibration,
    write_calibration,
)
from crowdperf.models.calibration_samples import choose_samples
from crowdperf.models.make_model import ModelRequest
from crowdperf.rules.backends import BACKENDS

SCRIPTS = harness_support.SCRIPTS


def observed(*parts: np.ndarray) -> Observed:
    seen = Observed()
    for note in (Observed.widen, Observed.count):
        for part in parts:
            note(seen, part.astype(np.float32))
    return seen


def normal(count: int = 200_000) -> np.ndarray:
    return np.random.default_rng(0).normal(0, 1, count)


# --- ranges ---


@pytest.mark.parametrize("method", METHODS)
def test_a_range_holds_zero_and_is_no_wider_than_the_values(method):
    for values in (normal(), np.abs(normal()), -np.abs(normal()), np.full(100, 3.0), np.zeros(10), np.zeros(0)):
        seen = observed(values)
        low, high = range_of(seen, method)
        assert seen.low <= low <= 0.0 <= high <= seen.high


def test_minmax_takes_all_and_percentile_leaves_out_the_tails():
    values = np.concatenate([np.linspace(-1, 1, 100_000), [50.0]])
    seen = observed(values)
    assert range_of(seen, "minmax") == (-1.0, 50.0)
    low, high = range_of(seen, "percentile", 99.9)
    assert -1.0 <= low < -0.95
    assert 0.99 < high < 1.05
    assert range_of(seen, "percentile", 100.0)[1] == pytest.approx(50.0)


def test_entropy_cuts_an_outlier_off_but_keeps_an_even_distribution_whole():
    even = np.random.default_rng(1).uniform(-1, 1, 500_000)
    assert entropy_limit(magnitudes(observed(even).counts)) > 0.97
    low, high = range_of(observed(np.concatenate([normal(), [40.0]])), "entropy")
    assert 2.0 < high < 8.0
    assert -8.0 < low < -2.0


def test_the_distribution_does_not_depend_on_how_the_values_are_cut():
    values = normal(10_000)
    whole, cut = observed(values), observed(values[:1234], values[1234:])
    assert range_of(whole, "entropy") == range_of(cut, "entropy")
    assert int(whole.counts.sum()) == 10_000


def test_values_that_are_no_numbers_are_refused():
    for value in (np.inf, -np.inf, np.nan):
        for method in METHODS:
            with pytest.raises(HarnessError, match="not numbers"):
                range_of(observed(np.array([1.0, value])), method)


# --- the file ---


def test_the_file_is_read_as_it_was_written(tmp_path):
    written = Calibration(method="minmax", networks={"model": {"x": (-1.5, 2.0)}}, provenance={"sample_ids": [3]})
    write_calibration(tmp_path / "c.json", written)
    assert read_calibration(tmp_path / "c.json") == written


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": 1}, "not a calibration of format 2"),
        ({"method": "guess"}, "not a calibration of format 2"),
        ({"networks": {"model": {"x": [1.0]}}}, "not a calibration of format 2"),
        ({"networks": {"model": {"x": [1.0, 2.0]}}}, "the range of x does not contain zero"),
        ({"networks": {"model": {"x": [-1.0, 1e999]}}}, "the range of x"),
        ({"networks": []}, "not a calibration of format 2"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path, change, said):
    content = {"format": 2, "method": "minmax", "networks": {"model": {"x": [-1.0, 2.0]}}, "provenance": {}}
    (tmp_path / "c.json").write_text(json.dumps({**content, **change}))
    with pytest.raises(HarnessError, match=said):
        read_calibration(tmp_path / "c.json")


# --- a model with a meaningful accuracy: handwritten digits ---


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    program("get-dataset-digits", "make_dataset").make_dataset(folder)
    return folder


@pytest.fixture(scope="module")
def model_info(data, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    fit = program("get-ml-model-digits", "fit_model")
    fit.make_model(data, folder, fit.FitSettings())
    (folder / "vocab.json").write_text("0 to 9\n")
    return folder / "model.json"


def accuracy(info: Path, data: Path) -> float:
    facts, dataset = read_model_facts(None, info), open_dataset(data)
    spec = digits.Digits.networks[0]
    request = BackendRequest(
        network=spec, path=facts.files["model"].path, architecture="digits", config={}, precision=facts.precision,
        device="cpu", gpus=(), instances=1, threads=1, cores=(), is_spinning=False, largest_batch=599,
    )  # fmt: skip
    infer = backend.open_backend(request).instance(0)
    model = digits.open_model(facts)
    answers = model.predict({"model": infer}, model.preprocess(dataset.load(range(dataset.count))))
    return model.score(((index, row.tobytes()) for index, row in enumerate(answers)), dataset).values["acc"]


def calibrated(model_info: Path, data: Path, path: Path, method: str, *words: str) -> Path:
    common = ["--model=digits", f"--model_info={model_info}", f"--dataset={data}", f"--method={method}"]
    assert calibrate.main([*common, f"--output={path}", "--threads=1", *words]) == 0
    return path


@pytest.mark.parametrize("method", METHODS)
def test_int8_by_each_method_reads_the_digits_within_the_bound_of_99_percent_of_fp32(
    model_info, data, tmp_path, method
):
    calibration = calibrated(model_info, data, tmp_path / "c.json", method, "--count=64")
    words = [f"--model_info={model_info}", f"--output_dir={tmp_path / 'int8'}", "--precision=int8"]
    assert quantize.main([*words, f"--calibration={calibration}"]) == 0
    info = tmp_path / "int8" / "model.json"
    facts = read_model_facts(None, info)
    assert (facts.precision, facts.framework) == ("int8", "onnx")
    assert facts.reference == read_model_facts(None, model_info).reference
    assert accuracy(info, data) >= 0.99 * accuracy(model_info, data)
    types = {node.op_type for node in onnx.load(str(facts.files["model"].path)).graph.node}
    assert {"QuantizeLinear", "DequantizeLinear"} <= types
    content = json.loads(info.read_text())
    assert content["quantisation"]["calibration"]["provenance"]["sample_ids"] == list(choose_samples(1198, 64, 0))
    assert facts.calibration == CalibrationSource(
        name="digits: 64 samples, seed 0, of the calibration part",
        sha256=content["calibration"]["sha256"],
        is_official=False,
    )
    assert (tmp_path / "int8" / "vocab.json").read_text() == "0 to 9\n"


def test_fp16_reads_the_digits_as_well(model_info, data, tmp_path):
    quantize.quantize(quantize.Task(model_info=model_info, output_dir=tmp_path, precision="fp16"))
    assert accuracy(tmp_path / "model.json", data) >= 0.999 * accuracy(model_info, data)


def test_fp16_keeps_corners_of_boxes_between_halves_of_a_pixel():
    """By onnx's own evaluator: onnxruntime computes fp16 in float32 on the CPU, a GPU does not."""
    from onnx.reference import ReferenceEvaluator

    helper, numpy_helper, kinds = onnx.helper, onnx.numpy_helper, onnx.TensorProto
    tables = {"weights": np.eye(4), "points": np.full(4, 79.91), "strides": np.full(4, 8.0)}
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["distances", "weights"], ["moves"], "layer"),
            helper.make_node("Add", ["moves", "points"], ["places"], "add"),
            helper.make_node("Mul", ["places", "strides"], ["boxes"], "scale"),
        ],
        "boxes",
        [helper.make_tensor_value_info("distances", kinds.FLOAT, [None, 4])],
        [helper.make_tensor_value_info("boxes", kinds.FLOAT, [None, 4])],
        [numpy_helper.from_array(table.astype(np.float32), name) for name, table in tables.items()],
    )
    model = onnx.shape_inference.infer_shapes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))
    given = {"distances": np.array([[0.125, -0.25, 0.0, 0.0625]], dtype=np.float32)}
    (expected,) = ReferenceEvaluator(model).run(None, given)
    halved = quantize._halved(model)
    (found,) = ReferenceEvaluator(halved).run(None, given)
    assert np.abs(found - expected).max() < 0.01
    assert [kind.data_type for kind in halved.graph.initializer].count(kinds.FLOAT16) == 1


@pytest.mark.parametrize("precision", ["fp16", "int8"])
def test_weights_beyond_the_end_of_a_protobuf_message_lie_beside_the_file(toy, tmp_path, monkeypatch, precision):
    infer = onnx.shape_inference.infer_shapes

    def infer_of_a_message(model, *rest, **options):
        """As onnx of a model of more than 2 GiB, of which none is made here."""
        if sum(len(weight.raw_data) for weight in model.graph.initializer) > 1000:
            raise ValueError("Failed to serialize proto")
        return infer(model, *rest, **options)

    monkeypatch.setattr(quantize, "_EXTERNAL_BYTES", 1000)
    monkeypatch.setattr(onnx.shape_inference, "infer_shapes", infer_of_a_message)
    monkeypatch.setattr("onnxruntime.transformers.float16.infer_shapes", infer_of_a_message)
    (file,) = (file for name, file in read_model_facts(None, toy).files.items() if name == "text")
    source = tmp_path / "large.onnx"
    onnx.save(onnx.load(str(file.path)), str(source), save_as_external_data=True, location="weights", size_threshold=0)
    files = model_json.describe_files({"text": [source, tmp_path / "weights"]})
    model_json.write_model_info(tmp_path, {"framework": "onnx", "precision": "fp32", "files": files})
    task = quantize.Task(
        model_info=tmp_path / "model.json", output_dir=tmp_path / "out", precision=precision, method="dynamic"
    )
    made = json.loads(quantize.quantize(task).read_text())["files"]["text"]
    assert [beside["file"] for beside in made["beside"]] == [f"large.{precision}.onnx.data"]
    session = backend.onnxruntime.InferenceSession(tmp_path / "out" / made["file"])
    inputs = {"ids": np.ones((2, 3), np.int64), "state": np.zeros((2, 12), np.float32)}
    assert session.run(["scores"], inputs)[0].shape == (2, 3, 5)


def test_the_size_of_a_message_is_that_of_its_parts():
    """Of a message of more than 2 GiB onnx does not say the size."""
    weights = [SimpleNamespace(ByteSize=lambda: 1_000_000_000)] * 2
    assert quantize._is_large(SimpleNamespace(graph=SimpleNamespace(initializer=weights, node=[])))
    assert not quantize._is_large(SimpleNamespace(graph=SimpleNamespace(initializer=weights[:1], node=[])))


def test_the_provenance_names_model_data_set_and_samples(model_info, data, tmp_path):
    (tmp_path / "list.txt").write_text("5\n# a comment\n17 # two\n\n")
    path = calibrated(model_info, data, tmp_path / "c.json", "minmax", f"--sample_list={tmp_path / 'list.txt'}")
    provenance = read_calibration(path).provenance
    assert provenance["sample_ids"] == [5, 17]
    assert provenance["model"]["sha256"] == {"model": read_model_facts(None, model_info).files["model"].sha256}
    assert provenance["dataset"]["count"] == 1198
    assert set(provenance["versions"]) >= {"onnxruntime", "onnx", "numpy"}


@pytest.mark.parametrize("words", ["1198\n", "-1\n", "", "one\n"])
def test_sample_lists_that_do_not_fit_are_refused(model_info, data, tmp_path, words, capsys):
    (tmp_path / "list.txt").write_text(words)
    common = ["--model=digits", f"--model_info={model_info}", f"--dataset={data}", f"--output={tmp_path / 'c.json'}"]
    assert calibrate.main([*common, f"--sample_list={tmp_path / 'list.txt'}"]) == 1
    assert "calibrate: " in capsys.readouterr().err
    assert not (tmp_path / "c.json").exists()


def test_a_calibration_of_another_model_is_refused(model_info, data, tmp_path):
    path = calibrated(model_info, data, tmp_path / "c.json", "minmax", "--count=4")
    content = json.loads(path.read_text())
    content["provenance"]["model"]["sha256"]["model"] = "0" * 64
    path.write_text(json.dumps(content))
    task = quantize.Task(model_info=model_info, output_dir=tmp_path, precision="int8", calibration=path)
    with pytest.raises(HarnessError, match="made with another model"):
        quantize.quantize(task)


def test_a_calibration_that_hides_its_samples_is_refused(model_info, data, tmp_path):
    path = calibrated(model_info, data, tmp_path / "c.json", "minmax", "--count=4")
    content = json.loads(path.read_text())
    del content["provenance"]["calibration"]
    path.write_text(json.dumps(content))
    task = quantize.Task(model_info=model_info, output_dir=tmp_path, precision="int8", calibration=path)
    with pytest.raises(HarnessError, match="does not record the samples"):
        quantize.quantize(task)


def test_static_int8_without_a_calibration_is_refused_with_the_command(model_info, tmp_path):
    with pytest.raises(HarnessError, match="there is no calibration") as caught:
        quantize.quantize(quantize.Task(model_info=model_info, output_dir=tmp_path, precision="int8"))
    assert "calibrate,ml-model" in caught.value.hint


def test_bf16_is_refused_with_where_it_can_be_had(model_info, tmp_path):
    with pytest.raises(HarnessError, match="allowed: int8, fp16") as caught:
        quantize.quantize(quantize.Task(model_info=model_info, output_dir=tmp_path, precision="bf16"))
    assert "backend pytorch" in caught.value.hint


# --- networks of matrices, and several networks ---


@pytest.fixture
def toy(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("toymodel")
    with toy_on_path(tmp_path_factory.mktemp("toy")):
        yield makemodel.make_model(ModelRequest(architecture="toy", config="tiny", framework="onnx", output_dir=folder))


def test_networks_without_convolutions_become_dynamic_int8_with_free_shapes(toy, tmp_path):
    task = quantize.Task(model_info=toy, output_dir=tmp_path, precision="int8", method="dynamic")
    info = json.loads(quantize.quantize(task).read_text())
    assert {row["method"] for row in info["quantisation"]["methods"].values()} == {"dynamic"}
    assert "DynamicQuantizeLinear" in info["quantisation"]["methods"]["text"]["operators"]
    session = backend.onnxruntime.InferenceSession(tmp_path / "toy-text.int8.onnx")
    for count, tokens in ((1, 3), (4, 9)):
        inputs = {"ids": np.ones((count, tokens), np.int64), "state": np.zeros((count, 12), np.float32)}
        assert session.run(["scores"], inputs)[0].shape == (count, tokens, 5)


def test_dynamic_int8_on_convolutions_is_told_and_never_chosen_by_itself(toy, tmp_path, capsys):
    task = quantize.Task(model_info=toy, output_dir=tmp_path, precision="int8", method="dynamic")
    quantize.quantize(task)
    assert "network image has convolutions" in capsys.readouterr().err
    with pytest.raises(HarnessError, match="network image is quantized with static ranges"):
        quantize.quantize(quantize.Task(model_info=toy, output_dir=tmp_path, precision="int8"))


def test_a_network_that_overflows_in_fp16_stays_in_fp32(tmp_path):
    """The decoder of stable-diffusion-xl answers black pictures in fp16."""
    request = ModelRequest(
        architecture="stable_diffusion_xl", config="tiny", framework="onnx", output_dir=tmp_path / "fp32"
    )
    task = quantize.Task(model_info=makemodel.make_model(request), output_dir=tmp_path / "fp16", precision="fp16")
    info = quantize.quantize(task)
    methods = json.loads(info.read_text())["quantisation"]["methods"]
    assert {name: row["method"] for name, row in methods.items()} == {"image": "fp32", "step": "fp16", "texts": "fp16"}
    facts = read_model_facts(None, info)
    assert facts.precision == "fp16"
    for name, file in facts.files.items():
        types = {value.data_type for value in onnx.load(str(file.path)).graph.initializer}
        assert (onnx.TensorProto.FLOAT16 in types) == (name != "image")


def test_without_vnni_weights_get_seven_bits(toy, tmp_path, monkeypatch):
    monkeypatch.setattr(quantize, "has_vnni", lambda: False)
    task = quantize.Task(model_info=toy, output_dir=tmp_path, precision="int8", method="dynamic")
    assert json.loads(quantize.quantize(task).read_text())["quantisation"]["reduce_range"] is True
    weights = [
        onnx.numpy_helper.to_array(value)
        for value in onnx.load(str(tmp_path / "toy-text.int8.onnx")).graph.initializer
        if value.data_type == onnx.TensorProto.INT8
    ]
    assert max(int(np.abs(array.astype(np.int32)).max()) for array in weights) <= 64


def test_the_processor_is_looked_at_not_assumed(monkeypatch):
    for flags, amx, vnni in (({"amx_bf16"}, True, False), ({"avx512_vnni"}, False, True), (set(), False, False)):
        monkeypatch.setattr(processor, "processor_flags", lambda flags=flags: frozenset(flags))
        assert (processor.has_bf16_matmul(), processor.has_vnni()) == (amx, vnni)


def graph(*rows: tuple[str, list[str], str], outputs: list[str]) -> onnx.ModelProto:
    nodes = [onnx.helper.make_node(kind, names, [output], name=output) for kind, names, output in rows]
    info = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in ["x", *outputs]]
    weight = onnx.numpy_helper.from_array(np.zeros(1, np.float32), "w")
    return onnx.helper.make_model(onnx.helper.make_graph(nodes, "g", info[:1], info[1:], [weight]))


def test_the_last_layers_and_what_follows_them_stay_in_fp32():
    model = graph(
        ("Conv", ["x", "w"], "trunk"),
        ("Relu", ["trunk"], "active"),
        ("Conv", ["active", "w"], "scores"),
        ("Conv", ["active", "w"], "boxes"),
        ("Reshape", ["boxes", "w"], "flat"),
        ("Concat", ["flat", "scores"], "all"),
        outputs=["all"],
    )
    ranges = dict.fromkeys(("x", "trunk", "active", "scores", "boxes", "flat", "all"), (-1.0, 1.0))
    assert quantize.nodes_in_fp32(model, ranges) == ["all", "boxes", "flat", "scores"]
    del ranges["active"]
    assert "active" in quantize.nodes_in_fp32(model, ranges)


def test_a_network_of_last_layers_is_quantised_whole():
    model = graph(("Gemm", ["x", "w"], "scores"), outputs=["scores"])
    assert quantize.nodes_in_fp32(model, {"x": (-1.0, 1.0), "scores": (-1.0, 1.0)}) == []


def test_the_form_for_tensorrt_has_no_zero_points_and_biases_in_fp32(model_info, data, tmp_path):
    calibration = calibrated(model_info, data, tmp_path / "c.json", "minmax", "--count=16")
    quantize.quantize(
        quantize.Task(
            model_info=model_info, output_dir=tmp_path, precision="int8", calibration=calibration, target="tensorrt"
        )
    )
    found = onnx.load(str(tmp_path / "digits.int8.onnx")).graph
    arrays = {value.name: onnx.numpy_helper.to_array(value) for value in found.initializer}
    zero_points = [arrays[node.input[2]] for node in found.node if node.op_type == "QuantizeLinear"]
    assert zero_points and all(array.dtype == np.int8 and not array.any() for array in zero_points)
    assert not any(array.dtype == np.int32 for array in arrays.values())


def test_int8_for_tensorrt_itself_has_fp16_around_and_reads_the_digits(model_info, data, tmp_path):
    """An engine computes as its file says: around fp32 it had no fp16 kernels for what is not quantised. Answered here
    without onnxruntime's optimisations, which do not know scales in fp16."""
    calibration = calibrated(model_info, data, tmp_path / "c.json", "minmax", "--count=64")
    found = {}
    for target in ("tensorrt", "tensorrt_fp16"):
        task = quantize.Task(
            model_info=model_info,
            output_dir=tmp_path / target,
            precision="int8",
            calibration=calibration,
            target=target,
        )
        facts = read_model_facts(None, quantize.quantize(task))
        assert facts.precision == "int8"
        path = str(facts.files["model"].path)
        types = {value.data_type for value in onnx.load(path).graph.initializer} - {onnx.TensorProto.INT64}
        rest = onnx.TensorProto.FLOAT16 if target == "tensorrt_fp16" else onnx.TensorProto.FLOAT
        assert types == {onnx.TensorProto.INT8, rest}
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = onnxruntime.InferenceSession(path, options)
        dataset, model = open_dataset(data), digits.open_model(facts)
        (inputs,) = [model.preprocess(dataset.load(range(dataset.count)))]
        infer = {"model": lambda given, session=session: dict(
            zip([o.name for o in session.get_outputs()], session.run(None, dict(given)), strict=True))}  # fmt: skip
        answers = model.predict(infer, inputs)
        found[target] = model.score(((n, row.tobytes()) for n, row in enumerate(answers)), dataset).values["acc"]
    assert found["tensorrt_fp16"] >= 0.99 * accuracy(model_info, data)
    assert abs(found["tensorrt_fp16"] - found["tensorrt"]) <= 0.2
    config = SimpleNamespace(serving=None, text=None, device="cuda", precision="int8", backend="onnxruntime_tensorrt")
    with pytest.raises(HarnessError, match="int8 between fp16 layers: onnxruntime"):
        components.check_backend(config, BACKENDS["onnxruntime_tensorrt"], facts)
    other = read_model_facts(None, tmp_path / "tensorrt" / "model.json")
    components.check_backend(config, BACKENDS["onnxruntime_tensorrt"], other)


def test_weights_that_the_exporter_copies_are_used_themselves():
    weight = onnx.numpy_helper.from_array(np.ones(2, np.float32), "bias")
    nodes = [
        onnx.helper.make_node("Identity", ["bias"], ["bias_2"]),
        onnx.helper.make_node("Identity", ["x"], ["same_x"]),
        onnx.helper.make_node("Identity", ["bias"], ["told"]),
        onnx.helper.make_node("Add", ["same_x", "bias_2"], ["y"]),
    ]
    values = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2]) for name in ("x", "y", "told")]
    graph = onnx.helper.make_graph(nodes, "g", values[:1], values[1:], [weight])
    folded = quantize.without_weight_copies(onnx.helper.make_model(graph))
    onnx.checker.check_model(folded)
    assert [(node.op_type, list(node.input)) for node in folded.graph.node] == [
        ("Identity", ["x"]),
        ("Identity", ["bias"]),
        ("Add", ["same_x", "bias"]),
    ]


def test_only_what_a_model_reads_beside_its_networks_comes_along(tmp_path):
    for name in ("tokenizer.json", "entry.json", "_cm.json", "log.txt", "used", "arguments.txt"):
        (tmp_path / name).write_text(name)
    (tmp_path / "new").mkdir()
    assert model_json.copy_beside(tmp_path, tmp_path / "new") == ["tokenizer.json"]
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["tokenizer.json"]
