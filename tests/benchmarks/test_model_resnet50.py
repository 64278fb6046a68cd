"""resnet50 with ImageNet: the data set's files, both preprocessings, the network, published tensor names, the score."""

import json
import math
from pathlib import Path

import cv2
import numpy as np
import pytest
from harness_support import need

from crowdperf.benchmarks.resnet50 import model as resnet50
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.model_facts import ModelFacts, read_model_facts
from crowdperf.harness.datasets import imagenet
from crowdperf.rules.benchmarks import record_of

need("PIL")

PUBLISHED = {"classes": 1001, "input_name": "input_tensor:0", "output": "label", "output_name": "ArgMax:0"}


def picture(height: int, width: int):
    return np.random.default_rng((height, width)).integers(0, 256, (height, width, 3), dtype=np.uint8)


def write_dataset(folder: Path, labels=(3, 0, 999), label_file="val_map.txt") -> list[str]:
    """A small copy in ImageNet's layout; gives the images' names."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"ILSVRC2012_val_{number:08d}.JPEG" for number in range(1, len(labels) + 1)]
    for number, name in enumerate(names):
        cv2.imwrite(str(folder / name), picture(20 + number, 30))
    lines = (f"{name} {label}\n" for name, label in zip(names, labels, strict=True))
    (folder / label_file).write_text("".join(lines), encoding="utf-8")
    return names


def opened(**config: object) -> resnet50.Resnet50:
    return resnet50.open_model(ModelFacts(config=config))


# --- the data set ---


@pytest.mark.parametrize("label_file", ["val_map.txt", "val.txt"])
def test_images_come_in_the_order_of_the_labels_and_are_real_unless_said_otherwise(tmp_path, label_file):
    names = write_dataset(tmp_path, label_file=label_file)
    (tmp_path / "LICENSE").touch()
    dataset = imagenet.open_dataset(tmp_path)
    assert (dataset.count, dataset.labels.tolist(), dataset.facts.is_synthetic) == (3, [3, 0, 999], False)
    assert [image.shape for image in dataset.load([2, 0])] == [(22, 30, 3), (20, 30, 3)]
    assert dataset.sample_name(1) == names[1]
    (tmp_path / "dataset.json").write_text('{"is_synthetic": true}', encoding="utf-8")
    assert imagenet.open_dataset(tmp_path).facts.is_synthetic


def test_images_in_folders_of_their_own_are_found(tmp_path):
    names = write_dataset(tmp_path / "val")
    (tmp_path / "val" / "val_map.txt").unlink()
    (tmp_path / "val_map.txt").write_text("".join(f"val/{name} 1\n" for name in names), encoding="utf-8")
    assert imagenet.open_dataset(tmp_path).count == 3


def test_missing_empty_and_extra_images_are_listed_at_once(tmp_path):
    names = write_dataset(tmp_path, labels=range(10))
    for name in names[:7]:
        (tmp_path / name).unlink()
    (tmp_path / names[8]).write_bytes(b"")
    (tmp_path / "ILSVRC2012_val_00000099.JPEG").write_bytes(b"x")
    with pytest.raises(HarnessError) as caught:
        imagenet.open_dataset(tmp_path)
    assert str(caught.value).splitlines()[1:] == [
        f"  7 images missing: {', '.join(names[:5])} and 2 more",
        f"  1 images empty: {names[8]}",
        "  1 images extra (not in the list of labels): ILSVRC2012_val_00000099.JPEG",
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a.JPEG\n", "1 lines are not labels .*: line 1: 'a.JPEG'"),
        ("a.JPEG 1000\nb.JPEG 3\nc.JPEG -1\n", "2 lines are not labels .*: line 1: .*; line 3: "),
        ("a.JPEG ³\n", "1 lines are not labels"),
        ("\n", "lists no images"),
        ("a.JPEG 1\na.JPEG 2\n", "lists 1 images more than once"),
    ],
)
def test_labels_that_cannot_be_are_refused_with_their_lines(tmp_path, text, words):
    (tmp_path / "val_map.txt").write_text(text, encoding="utf-8")
    with pytest.raises(HarnessError, match=words):
        imagenet.open_dataset(tmp_path)


def test_a_folder_without_labels_is_refused(tmp_path):
    with pytest.raises(HarnessError, match=r"contains no val_map.txt or val.txt"):
        imagenet.open_dataset(tmp_path)


def test_every_truncated_image_of_a_load_is_named(tmp_path):
    names = write_dataset(tmp_path)
    for name in names[:2]:
        (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:-30])
    dataset = imagenet.open_dataset(tmp_path)
    with pytest.raises(HarnessError, match=rf"2 of 3 images cannot be used: .*{names[0]} ends early; .*{names[1]}"):
        dataset.load([0, 1, 2])
    assert len(dataset.load([2])) == 1


# --- preprocessing ---


def reference_vgg(image):
    """pre_process_vgg of the reference, written anew from its definition; its own code gave the same bytes for 3,000
    JPEG files (RGB, grey, CMYK, turned, progressive) on 2026-11-21 with OpenCV 5.0.0."""
    height, width, _ = image.shape
    size = (256, int(256 * height / width)) if height > width else (int(256 * width / height), 256)
    image = cv2.resize(image, size, interpolation=cv2.INTER_AREA)
    height, width, _ = image.shape
    image = image[int((height - 224) / 2) : int((height + 224) / 2), int((width - 224) / 2) : int((width + 224) / 2)]
    image = np.asarray(image, dtype="float32")
    image -= np.array([123.68, 116.78, 103.94], dtype=np.float32)
    return image.transpose([2, 0, 1])


def test_preprocessing_gives_the_references_bytes_for_many_sizes():
    generator = np.random.default_rng(7)
    sizes = [(256, 256), (224, 224), (255, 257), (512, 512), (3, 3), (500, 375)]
    sizes += [tuple(int(side) for side in generator.integers(60, 330, 2)) for _ in range(100)]
    images = [picture(*size) for size in sizes]
    found = opened().preprocess(images)["image"]
    assert (found.dtype, found.shape) == (np.float32, (len(sizes), 3, 224, 224))
    for row, image in zip(found, images, strict=True):
        assert np.array_equal(row, reference_vgg(image)), image.shape


def test_torchvisions_preprocessing_crops_by_rounding_and_normalises():
    """torchvision 0.29's functions gave the same bytes for 267 sizes on 2026-11-21."""
    image = np.zeros((256, 267, 3), dtype=np.uint8)  # not resized: the crop starts at round(21.5) = 22
    image[:, 22:, 0] = 255
    image[:, 245, 1] = 51
    (found,) = opened(preprocessing="pytorch").preprocess([image])["normalised_image"]
    assert found.shape == (3, 224, 224)
    assert np.allclose(found[0], (1 - 0.485) / 0.229)
    assert np.allclose(found[1, :, :223], (0 - 0.456) / 0.224)
    assert np.allclose(found[1, :, 223], (0.2 - 0.456) / 0.224)
    (small,) = opened(preprocessing="pytorch").preprocess([np.full((100, 70, 3), 255, np.uint8)])["normalised_image"]
    assert np.allclose(small[2], (1 - 0.406) / 0.225)


