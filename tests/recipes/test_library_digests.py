"""What the recipes of this checkout use of src/crowdperf: a change of a file changes the digests of exactly these."""

import re
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path

import pytest
from helpers import CHECKOUT, TemporaryHome
from recipe_engine.disk.digests import TICK_NS, Used, declared_modules
from recipe_engine.disk.repos import RecipeSource, RepoInfo
from recipe_engine.rules.configure import resolve_variations
from recipe_engine.rules.model import Recipe

from crowdperf.rules.app_names import app_names
from crowdperf.rules.backends import BACKENDS, SIMULATORS
from crowdperf.rules.benchmarks import RECORDS, dataset_module

PACKAGE = "src/crowdperf"
APP = "app-mlperf-inference"
IGNORED = shutil.ignore_patterns("__pycache__", "fixtures")


class Checkout:
    """A copy of the recipes and packages of this checkout, as each call of the engine finds it."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "checkout"
        for name in ("script", "src"):
            shutil.copytree(CHECKOUT / name, self.root / name, ignore=IGNORED)
        shutil.copy(CHECKOUT / "cmr.yaml", self.root)
        self._index_folder = folder / "index"
        self._known: dict[str, str] = {}  # the digests after the last change, which are those before the next
        self.aliases = sorted(path.parent.name for path in (self.root / "script").glob("*/_cm.yaml"))

    def source(self) -> RecipeSource:
        return RecipeSource([RepoInfo(self.root, "crowdperf", "49f3fd96f011aa42", python="src")], self._index_folder)

    def used(self, source: RecipeSource) -> Iterator[tuple[str, Recipe, Used]]:
        """What each recipe and query of QUERIES uses, with its text and its recipe."""
        recipes = {entry.alias: source.recipe(entry) for entry in source.index.entries}
        for query in [*self.aliases, *QUERIES]:
            alias, *asked = query.split(",")
            yield query, recipes[alias], source.used(recipes[alias], resolved(recipes[alias], asked))

    @cached_property
    def files(self) -> dict[str, frozenset[str]]:
        """The files of the packages that each query uses."""
        prefix = f"{PACKAGE}/"
        return {
            query: frozenset(path.removeprefix(prefix) for path in library.paths)
            for query, _, library in self.used(self.source())
        }

    def users(self, path: str) -> set[str]:
        """The queries that use a file."""
        return {query for query, paths in self.files.items() if path in paths}

    def digests(self) -> dict[str, str]:
        """The digest of each query, by its text."""
        source = self.source()
        return {query: source.digest(recipe, library.digest) for query, recipe, library in self.used(source)}

    def differing(self, path: str, text: str) -> set[str]:
        """The queries whose digests change when the text is added to a file."""
        before = self._known or self.digests()
        self.add(path, text)
        self._known = self.digests()
        return {query for query in before if before[query] != self._known[query]}

    def add(self, path: str, text: str = "# a comment\n") -> None:
        time.sleep(2 * TICK_NS / 1e9)
        with open(self.root / PACKAGE / path, "a", encoding="utf-8") as file:
            file.write(text)
        self._known = {}


def resolved(recipe: Recipe, asked: Sequence[str]) -> list[str]:
    """The variations that are on where these are asked for."""
    return [one.name for one in resolve_variations(recipe, [name.removeprefix("_") for name in asked], [])]


QUERIES = (
    f"{APP},_bert-99,_onnxruntime",
    f"{APP},_bert-99,_openvino",
    f"{APP},_bert-99,_triton_onnx",
    f"{APP},_bert-99,_neuron",
    f"{APP},_resnet50,_onnxruntime",
    f"{APP},_rnnt,_onnxruntime",
    f"{APP},_smollm2,_torch_llm",
    "generate-engine,_openvino",
    "generate-engine,_tensorrt",
    "get-ml-model-3d-unet,_brats",
    "generate-neuron-inputs,_bert",
    "get-preprocessed-dataset-coco,_for.ssd-resnet34",
)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    return Checkout(tmp_path_factory.mktemp("digests"))


USERS = """
kit/whole_file.py: app run-mlperf-inference get-ml-model-rnnt check-mlperf-submission download-file
    not get-python3 extract-file detect-os
