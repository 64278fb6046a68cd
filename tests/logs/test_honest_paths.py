"""No path of the machine stays in what a run writes, and a request is read again from wherever its folder lies."""

import json
from pathlib import Path

import pytest

from crowdperf.kit.path_redaction import KnownFolders, absolute_paths, honest, honest_text
from crowdperf.logs import run_requests
from crowdperf.logs.layout import RunPaths
from crowdperf.logs.run_requests import named_request, portable_request, read_request, usable_request

PLACES = KnownFolders({"<result>": "/data/results/call", "<home>": "/home/anna", "<root>": "/"})


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/home/anna/x/y.onnx", "<home>/x/y.onnx"),
        ("/data/results/call", "<result>"),
        ("/data/results/call/digits/run.json", "<result>/digits/run.json"),
        ("/data/results/caller/x", "<path>/x"),
        ("/home/annabel/x", "<path>/x"),
        ("/srv/CM/cache/a69d89d93790d5b5/digits.onnx", "<cache>/digits.onnx"),
        ("/srv/CM/cache/a69d89d93790d5b5", "<cache>"),
        ("--model=/mnt/models/x --n=3", "--model=<path>/x --n=3"),
        ("'/mnt/a/b', \"/mnt/c/d/\"", "'<path>/b', \"<path>/d\""),
        ("python3 /usr/bin/x", "python3 <path>/x"),
        ("/dev/shm/mine/x.onnx, /dev/dri/card0", "<path>/x.onnx, /dev/dri/card0"),
        ("179951 samples/s, 3 tokens/s/user", "179951 samples/s, 3 tokens/s/user"),
        ("http://host:8000/v1/models", "http://host:8000/v1/models"),
        ("https://zenodo.org/record/1/files/x", "https://zenodo.org/record/1/files/x"),
        ("/v1/chat/completions", "/v1/chat/completions"),
        ("results/a/b, ./a/b, ../a/b, ~/a/b, <home>/a/b", "results/a/b, ./a/b, ../a/b, ~/a/b, <home>/a/b"),
        ("1/2, and/or, /single", "1/2, and/or, /single"),
    ],
)
def test_a_text_has_signs_in_the_place_of_paths(text: str, shown: str) -> None:
    assert honest_text(text, PLACES) == shown
    assert list(absolute_paths(shown)) == []


def test_values_and_names_of_fields_are_changed_and_nothing_else() -> None:
    value = {"a": ["/mnt/x/y", 1, None, True], "/mnt/x/z": {"b": 0.5}}
    assert honest(value) == {"a": ["<path>/y", 1, None, True], "<path>/z": {"b": 0.5}}
    assert value["a"] == ["/mnt/x/y", 1, None, True]


def test_a_request_is_read_as_it_was_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/anna")
    folder = tmp_path / "results" / "run_1"
    folder.mkdir(parents=True)
    request = {
        "model": "digits",
        "model_path": str(tmp_path / "cache" / "digits.onnx"),
        "dataset_path": "/home/anna/data",
        "output_dir": str(folder),
        "user_conf": None,
        "power_command": [str(tmp_path / "meter.sh"), "/home/anna"],
        "serving": {"server": "/mnt/triton/server.json", "batching": "server"},
        "text": {"server": "http://127.0.0.1:8000"},
    }
    written = portable_request(request, folder)
    assert written["model_path"] == "<result>/../../cache/digits.onnx"
    assert (written["dataset_path"], written["output_dir"]) == ("<home>/data", "<result>")
    assert written["serving"]["server"] == "/mnt/triton/server.json"
    assert written["power_command"] == ["<result>/../../meter.sh", "/home/anna"]
    assert str(tmp_path) not in json.dumps(written)
    named = named_request(written)
    assert (named["model_path"], named["dataset_path"], named["output_dir"]) == ("digits.onnx", "data", "<result>")
    assert named["serving"] == {"server": "server.json", "batching": "server"} and named["text"] == request["text"]
    assert named["power_command"] == ["meter.sh", "/home/anna"]
    (folder / "run.json").write_text(json.dumps(written))
    assert read_request(RunPaths(folder)) == request
    assert usable_request(request, folder) == request  # as older versions wrote it


@pytest.mark.parametrize(
    ("result", "path", "written"),
    [
        ("/srv/crowdperf/results/run_1", "/srv/crowdperf/cache/a69d/x.onnx", "<result>/../../cache/a69d/x.onnx"),
        ("/mnt/results/run_1", "/srv/crowdperf/cache/a69d/x.onnx", "<checkout>/cache/a69d/x.onnx"),
        ("/mnt/results/run_1", "/srv/crowdperf", "<checkout>"),
        ("/mnt/results/run_1", "/srv/crowdperf2/x.onnx", "/srv/crowdperf2/x.onnx"),
        ("/mnt/results/run_1", "/home/anna/data", "<home>/data"),
        ("/mnt/results/run_1", "/mnt/results/user.conf", "<result>/../user.conf"),
        ("/mnt/results/run_1", "/mnt/imagenet", "/mnt/imagenet"),
        ("/mnt/results/run_1", "/data/team/imagenet", "/data/team/imagenet"),
        ("/mnt/results/run_1", "data/imagenet", "data/imagenet"),
    ],
)
def test_no_path_is_written_as_a_relative_one_that_leads_over_the_root(
    monkeypatch: pytest.MonkeyPatch, result: str, path: str, written: str
) -> None:
    monkeypatch.setenv("HOME", "/home/anna")
    monkeypatch.setattr(run_requests, "CHECKOUT_FOLDER", Path("/srv/crowdperf"))
    assert portable_request({"model_path": path}, Path(result)) == {"model_path": written}
    assert usable_request({"model_path": written}, Path(result)) == {"model_path": path}


def test_a_moved_checkout_keeps_its_requests(tmp_path: Path) -> None:
    old, new = tmp_path / "old" / "results" / "r", tmp_path / "new" / "results" / "r"
    written = portable_request({"model_path": str(tmp_path / "old" / "cache" / "m")}, old)
    assert usable_request(written, new) == {"model_path": str(tmp_path / "new" / "cache" / "m")}


@pytest.mark.parametrize("content", ["[]", "{", "1"])
def test_what_is_no_request_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(ValueError):
        read_request(RunPaths(tmp_path))
