"""A network of the user: its file read without the package onnx, its inputs, and the model that the harness runs."""

import io
import json
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from harness_libraries import need
from recipe_loader import input_values, load_recipe

need("numpy", "onnx")
import numpy as np  # noqa: E402
import onnx  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from crowdperf.benchmarks.own_onnx import make_inputs  # noqa: E402
from crowdperf.benchmarks.own_onnx.dataset import open_dataset  # noqa: E402
from crowdperf.benchmarks.own_onnx.model import OwnOnnx  # noqa: E402
from crowdperf.data.errors import DataError  # noqa: E402
from crowdperf.data.model_info import read_model_info  # noqa: E402
from crowdperf.data.onnx_graph import GraphTensor, own_network, parse_shapes, read_graph  # noqa: E402
from crowdperf.harness.base.errors import HarnessError  # noqa: E402
from crowdperf.harness.base.model_facts import parse_model_facts  # noqa: E402

recipe: ModuleType = load_recipe("get-own-onnx-network")
describing: ModuleType = load_recipe("get-ml-model-own-onnx")

WEIGHTS = np.arange(12, dtype=np.float32).reshape(4, 3)


def network_file(
    path: Path,
    *,
    inputs: dict[str, tuple[Any, ...]] | None = None,
    output: tuple[Any, ...] = ("n", 3),
    weights: Any = WEIGHTS,
    dtype: int = TensorProto.FLOAT,
    is_weight_an_input: bool = False,
) -> Path:
    """An ONNX file: one MatMul, or an Add of two inputs."""
    shapes = {"x": ("n", 4)} if inputs is None else inputs
    given = [helper.make_tensor_value_info(name, dtype, list(shape)) for name, shape in shapes.items()]
    kept = numpy_helper.from_array(weights, "w")
    node = ("MatMul", ["x", "w"]) if len(given) == 1 else ("Add", list(shapes))
    if is_weight_an_input:
        given.append(helper.make_tensor_value_info("w", dtype, list(weights.shape)))
    graph = helper.make_graph(
        [helper.make_node(*node, ["y"])], "graph", given, [helper.make_tensor_value_info("y", dtype, list(output))],
        [kept] if len(shapes) == 1 else [],
    )  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(path))
    return path


@pytest.mark.parametrize(
    ("shapes", "output"),
    [({"x": ("n", 4)}, ("n", 3)), ({"x": (1, 4)}, (1, 3)), ({"x": ("n", "k")}, ("n", 3)), ({"x": (8, 4)}, (8, 3))],
)
def test_tensors_are_those_that_the_package_onnx_reads(
    tmp_path: Path, shapes: dict[str, tuple[Any, ...]], output: tuple[Any, ...]
) -> None:
    path = network_file(tmp_path / "m.onnx", inputs=shapes, output=output)
    graph = onnx.load(str(path)).graph
    for found, wanted in ((read_graph(path).inputs, graph.input), (read_graph(path).outputs, graph.output)):
        sizes = [
            tuple(one.dim_param or one.dim_value for one in tensor.type.tensor_type.shape.dim) for tensor in wanted
        ]
        assert [(one.name, one.dtype, one.shape) for one in found] == [
            (tensor.name, "float32", size) for tensor, size in zip(wanted, sizes, strict=True)
        ]


def test_weights_that_are_listed_as_inputs_are_not_inputs(tmp_path: Path) -> None:
    path = network_file(tmp_path / "m.onnx", is_weight_an_input=True)
    assert [one.name for one in read_graph(path).inputs] == ["x"]


@pytest.mark.parametrize(
    ("numpy_type", "precision"), [("float32", "fp32"), ("float16", "fp16"), ("int8", "int8"), ("int64", "fp32")]
)
def test_the_precision_is_that_of_most_weights(tmp_path: Path, numpy_type: str, precision: str) -> None:
    path = network_file(tmp_path / "m.onnx", weights=WEIGHTS.astype(numpy_type))
    assert read_graph(path).precision == precision


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "the file is empty"),
        (b"hello, this is text and not a network", "not a message of ONNX"),
        (b"\x08\x08", "it has no graph"),
        (b"\x3a\x7f\x0a", "a field is longer than the file"),
        (b"\x3a\x00", "its graph has no inputs or no outputs"),
        (b"\x3a", "the file ends early"),
    ],
)
def test_another_file_is_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(content)
    with pytest.raises(DataError, match=reason):
        read_graph(path)