data/answers.py: get-dataset-librispeech get-dataset-imagenet-val not app detect-cpu
data/datasets.py: get-dataset-coco get-dataset-igbh not app get-dataset-smollm2
models/make_model.py: get-ml-model-rnnt get-ml-model-resnet50 get-ml-model-dlrm-v2 get-ml-model-yolo
    not app get-dataset-librispeech get-python3
standins/fit_program.py: get-ml-model-rnnt get-ml-model-bert-large-squad get-ml-model-dlrm-v2
    not app get-dataset-librispeech run-mlperf-inference quantize-ml-model
harness/backends/openvino/backend.py: app,_bert-99,_openvino
    not app,_bert-99,_onnxruntime app,_smollm2,_torch_llm get-ml-model-rnnt quantize-ml-model
harness/backends/openvino/record.py: app,_bert-99,_openvino run-mlperf-inference show-mlperf-results
    not app,_bert-99,_onnxruntime get-ml-model-bert-large-squad process-mlperf-accuracy
harness/backends/openvino/library.py: app,_bert-99,_openvino generate-engine,_openvino
    not app,_bert-99,_onnxruntime generate-engine,_tensorrt
harness/backends/neuron_simulated/backend.py: app,_bert-99,_neuron not app,_bert-99,_triton_onnx
benchmarks/bert/network.py: app,_bert-99,_onnxruntime get-ml-model-bert-large-squad get-preprocessed-dataset-squad
    quantize-ml-model process-mlperf-accuracy generate-neuron-inputs,_bert
    not app,_resnet50,_onnxruntime get-ml-model-rnnt get-dataset-squad run-mlperf-inference generate-neuron-inputs
benchmarks/bert/record.py: app,_bert-99,_onnxruntime check-mlperf-submission generate-submission run-mlperf-inference
    not app,_resnet50,_onnxruntime get-ml-model-rnnt
benchmarks/ssd_resnet34/model.py: get-ml-model-ssd-resnet34 get-preprocessed-dataset-coco,_for.ssd-resnet34
    not get-ml-model-ssd-mobilenet get-preprocessed-dataset-coco get-dataset-coco
benchmarks/smollm2/dataset.py: app,_smollm2,_torch_llm get-dataset-smollm2
    not app,_bert-99,_onnxruntime get-ml-model-smollm2
harness/datasets/librispeech.py: app,_rnnt,_onnxruntime get-ml-model-rnnt get-preprocessed-dataset-librispeech
    not app,_bert-99,_onnxruntime get-ml-model-bert-large-squad get-dataset-coco
models/published_model.py: get-ml-model-rnnt get-ml-model-dlrm-v2 get-ml-model-3d-unet get-ml-model-stable-diffusion-xl
    not app get-dataset-librispeech quantize-ml-model get-ml-model-gptj
standins/fits/dlrm.py: get-ml-model-dlrm get-ml-model-dlrm-v2 not app get-ml-model-rnnt
harness/backends/neuron/triton_model.py: app,_bert-99,_neuron generate-triton-model-repository
    not app,_bert-99,_triton_onnx get-triton-server
