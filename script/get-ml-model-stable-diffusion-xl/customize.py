"""Hooks of get-ml-model-stable-diffusion-xl: your own copy of the published pipeline, random weights, or small ones."""

from pathlib import Path

from crowdperf.data import errors, manual_download, model_sources

TOKENIZER_FILES = ("vocab.json", "merges.txt")
PARTS = ("text_encoder", "text_encoder_2", "unet", "vae")
SOURCE = manual_download.Source(
    name="the pipeline of Stable Diffusion XL base 1.0",
    pages=(
        "https://inference.mlcommons-storage.org/metadata/stable-diffusion-xl-1-0-fp32-checkpoint.uri, "
        "for the MLCommons R2 downloader",
        "https://huggingface.co/stabilityai/stable-diffusion-xl-base-1.0",
    ),
    license="as the page of stabilityai/stable-diffusion-xl-base-1.0 says",
    steps=("fetch the folder with the MLCommons R2 downloader (mlc-r2-downloader.sh of mlcommons/r2-downloader)",),
    layout=(
        *(f"{part}/*.safetensors" for part in PARTS),
        "tokenizer/vocab.json",
        "tokenizer/merges.txt",
        "tokenizer_2/",
    ),
    command="cm run script --tags=get,ml-model,stable-diffusion-xl --path=FOLDER",
)


def pipeline_folder(path: Path) -> Path:
    """Return the folder at or below `path` that holds the parts with their weights and tokenizers. Raises DataError."""
    for file in sorted(path.rglob("unet")) if path.is_dir() else []:
        if all(any((file.parent / part).glob("*.safetensors")) for part in PARTS):
            problem = tokenizer_problem(file.parent)
            break
    else:
        problem = f"{path} contains no folder with weights in {', '.join(PARTS)}"
    if problem:
        raise errors.DataError(problem, f"from {SOURCE.pages[0]}")
    return file.parent


def tokenizer_problem(folder: Path) -> str:
    """Return what is wrong with the two tokenizers of a pipeline, which differ in what they fill up with alone."""
    for name in TOKENIZER_FILES:
        one, other = folder / "tokenizer" / name, folder / "tokenizer_2" / name
        missing = [str(file) for file in (one, other) if not file.is_file()]
        if missing:
            return f"there is no {missing[0]}"
        if one.read_bytes() != other.read_bytes():
            return f"{one} and {other} differ"
    return ""


MODEL = model_sources.Model(
    architecture="stable_diffusion_xl",
    source=SOURCE,
    reference={"CLIP_SCORE": 31.74981837, "FID_SCORE": 23.48046692},  # docs/index.md of mlcommons/inference, b66003e1
    find=pipeline_folder,
    beside=TOKENIZER_FILES,
    full_size=model_sources.FullSize(
        title="Stable Diffusion XL (3.43 billion weights)",
        weights_bytes=13_710_339_180,  # 3,427,584,795 weights of float32
    ),
)

plan = preprocess = MODEL.plan
postprocess = MODEL.finish
