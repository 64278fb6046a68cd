"""DLRM v1 and v2 with Criteo: formats, samples, transforms and networks against independent formulas."""

import importlib
import importlib.util
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import sklearn.metrics
import torch
from harness_support import need
from made_sets import make_set
from recipe_programs import program

from crowdperf.benchmarks.dlrm import model as dlrm
from crowdperf.benchmarks.dlrm_v2 import model as dlrm_v2
from crowdperf.harness.base.architecture import architecture_of
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.model_facts import ModelFacts, read_model_facts
from crowdperf.harness.datasets import criteo
from crowdperf.models.make_model import ModelRequest, build_modules, write_model
from crowdperf.rules.benchmarks import record_of
from crowdperf.standins.datasets import criteo as clicks

need("onnx")

FORMS = {"dlrm": "one-hot", "dlrm_v2": "multi-hot"}


torch.set_num_threads(1)  # two threads on a busy machine wait for each other
convert_day = program("get-dataset-criteo", "convert_day")


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, Path]:
    """A tiny synthetic day in each format, by model."""
    folders = {}
    for model, form in FORMS.items():
        folders[model] = tmp_path_factory.mktemp(model)
        make_set("criteo", folders[model], form=form, size="tiny", count=6, seed=4)
    convert_day.convert(folders["dlrm"], folders["dlrm"])
    return folders


@pytest.fixture(scope="module")
def networks(tmp_path_factory) -> dict[tuple[str, str], object]:
    """Random tiny networks in both runtimes, and the torch modules under (model, "module")."""
    calls: dict[tuple[str, str], object] = {}
    for model in FORMS:
        folder = tmp_path_factory.mktemp("model")
        order = ModelRequest(architecture=model, config="tiny", framework="onnx", output_dir=folder, seed=1)
        modules = build_modules(order)
        torch.manual_seed(0)
        for parameter in modules["model"].parameters():  # embeddings large enough to matter
            torch.nn.init.normal_(parameter, std=0.3)
        facts = read_model_facts(None, write_model(modules, order))
        session = onnxruntime.InferenceSession(str(facts.files["model"].path))

        def with_torch(inputs, module=modules["model"]):
            with torch.no_grad():
                dense, sparse = (torch.from_numpy(inputs[name]) for name in ("dense", "sparse"))
                return {"prediction": module(dense, sparse)[0].numpy()}

        calls[model, "module"] = modules["model"]
        calls[model, "torch"] = with_torch
        calls[model, "onnx"] = lambda inputs, session=session: {
            "prediction": session.run(["prediction"], dict(inputs))[0]
        }
    return calls


def open_tiny(model: str) -> dlrm.Dlrm:
    module = importlib.import_module(f"crowdperf.benchmarks.{model}.model")
    return module.open_model(ModelFacts(config=architecture_of(model).CONFIGS["tiny"]))


# --- samples ---

OFFICIAL_TRACE = [0, 200, 400, 600, 800, 1300, 2000, 2200, 2300, 2400, 2900, 3200, 3400, 3500, 3800, 3900, 4200, 4900]
"""The start of tools/dist_trace_verification.txt of the reference; its 100th sample ends at row 27000."""


def test_the_official_day_is_cut_into_the_official_samples():
    boundaries = criteo.aggregation(89_137_319)
    assert boundaries[: len(OFFICIAL_TRACE)].tolist() == OFFICIAL_TRACE
    assert boundaries[100] == 27_000
    assert len(boundaries) - 1 == 330_067
    assert boundaries[-1] == 89_137_319
    assert 1 <= np.diff(boundaries)[-1] <= 700


@pytest.mark.parametrize("rows", [1, 99, 100, 199, 200, 201, 4900, 4901, 12_345])
def test_samples_are_drawn_one_by_one_as_in_the_reference(rows):
    random = np.random.RandomState(123)
    quantiles = [100] * 2 + [200] * 12 + [300] * 2 + [400, 500, 600, 700]
    ends = [0]
    while ends[-1] < rows:
        ends.append(min(ends[-1] + quantiles[random.randint(low=0, high=20)], rows))
    assert criteo.aggregation(rows).tolist() == ends


