"""Hooks of get-ml-model-gptj: published, random or fitted weights, where there is room."""

from pathlib import Path

from crowdperf.data import errors, model_sources

CONFIG_FILE = "config.json"
WEIGHTS_BYTES = 24_203_531_136  # 6,050,882,784 weights of float32
ARCHIVE_BYTES = 22_700_000_000  # the size that the community's recipe states


def checkpoint_folder(path: Path) -> Path:
    """Return the path, which holds a checkpoint in or below it. Raises DataError."""
    if next(path.rglob(CONFIG_FILE), None) is None:
        raise errors.DataError(
            f"{path} is not a checkpoint of GPT-J: there is no {CONFIG_FILE} in or below it",
            f"--path=FOLDER with {CONFIG_FILE}, the weights and the tokenizer, as transformers writes it",
        )
    return path


MODEL = model_sources.Model(
    architecture="gptj",
    files=dict.fromkeys(
        model_sources.FRAMEWORKS,
        model_sources.PublishedFile(
            url="https://cloud.mlcommons.org/index.php/s/QAZ2oM94MkFtbQx/download",
            file_name="checkpoint.zip",
            license="Apache-2.0",
            # fp32, language/gpt-j of mlcommons/inference; the submission checker's constants of v5.0.
            reference={"ROUGE1": 42.9865, "ROUGE2": 20.1235, "ROUGEL": 29.9881, "GEN_LEN": 4016878},
        ),
    ),
    find=checkpoint_folder,
    beside=("tokenizer.json", "vocab.json", "merges.txt"),
    full_size=model_sources.FullSize(
        title="GPT-J of full size (6.05 billion weights)",
        weights_bytes=WEIGHTS_BYTES,
        download_bytes=ARCHIVE_BYTES + WEIGHTS_BYTES,
        has_smaller_copies=True,
    ),
)

plan = preprocess = MODEL.plan
postprocess = MODEL.finish
