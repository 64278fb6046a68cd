"""push-mlperf-inference-results-to-github against real bare repositories: what is pushed, what is refused, what happens
when the other side moves, declines or vanishes, and that no login is seen anywhere."""

import base64
import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from helpers import TemporaryHome
from recipe_loader import RECIPES, input_values, load_module, load_recipe, recipe_meta

ALIAS = "push-mlperf-inference-results-to-github"
recipe = load_recipe(ALIAS)
address = load_module(ALIAS, "address")
gitwork = load_module(ALIAS, "gitwork")
history = load_recipe("get-git-history")

TAGS = "push,github,mlperf,inference,submission"
SYSTEM = "open/ACME/results/box/resnet50"
SECRET = "aB3dE6gH9j" + "K2mN5pQ8sT1vW4yZ7"


def git(folder: Path, *words: str, given: str | None = None) -> str:
    done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, input=given, check=True)
    return done.stdout.strip()


@pytest.fixture(autouse=True)
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user of git with a home of their own, whose name is in no test's text by accident."""
    home = tmp_path / "home-of-anna"
    home.mkdir()
    (home / ".gitconfig").write_text(
        "[user]\nname = Anna B\nemail = anna@example.org\n[init]\ndefaultBranch = main\n[safe]\ndirectory = *\n"
    )
    for key in [key for key in os.environ if key.startswith(("GIT_", "CM_")) and key != "CM_REPOS"]:
        monkeypatch.delenv(key)
    for key, value in {"HOME": str(home), "USER": "annabee", "GIT_CONFIG_NOSYSTEM": "1"}.items():
        monkeypatch.setenv(key, value)


@pytest.fixture
def submission(tmp_path: Path) -> Path:
    """A small submission; what its files say does not matter here."""
    return write(
        tmp_path / "submission",
        {
            "open/ACME/systems/box.json": '{"system_name": "box"}\n',
            f"{SYSTEM}/Offline/measurements.json": "{}\n",
            f"{SYSTEM}/Offline/performance/run_1/mlperf_log_summary.txt": "VALID 1\n",
            f"{SYSTEM}/Offline/accuracy/accuracy.txt": "acc=76\r\n",
        },
    )


def write(folder: Path, texts: dict[str, str]) -> Path:
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text.encode())
    return folder


class Remote:
    """A bare repository, and a clone through which another person changes it."""

    def __init__(self, folder: Path, texts: dict[str, str] | None) -> None:
        self.path = folder / "remote dir" / "results,v6.1.git"
        self.path.mkdir(parents=True)
        git(self.path, "init", "--quiet", "--bare", "--initial-branch=trunk")
        self.other = folder / "other"
        if texts is not None:
            git(folder, "init", "--quiet", "--initial-branch=trunk", str(self.other))
            self.add(texts, "first")

    def add(self, texts: dict[str, str], message: str = "by another") -> None:
        if git(self.path, "for-each-ref"):
            git(self.other, "pull", "--quiet", str(self.path), "trunk")
        write(self.other, texts)
        git(self.other, "add", "-A", "-f")
        author = ("-c", "user.name=Bob", "-c", "user.email=bob@example.org")
        git(self.other, *author, "commit", "--quiet", "-m", message)
        git(self.other, "push", "--quiet", str(self.path), "trunk")

    def files(self, branch: str = "trunk") -> dict[str, str]:
        names = git(self.path, "ls-tree", "-r", "--name-only", branch).splitlines()
        shown = ("git", "-C", str(self.path), "show")
        return {name: subprocess.check_output([*shown, f"{branch}:{name}"]).decode() for name in names}

    def tip(self, branch: str = "trunk") -> str:
        return git(self.path, "rev-parse", branch)

    def hook(self, name: str, text: str) -> None:
        path = self.path / "hooks" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("#!/bin/sh\n" + text + "\n")
        path.chmod(0o755)


