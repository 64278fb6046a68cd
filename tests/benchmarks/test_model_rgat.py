"""rgat: files of IGBH, drawing neighbours, the layers against a plain loop over nodes, labels beyond a byte."""

import harness_support
import numpy as np
import pytest
import torch
from made_sets import make_set
from torch.nn import functional

from crowdperf.benchmarks.rgat import model as rgat
from crowdperf.benchmarks.rgat import network, sampling
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.model_facts import ModelFacts
from crowdperf.harness.datasets import igbh
from crowdperf.models.model_files import write_onnx

harness_support.need("onnxruntime")

pytestmark = pytest.mark.usefixtures("one_thread")
CONFIG = {"feature_count": 32, "width": 8, "heads": 2, "class_count": 320, "fan_out": [2, 3]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("igbh")
    make_set("igbh", place, kind="tiny", count=30)
    return place


@pytest.fixture(scope="module")
def dataset(folder):
    return igbh.open_dataset(folder)


@pytest.fixture(scope="module")
def module():
    made = network.build("model", CONFIG)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.normal_(0.0, 0.5, generator=generator)
    return made


def test_edges_go_both_ways_and_every_paper_cites_itself_once(folder, dataset):
    pairs = np.load(folder / "tiny/processed/paper__cites__paper/edge_index.npy")
    other = pairs[pairs[:, 0] != pairs[:, 1]]
    relation = dataset.graph.relations["cites"]
    for paper in (0, 7, 329):
        found = relation.sources[relation.starts[paper] : relation.starts[paper + 1]]
        wanted = [*other[other[:, 1] == paper, 0], *other[other[:, 0] == paper, 1], paper]
        assert sorted(found) == sorted(wanted)
    wrote = np.load(folder / "tiny/processed/paper__written_by__author/edge_index.npy")
    back = dataset.graph.relations["rev_written_by"]
    assert sorted(back.sources[back.starts[3] : back.starts[4]]) == sorted(wrote[wrote[:, 0] == 3, 1])


def test_the_papers_and_labels_are_those_of_the_split(folder, dataset):
    nodes = torch.load(folder / "tiny/processed/val_idx.pt").numpy()
    assert np.array_equal(dataset.nodes, nodes) and dataset.count == 30 and dataset.facts.is_synthetic
    assert np.array_equal(dataset.labels, nodes % 320) and dataset.labels.max() > 255


@pytest.mark.parametrize("degree", [0, 1, 4, 5, 6, 40])
def test_as_many_different_neighbours_are_drawn_as_there_are_up_to_the_limit(degree):
    seeds = np.arange(2000, dtype=np.uint64) * np.uint64(7919)
    chosen = sampling.choose(np.full(2000, degree), 5, sampling._mixed(seeds))
    for row in chosen[:200]:
        kept = row[row >= 0]
        assert len(kept) == len(set(kept)) == min(degree, 5) and (kept < max(degree, 1)).all()
    if degree > 5:  # each place as often as any other
        counts = np.bincount(chosen.ravel(), minlength=degree) / (2000 * 5 / degree)
        assert counts.min() > 0.7 and counts.max() < 1.3


def test_what_is_drawn_for_a_paper_does_not_depend_on_its_batch(dataset):
    together = sampling.draw(dataset.graph, dataset.nodes[[4, 9, 4, 2]], [2, 3])
    alone = sampling.draw(dataset.graph, dataset.nodes[[9]], [2, 3])
    for key, pairs in alone.edges.items():
        wanted = {(alone.kinds[a], alone.nodes[a], alone.kinds[b], alone.nodes[b]) for a, b in pairs}
        found = {
            (together.kinds[a], together.nodes[a], together.kinds[b], together.nodes[b]) for a, b in together.edges[key]
        }
        assert wanted <= found
    assert together.nodes[:4].tolist() == dataset.nodes[[4, 9, 4, 2]].tolist()
    for (hop, name), pairs in together.edges.items():
        kinds = next((s, t) for s, n, t in igbh.RELATIONS if n == name)
        assert {(igbh.KINDS[together.kinds[a]], igbh.KINDS[together.kinds[b]]) for a, b in pairs} <= {kinds}
        _, counts = np.unique(pairs[:, 1], return_counts=True)
        assert counts.max(initial=0) <= {1: 3, 2: 2}[hop]


def slow_logits(module, inputs):
    """The same, node by node: for each relation the attention over the node's edges."""
    x = torch.from_numpy(inputs["features"][0])
    kinds = inputs["kinds"][0]
    for number, layer in enumerate(module.layers):
        result = torch.zeros(len(x), CONFIG["width"])
        for _, name, target in igbh.RELATIONS:
            gat = layer.mods[name]
            keys = [key for key in inputs if key.startswith(f"{name}_") and key.removeprefix(f"{name}_").isdigit()]
            lists = [inputs[key][0] for key in keys if int(key[-1]) <= len(module.layers) - number]
            pairs = np.concatenate(lists) if lists else np.zeros((0, 2), np.int64)
            sent = gat.fc(x).reshape(-1, gat.heads, gat.width)
            for node in range(len(x) - 1):
                if igbh.KINDS[kinds[node]] == target:
                    result[node] += gat.bias
                sources = pairs[pairs[:, 1] == node, 0]
                if len(sources):
                    left, right = (sent[sources] * gat.attn_l).sum(-1), (sent[node] * gat.attn_r[0]).sum(-1)
                    share = functional.leaky_relu(left + right, 0.2).softmax(0)
                    result[node] += (share[..., None] * sent[sources]).sum(0).flatten()
        x = functional.leaky_relu(result) if number < len(module.layers) - 1 else result
    return module.linear(x[: inputs["papers"].shape[1]])


def test_the_network_computes_attention_over_the_drawn_edges(module, dataset):
    inputs = rgat.network_inputs(dataset.graph, dataset.nodes[:3], CONFIG["fan_out"])
    with torch.inference_mode():
        (found,) = module(*(torch.from_numpy(array) for array in inputs.values()))
        wanted = slow_logits(module, inputs)
    assert found.shape == (1, 3, 320) and torch.allclose(found[0], wanted, atol=1e-3, rtol=1e-4)


def test_the_onnx_file_adds_up_all_edges_of_a_node(module, dataset, tmp_path):
    import onnxruntime

    examples = network.example_inputs("model", CONFIG, 1, torch.Generator().manual_seed(0))
    (path,) = write_onnx(module, rgat.Rgat(CONFIG).networks[0], examples, tmp_path / "rgat.onnx")
    inputs = rgat.network_inputs(dataset.graph, dataset.nodes[:3], CONFIG["fan_out"])
    with torch.inference_mode():
        (wanted,) = module(*(torch.from_numpy(array) for array in inputs.values()))
    (found,) = onnxruntime.InferenceSession(str(path)).run(None, inputs)
    assert np.allclose(found, wanted.numpy(), atol=1e-3, rtol=1e-4)


def test_labels_are_eight_bytes_and_the_line_is_in_percent(dataset):
    model = rgat.Rgat({**CONFIG})
    inputs = model.preprocess(dataset.load([3, 5, 3]))
    logits = np.zeros((1, 3, 320), np.float32)
    logits[0, np.arange(3), [300, 1, 300]] = 1
    found = model.predict({"model": lambda _: {"logits": logits}}, inputs)
    assert found.dtype == np.int64 and found.tolist() == [300, 1, 300] and found[0].nbytes == 8
    responses = [(index, int(label).to_bytes(8, "little")) for index, label in enumerate(dataset.labels)]
    responses[0] = (0, int(dataset.labels[0] % 256 + 1).to_bytes(8, "little"))
    score = model.score(responses, dataset)
    assert score.line == "accuracy=96.667%, good=29, total=30" and score.values == {"acc": 96.667}
    with pytest.raises(HarnessError, match="1 bytes, expected 8"):
        model.score([(0, b"\x01")], dataset)


def test_a_model_of_another_width_than_the_graph_is_refused(dataset):
    model = rgat.open_model(ModelFacts())
    assert model.networks[0].inputs[0].shape == ("nodes", 1024)
    with pytest.raises(HarnessError, match="have 32 numbers each, but the model expects 1024"):
        model.preprocess(dataset.load([0]))
    with pytest.raises(HarnessError, match="fan_out"):
        rgat.open_model(ModelFacts(config={"feature_count": 3, "class_count": 3}))


def test_the_full_network_has_the_references_names():
    names = set(network.build("model", {**network.CONFIGS["full"], "width": 8, "feature_count": 4}).state_dict())
    assert {"layers.0.mods.rev_venue.fc.weight", "layers.2.mods.cites.attn_l", "linear.bias"} <= names
    assert len(names) == 3 * 11 * 4 + 2
    state = {"model.layers.0.x": torch.ones(1), "layers.0.x": torch.ones(1)}
    assert set(network.convert_checkpoint("model", state)) == {"layers.0.x"}
    assert len(sampling.reachable(3)) == 5 + 10 + 11


def copied(folder, tmp_path):
    import shutil

    return shutil.copytree(folder, tmp_path / "copy") / "tiny/processed"


@pytest.mark.parametrize("damage", ["missing", "edges", "indices", "floats"])
def test_damaged_files_are_named(damage, folder, tmp_path):
    place = copied(folder, tmp_path)
    if damage == "missing":
        (place / "fos/node_feat.npy").unlink()
        wanted = "fos/node_feat.npy"
    elif damage == "edges":
        np.save(place / "paper__topic__fos/edge_index.npy", np.array([[0, 10**6]]))
        wanted = "contains a fos outside"
    elif damage == "indices":
        (place / "val_idx.pt").write_bytes(b"PK")
        wanted = "val_idx.pt contains no list of nodes"
    else:
        torch.save(torch.ones(3), place / "val_idx.pt")
        wanted = "not int64"
    with pytest.raises(HarnessError, match=wanted):
        igbh.open_dataset(tmp_path / "copy")


def test_arrays_without_a_header_are_read_as_the_reference_reads_them(folder, tmp_path):
    place = copied(folder, tmp_path)
    labels = np.load(place / igbh.LABELS_FILE)
    labels.tofile(place / igbh.LABELS_FILE)
    assert np.array_equal(igbh.open_dataset(tmp_path / "copy").labels, igbh.open_dataset(folder).labels)
    assert igbh.read_array(place / igbh.LABELS_FILE, 10).shape == (33, 10)


def test_a_graph_without_room_is_refused_with_what_it_needs(folder, monkeypatch):
    monkeypatch.setattr(igbh, "free_memory_bytes", lambda: 1000)
    with pytest.raises(HarnessError, match="GiB of memory") as raised:
        igbh.open_dataset(folder)
    assert "synthetic" in raised.value.hint
    with pytest.raises(HarnessError, match="one size"):
        igbh.open_dataset(folder / "tiny")


def test_an_index_file_has_whole_numbers_of_64_bits(tmp_path):
    path = tmp_path / "val_idx.pt"
    torch.save(torch.tensor([5, 2**33, 7]), path)
    assert igbh.read_indices(path).tolist() == [5, 2**33, 7]
