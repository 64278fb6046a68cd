"""Language models that a user brings, whatever their form: their properties before anything is installed, and
which backends can run it. A further form is a reader and a row of `FORMS`.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crowdperf.data.copy_identity import one_file
from crowdperf.data.errors import DataError
from crowdperf.data.gguf_file import precision_of, read_gguf
from crowdperf.data.huggingface_folder import HuggingFaceFolder, read_huggingface, value_problems
from crowdperf.rules.backends import BACKENDS
from crowdperf.rules.names import counted

_PER_PROMPT, _PER_MESSAGE = 512, 64
"""Tokens that a chat template adds at most to a prompt and to each message: this project's choice, generous."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageModel:
    """path: as it was given. framework: as backends name it. quantization: GGUF's name of the type of most weights,
    empty for others. context: tokens of a prompt and its answer together. special: ids of tokens that are not
    ordinary text. config: the sizes, by the names that config.json has. files: the measured ones, by name."""

    path: Path
    framework: str
    architecture: str
    precision: str
    quantization: str = ""
    context: int
    vocabulary: int
    special: Sequence[int] = field(repr=False)
    has_chat_template: bool
    config: Mapping[str, Any]
    files: tuple[Path, ...]

    @property
    def words(self) -> str:
        """Its description, for messages."""
        return FORMS[self.framework].title

    @property
    def ordinary_tokens(self) -> list[int]:
        """The ids of tokens that texts consist of."""
        special = frozenset(self.special)
        return [number for number in range(self.vocabulary) if number not in special]

    def facts(self) -> dict[str, Any]:
        """What `config` of its model.json says of it."""
        names = ("architecture", "quantization", "context", "vocabulary", "has_chat_template")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True)
class Form:
    """How a model lies on disk. title: in words."""

    title: str
    read: Callable[[Path], LanguageModel]