def test_every_shortened_file_is_refused_or_read_without_another_error(tmp_path: Path) -> None:
    whole = network_file(tmp_path / "m.onnx")
    graph, content = read_graph(whole), whole.read_bytes()
    path, refused = tmp_path / "short.onnx", 0
    for size in range(len(content)):
        path.write_bytes(content[:size])
        try:
            assert read_graph(path) == graph  # only what follows the graph is missing
        except DataError:
            refused += 1
    assert refused > len(content) * 0.9


def with_external_weights(path: Path) -> Path:
    onnx.save(onnx.load(str(path)), str(path), save_as_external_data=True, location="m.onnx.data", size_threshold=0)
    return path


def test_weights_in_files_beside_it_are_found_and_a_missing_one_is_refused(tmp_path: Path) -> None:
    path = with_external_weights(network_file(tmp_path / "m.onnx"))
    weights = tmp_path / "m.onnx.data"
    assert read_graph(path).beside == (weights,)
    weights.unlink()
    with pytest.raises(DataError, match=rf"are in files that are missing: {weights}\nhint: copy them to its folder"):
        read_graph(path)
    for away in ("../nnx.data", "/.onnx.data", "a/../x.data"):
        path.write_bytes(path.read_bytes().replace(b"m.onnx.data", away.encode()))
        with pytest.raises(DataError, match=f"its weights are outside its folder: {away}"):
            read_graph(path)
        path.write_bytes(path.read_bytes().replace(away.encode(), b"m.onnx.data"))


def test_a_tensor_of_text_is_refused_with_its_name(tmp_path: Path) -> None:
    path = network_file(tmp_path / "m.onnx", dtype=TensorProto.STRING)
    with pytest.raises(DataError, match="x has the element type 8"):
        read_graph(path)


@pytest.mark.parametrize(
    ("shapes", "output", "given", "inputs", "has_batches", "largest"),
    [
        ({"x": ("n", 4)}, ("n", 3), "", [(4,)], True, None),
        ({"x": (1, 4)}, (1, 3), "", [(4,)], True, 1),
        ({"x": (8, 4)}, (8, 3), "", [(8, 4)], False, 1),
        ({"x": ("n", "k")}, ("n", 3), "x:1,4", [(4,)], True, None),
        ({"a": ("n", 4), "b": ("n", 4)}, ("n", 4), "", [(4,), (4,)], True, None),
        ({"a": ("n", 4), "b": (4,)}, ("n", 4), "a:2,4", [(2, 4), (4,)], False, 1),
        ({"a": ("n", 4), "b": (4,)}, ("n", 4), "", [(1, 4), (4,)], False, 1),
        ({"a": ("n", 4), "b": ()}, ("n", 4), "", [(1, 4), ()], False, 1),
        ({"a": ("n", 4), "b": ("k", 4)}, ("n", 4), "", [(1, 4), (1, 4)], False, 1),
    ],
)
def test_the_first_axis_is_the_batch_where_it_can_be(
    tmp_path: Path, shapes: Any, output: Any, given: str, inputs: Any, has_batches: bool, largest: int | None
) -> None:
    path = network_file(tmp_path / "m.onnx", inputs=shapes, output=output)
    network = own_network(read_graph(path), parse_shapes(given))
    assert [one.shape for one in network.inputs] == inputs
    assert (network.has_batches, network.largest_batch) == (has_batches, largest)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("", "sizes are missing: x float32[n,k,4]"),
        ("y:1,2,4", "--shape has y, which is not an input"),
        ("x:1,2", "--shape gives 1,2 for x float32[n,k,4]"),
        ("x:1,2,5", "--shape gives 1,2,5 for x float32[n,k,4]"),
        ("x", "--shape: found 'x'"),
        ("x:0,2,4", "--shape: found 'x:0,2,4'"),
        ("x:1,2,4;x:1,2,4", "--shape: found"),
    ],
)
def test_a_wrong_shape_is_refused_with_an_example(tmp_path: Path, given: str, reason: str) -> None:
    path = network_file(tmp_path / "m.onnx", inputs={"x": ("n", "k", 4)}, output=("n", "k", 3))
    with pytest.raises(DataError) as caught:
        own_network(read_graph(path), parse_shapes(given))
    assert reason in caught.value.message
    assert "1," in caught.value.hint


