"""stable-diffusion-xl: pictures are those of diffusers' pipeline, tokens those of transformers, scores those of the
official script's networks; captions, windows of the target, pictures beside a score.

Recorded on 2026-11-23 with torch 2.13.0 (CPU): pictures and tokens with diffusers 0.42.1 and transformers 5.23.0,
CLIP's cosines with open_clip_torch 2.26.1, features and distance with tools/fid of text_to_image (mlcommons/inference,
b66003e1) on torchvision 0.28.0. Weights are those of `fill`, CLIP's rounded to float16, as open_clip rounds them.
"""

import harness_support
import numpy as np
import pytest
import torch
from PIL import Image

from crowdperf.benchmarks.stable_diffusion_xl import model as sdxl
from crowdperf.benchmarks.stable_diffusion_xl import network, pictures, schedule
from crowdperf.benchmarks.stable_diffusion_xl.clip_network import Clip, sizes_of
from crowdperf.benchmarks.stable_diffusion_xl.inception import Inception
from crowdperf.harness.base.checkpoints import read_checkpoint
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.model_facts import ModelFacts
from crowdperf.harness.base.score import Score
from crowdperf.harness.commands import accuracy_scores
from crowdperf.harness.datasets import coco2014 as data
from crowdperf.harness.media.clip_tokens import open_clip_tokenizer
from crowdperf.harness.runner.accuracy import judge
from crowdperf.models.model_files import write_safetensors
from crowdperf.standins.tokenizers import write_clip

harness_support.need("tokenizers", "scipy", "safetensors")

pytestmark = pytest.mark.usefixtures("one_thread")

TINY = network.CONFIGS["tiny"]
CLIP_SIZES = {"width": 64, "layers": 2, "patch": 8, "grid": 4, "embed": 32, "text_width": 64, "text_layers": 2,
              "vocabulary": 514, "positions": 77}  # fmt: skip
COLUMNS = "id\timage_id\tcaption\theight\twidth\tfile_name\tcoco_url"


COSINES = ([0.42324492, 0.15615156], [-0.37097973, -0.61334985])
FEATURES = [43.9549026, 487.4735718]
FEATURE_SUM = 124195.16583
DISTANCE = 7.722636371545988


def fill(module):
    """Weights that follow from places alone, whatever generates random numbers."""
    with torch.no_grad():
        for number, (name, value) in enumerate(sorted(module.state_dict().items())):
            if name.endswith("num_batches_tracked"):
                continue
            wave = torch.sin(torch.arange(value.numel(), dtype=torch.float64) * 0.7 + number).reshape(value.shape)
            if "running_var" in name:
                value.copy_(1 + 0.5 * wave)
            elif value.dim() > 1:
                value.copy_(wave * (2.0 / value[0].numel()) ** 0.5)
            else:
                value.copy_(0.2 * wave + (1.0 if name.endswith("weight") else 0.0))
    return module.eval()


def half(module):
    with torch.no_grad():
        for value in module.parameters():
            value.copy_(value.half().float())
    return module


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("sdxl")
    write_clip(place)
    return place


def opened(folder):
    return sdxl.open_model(ModelFacts(folder=folder, config=TINY))


def torch_calls(model):
    modules = {one.name: fill(network.build(one.name, TINY)) for one in model.networks}

    def call(one):
        def infer(inputs):
            with torch.inference_mode():
                answers = modules[one.name](*(torch.as_tensor(inputs[spec.name]) for spec in one.inputs))
            rows = answers if isinstance(answers, tuple) else (answers,)
            return dict(zip([spec.name for spec in one.outputs], rows, strict=True))

        return infer

    return {one.name: call(one) for one in model.networks}


def prompts(*captions):
    latent = np.sin(np.arange(4 * 16 * 16) * 1.3).reshape(4, 16, 16).astype(np.float32) * 1.4
    return [data.Prompt(caption, latent) for caption in captions]


def test_the_noise_levels_are_those_of_the_library():
    times, sigmas = schedule.euler_schedule(20)
    assert [times[0], times[1], times[19]] == [951.0, 901.0, 1.0] and len(times) == 20
    wanted = [11.028335571289062, 8.390686988830566, 1.376179575920105, 0.04131447896361351, 0.0]
    assert [sigmas[number] for number in (0, 1, 10, 19, 20)] == pytest.approx(wanted, rel=1e-5)
    assert schedule.first_scale(20) == pytest.approx(11.073580741882324, rel=1e-5)


