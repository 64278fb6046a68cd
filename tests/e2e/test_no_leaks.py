"""Planted tokens, user names and home paths never appear in a file of a tree, a report, a log or a pushed commit.

A person with a name and a home that stand nowhere else gives tokens in every way there is (the environment of the
process, `--env.`, inputs, the address of the repository), has real results below that home, and goes the way of the
tutorial from there: tree, gate, report, push. Then every file that was made is read.
"""

import base64
import io
import json
import os
import shutil
import socket
import subprocess
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from generate_support import FACTS as SAID_FACTS
from helpers import Finished, TemporaryHome, unpack

ROOT = Path(__file__).resolve().parents[2]
RUNS = ROOT / "tests" / "gate" / "data" / "resnet50_edge_runs.tar.xz"
SUT = "edge-box-crowdperf-cpu-onnxruntime-v1.31.1-default_config"
USER = "annabellezz"
PUSH = "push,github,mlperf,inference,submission"

# Put together here, so that no scanner takes this file for a leak.
TOKENS = {
    "GITHUB_TOKEN": "gh" + "p_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7aB3dE6gH9",
    "HF_TOKEN": "h" + "f_" + "zY1xW4vU7tS0rQ3pO6nM9lK2jI5hG8fE1d",
    "CM_GH_TOKEN": "planted-for-cm-7Qx",
    "RESULTS_PASSWORD": "planted-password-8Ry",
    "ADDRESS": "planted-in-address-9Sz",
}
FACTS = {
    **SAID_FACTS,
    # What a run does not record; detected only where the machine is the one that the runs were made on.
    "number_of_nodes": "1",
    "host_processors_per_node": "1",
    "host_processor_core_count": "2",
    "accelerators_per_node": "0",
    **dict.fromkeys(
        (
            "accelerator_model_name",
            "accelerator_memory_capacity",
            "accelerator_host_interconnect",
            "accelerator_interconnect",
            "accelerator_memory_configuration",
        ),
        "N/A",
    ),
}


class Person(NamedTuple):
    """A home folder with a CM home in it, and the environment of its owner."""

    home: Path
    cm: TemporaryHome
    env: dict[str, str]

    def run(self, tags: str, *words: str, patience_s: float = 60) -> Finished:
        """Runs a recipe as this person, with tokens among its inputs."""
        more = (f"--env.CM_GH_TOKEN={TOKENS['CM_GH_TOKEN']}", f"--hf_token={TOKENS['HF_TOKEN']}")
        child = self.cm.start_run(tags, *words, *more, env=self.env, cwd=self.home)
        out, err = child.communicate(timeout=patience_s)
        return Finished(child.returncode, out.decode(), err.decode())


@pytest.fixture(scope="module")
def anna(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Person]:
    """Her home lies deep in the tests' folder; everything she makes lies in it too."""
    home = tmp_path_factory.mktemp("people") / USER
    home.mkdir()
    identity = f"[user]\nname = Anna Zett\nemail = {USER}@example.org\n[safe]\ndirectory = *\n"
    (home / ".gitconfig").write_text(identity, encoding="utf-8")
    given = {name: value for name, value in TOKENS.items() if name not in ("CM_GH_TOKEN", "ADDRESS")}
    env = {"HOME": str(home), "USER": USER, "LOGNAME": USER, "GIT_CONFIG_NOSYSTEM": "1", **given}
    cm = TemporaryHome(home / "cm")
    yield Person(home, cm, env)
    cm.close()


@pytest.fixture(scope="module")
def results(anna: Person) -> Path:
    """Real runs as they would lie in her home: with its paths in each record, and tokens in what the console said."""
    unpack(RUNS, anna.home / "results")
    folder = anna.home / "results" / "valid_results"
    for path in folder.rglob("*.json"):
        if not path.name.startswith("mlperf_log"):
            text = path.read_text(encoding="utf-8")
            text = text.replace("/cm/cache", f"{anna.home}/CM/repos/local/cache")
            text = text.replace("--results_dir=/results", f"--results_dir={anna.home}/results")
            path.write_text(text.replace('"/results"', f'"{anna.home}/results"'), encoding="utf-8")
    for path in folder.rglob("run.json"):
        said = f"{USER}@{socket.gethostname()}: {anna.home} {' '.join(TOKENS.values())}\n"
        path.with_name("console.txt").write_text(said, encoding="utf-8")
    assert sum(str(anna.home) in path.read_text(encoding="utf-8") for path in folder.rglob("run.json")) > 3
    return folder


