"""get-dataset-mlperf-text: tables are read without running what is in them; published and made files become samples;
MLCommons' storage is read as it publishes."""

import base64
import hashlib
import json
import os
import pickle
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from harness_libraries import need
from local_server import LocalServer, Status, Truncate
from made_sets import make_set
from recipe_loader import RECIPES, load_recipe
from recipe_programs import program

need("numpy")

RECIPE = RECIPES / "get-dataset-mlperf-text"
recipe = load_recipe("get-dataset-mlperf-text")
sources = sys.modules[f"{recipe.__package__}.sources"]
from crowdperf.data.errors import DataError  # noqa: E402 - importable from here on
from crowdperf.standins.datasets import mlperf_text  # noqa: E402

TABLES = json.loads((Path(__file__).parent / "fixtures" / "pickled_tables.json").read_text())
"""Tables pickled by pandas 1.5.3, 2.2.3 and 3.0.0, compressed; recorded 2026-11-23."""


frames, convert, storage = (program(RECIPE.name, name) for name in ("frames", "convert", "storage"))


# --- pickled tables ---


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_read_whatever_pandas_wrote_it(tmp_path: Path, name: str) -> None:
    path = tmp_path / "table.pkl"
    path.write_bytes(zlib.decompress(base64.b64decode(TABLES[name])))
    columns = frames.read_pickled_table(path)
    if name.endswith("plain"):
        assert columns == {
            "tok_input": [[1, 2, 29871], [5, 6]], "tok_input_length": [3, 2], "output": ["A b.", "C é."],
            "score": [0.5, 1.5], "origin": ["t0", "flan"],
        }  # fmt: skip
    else:
        assert [list(ids) for ids in columns["tok_input"]] == [[1, 2], [3]] and columns["n"] == [3, None]


class Evil:
    """What a pickle of a stranger may ask for."""

    def __init__(self, *call: object) -> None:
        self.call = call

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return self.call[0], self.call[1:]  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("call", "asked"),
    [
        ((os.system, "touch ran"), "posix.system"),
        ((eval, "open('ran', 'w')"), "builtins.eval"),
        ((subprocess.run, ["touch", "ran"]), "subprocess.run"),
        ((getattr, "ran", "upper"), "builtins.getattr"),
        ((__import__, "os"), "builtins.__import__"),
    ],
)
def test_a_table_that_asks_for_anything_else_is_refused_and_nothing_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: tuple[object, ...], asked: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for content in (Evil(*call), {"a": [Evil(*call)]}):
        (tmp_path / "evil.pkl").write_bytes(pickle.dumps(content))
        with pytest.raises(frames.TableError, match=f"it refers to {asked}, which no plain table needs"):
            frames.read_pickled_table(tmp_path / "evil.pkl")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("content", [b"", b"no pickle", pickle.dumps([1, 2]), pickle.dumps({"a": 1})[:-3]])
def test_a_file_that_is_no_table_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.pkl").write_bytes(content)
    with pytest.raises(frames.TableError, match=r"x\.pkl"):
        frames.read_pickled_table(tmp_path / "x.pkl")


# --- published files to samples ---


def llama_files(folder: Path, count: int = 3, name: str = "cnn_eval.json") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    rows = [
        {"instruction": "i", "input": "x", "tok_input": [1, number + 3], "output": "A b ."} for number in range(count)
    ]
    (folder / name).write_text(json.dumps(rows))
    return folder


def test_a_json_list_becomes_samples_in_its_order(tmp_path: Path) -> None:
    source, target = llama_files(tmp_path / "deep" / "er"), tmp_path / "samples"
    assert convert.convert("llama3.1-8b", source, target, is_published=False) == {"": 3}
    rows = [json.loads(line) for line in (target / "samples.jsonl").read_text().splitlines()]
    assert rows[2] == {"reference": "A b .", "tokens": [1, 5]}
    facts = json.loads((target / "dataset.json").read_text())
    assert (facts["is_synthetic"], facts["count"], facts["name"]) == (False, 3, "llama3.1-8b")


def test_a_published_file_has_as_many_samples_as_it_must(tmp_path: Path) -> None:
    with pytest.raises(convert.ConversionError, match="has 3 samples, but the published one has 13,368"):
        convert.convert("llama3.1-8b", llama_files(tmp_path), tmp_path / "samples", is_published=True)


def test_a_missing_or_second_file_and_a_missing_column_are_named(tmp_path: Path) -> None:
    with pytest.raises(convert.ConversionError, match=r"must have one file cnn_eval\.json, .* found none"):
        convert.convert("llama3.1-8b", tmp_path, tmp_path / "samples", is_published=False)
    llama_files(tmp_path / "a"), llama_files(tmp_path / "b")
    with pytest.raises(convert.ConversionError, match=r"found a/cnn_eval\.json, b/cnn_eval\.json"):
        convert.convert("llama3.1-8b", tmp_path, tmp_path / "samples", is_published=False)
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "cnn_eval.json").write_text('[{"output": "x"}]')
    with pytest.raises(convert.ConversionError, match="has no column tok_input, it has: output"):
        convert.convert("llama3.1-8b", tmp_path / "c", tmp_path / "samples", is_published=False)