def _of_gguf(path: Path) -> LanguageModel:
    found = read_gguf(one_file(path))
    number, values = found.number, found.values
    heads, hidden = number("attention.head_count") or 1, number("embedding_length") or 0
    config = {
        "model_type": found.architecture,
        "num_hidden_layers": number("block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": number("attention.head_count_kv") or heads,
        "head_dim": number("attention.key_length") or hidden // heads,
        "hidden_size": hidden,
        "max_position_embeddings": number("context_length"),
        "vocab_size": found.vocabulary,
        "bos_token_id": values.get("tokenizer.ggml.bos_token_id"),
        "eos_token_id": values.get("tokenizer.ggml.eos_token_id"),
    }
    return LanguageModel(
        path=path,
        framework="gguf",
        architecture=found.architecture,
        precision=precision_of(found.quantization),
        quantization=found.quantization,
        context=number("context_length") or 0,
        vocabulary=found.vocabulary,
        special=found.special,
        has_chat_template=bool(values.get("tokenizer.chat_template")),
        config={name: value for name, value in config.items() if value is not None},
        files=(path,),
    )


def _of_huggingface(path: Path) -> LanguageModel:
    found: HuggingFaceFolder = read_huggingface(path)
    return LanguageModel(
        path=path,
        framework="huggingface",
        architecture=str(found.config["architectures"][0]),
        precision=found.precision,
        context=found.config["max_position_embeddings"],
        vocabulary=found.vocabulary,
        special=found.special,
        has_chat_template=found.has_chat_template,
        config=found.config,
        files=found.files,
    )


FORMS: Mapping[str, Form] = {
    "gguf": Form("a GGUF file", _of_gguf),
    "huggingface": Form("a Hugging Face folder", _of_huggingface),
}
"""By framework, as backends name it."""


def read_language_model(path: Path) -> LanguageModel:
    """Return the properties of the model at a path: of a folder in Hugging Face's layout, else of a GGUF file. Raises
    DataError for one that cannot be measured, with what to give."""
    return FORMS["huggingface" if path.is_dir() else "gguf"].read(path)


def backends_for(model: LanguageModel) -> list[str]:
    """Return the backends that read such a model, the default first."""
    fitting = [name for name, one in BACKENDS.items() if one.is_text and one.framework == model.framework]
    return sorted(fitting, key=lambda name: not BACKENDS[name].is_default)


def chosen_precision(model: LanguageModel, backend: str) -> str:
    """Return the precision of a run by default: the file's, or the backend's first if it casts weights to
    another type anyway."""
    record = BACKENDS.get(backend)
    known = record.precisions if record is not None else ()
    return model.precision if model.framework == "gguf" or model.precision in known else (*known, "fp32")[0]


def misfits(model: LanguageModel, backend: str, precision: str) -> list[str]:
    """Return why a backend cannot run the model in a precision, each with what to give, empty if it can."""
    record = BACKENDS[backend]
    if record.framework != model.framework:
        server = ". To measure a server, omit --model_path" if record.is_remote else ""
        return [
            f"--backend={backend}: {model.path} is {model.words}; allowed: {', '.join(backends_for(model))}{server}"
        ]
    found = []
    if model.framework == "gguf" and precision != model.precision:
        is_what = f"{model.precision} ({model.quantization})"
        found.append(f"--precision={precision}: the weights of {model.path} are {is_what}. Omit --precision")
    values = {**model.config, "quantization": model.quantization}
    if problems := value_problems(values, record.model_values):
        others = [name for name in backends_for(model) if not value_problems(values, BACKENDS[name].model_values)]
        way = f"Use --backend={others[0]}" if others else "No backend can run it"
        found.append(f"--backend={backend}: it cannot run {model.path}: {'; '.join(problems)}. {way}")
    return found


def require_fit(model: LanguageModel, longest_prompt: int, max_tokens: int) -> None:
    """Raise DataError where prompts and their answers are longer than the model's context."""
    if longest_prompt + max_tokens <= model.context:
        return
    longest = f"{counted(longest_prompt, 'token')} of the longest prompt and {max_tokens:,} of its answer"
    room = model.context - max_tokens
    way = f"--input_tokens={room}" if room > 0 else f"--output_tokens={model.context // 2}"
    raise DataError(f"the context of {model.path} is {model.context:,} tokens, but {longest} are requested", way)


def longest_text(rows: Sequence[Mapping[str, Any]], model: LanguageModel, backend: str, max_tokens: int) -> int:
    """Return a number of tokens that no prompt of samples.jsonl exceeds: its bytes, with what a chat template adds, or
    what the context leaves. Raises DataError for prompts that the backend cannot tokenize."""
    room = model.context - max_tokens
    if room < 1:
        require_fit(model, 1, max_tokens)
    tokenizes = backend not in BACKENDS or BACKENDS[backend].tokenizes
    others = [name for name in backends_for(model) if BACKENDS[name].tokenizes]
    if model.framework == "gguf" and not tokenizes:
        why = f"{backend} gets prompts as tokens, and {model.path} has no tokenizer.json"
        raise DataError(f"--prompts: {why}", f"use --backend={others[0]}, or --input_tokens=N")
    chats = [row["messages"] for row in rows if "messages" in row]
    if chats and not (tokenizes and model.has_chat_template):
        why = f"{backend} applies none" if model.has_chat_template else f"{model.path} has none"
        way = 'give prompts as {"prompt": "..."}, or use a model that has one with --backend=' + others[0]
        raise DataError(f"--prompts: messages need a chat template, but {why}", way)
    texts = [row["text"] for row in rows if "text" in row]
    if chats and texts:
        found = f"{counted(len(chats), 'line')} with messages and {len(texts):,} with a prompt"
        raise DataError(f"--prompts: found {found}, which a run cannot mix", "give one kind in each file")
    sizes = [len(text.encode()) for text in texts]
    sizes += [sum(len(one["content"].encode()) + _PER_MESSAGE for one in chat) for chat in chats]
    return min(room, max(sizes) + _PER_PROMPT)


def linked(files: Sequence[Path], folder: Path) -> dict[str, Path]:
    """Return links to files in a folder, by the files' stems, so that they are found together. Raises OSError."""
    links = {}
    for path in files:
        link = folder / path.name
        if path.absolute() != link.absolute():
            link.unlink(missing_ok=True)
            link.symlink_to(path.absolute())
        links[path.stem] = link
    return links


def files_in(model: LanguageModel, folder: Path) -> dict[str, Path]:
    """Return the files of model.json by name, after writing what engines look for beside it: links to the files of a
    folder, or the sizes of a GGUF file as config.json. Raises OSError."""
    if model.framework == "gguf":
        (folder / "config.json").write_text(json.dumps(model.config) + "\n", encoding="utf-8")
        return {"model": model.path}
    return linked(model.files, folder)