def test_a_trace_file_decides_where_samples_end(folders, tmp_path):
    folder = tmp_path / "day"
    shutil.copytree(folders["dlrm_v2"], folder)
    (folder / criteo.TRACE_FILE).write_text("0, 7, 7\n7, 20, 13\n")
    dataset = criteo.open_dataset(folder)
    assert dataset.count == 2
    assert [sample.rows for sample in dataset.load([1, 0])] == [slice(7, 20), slice(0, 7)]


@pytest.mark.parametrize(
    "text", ["", "0, 7\n", "0, 7, 6\n", "1, 7, 6\n", "0, 7, 7\n8, 9, 1\n", "a, b, c\n", "0, 9999999, 9999999\n"]
)
def test_a_trace_that_does_not_cut_the_rows_is_refused(folders, tmp_path, text):
    folder = tmp_path / "day"
    shutil.copytree(folders["dlrm"], folder)
    (folder / criteo.TRACE_FILE).write_text(text)
    with pytest.raises(HarnessError, match="trace") as caught:
        criteo.open_dataset(folder)
    assert caught.value.hint


# --- files ---


def test_multi_hot_rows_are_mapped_and_cut_at_the_middle(folders):
    folder = folders["dlrm_v2"]
    measured, rest = criteo.open_dataset(folder), criteo.open_calibration(folder)
    with np.load(folder / "day_23_sparse_multi_hot.npz") as content:
        sparse = np.concatenate([content[str(number)] for number in range(26)], axis=1)
    dense, labels = np.load(folder / "day_23_dense.npy"), np.load(folder / "day_23_labels.npy")
    half = len(dense) // 2
    assert measured.table.hot_counts == criteo.MULTI_HOT and sum(criteo.MULTI_HOT) == 214
    for dataset, first in ((measured, 0), (rest, half)):
        rows = slice(5, 300)
        found = np.zeros((295, 214), dtype=np.int32)
        dataset.table.copy_sparse(rows, found)
        assert np.array_equal(found, sparse[first + 5 : first + 300])
        assert np.array_equal(dataset.table.dense(rows), dense[first + 5 : first + 300])
        assert np.array_equal(dataset.table.labels(rows), labels[first + 5 : first + 300, 0])
        assert all(isinstance(values, np.memmap) for values in dataset.table._sparse)


def test_of_an_odd_number_of_rows_the_middle_one_is_measured(tmp_path):
    values = [np.zeros((7, width), np.int32) for width in criteo.MULTI_HOT]
    clicks.write_multi_hot(tmp_path, np.zeros((7, 13), np.int64), values, np.zeros(7, np.int32))
    assert criteo.open_dataset(tmp_path).table.row_count == 4
    assert criteo.open_calibration(tmp_path).table.row_count == 3


def text_rows(path: Path) -> list[list[str]]:
    return [line.rstrip("\n").split("\t") for line in path.read_text().splitlines(keepends=True)]