@pytest.fixture(scope="module")
def made(anna: Person, results: Path) -> Finished:
    """How making her tree ended."""
    return make_tree(anna, results)


@pytest.fixture
def tree(anna: Person, made: Finished) -> Path:
    """Her finished tree."""
    assert made.code == 0, made.stderr + made.stdout
    return anna.home / "tree"


def make_tree(anna: Person, results: Path, name: str = "tree", *words: str) -> Finished:
    (anna.home / "facts.json").write_text(json.dumps(FACTS), encoding="utf-8")
    return anna.run(
        "generate,inference,submission",
        f"--results_dir={results}",
        f"--submission_dir={anna.home / name}",
        "--submitter=ACME",
        "--allow_synthetic",
        f"--system_facts={anna.home / 'facts.json'}",
        *words,
    )


def spellings(text: str) -> set[bytes]:
    """A text as it may stand in a file: plain, as JSON and in the three alignments of base64."""
    plain = text.encode()
    encoded = {base64.b64encode(b"x" * shift + plain)[4:-4] for shift in range(3)}
    return {plain, json.dumps(text)[1:-1].encode(), *(piece for piece in encoded if len(piece) > 8)}


def files_with(folder: Path, texts: Iterable[str], skipped: Iterable[Path] = ()) -> list[str]:
    """The files below a folder in which, or in whose name, one of the texts stands."""
    wanted = [spelling for text in texts for spelling in spellings(text)]
    left_out = set(skipped)
    found = []
    for path in folder.rglob("*"):
        if path.is_file() and not left_out.intersection((path, *path.parents)):
            data = path.read_bytes() + os.fsencode(path.relative_to(folder))
            found += [str(path)] if any(text in data for text in wanted) else []
    return found


def assert_no_token_is_kept_or_said(anna: Person, done: Finished) -> None:
    """Nowhere in her home but in what the tests wrote there themselves."""
    planted = [anna.home / name for name in ("results", "facts.json", ".gitconfig", "spoilt")]
    assert files_with(anna.home, TOKENS.values(), planted) == []
    assert [token for token in TOKENS.values() if token in done.stdout + done.stderr] == []


def git(folder: Path, *words: str, env: Mapping[str, str]) -> bytes:
    command = ["git", "-C", str(folder), *words]
    return subprocess.run(command, env={**os.environ, **env}, capture_output=True, check=True).stdout


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    folder = tmp_path / "remote.git"
    subprocess.run(["git", "init", "--quiet", "--bare", str(folder)], check=True)
    return folder


def test_a_tree_of_her_results_holds_nothing_of_hers(anna: Person, tree: Path, made: Finished) -> None:
    assert len([path for path in tree.rglob("*") if path.is_file()]) > 25
    private = [*TOKENS.values(), USER, str(anna.home), "/repos/local/cache"]
    assert files_with(tree, private) == []
    program = [
        *tree.glob("*/*/src/*/*/script"),
        *tree.glob("*/*/src/*/*/src"),
    ]  # the project's own text may have the machine's name as a word
    assert program and files_with(tree, [socket.gethostname()], program) == []
    assert_no_token_is_kept_or_said(anna, made)


def test_a_report_of_her_tree_holds_nothing_of_hers(anna: Person, tree: Path, tmp_path: Path) -> None:
    done = anna.run("report,mlperf,submission", f"--submission_dir={tree}", f"--output={anna.home / 'report'}")
    assert done.code == 0, done.stderr + done.stdout
    assert list((anna.home / "report").rglob("*.html"))
    assert files_with(anna.home / "report", [*TOKENS.values(), USER, str(anna.home), socket.gethostname()]) == []
    assert_no_token_is_kept_or_said(anna, done)


