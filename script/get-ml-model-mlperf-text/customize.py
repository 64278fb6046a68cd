"""Hooks of get-ml-model-mlperf-text: choose between random weights, a given folder and one of Hugging Face."""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from crowdperf.call.answers import failure
from crowdperf.data import answers, copy_identity, manual_download, model_info
from crowdperf.kit.rooms import require_room
from crowdperf.kit.user_paths import expanded

TOKEN_VARIABLE = "HF_TOKEN"
"""The environment variable that huggingface_hub reads; its value is looked at by that library alone."""


def has_token(environment: Mapping[str, str]) -> bool:
    """Whether huggingface_hub finds an access token: in the environment, or where `hf auth login` stored one.

    Places: HF_TOKEN_PATH, else `token` in HF_HOME, else in XDG_CACHE_HOME/huggingface, else in ~/.cache/huggingface
    (constants.py of huggingface_hub 2.4.0). The file is not read.
    """
    if environment.get(TOKEN_VARIABLE) or environment.get("HUGGING_FACE_HUB_TOKEN"):
        return True
    caches = environment.get("XDG_CACHE_HOME") or f"{environment.get('HOME', '')}/.cache"
    path = environment.get("HF_TOKEN_PATH") or f"{environment.get('HF_HOME') or f'{caches}/huggingface'}/token"
    try:
        return expanded(path).stat().st_size > 0
    except OSError:
        return False


NEEDED = ("config.json", "tokenizer.json")
BESIDE = ("generation_config.json", "tokenizer_config.json", "chat_template.jinja")
WEIGHTS = "*.safetensors"
CONTENT_KEY = "CM_ML_MODEL_TEXT_CONTENT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A model on Hugging Face. revision: the one that the reference takes, empty where it names none. is_gated: its
    license has to be accepted on its page."""

    repository: str
    license: str
    readme: str
    revision: str = ""
    is_gated: bool = False


MODELS: Mapping[str, Published] = {
    "llama3.1-8b": Published(
        repository="meta-llama/Llama-3.1-8B-Instruct",
        revision="be673f326cab4cd22ccfef76109faf68e41aa5f1",
        license="Llama 3.1 Community License",
        readme="language/llama3.1-8b/README.md",
        is_gated=True,
    ),
    "llama2-70b": Published(
        repository="meta-llama/Llama-2-70b-chat-hf",
        license="Llama 2 Community License",
        readme="language/llama2-70b/README.md",
        is_gated=True,
    ),
    "deepseek-r1": Published(
        repository="deepseek-ai/DeepSeek-R1",
        revision="56d4cbbb4d29f4355bab4b9a39ccb717a14ad5ad",
        license="as its page says",
        readme="language/deepseek-r1/README.md",
    ),
    "gpt-oss-120b": Published(
        repository="openai/gpt-oss-120b",
        revision="b5c939de8f754692c1647ca79fbf85e8c1e70f8a",
        license="as its page says",
        readme="language/gpt-oss-120b/README.md",
    ),
}
"""Sources: the README files, mlcommons/inference b66003e1 of 2026-08-20."""


def how_to_get(name: str, model: Published) -> manual_download.Source:
    """Where a user gets a model whose license has to be accepted."""
    return manual_download.Source(
        name=f"the model {model.repository}",
        pages=(f"https://huggingface.co/{model.repository}", f"https://github.com/mlcommons/inference, {model.readme}"),
        license=model.license,
        steps=(
            "accept the license on the first page, and make an access token there",
            f"export {TOKEN_VARIABLE}=..., or store it with: hf auth login, then rerun this (it is not copied)",
            f"or use your own copy. If a server answers (--endpoint), {' and '.join(NEEDED)} are enough",
        ),
        layout=(*NEEDED, WEIGHTS),
        command=f"cm run script --tags=get,ml-model,mlperf-text,_{name} --path=FOLDER",
    )


def check_folder(folder: Path) -> None:
    """Raise ValueError for a folder that holds no model as Hugging Face has it."""
    missing = [name for name in NEEDED if not (folder / name).is_file()]
    if missing:
        raise ValueError(
            f"{folder} has no {' and no '.join(missing)}\n"
            f"hint: --path=FOLDER with {', '.join(NEEDED)} and the weights ({WEIGHTS}), as on Hugging Face. "
            "The weights may be missing if a server answers (--endpoint)"
        )


def plan_work(env, path: Path | None, environment: Mapping[str, str]) -> dict[str, str]:
    """The env for run.sh. Raises ValueError or DataError for what cannot be."""
    name, source = env["CM_ML_MODEL_TEXT_NAME"], env["CM_ML_MODEL_TEXT_SOURCE"]
    model = MODELS[name]
    if source != "published":
        copy_identity.refuse_beside(path, "synthetic weights")
        require_room("standins", f"{name} with _{source}", "remove it to use the published model")
        return {"CM_ML_MODEL_TEXT_WORK": source, "CM_ML_MODEL_TEXT_FOLDER": ""}
    if path is not None:
        folder = path if path.is_dir() else path.parent
        check_folder(folder)
        return {"CM_ML_MODEL_TEXT_WORK": "take", "CM_ML_MODEL_TEXT_FOLDER": str(folder)}
    if model.is_gated and not has_token(environment):
        raise ValueError(manual_download.refusal(how_to_get(name, model)))
    return {
        "CM_ML_MODEL_TEXT_WORK": "fetch",
        "CM_ML_MODEL_TEXT_FOLDER": "",
        "CM_ML_MODEL_TEXT_REPOSITORY": model.repository,
        "CM_ML_MODEL_TEXT_REVISION": model.revision,
    }


def preprocess(i):
    """CM hook: decides what run.sh does."""
    env = i["env"]
    return answers.work_answer(env, lambda path: plan_work(env, path, os.environ))


plan = preprocess


def precision_of(folder: Path) -> str:
    """The number format of the weights, by config.json; fp32 where it says nothing."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    said = config.get("dtype") or config.get("torch_dtype")
    return {"bfloat16": "bf16", "float16": "fp16"}.get(said, "fp32")


