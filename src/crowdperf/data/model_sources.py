"""Models that are published, drawn at random or fitted here: what their recipes' hooks have in common.

A recipe describes its model, and the description has its hooks:

    MODEL = published.Model(architecture="rgat", source=SOURCE, reference={"acc": 72.86})
    plan = preprocess = MODEL.plan
    postprocess = MODEL.finish

CM_PUBLISHED_MODEL_SOURCE says which of the three is asked for: published, random (full size) or tiny (fitted). `plan`
sets what the download step and crowdperf.models.published_model go by; `finish` hands the model on:

    CM_PUBLISHED_MODEL_WORK            tiny, random, take (the file is the model) or convert (it holds weights)
    CM_PUBLISHED_MODEL_IS_FETCHED      yes: the file is downloaded first, to CM_PUBLISHED_MODEL_FILE_WITH_PATH
    CM_PUBLISHED_MODEL_IS_ARCHIVE      yes: it is then unpacked into the entry, for CM_PUBLISHED_MODEL_MEMBER in it
    CM_PUBLISHED_MODEL_FACTS           JSON: what model.json says of published weights
"""

import json
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crowdperf.call.answers import Answer, failure
from crowdperf.data import capacity, manual_download
from crowdperf.data.answers import model_answer
from crowdperf.data.copy_identity import one_file, path_in, refuse_beside
from crowdperf.data.errors import DataError
from crowdperf.data.model_info import RealModel, write_model_info
from crowdperf.kit.rooms import MissingRoom, require_room
from crowdperf.kit.whole_file import file_digest

PUBLISHED, RANDOM, TINY = "published", "random", "tiny"
SOURCE_KEY = "CM_PUBLISHED_MODEL_SOURCE"
WORK_KEY = "CM_PUBLISHED_MODEL_WORK"
FETCHED_KEY = "CM_PUBLISHED_MODEL_IS_FETCHED"
ARCHIVE_KEY = "CM_PUBLISHED_MODEL_IS_ARCHIVE"
FILE_KEY = "CM_PUBLISHED_MODEL_FILE_WITH_PATH"
FACTS_KEY = "CM_PUBLISHED_MODEL_FACTS"
FRAMEWORK_KEY = "CM_ML_MODEL_FRAMEWORK"
FRAMEWORKS = ("onnx", "pytorch")
_MEMORY_FACTOR = 2.5
"""crowdperf.models.make_model holds the weights, the copy that it writes, and what an export takes."""
_MAX_DIGESTED_BYTES = 10**10
"""The MD5 of a larger copy is not looked at: a plan and the run each read the whole file for it."""

Env = MutableMapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedFile:
    """A file on a server. md5: empty where none is published. is_complete: a model as it is; else weights that are
    converted. reference: the score its publisher gives, by metric name. file_name: what it is stored as. member: of an
    archive, the file in it that has the weights."""

    url: str
    file_name: str
    license: str
    reference: Mapping[str, float]
    md5: str = ""
    is_complete: bool = False
    member: str = ""

    def check(self, path: Path) -> str:
        """Return the origin of a copy. Raise DataError for one with another MD5 than the published one."""
        if not self.md5 or path.stat().st_size > _MAX_DIGESTED_BYTES:
            return "unchecked"
        found = file_digest(path, "md5")
        if found != self.md5:
            raise DataError(
                f"{path} is not the published file: MD5 {found}, published {self.md5}", f"get it again from {self.url}"
            )
        return "published"


def zenodo(
    record: int, name: str, reference: Mapping[str, float], *, query: str = "?download=1", **more: Any
) -> PublishedFile:
    """Return a file of a record of Zenodo, whose page says the license; it is stored as `name`, which it has there,
    unless `more`, the other fields, has a file_name."""
    page = f"https://zenodo.org/record/{record}"
    more = {"file_name": name, "license": f"see {page}", **more}
    return PublishedFile(url=f"{page}/files/{name}{query}", reference=reference, **more)