def test_the_text_becomes_the_rows_that_its_dictionaries_say(folders):
    folder = folders["dlrm"]
    rows = text_rows(folder / "day_23")
    dictionaries = []
    for number in range(26):
        with np.load(folder / f"day_fea_dict_{number}.npz") as content:
            dictionaries.append({value: place for place, value in enumerate(content["unique"].tolist())})
    dataset, rest = criteo.open_dataset(folder), criteo.open_calibration(folder)
    half = len(rows) // 2
    assert (dataset.table.row_count, rest.table.row_count) == (half, half)
    for table, part in ((dataset.table, rows[:half]), (rest.table, rows[half:])):
        whole = slice(0, half)
        counts = np.array([[max(0, int(field or 0)) for field in row[1:14]] for row in part], dtype=np.float32)
        np.testing.assert_array_max_ulp(table.dense(whole), torch.log(torch.from_numpy(counts) + 1).numpy(), maxulp=1)
        assert table.labels(whole).tolist() == [float(row[0]) for row in part]
        wanted = [
            [dictionary[int(field, 16) % 40_000_000] for dictionary, field in zip(dictionaries, row[14:], strict=True)]
            for row in part
        ]
        found = np.zeros((half, 26), dtype=np.int32)
        table.copy_sparse(whole, found)
        assert np.array_equal(found, wanted)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda text: text.replace("\t", " ", 1), "line 1 has 39 fields, expected 40"),
        (lambda text: "x" + text, "line 1: invalid literal"),
        (lambda text: text[:-1] + "\n" + text[:100], "line 2 has"),
        (lambda text: text.replace(text[-9:-1], "0000beef"), "day_fea_dict_25.npz has no id 0000beef"),
        (lambda text: text[:-1], "ends within a line"),
    ],
)
def test_a_damaged_text_is_refused_with_its_place(folders, tmp_path, change, says):
    for number in range(26):
        shutil.copy(folders["dlrm"] / f"day_fea_dict_{number}.npz", tmp_path)
    with (folders["dlrm"] / "day_23").open() as file:
        (tmp_path / "day_23").write_text(change(file.readline()))
    with pytest.raises(convert_day.ConversionError) as caught:
        convert_day.convert(tmp_path, tmp_path)
    assert says in str(caught.value)
    assert not (tmp_path / convert_day.TEST_FILE).exists()


def _drop(name: str):
    return lambda folder: (folder / name).unlink()


def _cut(name: str):
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:-100])


def _shorter_labels(folder: Path) -> None:
    np.save(folder / "day_23_labels.npy", np.load(folder / "day_23_labels.npy")[:-1])


def _compressed(folder: Path) -> None:
    with np.load(folder / "day_23_sparse_multi_hot.npz") as content:
        np.savez_compressed(folder / "day_23_sparse_multi_hot.npz", **dict(content))


@pytest.mark.parametrize(
    ("model", "damage", "says"),
    [
        ("dlrm", _drop("terabyte_processed_test.bin"), "does not contain Criteo day 23"),
        ("dlrm", _cut("terabyte_processed_test.bin"), "rows of 160 bytes"),
        ("dlrm_v2", _drop("day_23_labels.npy"), "day_23_labels.npy"),
        ("dlrm_v2", _cut("day_23_dense.npy"), "day_23_dense.npy"),
        ("dlrm_v2", _cut("day_23_sparse_multi_hot.npz"), "day_23_sparse_multi_hot.npz"),
        ("dlrm_v2", _shorter_labels, "expected int32"),
        ("dlrm_v2", _compressed, "must be stored"),
    ],
)
def test_damaged_files_are_named(folders, tmp_path, model, damage, says):
    folder = tmp_path / "day"
    shutil.copytree(folders[model], folder)
    damage(folder)
    with pytest.raises(HarnessError) as caught:
        criteo.open_dataset(folder)
    assert says in str(caught.value)


def test_the_same_seed_gives_the_same_bytes(folders, tmp_path):
    make_set("criteo", tmp_path, form="multi-hot", size="tiny", count=6, seed=4)
    for path in tmp_path.iterdir():
        if path.suffix == ".npy":
            assert path.read_bytes() == (folders["dlrm_v2"] / path.name).read_bytes()


# --- networks, against numpy ---


def relu(values):
    return np.maximum(values, 0)


def sigmoid(values):
    return 0.5 * (1.0 + np.tanh(0.5 * values))


def state_of(module) -> dict[str, np.ndarray]:
    return {name: value.numpy().astype(np.float64) for name, value in module.state_dict().items()}


def linear(state, name, values):
    return values @ state[f"{name}.weight"].T + state[f"{name}.bias"]


def oracle_v1(state, dense, sparse):
    """Dot products of all pairs of vectors, written with loops over pairs."""
    counts = relu(linear(state, "bot_l.2", relu(linear(state, "bot_l.0", dense))))
    vectors = [counts] + [state[f"emb_l.{n}.weight"][sparse[:, n]] for n in range(26)]
    products = [(vectors[i] * vectors[j]).sum(axis=1) for i in range(27) for j in range(i)]
    joined = np.concatenate([counts, np.stack(products, axis=1)], axis=1)
    return sigmoid(linear(state, "top_l.4", relu(linear(state, "top_l.2", relu(linear(state, "top_l.0", joined))))))[
        :, 0
    ]