THEIRS = {
    "README.md": "all results\n",
    ".gitattributes": "*.txt text eol=lf\n",
    ".gitignore": "*.txt\n",
    "open/Other/results/x/resnet50/Offline/performance/run_1/mlperf_log_summary.txt": "theirs\n",
    "open/ACME/systems/old.json": "{}\n",
    "open/ACME/results/old/resnet50/Offline/measurements.json": "old\n",
    "closed/ACME/systems/old.json": "{}\n",
}


@pytest.fixture
def remote(tmp_path: Path) -> Remote:
    return Remote(tmp_path, THEIRS)


Push = Callable[..., dict[str, Any]]


@pytest.fixture
def push(tmp_path: Path, submission: Path, remote: Remote, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> Push:
    """Calls the hook as the engine would, with a cache that keeps the history and a gate that says yes."""
    entries = tmp_path / "entries"
    calls: list[dict[str, Any]] = []

    def access(inputs: dict[str, Any]) -> dict[str, Any]:
        calls.append(inputs)
        if inputs["tags"].startswith("check,"):
            return {"return": 0}
        name = inputs["tags"].removeprefix("get,git,history,_repo.")
        folder = entries / str(abs(hash(name)))
        env = {"CM_GIT_URL": name}
        if not folder.exists():
            folder.mkdir(parents=True)
            with monkeypatch.context() as there:
                there.chdir(folder)
                assert history.preprocess({"env": env})["return"] == 0
        return {"return": 0, "new_env": {"CM_GIT_HISTORY_PATH": str(folder / "history.git")}}

    def call(*words: str, access: Any = access, **inputs: Any) -> dict[str, Any]:
        meta = recipe_meta(ALIAS)
        given = {"submission_dir": str(submission), "repo_url": str(remote.path), **inputs}
        given |= dict.fromkeys(words, True)
        env = {"CM_TMP_CURRENT_PATH": str(tmp_path)}
        env |= {meta["input_mapping"][name]: value for name, value in given.items() if value != ""}
        state: dict[str, Any] = {}
        automation = SimpleNamespace(cmind=SimpleNamespace(access=access))
        i = {"env": env, "state": state, "input": {"tags": TAGS, **given}, "automation": automation}
        capsys.readouterr()
        answer = recipe.preprocess(i)
        return {**answer, "out": capsys.readouterr().out, **state.get("mlperf_push", {}), "calls": calls}

    return call


def ours(submission: Path) -> dict[str, str]:
    paths = [path for path in submission.rglob("*") if path.is_file()]
    return {path.relative_to(submission).as_posix(): path.read_bytes().decode() for path in paths}


def test_without_push_it_shows_what_it_would_do_and_changes_nothing(push: Push, remote: Remote) -> None:
    before = remote.tip()
    answer = push(commit_message="Box results")
    assert answer["return"] == 0, answer["error"]
    assert remote.tip() == before and answer["commit"] is None and not answer["is_pushed"]
    assert f"+ {SYSTEM}/Offline/measurements.json  3 B" in answer["out"]
    assert "Files: 4 added" in answer["out"] and "2 other file(s) of the submitter stay" in answer["out"]
    command = answer["out"].splitlines()[-1].strip()
    assert command.startswith(f"cm run script --tags={TAGS} ") and command.endswith(" --push")
    assert "'--commit_message=Box results'" in command


def test_push_adds_the_tree_byte_for_byte_and_leaves_all_else_as_it_is(
    push: Push, remote: Remote, submission: Path
) -> None:
    before = remote.tip()
    answer = push("push", commit_message="Box results")
    assert answer["return"] == 0, answer["error"]
    assert remote.files() == {**THEIRS, **ours(submission)}
    assert remote.tip() == answer["commit"] and answer["is_pushed"] and answer["base_commit"] == before
    told = git(remote.path, "log", "-1", "--format=%an <%ae>|%s|%P", "trunk")
    assert told == f"Anna B <anna@example.org>|Box results|{before}"
    assert [row["path"] for row in answer["added"]] == sorted(ours(submission))


def test_a_second_push_finds_nothing_to_do(push: Push, remote: Remote) -> None:
    first = push("push")
    again = push("push")
    assert again["return"] == 0 and again["commit"] == first["commit"] == remote.tip() and not again["is_pushed"]
    assert "Nothing to do" in again["out"]


def test_a_repeated_run_replaces_its_scenario_and_nothing_else(push: Push, remote: Remote, submission: Path) -> None:
    write(submission, {f"{SYSTEM}/Server/measurements.json": "{}\n"})
    push("push")
    shutil.rmtree(submission / SYSTEM / "Server")
    shutil.rmtree(submission / SYSTEM / "Offline" / "accuracy")
    write(submission, {f"{SYSTEM}/Offline/measurements.json": '{"a": 1}\n'})
    answer = push("push")
    assert answer["removed"] == [f"{SYSTEM}/Offline/accuracy/accuracy.txt"]
    assert [row["path"] for row in answer["changed"]] == [f"{SYSTEM}/Offline/measurements.json"]
    assert remote.files() == {**THEIRS, **ours(submission), f"{SYSTEM}/Server/measurements.json": "{}\n"}


def test_prune_makes_the_submitters_folders_of_the_submission_equal_and_no_others(
    push: Push, remote: Remote, submission: Path
) -> None:
    answer = push("push", "prune")
    assert answer["return"] == 0, answer["error"]
    kept = {name: text for name, text in THEIRS.items() if not name.startswith("open/ACME/")}
    assert remote.files() == {**kept, **ours(submission)}


def test_what_stands_beside_the_submitters_folder_is_named_and_left_out(
    push: Push, remote: Remote, submission: Path
) -> None:
    write(submission, {"summary.csv": "x", "open/README": "x", "notes/a.txt": "x"})
    answer = push("push")
    assert answer["left_out"] == ["notes", "open/README", "summary.csv"]
    assert remote.files() == {**THEIRS, **{k: v for k, v in ours(submission).items() if "/ACME/" in k}}


def test_executable_files_stay_executable(push: Push, remote: Remote, submission: Path) -> None:
    write(submission, {"open/ACME/src/resnet50/run.sh": "true\n"})
    (submission / "open/ACME/src/resnet50/run.sh").chmod(0o755)
    push("push")
    assert git(remote.path, "ls-tree", "trunk", "open/ACME/src/resnet50/").startswith("100755")


def test_a_missing_branch_is_made_from_the_main_one(push: Push, remote: Remote, submission: Path) -> None:
    before = remote.tip()
    answer = push("push", branch="volunteers/anna")
    assert answer["return"] == 0 and answer["branch_is_new"], answer
    assert remote.tip() == before
    assert git(remote.path, "rev-parse", "volunteers/anna^") == before
    assert remote.files("volunteers/anna") == {**THEIRS, **ours(submission)}


@pytest.mark.parametrize(("wanted", "made"), [("", "main"), ("results", "results")])
def test_an_empty_repository_gets_its_first_commit(
    push: Push, tmp_path: Path, submission: Path, wanted: str, made: str
) -> None:
    empty = Remote(tmp_path / "second", None)
    answer = push("push", repo_url=str(empty.path), branch=wanted)
    assert answer["return"] == 0 and answer["base_commit"] is None, answer
    assert empty.files(made) == ours(submission)


def test_a_repository_that_was_removed_and_made_anew_gets_the_tree_again(
    push: Push, tmp_path: Path, submission: Path
) -> None:
    for _ in range(2):
        made = Remote(tmp_path / "second", None)
        answer = push("push", repo_url=str(made.path))
        assert answer["return"] == 0 and answer["base_commit"] is None, answer
        shutil.rmtree(made.path)


def test_a_clone_of_the_user_is_used_and_keeps_its_branch_and_files(
    push: Push, remote: Remote, submission: Path, tmp_path: Path
) -> None:
    clone = tmp_path / "my fork"
    git(tmp_path, "clone", "--quiet", str(remote.path), str(clone))
    (clone / "README.md").write_text("being edited\n")
    head = git(clone, "rev-parse", "HEAD")
    answer = push("push", repo_url="", repo_path=str(clone))
    assert answer["return"] == 0, answer["error"]
    assert remote.files() == {**THEIRS, **ours(submission)}
    assert git(clone, "rev-parse", "HEAD") == head and git(clone, "status", "--short") == "M README.md"
    assert [inputs["tags"] for inputs in answer["calls"]] == ["check,mlperf,submission"]
    git(clone, "checkout", "README.md")
    git(clone, "pull", "--quiet")
    assert git(clone, "rev-parse", "HEAD") == answer["commit"]


def test_a_folder_that_is_no_clone_and_a_clone_without_remote_are_named(push: Push, tmp_path: Path) -> None:
    assert "is not a clone" in push(repo_url="", repo_path=str(tmp_path))["error"]
    git(tmp_path, "init", "--quiet", str(tmp_path / "alone"))
    assert "has no remote" in push(repo_url="", repo_path=str(tmp_path / "alone"))["error"]


# --- what is refused ---


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("README.md", "token " + "ghp" + "_" + SECRET, "access token"),
        ("README.md", "run in /home/someuser1/x", "path of a home folder"),
        ("README.md", "made by annabee", "name of the user"),
        ("README.md", "ask anna@example.org", "e-mail address"),
        ("logs-of-annabee.txt", "", "its name"),
        ("README.md", "-----BEGIN RSA " + "PRIVATE KEY-----", "private key"),
    ],
)
def test_what_is_private_is_listed_and_nothing_is_pushed(
    push: Push, remote: Remote, submission: Path, name: str, text: str, kind: str
) -> None:
    before = remote.tip()
    write(submission, {f"{SYSTEM}/Offline/{name}": f"first\n{text}\n"})
    answer = push("push")
    assert answer["return"] == 1 and kind in answer["error"] and remote.tip() == before
    assert SECRET not in answer["error"] and "someuser1" not in answer["error"] and "annabee" not in answer["error"]
    assert answer["calls"] == []


