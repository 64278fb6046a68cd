"""Own weights and incomplete data are facts of a run: decided by digests and counts, in every file and label."""

import dataclasses
import hashlib
import json
from pathlib import Path
from types import SimpleNamespace

import cv2
import numpy as np
import onnx
import pytest
from harness_support import need, request, run_harness

from crowdperf.harness.base.dataset import DatasetFacts
from crowdperf.harness.base.model_facts import read_model_facts
from crowdperf.harness.datasets import imagenet
from crowdperf.harness.runner import loadgen_run
from crowdperf.kit.whole_file import file_sha256
from crowdperf.models.model_json import describe_files, write_model_info
from crowdperf.rules.backends import BACKENDS
from crowdperf.rules.benchmarks import RECORDS
from crowdperf.rules.names import Mode

need("onnxruntime", "mlperf_loadgen")

OWN = "own model (not the published file)"


def own_network(path: Path) -> Path:
    """An ONNX network of one layer, with the names and shapes of resnet50's scores."""
    helper, numpy_helper, kinds = onnx.helper, onnx.numpy_helper, onnx.TensorProto
    weights = np.random.default_rng(3).normal(size=(3, 1000)).astype(np.float32)
    graph = helper.make_graph(
        [
            helper.make_node("GlobalAveragePool", ["image"], ["mean"]),
            helper.make_node("Flatten", ["mean"], ["flat"]),
            helper.make_node("MatMul", ["flat", "weights"], ["scores"]),
        ],
        "own",
        [helper.make_tensor_value_info("image", kinds.FLOAT, ["batch", 3, 224, 224])],
        [helper.make_tensor_value_info("scores", kinds.FLOAT, ["batch", 1000])],
        [numpy_helper.from_array(weights, "weights")],
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), str(path))
    return path


def described(path: Path, **facts: object) -> Path:
    """A model.json for the file at `path`, as the harness's own programs write it."""
    info = {"name": "resnet50", "framework": "onnx", "is_synthetic": False, **facts}
    return write_model_info(path.parent, {**info, "files": describe_files({"model": [path]})})


def drawn_pictures(folder: Path, count: int) -> Path:
    folder.mkdir(parents=True)
    rows = []
    for number in range(1, count + 1):
        name = f"ILSVRC2012_val_{number:08d}.JPEG"
        cv2.imwrite(str(folder / name), np.random.default_rng(number).integers(0, 256, (240, 240, 3), dtype=np.uint8))
        rows.append(f"{name} {number}\n")
    (folder / "val_map.txt").write_text("".join(rows))
    return folder


def config_of(model: str = "resnet50", backend: str = "onnxruntime") -> SimpleNamespace:
    """The part of a request that says what is asked for."""
    return SimpleNamespace(model=model, backend=backend, mode=Mode.PERFORMANCE, compliance_test=None)


def a_dataset(count: int = 50_000, **facts: object) -> SimpleNamespace:
    return SimpleNamespace(count=count, facts=DatasetFacts(**facts))


def origin_of(path: Path, **asked: str) -> str:
    return loadgen_run.provenance(config_of(**asked), read_model_facts(None, path), a_dataset()).model


def test_a_network_of_ones_own_is_labelled_in_every_run(tmp_path):
    info = described(own_network(tmp_path / "model" / "mynet.onnx"))
    content = request(
        model="resnet50", backend="onnxruntime", model_info_path=str(info), batch_size=2, instances=1, threads=1,
        dataset_path=str(drawn_pictures(tmp_path / "photos", 5)), output_dir=str(tmp_path / "out"),
        target_qps=20, min_duration_ms=50,
    )  # fmt: skip
    ended = run_harness(tmp_path, content)
    assert ended.code == 0, ended.stderr
    wanted = {"model": "own", "dataset": "own", "sample_count": 5, "benchmark_sample_count": 50_000}
    assert ended.result["provenance"] == wanted
    parts = ended.result["label"].split("; ")
    assert OWN in parts and "5 of 50,000 samples" in parts and "own data (not the benchmark's)" in parts
    assert "is not the benchmark's data: ILSVRC2012_val_00000001.JPEG has label 1, not 65" in ended.stderr