def oracle_v2(state, dense, sparse):
    """Sums of embeddings and the cross layers of torchrec's LowRankCrossNet."""
    counts = dense
    for number in range(2):
        counts = relu(linear(state, f"dense_arch.model._mlp.{number}._linear", counts))
    parts, column = [counts], 0
    for number, width in enumerate(criteo.MULTI_HOT):
        table = state[f"sparse_arch.embedding_bag_collection.embedding_bags.t_cat_{number}.weight"]
        parts.append(table[sparse[:, column : column + width]].sum(axis=1))
        column += width
    first = values = np.concatenate(parts, axis=1)
    for layer in range(2):
        low = values @ state[f"inter_arch.crossnet.V_kernels.{layer}"].T
        values = (
            first
            * (low @ state[f"inter_arch.crossnet.W_kernels.{layer}"].T + state[f"inter_arch.crossnet.bias.{layer}"])
            + values
        )
    for number in range(2):
        values = relu(linear(state, f"over_arch.model.0._mlp.{number}._linear", values))
    return sigmoid(linear(state, "over_arch.model.1", values))[:, 0]


@pytest.mark.parametrize(("model", "oracle"), [("dlrm", oracle_v1), ("dlrm_v2", oracle_v2)])
def test_both_runtimes_agree_with_the_formula(folders, networks, model, oracle):
    opened, dataset = open_tiny(model), criteo.open_dataset(folders[model])
    batch = opened.collate(opened.preprocess(dataset.load(range(3))))
    wanted = oracle(state_of(networks[model, "module"]), batch["dense"].astype(np.float64), batch["sparse"])
    assert wanted.std() > 0.01
    inputs = {"dense": batch["dense"], "sparse": batch["sparse"]}
    for runtime in ("torch", "onnx"):
        np.testing.assert_allclose(networks[model, runtime](inputs)["prediction"], wanted, rtol=0, atol=2e-5)


@pytest.mark.parametrize("model", FORMS)
def test_a_response_is_prediction_and_label_whatever_the_batch(folders, networks, model):
    opened, dataset = open_tiny(model), criteo.open_dataset(folders[model])
    samples = opened.preprocess(dataset.load([4, 0, 2, 5]))
    call = {"model": networks[model, "onnx"]}
    together = opened.predict(call, opened.collate(samples))
    for sample, pairs in zip(samples, together, strict=True):
        (alone,) = opened.predict(call, opened.collate([sample]))
        assert pairs.shape == (opened.length(sample), 2) and pairs.dtype == np.float32
        assert pairs.flags.c_contiguous
        assert np.array_equal(pairs[:, 1], sample["labels"])
        np.testing.assert_allclose(pairs[:, 0], alone[:, 0], rtol=0, atol=1e-6)


@pytest.mark.parametrize("model", ["dlrm", "dlrm_v2"])
def test_category_values_are_in_memory_once_the_samples_are_loaded(folders, monkeypatch, capsys, model):
    opened, dataset = open_tiny(model), criteo.open_dataset(folders[model])
    raw = dataset.load([4, 0, 2])
    samples = opened.preprocess(raw)
    with monkeypatch.context() as patched:
        patched.setattr(type(raw[0].table), "copy_sparse", None)  # the files are not asked again
        together, alone = opened.collate(samples), opened.collate(samples[:1])
    assert alone["sparse"] is samples[0]["sparse"]  # one sample is not copied
    monkeypatch.setattr("crowdperf.benchmarks.dlrm.model.free_memory_bytes", lambda: 1000)
    mapped = opened.preprocess(raw)
    assert "sparse" not in mapped[0]
    assert "part of the measured time" in capsys.readouterr().err
    assert (opened.collate(mapped)["sparse"] == together["sparse"]).all()