def test_each_reading_of_the_vocabulary_is_that_of_its_library(folder):
    tokenizer = open_clip_tokenizer(folder)
    text = ["A red cup!"]
    assert tokenizer.first(text, 77)[0, :12].tolist() == [512, 320, 81, 68, 323, 66, 84, 335, 256, 513, 513, 513]
    assert tokenizer.second(text, 77)[0, :12].tolist() == [512, 320, 81, 68, 323, 66, 84, 335, 0, 513, 0, 0]
    assert tokenizer.scorers(text, 77)[0, :12].tolist() == [512, 320, 81, 68, 323, 66, 84, 335, 256, 513, 0, 0]
    resolved = tokenizer.scorers([" Tom &amp;amp; Jerry "], 77)
    assert resolved.tolist() == tokenizer.scorers(["tom & jerry"], 77).tolist()
    long = tokenizer.second(["word " * 40], 77)[0]
    assert (long[0], long[76]) == (512, 513) and 513 not in long[:76]
    with pytest.raises(HarnessError, match=r"no vocab.json and no merges.txt"):
        open_clip_tokenizer(folder / "nowhere")


def test_pictures_are_those_of_the_library_and_do_not_depend_on_the_batch(folder):
    model = opened(folder)
    calls = torch_calls(model)
    samples = model.preprocess(prompts("A red cup on a table.", "Two dogs!"))
    together = model.predict(calls, model.collate(samples))
    assert together.dtype == np.uint8 and together.shape == (2, *model.response.fixed_shape) == (2, 32, 32, 3)
    wanted = [[[58, 53, 60], [18, 1, 0], [0, 0, 0], [0, 0, 0], [200, 111, 35]],
              [[56, 51, 58], [18, 1, 0], [0, 0, 0], [7, 0, 0], [204, 119, 45]]]  # fmt: skip
    assert np.abs(together[:, 5, 3:8].astype(int) - wanted).max() <= 2
    assert together.sum(axis=(1, 2, 3), dtype=int).tolist() == pytest.approx([306317, 306416], rel=1e-3)
    for one, picture in zip(samples, together, strict=True):
        alone = model.predict(calls, model.collate([one]))[0]
        assert np.abs(alone.astype(int) - picture).max() <= 1


def test_noise_of_another_size_is_refused(folder):
    with pytest.raises(HarnessError, match="the noise has 8 places a side, but the model needs 16"):
        opened(folder).preprocess([data.Prompt("a", np.zeros((4, 8, 8), np.float32))])
    with pytest.raises(HarnessError, match="config is missing pooled"):
        sdxl.open_model(ModelFacts(folder=folder, config={key: TINY[key] for key in TINY if key != "pooled"}))


@pytest.mark.full  # torch takes seconds for its first tensor without memory
def test_the_full_networks_have_as_many_parameters_as_the_published_ones():
    with torch.device("meta"):
        parts = {name: network.build(name, network.CONFIGS["full"]) for name in ("texts", "step", "image")}
        counts = {name: sum(one.numel() for one in part.parameters()) for name, part in parts.items()}
    # of diffusers' and transformers' modules; the first text encoder without its last layer and norm
    assert counts == {"texts": 123_060_480 + 694_659_840 - 7_089_408, "step": 2_567_463_684, "image": 49_490_199}


def test_a_pipelines_folders_become_names_of_networks(tmp_path):
    for part in ("unet", "vae"):
        (tmp_path / part).mkdir()
        write_safetensors(torch.nn.Linear(2, 1), tmp_path / part / "diffusion_pytorch_model.safetensors")
    (tmp_path / "scheduler").mkdir()
    state = read_checkpoint(tmp_path)
    assert set(state) == {"unet.weight", "unet.bias", "vae.weight", "vae.bias"}
    assert set(network.convert_checkpoint("step", state)) == {"unet.weight", "unet.bias"}
    names = ("vae.decoder.conv_in.bias", "vae.post_quant_conv.bias", "vae.encoder.conv_in.bias")
    found = network.convert_checkpoint("image", {name: torch.ones(1) for name in names})
    assert set(found) == {"decoder.conv_in.bias", "post_quant_conv.bias"}


def striped(height, width):
    rows, columns = np.mgrid[:height, :width]
    return np.stack([rows * 3 % 256, columns * 5 % 256, (rows + columns) * 7 % 256], axis=-1).astype(np.uint8)


