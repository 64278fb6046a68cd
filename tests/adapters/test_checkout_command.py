"""./cm as users call it: by any path, prepared or not, and how what it prints can be typed again."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
Called = subprocess.CompletedProcess[str]
Caller = Callable[..., Called]
HOOKS = """def preprocess(i):
    print("then: cm run script --tags=detect,os")
    return {"return": 1, "error": "it fails\\nhint: cm show cache"}
"""
STREAMS = """import os

def preprocess(i):
    open(os.environ["STREAMS"], "w").write(" ".join(os.readlink(f"/proc/self/fd/{one}") for one in range(3)))
    return {"return": 0}
"""
RUN_SH = 'echo "hint: cm run script --tags=detect,os; not scm run script, nor ./cm run script"; exit 3\n'


def add_recipe(folder: Path, uid: str, files: dict[str, str]) -> None:
    tags = folder.name.split("-")
    meta = {"alias": folder.name, "uid": uid, "automation_alias": "script", "tags": tags}
    folder.mkdir()
    for name, text in {"_cm.json": json.dumps(meta), **files}.items():
        (folder / name).write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout with two recipes, whose environment is the Python of the tests."""
    folder = tmp_path_factory.mktemp("clone") / "crowd perf"
    unwanted = shutil.ignore_patterns("__pycache__")
    for name in ("automation", "tools", "script/detect-os", "src"):
        shutil.copytree(ROOT / name, folder / name, ignore=unwanted)
    for name in ("cm", "run.sh", "cmr.yaml", "pyproject.toml", "requirements.txt"):
        shutil.copy2(ROOT / name, folder / name)
    add_recipe(folder / "script" / "fail-now", "00112233445566ff", {"customize.py": HOOKS})
    add_recipe(
        folder / "script" / "show-streams",
        "00112233445566fd",
        {"customize.py": STREAMS, "run.sh": "echo a; echo b >&2"},
    )
    add_recipe(folder / "script" / "fail-later", "00112233445566fe", {"run.sh": RUN_SH})
    bin_folder = folder / ".venv" / "bin"
    bin_folder.mkdir(parents=True)
    (bin_folder / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n', encoding="utf-8")
    (bin_folder / "python").chmod(0o755)
    shutil.copy2(Path(sys.executable).parent / "cm", bin_folder / "cm")
    wanted = subprocess.run(
        ["bash", "-c", "cat requirements.txt requirements.txt | cksum"], cwd=folder, capture_output=True, text=True
    )
    (folder / ".venv" / "crowdperf-ready").write_text(wanted.stdout + "Python\n", encoding="utf-8")
    return folder


@pytest.fixture
def called(checkout: Path) -> Caller:
    """Runs a line of bash in a folder, the checkout by default."""

    def run(line: str, folder: Path = checkout, **more: str) -> Called:
        env = {key: value for key, value in os.environ.items() if not key.startswith(("CM_", "CROWDPERF", "PYTHON"))}
        env.update({"HOME": str(checkout.parent), "PIP_NO_INDEX": "1", **more})
        return subprocess.run(["bash", "-c", line], cwd=folder, env=env, capture_output=True, text=True, timeout=120)

    return run


def hints_of(done: Called) -> list[str]:
    """The commands behind ``hint:``, ``again:``, ``resume:`` and ``then:``."""
    lines = [line.strip() for line in (done.stdout + done.stderr).splitlines()]
    return [line.partition(": ")[2] for line in lines if line.startswith(("hint:", "again:", "resume:", "then:"))]


def test_all_printed_commands_begin_as_the_user_called_it(called: Caller) -> None:
    failed = called("./cm run script --tags=fail,now -v")
    assert failed.returncode == 1
    hints = hints_of(failed)
    assert {"./cm run script --tags=detect,os", "./cm show cache", "./cm run script --tags=fail,now -v"} <= set(hints)
    assert all(hint.startswith("./cm ") for hint in hints), hints
    again = called(hints[0])
    assert again.returncode == 0, again.stderr


def test_what_a_script_prints_is_changed_at_the_beginning_of_commands_only(called: Caller) -> None:
    failed = called("./cm run script --tags=fail,later")
    assert "hint: ./cm run script --tags=detect,os; not scm run script, nor ./cm run script\n" in failed.stdout


def test_from_another_folder_the_printed_line_holds_the_quoted_path(
    called: Caller, checkout: Path, tmp_path: Path
) -> None:
    failed = called(f"{shlex.quote(str(checkout))}/cm run script --tags=fail,now -v", tmp_path)
    again = next(hint for hint in hints_of(failed) if "fail,now" in hint)
    assert shlex.split(again) == [str(checkout / "cm"), "run", "script", "--tags=fail,now", "-v"]
    assert called(again, Path("/")).returncode == 1
    assert "it fails" in called(again, Path("/")).stderr
    inside = called("../cm run script --tags=fail,now -v", checkout / "tools")
    assert shlex.split(hints_of(inside)[0])[0] == str(checkout / "cm")


@pytest.mark.parametrize("closed", range(3))
@pytest.mark.parametrize("command", ["cm", "run.sh"])
def test_a_closed_stream_is_not_the_script_that_bash_reads(
    called: Caller, checkout: Path, tmp_path: Path, command: str, closed: int
) -> None:
    file, run_sh = tmp_path / "streams", checkout / "run.sh"
    before = run_sh.read_text(encoding="utf-8")
    run_sh.write_text(before.replace("run,mlperf,inference", "show,streams"), encoding="utf-8")
    words = "run script --tags=show,streams" if command == "cm" else ""
    ended = called(f"bash ./{command} {words} {closed}>&-", STREAMS=str(file))
    run_sh.write_text(before, encoding="utf-8")
    assert ended.returncode == 0, ended.stderr
    assert file.read_text(encoding="utf-8").split()[closed] == "/dev/null"


def test_ctrl_c_while_python_imports_prints_no_traceback(called: Caller, tmp_path: Path) -> None:
    assert called("./cm show cache").returncode == 0  # the index is there, so that cmind is imported once
    (tmp_path / "cmind").mkdir()
    (tmp_path / "cmind" / "__init__.py").touch()
    line = "import os, signal, time; os.kill(os.getpid(), signal.SIGINT); time.sleep(60)"
    (tmp_path / "cmind" / "cli.py").write_text(line, encoding="utf-8")
    ended = called("./cm show cache; echo code $?", PYTHONPATH=str(tmp_path))
    assert (ended.stdout, "Traceback" in ended.stderr) == ("code 130\n", False)


@pytest.mark.parametrize("search", ["{}", "{}:."])
def test_a_search_path_of_cd_changes_nothing(called: Caller, checkout: Path, search: str) -> None:
    search = search.format(checkout.parent)
    line = f"{shlex.quote(checkout.name)}/cm run script --tags=no,such"
    assert called(line, checkout.parent, CDPATH=search).stderr == called(line, checkout.parent).stderr


def test_a_link_leads_to_the_checkout_and_a_name_on_path_stays_a_name(
    called: Caller, checkout: Path, tmp_path: Path
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "crowdperf").symlink_to(checkout / "cm")
    by_name = called("crowdperf run script --tags=fail,now -v", tmp_path, PATH=f"{tmp_path}/bin:{os.environ['PATH']}")
    assert "it fails" in by_name.stderr
    assert "crowdperf run script --tags=fail,now -v" in hints_of(by_name)
    by_path = called("./bin/crowdperf run script --tags=fail,now -v", tmp_path)
    assert f"{tmp_path}/bin/crowdperf run script --tags=fail,now -v" in hints_of(by_path)


def test_kept_files_and_journals_say_cm(called: Caller, checkout: Path) -> None:
    called("./cm run script --tags=fail,now -v")
    newest = max((checkout / ".cm" / "runs").iterdir())
    assert json.loads((newest / "request.json").read_text())["command"] == "cm run script --tags=fail,now -v"
    locked = called("./cm lock script --tags=detect,os")
    assert json.loads(locked.stdout)["command"] == "cm run script --tags=detect,os"
    assert "./cm run script --tags=fail,now -v" in called(f"./cm runs script {newest.name}").stdout
    row = json.loads(called(f"./cm runs script {newest.name} --out=json").stdout)["run"]
    assert row["command"] == "cm run script --tags=fail,now -v"


def test_run_sh_is_the_same_command(called: Caller) -> None:
    refused = called("./run.sh --scenario=Offline")
    assert "no recipe has all the tags 'run,mlperf,inference'" in refused.stderr, "this checkout has four recipes"
    assert "hint: ./cm find script lists all recipes" in refused.stderr


def test_without_words_it_prints_the_most_useful_commands_and_prepares_nothing(called: Caller, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "tools", tmp_path / "tools")
    shutil.copy2(ROOT / "cm", tmp_path / "cm")
    texts = {called(f"./cm {words}", tmp_path).stdout for words in ("", "-h", "--help", "help")}
    assert len(texts) == 1
    text = texts.pop()
    assert text.count("\n  ./cm ") == 10
    assert max(map(len, text.splitlines())) <= 120
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cm", "tools"]
    assert "describe\n" not in text and "find" in called("./cm help script").stdout, "with more words CM's own help"


def test_the_version_says_what_answers(called: Caller) -> None:
    assert called("./cm --version").stdout == called("./cm version script").stdout
    assert called("./cm --version").stdout.startswith("crowdperf 0.")
    assert "(4 recipes, " in called("./cm --version").stdout


def test_a_prepared_home_is_left_alone_until_its_lists_change(called: Caller, checkout: Path) -> None:
    assert called("./cm --version").returncode == 0
    stamp = checkout / ".cm" / "crowdperf-ready"
    before = stamp.stat().st_mtime_ns
    assert called("./cm --version").returncode == 0
    assert stamp.stat().st_mtime_ns == before
    (checkout / ".cm" / "index.json").write_text('{"half', encoding="utf-8")
    assert called("./cm run script --tags=detect,os").returncode == 0
    assert stamp.stat().st_mtime_ns > before


def test_a_checkout_that_was_copied_or_moved_still_answers(called: Caller, checkout: Path, tmp_path: Path) -> None:
    assert called("./cm --version").returncode == 0
    copied = shutil.copytree(checkout, tmp_path / "copied", symlinks=True)
    moved = shutil.move(shutil.copytree(copied, tmp_path / "first", symlinks=True), tmp_path / "moved")
    for folder in (copied, Path(moved)):
        done = called("./cm run script --tags=detect,os --out=json", folder)
        assert done.returncode == 0, done.stdout
        assert json.loads((folder / ".cm" / "repos.json").read_text(encoding="utf-8")) == [str(folder)]


def test_it_prints_a_completion_that_knows_the_recipes_of_the_checkout(called: Caller) -> None:
    assert called("./cm run script --tags=detect,os").returncode == 0
    lines = """eval "$(./cm completion bash)"
    COMP_LINE='./cm run script --tags=fail,' COMP_POINT=28
    _crowdperf_cm
    printf '%s\\n' "${COMPREPLY[@]}" """
    done = called(lines)
    assert sorted(done.stdout.split()) == ["fail,later", "fail,now"], done.stderr
    for shell in ("zsh", "fish"):
        assert "complete.py" in called(f"./cm completion {shell}").stdout
    refused = called("./cm completion tcsh")
    assert refused.returncode == 1
    assert "write: ./cm completion bash|zsh|fish" in refused.stderr


def test_the_python_files_of_the_users_folder_are_not_those_of_crowdperf(tmp_path: Path) -> None:
    for name in ("json", "queue", "random", "yaml"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('a file of the user ran')\n", encoding="utf-8")
    environment = {**os.environ, "HOME": str(tmp_path / "home"), "CM_REPOS": str(tmp_path / "cm")}
    environment["PYTHONPATH"] = str(ROOT / "src")
    program = [sys.executable, str(ROOT / "src" / "crowdperf" / "call" / "command.py"), "--version"]
    done = subprocess.run(program, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout[:10], done.stderr) == (0, "crowdperf ", "")