@pytest.mark.parametrize(
    ("value", "text"), [("B", "B"), (204.0, "204"), (204, "204"), (0.5, "0.5"), (None, ""), (float("nan"), "")]
)
def test_solutions_are_texts_as_the_official_scripts_compare_them(value: object, text: str) -> None:
    assert convert.as_text(value) == text


def test_a_table_of_tasks_may_have_the_other_names_of_its_columns() -> None:
    (part,) = sources.SETS["deepseek-r1"].parts
    columns = {"text_input": ["Why?"], "gt_output": [7.0], "metric": ["aime_em"]}
    assert list(convert.rows_of(columns, part, Path("t.pkl"))) == [{"reference": "7", "subset": "aime", "text": "Why?"}]


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("x", "tok_input is a text"), (7, "tok_input is a number"), ({"a": 1}, "tok_input is an object"),
        (True, "tok_input is a boolean"), ([1, "2"], "tok_input is a list with '2'"), ([1.5], "a list with 1.5"),
        ([-1], "a list with -1"), ([True], "a list with True"), ([None], "a list with None"),
    ],
)  # fmt: skip
def test_a_value_of_another_kind_is_named_with_its_row(tmp_path: Path, value: object, found: str) -> None:
    rows = [{"tok_input": [1, 2], "output": "a"}, {"tok_input": value, "output": "b"}]
    (tmp_path / "cnn_eval.json").write_text(json.dumps(rows))
    with pytest.raises(convert.ConversionError) as caught:
        convert.convert("llama3.1-8b", tmp_path, tmp_path / "samples", is_published=False)
    words = f"cnn_eval.json: row 2: {found}" if found.startswith("tok") else found
    assert words in str(caught.value)
    assert str(caught.value).endswith("; allowed: a list of token ids (numbers from 0)")


@pytest.mark.parametrize("benchmark", ["llama3.1-8b", "llama3.1-8b-edge"])
def test_made_files_become_samples_that_say_so(tmp_path: Path, benchmark: str) -> None:
    files = tmp_path / "files"
    files.mkdir()
    make_set("mlperf_text", files, benchmark=benchmark, count=5, lengths="small")
    assert convert.convert(benchmark, files, tmp_path / "samples", is_published=False) == {"": 5}
    assert json.loads((tmp_path / "samples" / "dataset.json").read_text())["is_synthetic"]
    (row, *_) = [json.loads(line) for line in (tmp_path / "samples" / "samples.jsonl").read_text().splitlines()]
    assert row["answer"] == row["reference"] and 8 <= len(row["tokens"]) <= 48


COUNTS = {
    "llama2-70b": {"": 32}, "deepseek-r1": {"": 32}, "gpt-oss-120b": {"performance": 32, "accuracy": 16, "TEST07": 5},
}  # fmt: skip


def write_as_json(rows: list[dict[str, object]], path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(rows))


@pytest.mark.parametrize("benchmark", COUNTS)
def test_made_tables_become_samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, benchmark: str) -> None:
    """Their content is JSON here, whatever their names: no environment of the tests has pandas or pyarrow."""
    monkeypatch.setattr(mlperf_text, "_write_table", write_as_json)
    monkeypatch.setattr(convert, "read_columns", convert._columns_of_json)
    make_set("mlperf_text", tmp_path, benchmark=benchmark, count=32, lengths="small")
    assert convert.convert(benchmark, tmp_path, tmp_path / "samples", is_published=False) == COUNTS[benchmark]


@pytest.mark.full
def test_made_tables_become_samples_through_the_published_form(tmp_path: Path) -> None:
    python = str(tmp_path / "venv" / "bin" / "python")
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True, timeout=300)
    subprocess.run([python, "-m", "pip", "install", "-q", "numpy", "pandas", "pyarrow"], check=True, timeout=600)
    env = {**os.environ, "PYTHONPATH": str(RECIPES.parent / "src")}
    for benchmark, counts in COUNTS.items():
        files, samples = tmp_path / benchmark, tmp_path / f"{benchmark}-samples"
        make = [python, "-m", mlperf_text.__name__, f"--benchmark={benchmark}", "--count=32", "--lengths=small"]
        subprocess.run([*make, f"--output_dir={files}"], env=env, check=True, timeout=120)
        words = [f"--benchmark={benchmark}", f"--source={files}", f"--output_dir={samples}"]
        subprocess.run([python, str(RECIPE / "convert.py"), *words], env=env, check=True, timeout=120)
        lines = [len(path.read_text().splitlines()) for path in samples.rglob("samples.jsonl")]
        assert sorted(lines) == sorted(counts.values())