def saved(path: Path, **arrays: Any) -> Path:
    np.savez(path, **arrays)
    return path


def described(folder: Path, **env: str) -> dict[str, str]:
    path = folder / "m.onnx"
    if not path.exists():
        network_file(path)
    given = {"CM_MLPERF_OWN_MODEL_PATH": str(path), **env}
    answer: dict[str, str] = recipe.network_environment(input_values("get-own-onnx-network", given))
    return answer


X = np.ones((5, 4), dtype=np.float32)


@pytest.mark.parametrize(
    ("inputs", "expected", "reason"),
    [
        ({"z": X}, None, "x is missing. z is not expected"),
        ({"x": X[:, :3]}, None, r"x is f[5, 3], expected float32[N,4]"),
        ({"x": X.astype("complex64")}, None, "x is c[5, 4], expected"),
        ({"x": X[:0]}, None, "the numbers of samples are x 0"),
        ({"x": X}, {"q": X}, "has q. The outputs are y"),
        ({"x": X}, {"y": X}, r"y is f[5, 4], expected float32[N,3]"),
        ({"x": X}, {"y": X[:4, :3]}, "has 4 samples"),
        (None, {"y": X[:, :3]}, "expected values need your own inputs"),
    ],
)
def test_inputs_that_do_not_match_are_refused_before_anything_is_installed(
    tmp_path: Path, inputs: Any, expected: Any, reason: str
) -> None:
    env = {}
    if inputs is not None:
        env["CM_MLPERF_OWN_INPUTS_PATH"] = str(saved(tmp_path / "in.npz", **inputs))
    if expected is not None:
        env["CM_MLPERF_OWN_EXPECTED_PATH"] = str(saved(tmp_path / "out.npz", **expected))
    with pytest.raises(DataError) as caught:
        described(tmp_path, **env)
    assert reason in caught.value.message