# --- the model ---


def scores(classes: int, *best: int):
    values = np.zeros((len(best), classes), dtype=np.float32)
    values[np.arange(len(best)), best] = 1
    return values


@pytest.mark.parametrize(
    ("config", "outputs", "labels"),
    [
        ({}, {"scores": scores(1000, 0, 999, 7)}, [0, 999, 7]),
        ({"classes": 1001}, {"scores": scores(1001, 1, 1000, 8)}, [0, 999, 7]),
        (PUBLISHED, {"ArgMax:0": np.array([1, 1000, 8])}, [0, 999, 7]),
        ({**PUBLISHED, "output": "scores", "output_name": "softmax_tensor:0"},
         {"softmax_tensor:0": scores(1001, 1, 0, 8)}, [0, -1, 7]),
    ],
)  # fmt: skip
def test_a_response_is_one_float32_label_without_the_background_class(config, outputs, labels):
    model = opened(**config)
    images = np.zeros((3, 3, 224, 224), dtype=np.float32)
    seen = {}

    def infer(inputs):
        seen.update(inputs)
        return outputs

    found = model.predict({"model": infer}, {"image": images})
    assert (found.dtype, found.tolist()) == (np.float32, labels)
    assert list(seen) == [config.get("input_name", "image")]
    assert seen[model.networks[0].inputs[0].name] is images
    assert [spec.name for spec in model.networks[0].outputs] == list(outputs)