web/render.py: serve-mlperf-results not app check-mlperf-submission import-mlperf-results
benchmarks/unet3d_brats/page.md: not app get-ml-model-3d-unet,_brats
"""
"""A file: the queries that use it, and some that do not; "app" is app-mlperf-inference."""


def with_room(rows: Iterable[str]) -> list[str]:
    """Those of these that begin with a file of a room that this checkout has: some rooms may be deleted."""
    return [row for row in rows if (CHECKOUT / PACKAGE / row.partition("/")[0]).is_dir()]


@pytest.mark.parametrize(
    "row", with_room(USERS.replace("\n    ", " ").strip().splitlines()), ids=lambda row: row.partition(":")[0]
)
def test_a_file_is_used_by_the_recipes_that_import_it_or_declare_it(checkout: Checkout, row: str) -> None:
    file, _, queries = re.sub(r"\bapp(?=[, ]|$)", APP, row).partition(":")
    used_by, others = (set(part.split()) for part in queries.split(" not "))
    assert others and (used_by | others) <= checkout.files.keys()
    assert used_by - checkout.users(file) == set(), "must use it"
    assert others & checkout.users(file) == set(), "must not use it"


@pytest.mark.parametrize(
    "edited",
    ["kit/whole_file.py", "harness/backends/openvino/backend.py", "benchmarks/bert/network.py", "data/answers.py"],
)
def test_a_comment_changes_the_digests_of_those_that_use_the_file_and_of_no_other(
    checkout: Checkout, edited: str
) -> None:
    assert checkout.differing(edited, "# a comment\n") == checkout.users(edited) != set()


def test_a_file_that_no_recipe_uses_changes_no_digest(checkout: Checkout) -> None:
    assert checkout.differing("kit/nobodys.py", "x = 1\n") == set()


def test_an_entry_of_cm_says_that_a_file_of_the_packages_has_changed(home: TemporaryHome, checkout: Checkout) -> None:
    shutil.copytree(CHECKOUT / "automation", checkout.root / "automation", ignore=IGNORED)
    home.register(checkout.root)
    note = "built by another version of this recipe"
    words = ("run", "script", "--tags=get,mlperf,scratch,space", "--path=space", "--quiet")
    told = []
    for edited in ("", "harness/backends/openvino/engine.py", "machine/probe.py"):
        if edited:
            checkout.add(edited)
        told.append(home.cm(*words))
        assert told[-1].code == 0, told[-1].stderr
    assert [note in one.stdout + one.stderr for one in told] == [False, False, True]


# --- what is loaded by name is declared ---


@pytest.fixture(scope="module")
def recipes() -> dict[str, Recipe]:
    source = RecipeSource([RepoInfo(CHECKOUT, "crowdperf", "", python="src")], Path("/nowhere"))
    return {entry.alias: source.recipe(entry) for entry in source.index.entries}


def test_every_backend_that_the_harness_can_load_is_declared(recipes: dict[str, Recipe]) -> None:
    own = app_names({"variations": {name: one.source for name, one in recipes[APP].variations.items()}})
    assert set(own.backends) == set(BACKENDS)
    for name, record in BACKENDS.items():
        model = "smollm2" if record.is_text else "resnet50"
        asked = [model, own.backend_variations[name]]
        modules = set(declared_modules(recipes[APP], resolved(recipes[APP], asked)))
        loaded = {one for one in modules if ".backends." in one}
        assert loaded == {f"crowdperf.harness.backends.{one}" for one in (name, SIMULATORS.get(name)) if one}


def test_every_benchmark_that_the_harness_can_load_is_declared(recipes: dict[str, Recipe]) -> None:
    for folder, record in RECORDS.items():
        for name in (*record.names, *record.spellings):
            modules = declared_modules(recipes[APP], resolved(recipes[APP], [name]))
            loaded = {one for one in modules if ".backends." not in one}
            dataset, own = dataset_module(record.dataset), f"crowdperf.benchmarks.{folder}"
            assert loaded == {own, dataset} - ({dataset} if dataset.startswith(f"{own}.") else set()), name


LOADERS = {
    "harness/base/architecture.py": "benchmarks",
    "harness/commands/listed_images.py": "datasets",
    "harness/runner/registry.py": "benchmarks|datasets",
    "models/engines/build.py": "engines",
    "models/make_model.py": "benchmarks",
    "models/quantize.py": "benchmarks",
    "rules/record_files.py": "benchmarks|datasets|backends",
    "standins/fits/detection.py": "benchmarks",
    "standins/fits/dlrm.py": "benchmarks",
}
"""Modules that load others of the packages by name, and the folders that these are in: one of them is declared."""

BY_NAME = re.compile(r"""import_module\(f?["']crowdperf\.|spec_from_file_location\(f?["']crowdperf\.""")


def test_no_other_module_loads_one_of_the_packages_by_name() -> None:
    found = {
        path.relative_to(CHECKOUT / PACKAGE).as_posix()
        for path in (CHECKOUT / PACKAGE).rglob("*.py")
        if BY_NAME.search(path.read_text(encoding="utf-8"))
    }
    assert found == set(with_room(LOADERS))


def test_every_recipe_that_uses_a_loader_declares_what_it_can_load(recipes: dict[str, Recipe]) -> None:
    source = RecipeSource([RepoInfo(CHECKOUT, "crowdperf", "", python="src")], Path("/nowhere"))
    missing, count = {}, 0
    for alias, recipe in recipes.items():
        variations = resolved(recipe, [])
        declared = declared_modules(recipe, variations)
        used = {path.removeprefix(f"{PACKAGE}/") for path in source.used(recipe, variations).paths}
        rooms = [LOADERS[path] for path in used & set(LOADERS)]
        count += bool(rooms)
        if any(not any(re.search(rf"\.({room})\b", name) for name in declared) for room in rooms):
            missing[alias] = sorted(used & set(LOADERS))
    assert missing == {} and count > 3


WORD = re.compile(r"--(architecture|dataset|model)[ =]([a-z][\w-]*)")


def test_what_a_script_names_is_declared(recipes: dict[str, Recipe]) -> None:
    folders = {name: folder for folder, record in RECORDS.items() for name in (folder, record.name, *record.names)}
    checked = 0
    for alias, recipe in recipes.items():
        script = recipe.path / "run.sh"
        for option, name in WORD.findall(script.read_text(encoding="utf-8")) if script.is_file() else ():
            wanted = dataset_module(name) if option == "dataset" else f"crowdperf.benchmarks.{folders[name]}"
            assert wanted in recipe.library, alias
            checked += 1
    assert checked > 10


# --- no recipe uses files of another one's folder, which none of these digests covers ---


def other_folders(text: str, own: str, aliases: Sequence[str]) -> set[str]:
    """The folders of other recipes that code makes paths of: ``/ "ALIAS"``, ``/ALIAS/``, ``../ALIAS``."""
    names = "|".join(sorted(aliases, key=len, reverse=True))
    found = re.findall(rf"""(?:/ ?["']?|join\([^)]*["']|with_name\(["'])({names})(?:["']|/)""", text)
    return {*found} - {own}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('HERE = Path(__file__).parent.parent / "get-b" / "textures.py"\n', {"get-b"}),
        ('folders.append(str(Path(__file__).parent.parent / "get-b"))\n', {"get-b"}),
        ('import_file(os.path.join(recipes, "get-b", "fit.py"))\n', {"get-b"}),
        ('Path(__file__).parent.with_name("get-b")\n', {"get-b"}),
        ('bash x.sh "${CM_TMP_CURRENT_SCRIPT_PATH}/../get-b/fit_model.py"\n', {"get-b"}),
        ('. "$recipes/get-b/shared.sh"\n', {"get-b"}),
        ('Path(__file__).parent.parent / "get-a" / "own.py"\n', set()),
        ('{"tags": "get-b,x"}; say("the recipe get-b")\n', set()),
    ],
)
def test_a_path_into_another_recipe_is_found(text: str, found: set[str]) -> None:
    assert other_folders(text, "get-a", ["get-a", "get-b", "get-b-c"]) == found


def code_of(recipe: Recipe) -> dict[str, str]:
    """The text of each Python file and shell script of a recipe, by its name."""
    files = [
        file for file in recipe.path.rglob("*") if file.suffix in (".py", ".sh") and "__pycache__" not in file.parts
    ]
    return {file.name: file.read_text(encoding="utf-8") for file in files}


def test_no_recipe_reaches_into_the_folder_of_another_one(recipes: dict[str, Recipe]) -> None:
    found = {
        (alias, name): others
        for alias, recipe in recipes.items()
        for name, text in code_of(recipe).items()
        if (others := other_folders(text, alias, list(recipes)))
    }
    assert found == {}


def test_a_script_runs_by_their_paths_programs_of_its_own_folder_only(recipes: dict[str, Recipe]) -> None:
    program = re.compile(r"""\$\{?\w+\}?/([\w.-]+\.(?:py|sh))\b""")
    for alias, recipe in recipes.items():
        ran = {name for text in code_of(recipe).values() for name in program.findall(text)}
        assert ran <= {file.name for file in recipe.path.rglob("*")}, alias