def test_cosines_are_those_of_the_official_encoder():
    clip = half(fill(Clip(CLIP_SIZES)))
    assert sizes_of(clip.state_dict()) == CLIP_SIZES
    tokens = torch.zeros(2, 77, dtype=torch.int64)
    tokens[0, :5], tokens[1, :4] = torch.tensor([512, 3, 70, 300, 513]), torch.tensor([512, 65, 400, 513])
    with torch.inference_mode():
        for size, wanted in (((64, 64), COSINES[0]), ((71, 50), COSINES[1])):
            found = clip.pictures(pictures.clip_input(striped(*size), clip.side)) @ clip.texts(tokens).T
            assert found[0].tolist() == pytest.approx(wanted, abs=1e-4)


def test_features_are_those_of_the_official_network():
    with torch.inference_mode():
        found = fill(Inception())(pictures.inception_input(striped(64, 64)))[0]
    assert found.shape == (2048,) and found[[1, 2044]].tolist() == pytest.approx(FEATURES, rel=1e-3)
    assert float(found.double().sum()) == pytest.approx(FEATURE_SUM, rel=1e-4)


def test_the_distance_is_that_of_the_official_script():
    random = np.random.RandomState(0)
    one, other = random.randn(300, 24), random.randn(300, 24) * 1.3 + 0.4
    found = pictures.frechet_distance(pictures.statistics_of(one), pictures.statistics_of(other))
    assert found == pytest.approx(DISTANCE, rel=1e-9)
    assert pictures.frechet_distance(*[pictures.statistics_of(one)] * 2) == pytest.approx(0.0, abs=1e-6)
    with pytest.raises(HarnessError, match="24 and of 23 channels"):
        pictures.frechet_distance(pictures.statistics_of(one), pictures.statistics_of(one[:, :23]))


def write_captions(folder, lines, latent=(1, 4, 16, 16)):
    for name in ("captions", "latents", "scoring"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "captions" / "captions.tsv").write_text("\n".join([COLUMNS, *lines]) + "\n", encoding="utf-8")
    np.save(folder / "latents" / "latents.npy", np.zeros(latent, np.float32))
    return folder


def row(number, caption):
    return f"{number}\t{number}\t{caption}\t480\t640\tx.jpg\thttp://x"


def test_captions_are_read_as_the_reference_reads_them(tmp_path):
    quoted = '"A sign that reads ""car parking"" here."'
    folder = write_captions(tmp_path, [row(70, "A city."), row(277, quoted)])
    dataset = data.open_dataset(folder)
    assert dataset.captions == ("A city.", 'A sign that reads "car parking" here.')
    assert dataset.count == 2 and dataset.load([1])[0].latent.shape == (4, 16, 16) and not dataset.facts.is_synthetic
    assert [path.name for path in dataset.files] == ["captions.tsv", "latents.npy"]
    torch.save(torch.ones(1, 4, 16, 16, dtype=torch.float16), folder / "latents" / "latents.pt")
    (folder / "latents" / "latents.npy").unlink()
    assert data.open_dataset(folder).latent.tolist() == np.ones((4, 16, 16)).tolist()
    with pytest.raises(HarnessError, match=r"has no scoring/clip.safetensors or scoring/clip.bin: pictures cannot be"):
        pictures.score([], dataset, None, (32, 32, 3))


@pytest.mark.parametrize(
    ("lines", "latent", "message"),
    [
        ([row(1, "")], (1, 4, 16, 16), "no caption in line 2"),
        ([], (1, 4, 16, 16), "has no caption"),
        ([row(1, "a")], (4, 16, 16), r"shape \[4, 16, 16\], expected \[1, 4, side, side\]"),
    ],
)
def test_damaged_data_is_refused(lines, latent, message, tmp_path):
    with pytest.raises(HarnessError, match=message):
        data.open_dataset(write_captions(tmp_path, lines, latent))


def test_missing_data_is_named(tmp_path):
    with pytest.raises(HarnessError, match=r"has no captions/captions.tsv and no latents/latents.npy"):
        data.open_dataset(tmp_path)
    write_captions(tmp_path, [row(1, "a")])
    (tmp_path / "captions" / "captions.tsv").write_text("id\ttext\n1\ta\n", encoding="utf-8")
    with pytest.raises(HarnessError, match="has no column caption, only: id, text"):
        data.open_dataset(tmp_path)


@pytest.fixture(scope="module")
def scored(tmp_path_factory, folder):
    """A data set with small scoring networks, whose statistics are of other pictures."""
    place = write_captions(
        tmp_path_factory.mktemp("scored"), [row(1, "A cup."), row(2, "Twelve dogs run"), row(3, "x")]
    )
    inception = fill(Inception(16))
    write_safetensors(inception, place / "scoring" / "inception.safetensors")
    write_safetensors(fill(Clip(CLIP_SIZES)), place / "scoring" / "clip.safetensors")
    with torch.inference_mode():
        made = [inception(pictures.inception_input(striped(40 + n, 40))) for n in range(3)]
    mean, covariance = pictures.statistics_of(torch.cat(made).double().numpy())
    np.savez(place / "scoring" / "val2014.npz", mu=mean, sigma=covariance)
    return data.open_dataset(place)