def test_equal_scores_give_the_least_label():
    assert opened().predict({"model": lambda inputs: {"scores": np.ones((1, 1000))}}, {"image": None}).tolist() == [0.0]


def test_samples_prepared_the_other_way_are_refused():
    with pytest.raises(HarnessError, match=r"the preprocessed samples contain image, .* need normalised_image"):
        opened(preprocessing="pytorch").predict({}, {"image": np.zeros(1)})


@pytest.mark.parametrize(
    ("config", "words"),
    [({"classes": 10}, "classes .* is 10; allowed: 1000, 1001"), ({"preprocessing": "tf"}, "allowed: vgg, pytorch"),
     ({"output": "x"}, "allowed: scores, label")],
)  # fmt: skip
def test_a_configuration_that_cannot_be_is_refused(config, words):
    with pytest.raises(HarnessError, match=words):
        opened(**config)


def test_the_score_is_the_official_line(tmp_path):
    write_dataset(tmp_path)
    dataset = imagenet.open_dataset(tmp_path)
    responses = [(index, np.float32(label).tobytes()) for index, label in ((2, 999), (0, 3), (1, 5))]
    score = opened().score(responses, dataset)
    assert score.line == "accuracy=66.667%, good=2, total=3"
    assert math.isclose(score.values["acc"], 200 / 3, abs_tol=0.001)
    with pytest.raises(HarnessError, match="has 8 bytes, expected 4"):
        opened().score([(0, b"12345678")], dataset)


def test_the_rules_are_the_official_ones():
    rules = record_of("resnet50")
    assert (rules.performance_sample_count, rules.offline_min_sample_count) == (1024, 24_576)
    assert (rules.server_target_latency_ms, rules.loadgen_name, rules.dataset) == (15.0, "resnet50", "imagenet")


# --- the network ---


def test_the_full_network_has_torchvisions_parameters():
    """torchvision 0.29's state dict loads, and its network gives the same numbers (tried on 2026-11-21)."""
    need("torch")
    import torch

    from crowdperf.benchmarks.resnet50 import network

    with torch.device("meta"):
        module = network.build("model", network.CONFIGS["full"])
    assert sum(parameter.numel() for parameter in module.parameters()) == 25_557_032
    shapes = {name: tuple(value.shape) for name, value in module.state_dict().items()}
    assert len(shapes) == 320
    for name, shape in {
        "conv1.weight": (64, 3, 7, 7),
        "bn1.running_var": (64,),
        "layer1.0.downsample.0.weight": (256, 64, 1, 1),
        "layer1.0.downsample.1.bias": (256,),
        "layer3.5.conv2.weight": (256, 256, 3, 3),
        "layer4.2.bn3.num_batches_tracked": (),
        "fc.weight": (1000, 2048),
    }.items():
        assert shapes[name] == shape
    assert module.layer2[0].conv1.stride == (1, 1), "version 1 has the stride here"
    assert module.layer2[0].conv2.stride == (2, 2)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """The tiny network as ONNX and as safetensors, from one seed."""
    need("torch", "onnx", "onnxruntime", "safetensors")
    from crowdperf.models.make_model import ModelRequest, make_model

    folder = tmp_path_factory.mktemp("tiny")
    for framework in ("onnx", "pytorch"):
        order = ModelRequest(architecture="resnet50", config="tiny", framework=framework, output_dir=folder / framework)
        make_model(order)
    return folder