def test_an_address_of_another_folder_is_found_beside_that_of_this_one(
    push: Push, remote: Remote, submission: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commits are made in the kept history, so by the address of the home folder, wherever the call is made."""
    clone = tmp_path / "clone"
    git(tmp_path, "init", "--quiet", str(clone))
    git(clone, "config", "user.email", "work@example.org")
    monkeypatch.chdir(clone)
    for address in ("work@example.org", "anna@example.org"):
        write(submission, {f"{SYSTEM}/Offline/README.md": f"ask {address}\n"})
        assert "e-mail address" in push("push")["error"]


def test_the_commit_message_is_looked_at_too(push: Push) -> None:
    answer = push("push", commit_message="from /home/someuser1")
    assert answer["return"] == 1 and "commit message: path of a home folder" in answer["error"]


def test_names_that_may_be_published_are_pushed(push: Push, submission: Path) -> None:
    write(submission, {f"{SYSTEM}/Offline/README.md": "made by annabee in /root/x\n"})
    assert push("push")["return"] == 1
    assert push("push", public="annabee,/root")["return"] == 0


def test_the_gate_decides_unless_it_is_skipped(push: Push, remote: Remote) -> None:
    before = remote.tip()

    def refuse(inputs: dict[str, Any]) -> dict[str, Any]:
        assert inputs["tags"] == "check,mlperf,submission" and inputs["allow_synthetic"] is True
        return {"return": 3, "error": "R12 too short\nhint: run it again"}

    answer = push("push", "allow_synthetic", access=refuse)
    assert answer["return"] == 3 and "R12 too short" in answer["error"] and remote.tip() == before
    skipped = push("push", "skip_check")
    assert skipped["return"] == 0 and [call["tags"][:3] for call in skipped["calls"]] == ["get"]


@pytest.mark.parametrize(("folder", "asked"), [("valid-offline", "v6.1"), ("valid-server-4.1", "v4.1"), ("", None)])
def test_the_gate_is_asked_for_the_round_of_the_logs(
    push: Push, submission: Path, folder: str, asked: str | None
) -> None:
    if folder:
        log = RECIPES.parent / "tests" / "logs" / "fixtures" / folder / "mlperf_log_detail.txt"
        shutil.copy(log, submission / SYSTEM / "Offline" / "performance" / "run_1")
    assert push()["calls"][0].get("version") == asked


def test_too_large_files_links_and_odd_names_are_listed(push: Push, submission: Path) -> None:
    write(submission, {f"{SYSTEM}/Offline/big.bin": "x" * 2_000_000})
    answer = push("push", largest_mb="1.5")
    assert answer["return"] == 1 and "big.bin: 2.0 MB, at most 1.5 MB" in answer["error"]
    for text in ("much", "inf", "-1"):
        (told,) = input_values(ALIAS, {}, largest_mb=text).problems()
        assert told == f"--largest_mb: found {text!r}; allowed: a number above 0 (MB)"
    (submission / SYSTEM / "link").symlink_to("/etc/hostname")
    write(submission, {f"{SYSTEM}/.git/config": "x"})
    error = push("push")["error"]
    assert "2 reason(s)" in error and "link: is a link" in error and ".git/config" in error


def test_a_folder_without_a_submission_and_one_with_several_submitters_are_refused(
    push: Push, tmp_path: Path, submission: Path, remote: Remote
) -> None:
    assert "no folder <closed|open|network>/<submitter>" in push(submission_dir=str(tmp_path))["error"]
    assert "there is no submission" in push(submission_dir=str(tmp_path / "none"))["error"]
    write(submission, {"closed/Bee/systems/x.json": "{}"})
    assert "several submitters: ACME, Bee" in push()["error"]
    assert push("push", submitter="Bee")["return"] == 0
    assert "closed/Bee/systems/x.json" in remote.files() and "open/ACME/systems/box.json" not in remote.files()


@pytest.mark.parametrize(
    "text", ["", "--upload-pack=x", "ext::sh -c x", "ftp://x/y", "no-such-folder", "a\nb", "https://[x/y"]
)
def test_what_is_no_address_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(address.AddressError):
        address.parse_address(text, tmp_path)


def test_an_author_is_never_invented(push: Push, remote: Remote, tmp_path: Path) -> None:
    (tmp_path / "home-of-anna" / ".gitconfig").write_text("[safe]\ndirectory = *\n")
    before = remote.tip()
    answer = push("push")
    assert answer["return"] == 1 and "git config --global user.name" in answer["error"] and remote.tip() == before
    dry = push()
    assert dry["return"] == 0 and "configure user.name and user.email" in dry["out"]


# --- others push too ---


def race(remote: Remote, monkeypatch: pytest.MonkeyPatch, *texts: dict[str, str]) -> None:
    """Each time that a commit is ready, another person is quicker, as long as there are texts."""
    waiting = list(texts)
    commit = gitwork.Repository.commit

    def slow(self: Any, *words: Any) -> Any:
        made = commit(self, *words)
        if waiting:
            remote.add(waiting.pop(0))
        return made

    monkeypatch.setattr(gitwork.Repository, "commit", slow)


def test_commits_of_others_meanwhile_are_built_upon(
    push: Push, remote: Remote, submission: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = {"open/Other/new.txt": "x\n", "open/ACME/results/old/resnet50/Offline/measurements.json": "newer\n"}
    race(remote, monkeypatch, new)
    answer = push("push")
    assert answer["return"] == 0 and answer["is_pushed"], answer
    assert remote.files() == {**THEIRS, **new, **ours(submission)}


def test_a_branch_that_moves_again_is_an_error_with_the_command(
    push: Push, remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    race(remote, monkeypatch, {"a": "1"}, {"b": "1"})
    answer = push("push")
    assert answer["return"] == 1 and "moved twice" in answer["error"] and "hint: try again: cm run" in answer["error"]
    assert push("push")["is_pushed"]


def test_the_same_files_changed_by_others_meanwhile_are_a_conflict(
    push: Push, remote: Remote, submission: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"{SYSTEM}/Offline/measurements.json"
    race(remote, monkeypatch, {path: "theirs\n"})
    answer = push("push")
    assert answer["return"] == 1 and path in answer["error"] and "while you were pushing" in answer["error"]
    assert remote.files()[path] == "theirs\n"
    push()
    assert push("push")["is_pushed"] and remote.files()[path] == "{}\n"


def test_the_same_files_changed_since_the_user_looked_are_a_conflict(push: Push, remote: Remote) -> None:
    push()
    path = f"{SYSTEM}/Offline/measurements.json"
    remote.add({path: "theirs\n"})
    answer = push("push")
    assert answer["return"] == 1 and path in answer["error"] and remote.files()[path] == "theirs\n"
    assert "others changed 1 of these files" in push()["out"]
    assert push("push")["is_pushed"]


def test_files_of_others_are_not_downloaded_where_the_server_allows_that(
    push: Push, remote: Remote, submission: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant"):
        git(remote.path, "config", name, "true")
    url = f"file://{str(remote.path).replace(' ', '%20')}"
    assert push("push", repo_url=url)["is_pushed"]
    (folder,) = (tmp_path / "entries").glob("*/history.git")
    theirs = git(remote.path, "rev-parse", "trunk:README.md")
    here = git(folder, "cat-file", "--batch-all-objects", "--batch-check", "--unordered")
    assert theirs not in here and git(remote.path, "rev-parse", f"trunk:{SYSTEM}/Offline/measurements.json") in here
    race(remote, monkeypatch, {"README.md": "changed\n"})
    write(submission, {f"{SYSTEM}/Offline/measurements.json": "[]\n"})
    assert push("push", repo_url=url)["is_pushed"]
    assert remote.files() == {**THEIRS, "README.md": "changed\n", **ours(submission)}


# --- the other side says no, or nothing ---


def test_a_declined_push_shows_the_words_of_the_other_side(push: Push, remote: Remote) -> None:
    remote.hook("pre-receive", "echo 'sign the agreement first' >&2; exit 1")
    before = remote.tip()
    answer = push("push")
    assert answer["return"] == 1 and "sign the agreement first" in answer["error"] and remote.tip() == before
    assert "hint:" in answer["error"]
    (remote.path / "hooks" / "pre-receive").unlink()
    assert push("push")["is_pushed"]


def test_a_repository_that_vanishes_in_the_middle_is_told_and_the_push_can_go_on(push: Push, remote: Remote) -> None:
    remote.hook("pre-receive", "kill -9 $PPID; sleep 1")
    answer = push("push")
    assert answer["return"] == 1 and "unknown whether the commit arrived" in answer["error"]
    assert "cm run script" in answer["error"] and answer["error"].rstrip().endswith("--push")
    (remote.path / "hooks" / "pre-receive").unlink()
    again = push("push")
    assert again.get("is_pushed"), again


def test_a_push_that_arrived_before_the_connection_broke_is_recognised(push: Push, remote: Remote) -> None:
    remote.hook("post-update", "kill -9 $PPID")
    push("push")
    (remote.path / "hooks" / "post-update").unlink()
    again = push("push")
    assert again["return"] == 0 and again["commit"] == remote.tip()
    assert git(remote.path, "rev-list", "--count", "trunk") == "2"


def test_a_repository_that_is_not_there_is_an_error(push: Push, remote: Remote, tmp_path: Path) -> None:
    assert "cannot read the repository" in push(repo_url="file:///no/such/repo.git")["error"]
    push()
    remote.path.rename(tmp_path / "moved")
    assert "no folder" in push("push")["error"]


class Guarded(BaseHTTPRequestHandler):
    """A server that wants a login and takes none."""

    seen: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.seen.append(self.headers.get("Authorization", ""))
        self.send_response(401)
        self.send_header("WWW-Authenticate", 'Basic realm="git"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *words: Any) -> None:
        """Says nothing."""


@pytest.fixture
def guarded() -> Iterator[str]:
    """The address of a running one."""
    Guarded.seen.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Guarded)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/x.git"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_login_that_is_missing_is_an_error_without_a_question(push: Push, guarded: str) -> None:
    answer = push("push", repo_url=guarded)
    assert answer["return"] == 1 and "cannot read the repository" in answer["error"] and "hint:" in answer["error"]


def test_a_login_reaches_the_server_and_nobody_else(push: Push, guarded: str) -> None:
    answer = push("push", repo_url=guarded.replace("://", f"://anna:{SECRET}@"))
    assert answer["return"] == 1 and SECRET not in answer["error"] + answer["out"]
    assert "Basic " + base64.b64encode(f"anna:{SECRET}".encode()).decode() in Guarded.seen


def test_the_login_of_the_engine_is_used_too() -> None:
    where = address.parse_address("https://git.org/x.git", Path("/"))
    request = load_module(ALIAS, "request")
    settings = request.access_environment({"CM_GIT_AUTH": "yes", "CM_GH_TOKEN": SECRET}, where)
    assert SECRET not in "".join(value for key, value in settings.items() if key != "CM_GH_TOKEN")
    assert settings["CM_GH_TOKEN"] == SECRET and settings["GIT_CONFIG_COUNT"] == "1"
    assert request.access_environment({"CM_GH_TOKEN": SECRET}, where) == {}


# --- logins ---


@pytest.mark.parametrize(
    ("text", "url", "user", "password"),
    [
        ("https://anna:q9w8@git.org/x.git", "https://git.org/x.git", "anna", "q9w8"),
        ("https://a%40b:q%2F8@git.org:8443/x", "https://git.org:8443/x", "a@b", "q/8"),
        (f"https://ghp{'_'}{SECRET}@git.org/x", "https://git.org/x", f"ghp{'_'}{SECRET}", "x-oauth-basic"),
        ("https://anna@git.org/x", "https://anna@git.org/x", "", ""),
        ("ssh://git@git.org/x", "ssh://git@git.org/x", "", ""),
        ("git@github.com:anna/x.git", "git@github.com:anna/x.git", "", ""),
    ],
)
def test_a_login_is_taken_out_of_the_address(text: str, url: str, user: str, password: str, tmp_path: Path) -> None:
    found = address.parse_address(text, tmp_path)
    assert (found.url, found.user, found.password) == (url, user, password)
    assert not password or password not in repr(found)


def test_git_gets_the_login_from_its_environment_only(tmp_path: Path) -> None:
    found = address.parse_address("https://anna:q9$w8'\"@git.org/x.git", tmp_path)
    environ = {**os.environ, "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "a.b", "GIT_CONFIG_VALUE_0": "c"}
    login = address.login_environment(found, environ)
    assert all("q9" not in value for key, value in login.items() if key != address.PASSWORD_KEY)
    filled = subprocess.run(
        ["git", "credential", "fill"], input="protocol=https\nhost=git.org\n\n", env={**environ, **login},
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert "username=anna\n" in filled and "password=q9$w8'\"\n" in filled


def cm_push(home: TemporaryHome, remote: str, submission: Path, *words: str) -> Any:
    return home.run_cm(TAGS, f"--submission_dir={submission}", f"--repo_url={remote}", "--skip_check", *words)


def test_cm_pushes_and_answers_with_the_commit(home: TemporaryHome, remote: Remote, submission: Path) -> None:
    done = cm_push(home, str(remote.path), submission, "--push")
    assert done.code == 0, done.stderr
    assert done.answer["new_env"]["CM_MLPERF_RESULTS_PUSHED_COMMIT"] == remote.tip()
    assert done.answer["new_state"]["mlperf_push"]["is_pushed"] is True
    again = cm_push(home, str(remote.path), submission)
    assert again.code == 0 and "Nothing to do" in again.stderr


def test_a_login_in_the_address_is_in_no_file_and_no_output(
    home: TemporaryHome, submission: Path, guarded: str
) -> None:
    url = guarded.replace("://", f"://anna:{SECRET}@")
    done = cm_push(home, url, submission, "--push")
    assert done.code != 0 and SECRET not in done.stdout + done.stderr
    files = [path for path in home.folder.rglob("*") if path.is_file()]
    assert len(files) > 5 and any(Guarded.seen)
    assert [path for path in files if SECRET.encode() in path.read_bytes()] == []


def test_killed_anywhere_the_next_push_finishes(home: TemporaryHome, remote: Remote, submission: Path) -> None:
    cm_push(home, str(remote.path), submission)
    for delay_s in (0.3, 0.6, 0.9, 1.2):
        child = home.start_run(
            TAGS, f"--submission_dir={submission}", f"--repo_url={remote.path}", "--skip_check", "--push"
        )
        time.sleep(delay_s)
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    done = cm_push(home, str(remote.path), submission, "--push")
    assert done.code == 0, done.stderr
    assert remote.files() == {**THEIRS, **ours(submission)}
    assert git(remote.path, "rev-list", "--count", "trunk") == "2"
    assert json.loads(done.stdout)["new_env"]["CM_MLPERF_RESULTS_PUSHED_COMMIT"] == remote.tip()


def test_locks_that_a_killed_git_left_do_not_stop_the_next_push(push: Push, tmp_path: Path, remote: Remote) -> None:
    push()
    (folder,) = (tmp_path / "entries").glob("*/history.git")
    (folder / "crowdperf-index.lock").touch()
    (folder / "refs" / "crowdperf" / "seen" / "trunk.lock").touch()
    (folder / "refs" / "crowdperf" / "tip" / "trunk.lock").touch()
    assert push("push")["is_pushed"]


def test_two_pushes_at_once_do_not_meet(push: Push, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    push()
    monkeypatch.setattr(gitwork, "PATIENCE_S", 0.2)
    (folder,) = (tmp_path / "entries").glob("*/history.git")
    with gitwork.locked(folder):
        answer = push("push")
    assert answer["return"] == 1 and "another push works" in answer["error"]


def test_the_plan_names_the_recipes_that_the_push_calls(remote: Remote, submission: Path) -> None:
    env = {"CM_MLPERF_INFERENCE_SUBMISSION_DIR": str(submission), "CM_MLPERF_RESULTS_GIT_REPO_URL": str(remote.path)}
    answer = recipe.plan({"env": env, "input": {"version": "v6.1"}})
    assert answer["runs"][0] == {
        "tags": "check,mlperf,submission",
        "submission_dir": str(submission),
        "version": "v6.1",
    }
    assert answer["runs"][1]["tags"].startswith("get,git,history,_repo./") and "%2C" in answer["runs"][1]["tags"]


def test_a_clone_on_a_machine_without_git_is_an_error_with_a_hint(tmp_path: Path) -> None:
    with pytest.raises(gitwork.GitError, match="git is not installed") as raised:
        gitwork.folder_of_clone(tmp_path, {"PATH": str(tmp_path)})
    assert raised.value.hint == "sudo apt-get install git"
