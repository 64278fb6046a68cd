"""Hooks of get-ml-model-whisper: your own copy of the published weights, random ones, or small fitted ones."""

from pathlib import Path

from crowdperf.data import errors, manual_download, model_sources

TOKENIZER_FILE = "tokenizer.json"
SOURCE = manual_download.Source(
    name="the checkpoint of Whisper large-v3",
    pages=(
        "https://inference.mlcommons-storage.org/metadata/whisper-model.uri, for the MLCommons R2 downloader",
        "https://huggingface.co/openai/whisper-large-v3 at 06f233fe06e710322aca913c1bc4249a0d71fce1",
    ),
    license="Apache-2.0 (openai/whisper-large-v3)",
    steps=(
        "fetch the folder with the MLCommons R2 downloader (mlc-r2-downloader.sh of mlcommons/r2-downloader), or git",
    ),
    layout=("*.safetensors", TOKENIZER_FILE),
    command="cm run script --tags=get,ml-model,whisper --path=FOLDER",
)


def checkpoint_folder(path: Path) -> Path:
    """Return the folder at or below `path` that holds weights and tokenizer. Raises DataError."""
    for file in sorted(path.rglob(TOKENIZER_FILE)) if path.is_dir() else []:
        if any(file.parent.glob("*.safetensors")) or any(file.parent.glob("*.bin")):
            return file.parent
    raise errors.DataError(f"{path} contains no folder with {TOKENIZER_FILE} and weights", f"from {SOURCE.pages[1]}")


MODEL = model_sources.Model(
    architecture="whisper",
    source=SOURCE,
    reference={"ACCURACY": 97.9329},  # 100 - 2.0671: speech2text and the checker of mlcommons/inference, b66003e1
    find=checkpoint_folder,
    beside=(TOKENIZER_FILE,),
    full_size=model_sources.FullSize(
        title="Whisper large-v3 (1.54 billion weights)",
        weights_bytes=6_173_962_240,  # 1,543,490,560 weights of float32
    ),
)

plan = preprocess = MODEL.plan
postprocess = MODEL.finish