def test_what_is_pushed_holds_nothing_of_hers_but_the_author(anna: Person, tree: Path, remote: Path) -> None:
    words = (f"--submission_dir={tree}", f"--repo_url={remote}", "--allow_synthetic", "--push")
    done = anna.run(PUSH, *words)
    assert done.code == 0, done.stderr + done.stdout
    names = [spelling for text in (*TOKENS.values(), USER, str(anna.home)) for spelling in spellings(text)]
    with tarfile.open(fileobj=io.BytesIO(git(remote, "archive", "main", env=anna.env))) as archive:
        files = [member for member in archive if member.isfile()]
        assert len(files) > 25
        for member in files:
            data = archive.extractfile(member).read() + member.name.encode()
            assert not any(name in data for name in names), member.name
    message = git(remote, "log", "--format=%B", "main", env=anna.env)
    assert not any(name in message for name in names)
    assert_no_token_is_kept_or_said(anna, done)


def test_what_is_planted_in_a_finished_tree_is_found_before_a_push(anna: Person, tree: Path, remote: Path) -> None:
    spoilt = anna.home / "spoilt"
    shutil.copytree(tree, spoilt)
    # Her name first: it is not looked for in the program's own text, whose files are the last ones.
    planted = [f"by {USER}", TOKENS["GITHUB_TOKEN"], TOKENS["RESULTS_PASSWORD"], f"{anna.home}/x"]
    files = sorted(path for path in spoilt.rglob("*") if path.suffix in (".md", ".txt", ".conf", ".json"))
    places = dict(zip(files[:: len(files) // len(planted)], planted, strict=False))
    assert len(places) == len(planted)
    for path, text in places.items():
        path.write_text(path.read_text(encoding="utf-8") + f"\n{text}\n", encoding="utf-8")
    done = anna.run(PUSH, f"--submission_dir={spoilt}", f"--repo_url={remote}", "--skip_check", "--push")
    assert done.code != 0
    said = done.stdout + done.stderr
    assert "4 reason(s) not to push" in said
    assert [path.name for path in places if path.relative_to(spoilt).as_posix() not in said] == []
    assert git(remote, "for-each-ref", env=anna.env) == b""
    assert_no_token_is_kept_or_said(anna, done)


def test_a_login_in_the_address_reaches_no_file_and_no_text(anna: Person, tree: Path) -> None:
    address = f"http://{USER}:{TOKENS['ADDRESS']}@127.0.0.1:9/x.git"
    done = anna.run(PUSH, f"--submission_dir={tree}", f"--repo_url={address}", "--skip_check", "--push")
    assert done.code != 0
    assert_no_token_is_kept_or_said(anna, done)


@pytest.mark.parametrize("key", ["hw_notes_extra", "system.sw_notes"])
def test_what_she_says_herself_is_looked_at_too(anna: Person, results: Path, key: str) -> None:
    done = make_tree(anna, results, "told", f"--{key}=my token is {TOKENS['GITHUB_TOKEN']}")
    assert done.code != 0 and not (anna.home / "told").exists()
    assert_no_token_is_kept_or_said(anna, done)


@pytest.mark.full
def test_a_whole_run_leaves_no_token_in_any_file_and_no_private_path_in_its_pages(anna: Person) -> None:
    words = ("--model=digits", "--scenario=Offline", f"--results_dir={anna.home / 'runs'}")
    done = anna.run("run,mlperf,inference", *words, patience_s=900)
    assert done.code == 0, done.stderr
    (page,) = (anna.home / "runs").glob("*/results.html")
    folder = page.parent
    assert_no_token_is_kept_or_said(anna, done)
    shown = [folder / name for name in ("results.html", "summary.txt")]
    texts = {path.name: path.read_text(encoding="utf-8") for path in shown}
    assert [name for name, text in texts.items() if USER in text or str(anna.home) in text] == []


def test_the_spellings_find_what_is_written_otherwise() -> None:
    token = TOKENS["CM_GH_TOKEN"]
    for before in ("", "a", "ab"):
        encoded = base64.b64encode(f"{before}{token} and more".encode())
        assert any(spelling in encoded for spelling in spellings(token)), before