def test_a_score_is_of_all_pictures_and_its_line_is_the_official_one(folder, scored):
    made = [striped(32, 32) // (number + 1) for number in range(3)]
    answers = [(number, picture.tobytes()) for number, picture in enumerate(made)]
    found = opened(folder).score(answers, scored)
    values = found.values
    assert found.line == (
        f"Accuracy Results: {{'FID_SCORE': '{values['FID_SCORE']}', 'CLIP_SCORE': '{values['CLIP_SCORE']}'}}"
    )
    assert -100 < values["CLIP_SCORE"] < 100 and values["FID_SCORE"] > 0
    others = opened(folder).score([(number, answers[2 - number][1]) for number in range(3)], scored).values
    assert others["FID_SCORE"] == pytest.approx(values["FID_SCORE"], rel=1e-3)
    assert others["CLIP_SCORE"] != pytest.approx(values["CLIP_SCORE"], rel=1e-4)  # a picture belongs to its caption
    with pytest.raises(HarnessError, match="sample 1 has 5 bytes, expected 32 x 32 x 3"):
        opened(folder).score([answers[0], (1, b"12345")], scored)
    with pytest.raises(HarnessError, match="1 pictures have no covariance"):
        opened(folder).score(answers[:1], scored)


def test_files_that_are_no_scoring_networks_are_refused(scored, tmp_path):
    write_safetensors(torch.nn.Linear(2, 1), tmp_path / "clip.safetensors")
    for kind in (Clip, Inception):
        with pytest.raises(HarnessError, match=f"no weights of {kind.__name__}"):
            pictures.open_scorer(tmp_path / "clip.safetensors", kind)


def test_a_made_model_has_a_window_where_the_benchmark_has_one():
    score = Score(values={"CLIP_SCORE": 50.0, "FID_SCORE": 103.0}, line="")
    reference = {"CLIP_SCORE": 50.2, "FID_SCORE": 100.0}
    judged = judge(score, (), reference, 0.99, {"CLIP_SCORE": 1.002, "FID_SCORE": 1.02})
    assert [(one.is_passed, one.upper_limit) for one in judged] == [(True, 50.2 * 1.002), (False, 102.0)]


def test_the_pictures_that_rounds_name_are_kept_beside_the_score(folder, scored, tmp_path):
    named = accuracy_scores.named_pictures("stable-diffusion-xl")
    assert {4475, 3093, 2747, 52} <= named and len(named) == 40  # ten of each round from v5.0 to v6.1
    assert accuracy_scores.named_pictures("resnet50") == frozenset()
    made = striped(32, 32)
    place = tmp_path / "images"
    for answers in ({2: made.tobytes()}, {1: made.tobytes(), 0: made.tobytes()}):
        opened(folder).write_pictures(place, answers, scored)
    assert sorted(path.name for path in place.iterdir()) == ["0.png", "1.png", "captions.txt"]
    assert (place / "captions.txt").read_text() == "0  A cup.\n1  Twelve dogs run\n"
    assert np.array_equal(np.asarray(Image.open(place / "1.png")), made)


class NoNewTensors(torch.overrides.TorchFunctionMode):
    """Refuses tensors made from Python's numbers: on a GPU each is a copy from pageable memory, which waits for the
    stream and is forbidden in a capture."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        assert function not in (torch.tensor, torch.as_tensor, torch.from_numpy), function
        return function(*args, **(kwargs or {}))


def test_a_step_makes_no_tensor_from_numbers():
    inputs = network.example_inputs("step", TINY, 2, torch.Generator().manual_seed(1))
    step = network.build("step", TINY)
    with torch.no_grad(), NoNewTensors():
        step(*inputs)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_the_tables_of_a_step_keep_their_type_in_a_module_of_another_one(dtype):
    """float16 has 11 bits: 0.1 % of the noise, at each of twenty steps."""
    before = network.build("step", TINY)
    step = network.build("step", TINY).to(dtype)
    assert {parameter.dtype for parameter in step.parameters()} == {dtype}
    for name in ("times", "sigmas", "sizes"):
        assert getattr(step, name).dtype is torch.float32
        assert torch.equal(getattr(step, name), getattr(before, name))
    assert step.to("meta").sigmas.device.type == "meta"
    assert not {"times", "sigmas", "sizes"} & step.state_dict().keys()