def test_both_frameworks_give_the_same_scores_for_any_batch(tiny):
    import onnxruntime
    import torch
    from safetensors.torch import load_file

    from crowdperf.benchmarks.resnet50 import network

    facts = read_model_facts(None, tiny / "pytorch" / "model.json")
    module = network.build("model", facts.config)
    module.load_state_dict(load_file(facts.files["model"].path))
    session = onnxruntime.InferenceSession(str(tiny / "onnx" / "resnet50.onnx"), providers=["CPUExecutionProvider"])
    images = opened(side=64).preprocess([picture(224, 300 + number) for number in range(5)])["image"]
    with torch.inference_mode():
        ours = module(torch.from_numpy(images))[0].numpy()
    assert (ours.shape, bool(np.isfinite(ours).all())) == ((5, 1000), True)
    assert ours.std() > 0.01
    for batch in (1, 5):
        (found,) = session.run(["scores"], {"image": images[:batch]})
        assert np.allclose(found, ours[:batch], rtol=1e-3, atol=1e-3)


def published_file(path: Path, tiny_onnx: Path) -> None:
    """A small ONNX file with the published one's names: 1001 classes, input_tensor:0, softmax_tensor:0 and ArgMax:0."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    model = onnx.load(str(tiny_onnx))
    graph = model.graph
    for node in graph.node:
        node.input[:] = ["input_tensor:0" if name == "image" else name for name in node.input]
        node.output[:] = ["thousand" if name == "scores" else name for name in node.output]
    graph.input[0].name = "input_tensor:0"
    graph.initializer.append(numpy_helper.from_array(np.array([0, 1, 0, 0], dtype=np.int64), "pads"))
    graph.initializer.append(numpy_helper.from_array(np.array(-1e9, dtype=np.float32), "lowest"))
    graph.node.extend(
        [
            helper.make_node("Pad", ["thousand", "pads", "lowest"], ["logits"]),
            helper.make_node("Softmax", ["logits"], ["softmax_tensor:0"], axis=1),
            helper.make_node("ArgMax", ["logits"], ["ArgMax:0"], axis=1, keepdims=0),
        ]
    )
    del graph.output[:]
    graph.output.append(helper.make_tensor_value_info("ArgMax:0", TensorProto.INT64, ["batch"]))
    graph.output.append(helper.make_tensor_value_info("softmax_tensor:0", TensorProto.FLOAT, ["batch", 1001]))
    onnx.checker.check_model(model)
    onnx.save(model, str(path))


def test_a_file_with_the_published_names_and_1001_classes_gives_the_same_labels(tiny, tmp_path):
    import onnxruntime

    published_file(tmp_path / "resnet50_v1.onnx", tiny / "onnx" / "resnet50.onnx")
    images = opened(side=64).preprocess([picture(300, 224 + number) for number in range(6)])
    labels = []
    for config, path in (
        ({}, tiny / "onnx" / "resnet50.onnx"),
        (PUBLISHED, tmp_path / "resnet50_v1.onnx"),
        ({**PUBLISHED, "output": "scores", "output_name": "softmax_tensor:0"}, tmp_path / "resnet50_v1.onnx"),
    ):
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        model = opened(side=64, **config)
        names = [spec.name for spec in model.networks[0].outputs]

        def infer(inputs, session=session, names=names):
            return dict(zip(names, session.run(names, inputs), strict=True))

        labels.append(model.predict({"model": infer}, images).tolist())
    assert labels[0] == labels[1] == labels[2]
    assert len(set(labels[0])) > 1


def test_the_store_of_preprocessed_images_is_that_of_the_model(tmp_path):
    from crowdperf.harness.base import store
    from crowdperf.harness.commands import preprocess

    names = write_dataset(tmp_path / "data")
    words = ["--model", "resnet50", "--dataset", str(tmp_path / "data"), "--output", str(tmp_path / "store")]
    preprocess.run(preprocess.parse([*words, "--workers", "1"]))
    dataset = imagenet.open_dataset(tmp_path / "data")
    found = store.open_store(tmp_path / "store", "resnet50", tmp_path / "data", dataset).load([2, 0])
    images = dataset.load([2, 0])
    assert np.array_equal(found["image"], opened().preprocess(images)["image"])
    assert (tmp_path / "store" / "sample_map.txt").read_text(encoding="utf-8").split() == names
    assert json.loads((tmp_path / "store" / "preprocessed.json").read_text(encoding="utf-8"))["count"] == 3