def bring_files(files: Path, entry: Path, has_weights: bool) -> list[Path]:
    """The model's files in the entry: links to those of a given folder, so that whoever reads the entry finds all of
    them together."""
    weights = [*sorted(files.glob(WEIGHTS)), *files.glob("*.index.json")] if has_weights else []
    wanted = [*weights, *(files / one for one in (*NEEDED, *BESIDE))]
    found = [path for path in wanted if path.is_file()]
    if files != entry:
        for path in found:
            link = entry / path.name
            link.unlink(missing_ok=True)
            link.symlink_to(path)
    return [entry / path.name for path in found]


def describe(name: str, files: Path, entry: Path, origin: str, has_weights: bool = True) -> None:
    """Write model.json of a folder that was given or fetched. Raises ValueError, DataError and OSError."""
    check_folder(files)
    names = {path.stem: path for path in bring_files(files, entry, has_weights)}
    model = MODELS[name]
    model_info.write_model_info(
        entry,
        model_info.RealModel(
            name=name,
            framework="huggingface",
            files=names,
            source=f"{model.repository} {model.revision}".strip(),
            license=model.license,
            precision=precision_of(files),
            origin=origin,
        ),
    )


def postprocess(i):
    """CM hook: describes a model that was not made here, and exports it."""
    env, entry = i["env"], Path.cwd()
    work = env["CM_ML_MODEL_TEXT_WORK"]
    if work in ("take", "fetch"):
        origin = "published" if work == "fetch" else "unchecked"
        try:
            files, has_weights = Path(env["CM_ML_MODEL_TEXT_FOLDER"] or entry), env.get(CONTENT_KEY) != "tokenizer"
            describe(env["CM_ML_MODEL_TEXT_NAME"], files, entry, origin, has_weights)
        except (ValueError, OSError) as error:
            return failure(error)
    return answers.model_answer(env, entry)