@pytest.mark.parametrize("model", FORMS)
def test_the_score_is_the_area_under_the_curve(folders, networks, model):
    opened, dataset = open_tiny(model), criteo.open_dataset(folders[model])
    pairs = opened.predict(
        {"model": networks[model, "torch"]}, opened.collate(opened.preprocess(dataset.load(range(6))))
    )
    score = opened.score(((index, part.tobytes()) for index, part in enumerate(pairs)), dataset)
    rows = np.concatenate(pairs)
    wanted = 100 * sklearn.metrics.roc_auc_score(rows[:, 1], rows[:, 0])
    assert score.values["AUC"] == pytest.approx(wanted, abs=0.00051)  # as printed: three digits
    assert score.line.startswith("AUC=")


def test_a_data_set_of_the_other_version_is_refused(folders):
    with pytest.raises(HarnessError, match="214 category values in a row, but the model expects 26"):
        open_tiny("dlrm").preprocess(criteo.open_dataset(folders["dlrm_v2"]).load([0]))


# --- sizes and rules ---


@pytest.mark.parametrize(
    ("module", "model", "weights_bytes"), [(dlrm, "dlrm", 96_146_383_876), (dlrm_v2, "dlrm_v2", 104_606_687_236)]
)
def test_memory_is_known_before_anything_is_loaded(module, model, weights_bytes):
    needed = module.memory_bytes(ModelFacts())
    assert weights_bytes < needed < 1.1 * weights_bytes
    tiny = module.memory_bytes(ModelFacts(config=architecture_of(model).CONFIGS["tiny"]))
    assert tiny < 10**6
    with torch.device("meta"):
        full = architecture_of(model).build("model", architecture_of(model).CONFIGS["full"])
    assert 4 * sum(parameter.numel() for parameter in full.parameters()) == weights_bytes


def test_the_published_names_of_parameters_are_kept():
    with torch.device("meta"):
        first, second = (architecture_of(name).build("model", architecture_of(name).CONFIGS["full"]) for name in FORMS)
    assert tuple(first.state_dict()["emb_l.0.weight"].shape) == (39_884_406, 128)
    assert tuple(first.state_dict()["top_l.0.weight"].shape) == (1024, 479)
    assert "_pairs" not in first.state_dict()
    state = {f"model.{name}": value for name, value in second.state_dict().items()}
    assert set(architecture_of("dlrm_v2").convert_checkpoint("model", state)) == set(second.state_dict())


@pytest.mark.parametrize(
    ("name", "loadgen_name", "latency_ms"),
    [("dlrm-99", "dlrm", 30), ("dlrm-99.9", "dlrm", 30), ("dlrm-v2-99.9", "dlrm-v2", 60)],
)
def test_rules_are_the_official_ones(name, loadgen_name, latency_ms):
    rules = record_of(name)
    assert (rules.loadgen_name, rules.server_target_latency_ms) == (loadgen_name, latency_ms)
    assert (rules.dataset, rules.performance_sample_count) == ("criteo", 204_800)


@pytest.mark.parametrize("counts", [[1] * 25, [0] * 26, ["1"] * 26])
def test_a_model_with_impossible_categories_is_refused(counts):
    with pytest.raises(HarnessError, match="hot_counts"):
        dlrm_v2.open_model(ModelFacts(config={"hot_counts": counts}))


@pytest.mark.parametrize(("model", "wrap"), [("dlrm", ""), ("dlrm_v2", "model.")])
def test_weights_in_the_published_form_are_taken_over(tmp_path, model, wrap):
    made = ModelRequest(architecture=model, config="tiny", framework="pytorch", output_dir=tmp_path, seed=3)
    state = build_modules(made)["model"].state_dict()
    torch.save({"state_dict": {f"{wrap}{name}": value for name, value in state.items()}}, tmp_path / "weights.pt")
    taken = build_modules(replace(made, weights=tmp_path / "weights.pt", seed=4))["model"].state_dict()
    assert all(torch.equal(taken[name], value) for name, value in state.items())