# --- MLCommons' storage ---


@pytest.fixture
def served():
    with LocalServer() as server:
        server.put("/metadata/news.uri", (server.url("/files/news") + "\n").encode())
        server.put("/files/news/cnn_eval.json", b"[1]")
        checksum = hashlib.md5(b"[1]").hexdigest()
        server.put("/metadata/news.md5", f"{checksum}  ./cnn_eval.json\n".encode())
        yield server


def test_the_files_of_a_list_are_fetched_once(served: LocalServer, tmp_path: Path) -> None:
    address = served.url("/metadata/news.uri")
    assert storage.fetch(address, tmp_path) == [tmp_path / "cnn_eval.json"]
    assert (tmp_path / "cnn_eval.json").read_bytes() == b"[1]"
    before = len(served.requests)
    storage.fetch(address, tmp_path)
    assert [one.path for one in served.requests[before:]] == ["/metadata/news.uri", "/metadata/news.md5"]


def test_other_bytes_than_published_are_refused_and_a_whole_file_never_stands_for_a_part(
    served: LocalServer, tmp_path: Path
) -> None:
    served.put("/files/news/cnn_eval.json", b"[2]")
    with pytest.raises(storage.StorageError, match=r"has the MD5 .*, published is"):
        storage.fetch(served.url("/metadata/news.uri"), tmp_path)
    served.put("/files/news/cnn_eval.json", b"[1]", faults=[Truncate(1)])
    with pytest.raises(storage.StorageError):
        storage.fetch(served.url("/metadata/news.uri"), tmp_path)
    assert not (tmp_path / "cnn_eval.json").exists()


def test_a_login_is_said_and_never_followed(served: LocalServer, tmp_path: Path) -> None:
    page = Status(302, location=served.url("/login"))
    served.put("/metadata/news.uri", b"", faults=[page, page])
    with pytest.raises(storage.LoginNeeded, match=r"requires a login \(HTTP 302\)"):
        storage.fetch(served.url("/metadata/news.uri"), tmp_path)
    assert storage.main([f"--metadata={served.url('/metadata/news.uri')}", f"--output_dir={tmp_path}"]) == 1
    assert all(one.path != "/login" for one in served.requests)


@pytest.mark.parametrize("name", ["../cnn_eval.json", "/etc/passwd", "a/../../b"])
def test_a_name_that_leads_elsewhere_is_refused(name: str) -> None:
    with pytest.raises(storage.StorageError, match="not a checksum with the name of a file"):
        storage.files_of(f"{'0' * 32}  {name}\n", "x.md5")


# --- the hook ---


def env_of(benchmark: str, source: str, **more: str) -> dict[str, str]:
    return {"CM_DATASET_TEXT_BENCHMARK": benchmark, "CM_DATASET_TEXT_SOURCE": source, **more}


def test_what_is_done_follows_from_the_source_and_a_given_folder(tmp_path: Path) -> None:
    def work(*words: object, **more: str) -> str:
        benchmark, source, path = words
        env = env_of(str(benchmark), str(source), **more)
        return str(recipe.plan_work(env, path, tmp_path)["CM_DATASET_TEXT_WORK"])

    assert work("deepseek-r1", "published", None) == "fetch"
    assert work("deepseek-r1", "synthetic", None, CM_DATASET_TEXT_SIZE="64") == "make"
    llama_files(tmp_path / "own")
    assert work("llama3.1-8b", "published", tmp_path / "own") == "convert"
    assert work("llama3.1-8b", "published", tmp_path / "own" / "cnn_eval.json") == "convert"


@pytest.mark.parametrize(
    ("env", "has_path", "said"),
    [
        (env_of("llama2-70b", "published"), False, "must be fetched by hand"),
        (env_of("llama3.1-8b", "published"), True, "has no cnn_eval.json"),
        (
            env_of("llama3.1-8b", "synthetic", CM_DATASET_TEXT_SIZE="64"),
            True,
            "a synthetic data set exclude each other",
        ),
        (env_of("llama3.1-8b", "synthetic", CM_DATASET_TEXT_SIZE="0"), False, "_size.0 cannot be"),
        (env_of("llama3.1-8b", "published", CM_DATASET_TEXT_SIZE="64"), False, "used as a whole"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, env: dict[str, str], has_path: bool, said: str) -> None:
    with pytest.raises((ValueError, DataError), match=said):
        recipe.plan_work(env, tmp_path if has_path else None, tmp_path)


def test_every_benchmark_of_the_table_has_its_variation() -> None:
    from recipe_loader import recipe_meta

    variations = recipe_meta("get-dataset-mlperf-text")["variations"]
    assert {name for name, block in variations.items() if block.get("group") == "benchmark"} == set(sources.SETS)