def test_pictures_are_compared_with_what_is_published_of_the_validation_set():
    names = [f"ILSVRC2012_val_{number:08d}.JPEG" for number in range(1, 50_001)]
    known = {0: 65, 1: 970, 2: 230, 3: 809, 4: 516, 49_997: 232, 49_998: 982, 49_999: 355}
    rest = [label for label in range(1000) for _ in range(50 - list(known.values()).count(label))]
    others = iter(rest)
    labels = [known[index] if index in known else next(others) for index in range(50_000)]
    sizes = dict.fromkeys(names, 134_385)  # 263 blocks of 512 bytes, with the header
    sizes[names[0]] += 512 * (6_744_924_160 // 512 - 2 - 50_000 * 264)
    of_first = imagenet.difference(names[:500], labels[:500], sizes)
    assert (imagenet.difference(names, labels, sizes), of_first) == ("", "")
    one_more = {**sizes, names[1]: 134_385 + 40_960}
    swapped = [*labels[:10], (labels[10] + 1) % 1000, *labels[11:]]
    cases = [
        (["a.JPEG", *names[1:]], labels, sizes, "a.JPEG is not a file name of the validation set"),
        (names, [66, *labels[1:]], sizes, "ILSVRC2012_val_00000001.JPEG has label 66, not 65"),
        (names[:2], [65, 971], sizes, "ILSVRC2012_val_00000002.JPEG has label 971, not 970"),
        (names, swapped, sizes, "49 to 51 pictures of a class, not 50 of each"),
        (
            names,
            labels,
            one_more,
            "the files make an archive of 6,744,965,120 bytes, ILSVRC2012_img_val.tar has 6,744,924,160",
        ),
    ]
    for *given, wanted in cases:
        assert imagenet.difference(*given) == wanted


@pytest.mark.parametrize(
    ("facts", "origin"),
    [
        ({}, "given"),
        ({"difference": "other names"}, "own"),
        ({"difference": "other names", "is_described": True}, "fetched"),
        ({"difference": "other names", "is_synthetic": True}, "made"),
    ],
)
def test_data_given_by_path_is_own_where_something_shows_that_it_is_not_the_benchmarks(facts, origin, tmp_path):
    info = described(own_network(tmp_path / "weights.onnx"))
    found = loadgen_run.provenance(config_of(), read_model_facts(None, info), a_dataset(**facts))
    assert found.dataset == origin


def test_the_published_file_is_known_by_its_digest(tmp_path, monkeypatch):
    path = own_network(tmp_path / "resnet50_v1.onnx")
    info = described(path)
    assert origin_of(info) == "own"
    record = RECORDS["resnet50"]
    md5 = hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()
    changed = dataclasses.replace(record, published_md5=(*record.published_md5, md5))
    monkeypatch.setattr(loadgen_run, "record_of", lambda model: changed)
    assert origin_of(info) == "published"


def test_what_a_recipe_said_of_weights_does_not_hold_for_a_file_put_in_their_place(tmp_path):
    path = own_network(tmp_path / "weights.onnx")
    info = described(path, origin="published")
    assert origin_of(info) == "published"
    path.write_bytes(path.read_bytes() + b"\x72\x00")  # another file, and model.json adapted to it by hand
    values = json.loads(info.read_text())
    values["files"]["model"]["sha256"] = file_sha256(path)
    info.write_text(json.dumps(values))
    assert origin_of(info) == "own"


@pytest.mark.parametrize(
    ("model", "backend", "facts", "origin"),
    [
        ("resnet50", "onnxruntime", {"is_synthetic": True}, "made"),
        ("resnet50", "null", {}, "none"),
        ("yolo-99", "onnxruntime", {}, "unchecked"),  # no digest is published
        ("yolo-99", "onnxruntime", {"origin": "published"}, "published"),
        ("digits", "onnxruntime", {}, "project"),
    ],
)
def test_where_weights_come_from(tmp_path, model, backend, facts, origin):
    info = described(own_network(tmp_path / "model.onnx"), **facts)
    assert origin_of(info, model=model, backend=backend) == origin


def test_the_weights_of_a_server_are_not_those_that_lie_here(tmp_path):
    info = described(own_network(tmp_path / "model.onnx"), is_synthetic=True)
    facts, dataset = read_model_facts(None, info), a_dataset(24, is_synthetic=True)
    found = loadgen_run.provenance(config_of("llama3.1-8b", "endpoint"), facts, dataset)
    assert (found.model, found.dataset, found.labels) == ("server", "made", ("weights of a server, not checked",))
    assert loadgen_run.synthetic_parts(facts, dataset, BACKENDS["endpoint"])["model"] is False


@pytest.mark.parametrize(
    ("count", "facts", "dataset", "label"),
    [
        (50_000, {}, "given", ()),
        (500, {"is_described": True}, "fetched", ("500 of 50,000 samples",)),
        (32, {"is_described": True, "is_synthetic": True}, "made", ()),
    ],
)
def test_a_data_set_is_counted_against_the_benchmarks(tmp_path, count, facts, dataset, label):
    info = described(own_network(tmp_path / "model.onnx"), origin="published")
    found = loadgen_run.provenance(config_of(), read_model_facts(None, info), a_dataset(count, **facts))
    assert (found.dataset, found.labels) == (dataset, label)


def test_pictures_without_a_list_are_measured_and_not_scored(tmp_path):
    photos = drawn_pictures(tmp_path / "photos", 4)
    (photos / "val_map.txt").unlink()
    for number, path in enumerate(sorted(photos.iterdir())):
        path.rename(photos / f"holiday {number}.jpg")
    info = described(own_network(tmp_path / "model" / "mynet.onnx"))
    content = request(
        model="resnet50", backend="onnxruntime", model_info_path=str(info), batch_size=2, instances=1, threads=1,
        dataset_path=str(photos), output_dir=str(tmp_path / "out"), target_qps=20, min_duration_ms=50,
    )  # fmt: skip
    ended = run_harness(tmp_path, content)
    assert ended.code == 0, ended.stderr
    assert {OWN, "4 of 50,000 samples"} <= set(ended.result["label"].split("; "))
    refused = run_harness(tmp_path, {**content, "mode": "accuracy"})
    assert refused.code != 0 and "have no val_map.txt (--mode=performance measures them)" in refused.stderr