def packed(flags: int = 0, method: int = 0, data: bytes = b"") -> bytes:
    """An archive with one array, changed where its headers have flags and method, and in its packed bytes."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED if data else zipfile.ZIP_STORED) as archive:
        archive.writestr("x.npy", bytes(64))
    content = bytearray(file.getvalue())
    for at in (6, content.index(b"PK\x01\x02") + 8):
        content[at] |= flags
        content[at + 2] |= method
    if data:
        content[35 : 35 + len(data)] = data
    return bytes(content)


NESTED = b"-" * 60_000 + b"1"


@pytest.mark.parametrize(
    "content",
    [
        b"", b"text", b"PK\x03\x04 no archive", b"\x93NUMPY\x01\x00\xff\xffx", packed(flags=1), packed(method=99),
        packed(data=b"\xff\xff"), b"\x93NUMPY\x01\x00" + len(NESTED).to_bytes(2, "little") + NESTED,
    ],
)  # fmt: skip
def test_inputs_that_are_not_arrays_are_refused(tmp_path: Path, content: bytes) -> None:
    for name in ("in.npz", "in.npy"):
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"cannot read .*: \S"):
            described(tmp_path, CM_MLPERF_OWN_INPUTS_PATH=str(path))


def test_another_precision_than_the_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"m\.onnx are fp32, int8 was requested"):
        described(tmp_path, CM_MLPERF_MODEL_PRECISION="int8")


def test_the_identity_changes_with_the_file_the_shape_and_the_inputs(tmp_path: Path) -> None:
    first = described(tmp_path)
    given = described(tmp_path, CM_MLPERF_OWN_INPUTS_PATH=str(saved(tmp_path / "in.npz", x=X)))
    assert first["CM_OWN_NETWORK_IDENTITY"] == given["CM_OWN_NETWORK_IDENTITY"]
    assert first["CM_OWN_INPUTS_IDENTITY"] != given["CM_OWN_INPUTS_IDENTITY"]
    (tmp_path / "m.onnx").write_bytes((tmp_path / "m.onnx").read_bytes() + b"\x10\x01")
    values = input_values("get-own-onnx-network", {"CM_MLPERF_OWN_MODEL_PATH": str(tmp_path / "m.onnx")})
    assert recipe.network_environment(values)["CM_OWN_NETWORK_IDENTITY"] != first["CM_OWN_NETWORK_IDENTITY"]
    with_external_weights(tmp_path / "m.onnx")
    before = recipe.network_environment(values)["CM_OWN_NETWORK_IDENTITY"]
    (tmp_path / "m.onnx.data").write_bytes(b"other weights")
    assert recipe.network_environment(values)["CM_OWN_NETWORK_IDENTITY"] != before


def written(folder: Path, env: dict[str, str], *words: str) -> Path:
    output = folder / "inputs"
    output.mkdir()
    assert make_inputs.main(["--network", env["CM_OWN_NETWORK_CONFIG"], "--output", str(output), *words]) == 0
    return output


def test_random_inputs_are_the_same_for_the_same_seed_and_labeled_synthetic(tmp_path: Path) -> None:
    env = described(tmp_path)
    one = open_dataset(written(tmp_path, env, "--count", "6", "--seed", "3"))
    assert one.count == 6
    assert one.facts.is_synthetic
    assert one.why_unscored
    other = make_inputs.random_inputs(OwnOnnx(json.loads(env["CM_OWN_NETWORK_CONFIG"])).networks[0].inputs, 6, 3)
    assert np.array_equal(one.load([0, 5])["x"], other["x"][[0, 5]])


def test_a_large_sample_makes_few_of_them() -> None:
    large = make_inputs.TensorSpec(name="x", dtype="float32", shape=(100, 1024, 1024))
    assert make_inputs.default_count([large]) == 1
    assert make_inputs.default_count([make_inputs.TensorSpec(name="x", dtype="float32", shape=(4,))]) == 64


def test_given_inputs_are_measured_and_compared_with_the_expected_values(tmp_path: Path) -> None:
    inputs, expected = saved(tmp_path / "in.npz", x=X.astype("float64")), saved(tmp_path / "out.npz", y=X @ WEIGHTS)
    env = described(tmp_path, CM_MLPERF_OWN_INPUTS_PATH=str(inputs), CM_MLPERF_OWN_EXPECTED_PATH=str(expected))
    dataset = open_dataset(written(tmp_path, env, "--inputs", str(inputs), "--expected", str(expected)))
    model = OwnOnnx(json.loads(env["CM_OWN_NETWORK_CONFIG"]))
    batch = dataset.load(range(5))
    assert batch["x"].dtype == np.float32
    assert not dataset.facts.is_synthetic
    rows = model.predict({"model": lambda given: {"y": given["x"] @ WEIGHTS + 0.25}}, model.preprocess(batch))
    found = model.score([(index, np.asarray(row).tobytes()) for index, row in enumerate(rows)], dataset)
    assert found.values == {"max_difference": 0.25}
    with pytest.raises(HarnessError, match="has 4 bytes, not 12"):
        model.score([(0, b"1234")], dataset)
    nan = np.full(3, np.nan, dtype=np.float32).tobytes()
    assert model.score([(0, nan)], dataset).values == {"max_difference": float("inf")}


@pytest.mark.parametrize("is_folder", [True, False])
def test_npy_files_serve_a_network_with_one_input(tmp_path: Path, is_folder: bool) -> None:
    path = tmp_path / ("samples" if is_folder else "in.npy")
    if is_folder:
        path.mkdir()
        for number in range(3):
            np.save(path / f"{number}.npy", X[number] * number)
    else:
        np.save(path, X[:3])
    env = described(tmp_path, CM_MLPERF_OWN_INPUTS_PATH=str(path))
    assert open_dataset(written(tmp_path, env, "--inputs", str(path))).count == 3


def test_a_call_without_a_batch_axis_answers_one_sample(tmp_path: Path) -> None:
    path = network_file(tmp_path / "m.onnx", inputs={"x": (8, 4)}, output=(8, 3))
    values = input_values("get-own-onnx-network", {"CM_MLPERF_OWN_MODEL_PATH": str(path)})
    env = recipe.network_environment(values)
    model = OwnOnnx(json.loads(env["CM_OWN_NETWORK_CONFIG"]))
    seen = []

    def infer(given: Any) -> dict[str, Any]:
        seen.append(given["x"].shape)
        return {"y": given["x"] @ WEIGHTS}

    samples = np.ones((2, 8, 4), dtype=np.float32)
    assert np.asarray(model.predict({"model": infer}, {"x": samples})).shape == (2, 8, 3)
    assert seen == [(8, 4), (8, 4)]


def test_an_input_without_axes_reaches_the_network_as_an_array() -> None:
    tensors = [{"name": name, "dtype": "int64", "shape": shape} for name, shape in (("x", [2]), ("rate", []))]
    model = OwnOnnx({"inputs": tensors, "outputs": tensors[:1], "has_batches": False, "response": "x"})
    given = {"x": np.ones((3, 2), dtype=np.int64), "rate": np.full(3, 16000, dtype=np.int64)}

    def infer(sample: Any) -> dict[str, Any]:
        assert isinstance(sample["rate"], np.ndarray)
        return {"x": sample["x"] * sample["rate"]}

    assert np.asarray(model.predict({"model": infer}, given)).tolist() == [[16000, 16000]] * 3


def test_inputs_that_the_network_cannot_answer_are_named() -> None:
    tensors = [{"name": "x", "dtype": "int64", "shape": [2]}]
    model = OwnOnnx({"inputs": tensors, "outputs": tensors, "has_batches": True, "response": "x"})

    def infer(_: Any) -> dict[str, Any]:
        raise RuntimeError("indices element out of data bounds, idx=1")

    with pytest.raises(HarnessError, match=r"cannot answer the inputs x int64\[3, 2\]: indices element.*") as caught:
        model.predict({"model": infer}, {"x": np.ones((3, 2), dtype=np.int64)})
    assert "--inputs=FILE.npz" in caught.value.hint


def test_model_json_is_one_that_the_harness_reads(tmp_path: Path, inside: Path, hook_input: Any) -> None:
    path = with_external_weights(network_file(tmp_path / "m.onnx", inputs={"x": (1, 4)}, output=(1, 3)))
    values = input_values("get-own-onnx-network", {"CM_MLPERF_OWN_MODEL_PATH": str(path)})
    i = hook_input(recipe.network_environment(values))
    assert describing.postprocess(i)["return"] == 0
    facts = parse_model_facts((inside / "model.json").read_text(encoding="utf-8"), inside / "model.json")
    assert facts.files["model"].path == path
    assert read_model_info(inside).beside == (tmp_path / "m.onnx.data",)
    assert facts.engine == {"largest_batch": 1}
    assert facts.origin == "own"
    assert not facts.is_synthetic
    assert GraphTensor(name="x", dtype="float32", shape=(4,)).shape == tuple(facts.config["inputs"][0]["shape"])
    i["env"]["CM_OWN_NETWORK_LARGEST_BATCH"] = ""
    assert describing.postprocess(i)["return"] == 0
    assert not parse_model_facts((inside / "model.json").read_text(encoding="utf-8"), inside / "model.json").engine