@dataclass(frozen=True, slots=True, kw_only=True)
class FullSize:
    """What making a model of full size takes. weights_bytes: of its float32 weights. download_bytes: what a download
    takes beside them, unpacked. has_smaller_copies: a copy's own config.json says how large it is, so that it is not
    looked at here."""

    title: str
    weights_bytes: int
    download_bytes: int = 0
    has_smaller_copies: bool = False

    def needed(self, env: Mapping[str, Any]) -> capacity.Room:
        """Return the disk and memory that making the model takes, by framework and whether it is downloaded."""
        files = 2 if env[FRAMEWORK_KEY] == "onnx" else 1  # of ONNX scattered ones first, then one (modelfiles.py)
        downloaded = self.download_bytes if env[FETCHED_KEY] == "yes" else 0
        memory_bytes = int(_MEMORY_FACTOR * self.weights_bytes)
        return capacity.Room(disk_bytes=files * self.weights_bytes + downloaded, memory_bytes=memory_bytes)

    def refusal(self, i: Mapping[str, Any]) -> Answer:
        """Return the hook's answer: whether there is room."""
        refused = capacity.shortage_here(self.title, self.needed(i["env"]), i)
        hint = "use _tiny to try the pipeline, or a machine with enough memory"
        return {"return": 0} if refused is None else failure(refused, f"hint: {hint}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model whose network crowdperf/benchmarks/<architecture>/ has.

    Its published weights are either files that can be fetched, by framework, or have a `source` where users get them,
    and a `reference` score. find: returns the file or folder in what --path gives; raises DataError. beside: what the
    model reads beside its networks. full_size: where it is large.
    """

    architecture: str
    files: Mapping[str, PublishedFile] = field(default_factory=dict)
    source: manual_download.Source | None = None
    reference: Mapping[str, float] = field(default_factory=dict)
    find: Callable[[Path], Path] = one_file
    beside: tuple[str, ...] = ()
    full_size: FullSize | None = None

    def plan(self, i: Mapping[str, Any]) -> Answer:
        """CM hook: sets the keys for the download and run.sh; nothing on disk is changed.

        Answers a failure for a copy that excludes the source asked for or is not the published one, for weights that
        users have to get themselves, and where the machine has no room.
        """
        env = i["env"]
        asked, path = env[SOURCE_KEY], path_in(env)
        env.update({WORK_KEY: asked, FETCHED_KEY: "no", ARCHIVE_KEY: "no"})
        env["CM_PUBLISHED_MODEL_ARCHITECTURE"] = self.architecture
        try:
            if asked == PUBLISHED:
                self._plan_published(env, path)
            else:
                refuse_beside(path, "synthetic weights")
            if asked == TINY:
                hint = "use the published weights" if self.beside else "use _synthetic, whose weights are random"
                require_room("standins", f"{self.architecture} with _tiny", hint)
            if asked == RANDOM and self.beside:  # such as a tokenizer, which is made, too
                require_room("standins", f"{self.architecture} with _synthetic", "use the published weights")
        except (DataError, MissingRoom) as error:
            return failure(error)
        is_small = asked == TINY or self.full_size is None or (path is not None and self.full_size.has_smaller_copies)
        return {"return": 0} if is_small or self.full_size is None else self.full_size.refusal(i)

    def _plan_published(self, env: Env, path: Path | None) -> None:
        if path is not None:
            path = self.find(path)
        if self.source is not None:
            if path is None:
                raise DataError(manual_download.refusal(self.source))
            env[WORK_KEY], env[FILE_KEY] = "convert", str(path)
            env[FACTS_KEY] = _facts(path.name, self.source.license, self.reference, "unchecked")
            return
        file = self.files[env[FRAMEWORK_KEY]]
        url = env.get("CM_PACKAGE_URL") or file.url
        checksum = env.get("CM_DOWNLOAD_CHECKSUM") or file.md5
        is_the_publishers = url == file.url and checksum == file.md5
        origin = file.check(path) if path is not None else "published" if is_the_publishers else "unchecked"
        env.update(
            {
                WORK_KEY: "take" if file.is_complete else "convert",
                FACTS_KEY: _facts(path.name if path else url, file.license, file.reference, origin),
                ARCHIVE_KEY: "yes" if file.member else "no",
                "CM_PUBLISHED_MODEL_MEMBER": file.member,
            }
        )
        if path is not None:
            env[FILE_KEY] = str(path)
            return
        env.update(
            {
                FETCHED_KEY: "yes",
                "CM_PUBLISHED_MODEL_URL": url,
                "CM_PUBLISHED_MODEL_MD5": checksum,
                "CM_PUBLISHED_MODEL_FILE_NAME": file.file_name,
            }
        )

    def finish(self, i: Mapping[str, Any]) -> Answer:
        """CM hook: hands on the model in the current folder; a published file that is the model gets its model.json."""
        env, folder = i["env"], Path.cwd()
        if env[WORK_KEY] == "take":
            facts = json.loads(env[FACTS_KEY])
            model = RealModel(
                name=self.architecture, framework=env[FRAMEWORK_KEY], files={"model": Path(env[FILE_KEY])},
                source=facts["source"], license=facts["license"], reference=facts["reference"],
                origin=facts["origin"],
            )  # fmt: skip
            try:
                write_model_info(folder, model)
            except OSError as error:
                return failure(f"cannot describe {env[FILE_KEY]}: {error}", "hint: look at the download above")
        return model_answer(env, folder, beside=[name for name in self.beside if (folder / name).is_file()])


def _facts(source: str, license: str, reference: Mapping[str, float], origin: str) -> str:
    return json.dumps({"source": source, "license": license, "reference": dict(reference), "origin": origin})
