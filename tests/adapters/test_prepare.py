"""tools/prepare.sh with real virtual environments: the usual way, without ensurepip, without pip, killed half-way."""

import importlib.util
import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers import copy_engine

from crowdperf.call import cm_home

ROOT = Path(__file__).resolve().parents[2]
Shell = Callable[..., subprocess.CompletedProcess[str]]


def new_checkout(folder: Path) -> Path:
    """A small checkout: the tools, and requirements that ask for nothing."""
    for name in ("tools", "script/install-python-venv"):
        shutil.copytree(ROOT / name, folder / name)
    (folder / "requirements.txt").write_text("# nothing\n", encoding="utf-8")
    return folder


def pip_wheels() -> Path | None:
    """The folder of the pip that Python, or Debian for it, brings as a wheel."""
    found = importlib.util.find_spec("ensurepip")
    bundled = [Path(found.origin).parent / "_bundled"] if found and found.origin else []
    folders = [*bundled, Path(sysconfig.get_config_var("WHEEL_PKG_DIR") or "/usr/share/python-wheels")]
    return next((folder for folder in folders if any(folder.glob("pip-*.whl"))), None)


def shell_in(checkout: Path) -> Shell:
    """Runs bash lines after sourcing prepare.sh, with pip kept offline except for the pip that Python bundles."""

    def run(lines: str, **env: str) -> subprocess.CompletedProcess[str]:
        script = f'set -euo pipefail\n. "{checkout}/tools/prepare.sh"\n{lines}'
        own = {
            **{key: value for key, value in os.environ.items() if not key.startswith(("PIP_", "CROWDPERF", "CM_"))},
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(pip_wheels() or checkout),
            "HOME": str(checkout / "home"),
            "CROWDPERF_PYTHON": sys.executable,
            **env,
        }
        return subprocess.run(["bash", "-c", script], env=own, capture_output=True, text=True, timeout=300)

    return run


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return new_checkout(tmp_path / "check out")  # a blank in the path must not matter


@pytest.fixture
def shell(checkout: Path) -> Shell:
    return shell_in(checkout)


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """A checkout whose environment was made where a killed start had left half of one, and what was printed then."""
    folder = new_checkout(tmp_path_factory.mktemp("prepared") / "check out")
    (folder / ".venv" / "bin").mkdir(parents=True)
    (folder / ".venv" / "bin" / "python").write_text("half a file", encoding="utf-8")
    return folder, shell_in(folder)("prepare_environment .venv requirements.txt")


@pytest.fixture
def prepared(first: tuple[Path, object], checkout: Path) -> Path:
    """A checkout with a copy of that environment, which a test may change."""
    shutil.copytree(first[0] / ".venv", checkout / ".venv", symlinks=True)
    return checkout


def crippled_python(folder: Path, refused: str) -> str:
    """A Python that is the real one, but whose ``-m MODULE`` fails when the command line contains ``refused``."""
    folder.mkdir(exist_ok=True)
    path = folder / "python3"
    path.write_text(
        "#!/usr/bin/env bash\n"
        f'case " $* " in {refused}) echo "ensurepip is not available" >&2; exit 1;; esac\n'
        f'exec "{sys.executable}" "$@"\n',
        encoding="utf-8",
    )
    path.chmod(0o755)
    return str(path)


@pytest.mark.full
def test_a_half_made_environment_is_made_again(first: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    folder, made = first
    assert made.returncode == 0, made.stderr
    assert "preparing .venv" in made.stderr
    assert (folder / ".venv" / "bin" / "pip").exists()
    done = subprocess.run([folder / ".venv" / "bin" / "python", "-c", "print(6 * 7)"], capture_output=True, text=True)
    assert done.stdout == "42\n", done.stderr


def test_an_environment_is_made_once_and_filled_again_when_the_requirements_change(
    prepared: Path, shell: Shell
) -> None:
    assert shell("prepare_environment .venv requirements.txt").stderr == ""
    (prepared / "requirements.txt").write_text("# still nothing\n", encoding="utf-8")
    assert "preparing .venv" in shell("prepare_environment .venv requirements.txt").stderr


@pytest.mark.full
def test_an_environment_is_made_again_when_another_python_is_chosen(prepared: Path, shell: Shell) -> None:
    stamp = prepared / ".venv" / "crowdperf-ready"
    requirements, version = stamp.read_text(encoding="utf-8").splitlines()
    assert version == f"Python {platform.python_version()}"
    stamp.write_text(f"{requirements}\nPython 3.10.1\n", encoding="utf-8")
    (prepared / ".venv" / "of-the-other").touch()
    assert shell("prepare_environment .venv requirements.txt", CROWDPERF_PYTHON="").stderr == "", "nothing was chosen"
    again = shell("prepare_environment .venv requirements.txt")
    assert again.stderr == f"preparing .venv with {version} in place of Python 3.10.1 ...\n"
    assert not (prepared / ".venv" / "of-the-other").exists()
    assert stamp.read_text(encoding="utf-8") == f"{requirements}\n{version}\n"


WITHOUT_GPU = 'uname() { echo "Linux x86_64"; }; command() { [ "$2" != nvidia-smi ] && builtin command "$@"; }\n'
"""What prepare_torch asks the machine, answered."""


def test_where_no_cpu_build_of_torch_is_reached_an_environment_is_refused_or_made_without_it_on_request(
    prepared: Path, shell: Shell
) -> None:
    (prepared / "harness.txt").write_text("torch==0.0.1\n", encoding="utf-8")
    prepare = WITHOUT_GPU + "prepare_environment .venv harness.txt"
    allowed = shell(prepare, CROWDPERF_TORCH="optional")
    assert allowed.returncode == 0, allowed.stderr
    reason = f"no CPU build of torch==0.0.1 for Python {platform.python_version()} can be reached"
    assert f"{reason}: the environment is made without torch" in allowed.stderr
    assert (prepared / ".venv" / "without-torch").read_text(encoding="utf-8") == f"{reason}\n"
    assert shell(prepare, CROWDPERF_TORCH="optional").stderr == ""
    refused = shell(prepare)
    assert refused.returncode == 1, "a caller who requires torch does not get this environment"
    assert "hint: take another Python" in refused.stderr


def test_a_python_is_chosen_by_its_version_or_its_path(shell: Shell, tmp_path: Path) -> None:
    version = "{}.{}".format(*sys.version_info)
    (tmp_path / f"python{version}").symlink_to(sys.executable)
    found = shell(f"python_of {version}; python_of '{sys.executable}'", PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert found.stdout == f"{tmp_path}/python{version}\n{sys.executable}\n"
    assert shell("python_of 2.7").returncode == 1
    assert shell("python_of /nowhere/python3").returncode == 1


def test_without_ensurepip_and_pip_the_one_command_that_helps_is_told(
    shell: Shell, checkout: Path, tmp_path: Path
) -> None:
    python = crippled_python(tmp_path / "bare", '*" -m pip "*|*" -m venv "*')
    failed = shell("prepare_environment .venv requirements.txt", CROWDPERF_PYTHON=python)
    assert failed.returncode != 0
    assert "hint: sudo apt-get install -y python3-venv" in failed.stderr
    assert not (checkout / ".venv").exists()


def test_where_children_end_unseen_an_environment_without_pip_is_no_success(
    shell: Shell, checkout: Path, tmp_path: Path
) -> None:
    python = crippled_python(tmp_path / "bare", '*" -m pip "*|*" -m venv "*')
    ignoring = (
        "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execvp(sys.argv[1], sys.argv[1:])"
    )
    program = f"{checkout}/script/install-python-venv/environment.py"
    line = [sys.executable, "-c", ignoring, sys.executable, "-I", program, python, f"{checkout}/.venv"]
    failed = shell(shlex.join(line))
    assert failed.returncode == 1 and "no virtual environment with pip could be made" in failed.stderr


def test_a_checkout_that_cannot_be_written_is_named_with_a_way_out(shell: Shell, checkout: Path) -> None:
    (checkout / ".venv.lock").mkdir()  # as a checkout of somebody else refuses the file, root too
    failed = shell("prepare_environment .venv requirements.txt")
    assert failed.returncode == 1
    assert f" cannot write into {checkout}, where ./cm keeps its environment" in failed.stderr
    hint = failed.stderr.splitlines()[1].strip()
    assert hint.startswith("hint: make a copy of your own: mkdir crowdperf && ") and failed.stderr.count("\n") == 2
    for name in (".venv/bin", ".cm", "cache", ".git"):
        (checkout / name).mkdir(parents=True)
    elsewhere = checkout.parent / "elsewhere"
    elsewhere.mkdir()
    subprocess.run(["bash", "-c", hint.partition("own: ")[2]], cwd=elsewhere, check=True)
    assert sorted(path.name for path in (elsewhere / "crowdperf").iterdir()) == [
        ".git", "requirements.txt", "script", "tools"
    ]  # fmt: skip
    owned = shell("prepare_environment .venv requirements.txt").stderr
    assert "hint: make a clone of your own: git clone " in owned, "git clones a repository of the same user"


def test_packages_that_cannot_be_installed_are_no_finished_environment(prepared: Path, shell: Shell) -> None:
    (prepared / "requirements.txt").write_text("no-such-package==1.0\n", encoding="utf-8")
    failed = shell("prepare_environment .venv requirements.txt")
    assert failed.returncode == 1
    assert f"pip could not install what {prepared}/requirements.txt asks for" in failed.stderr
    assert "hint: without a network, or behind a proxy: docs/howto/get-crowdperf.md" in failed.stderr
    assert not (prepared / ".venv" / "crowdperf-ready").exists()


def test_where_the_disk_is_full_the_hint_says_so(shell: Shell, checkout: Path) -> None:
    answer = "df() { printf 'Filesystem 1024-blocks Used Available Capacity Mounted on\\n/dev/a 9 9 %s 9%% /\\n' "
    told = shell(f"{answer} 2930; }}; say_hint 'something else'").stderr
    assert told.startswith(f"  hint: only 3 MB are free for {checkout} (df -h")
    for free in ("292969; }", "; false; }"):  # 300 MB, and a df that knows nothing
        assert shell(f"{answer} {free}; say_hint 'something else'").stderr == "  hint: something else\n"


def test_where_the_temporary_folder_is_full_the_hint_says_so(shell: Shell, checkout: Path) -> None:
    lines = """free() { if [ "$1" = "$CHECKOUT" ]; then echo 292969; else echo 0; fi; }
df() { printf 'Filesystem\\n/dev/a 9 9 %s 9%% /\\n' "$(free "$2")"; }"""
    told = shell(f"{lines}; say_hint 'something else'", TMPDIR="/some where").stderr
    assert told.startswith("  hint: only 0 MB are free for temporary files in /some where, set TMPDIR to ")
    assert "temporary files in /tmp," in shell(f"unset TMPDIR; {lines}; say_hint 'something else'").stderr


def test_a_python_that_is_too_old_is_passed_over(shell: Shell, tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.mkdir()
    (old / "python3").write_text("#!/usr/bin/env bash\nexit 1\n", encoding="utf-8")
    (old / "python3").chmod(0o755)
    link = old / "python3.11"
    link.symlink_to(sys.executable)
    found = shell("find_python", CROWDPERF_PYTHON="python3", PATH=f"{old}:/usr/bin:/bin")
    assert found.stdout.strip() != str(old / "python3")
    assert found.returncode == 0, found.stderr


def register(home: Path, checkout: Path) -> list[str]:
    cm_home.register(home, checkout)
    known: list[str] = json.loads((home / "repos.json").read_text(encoding="utf-8"))
    return known


def test_registering_keeps_other_repositories_and_is_done_once(tmp_path: Path) -> None:
    (tmp_path / "repos.json").write_text('["/other"]', encoding="utf-8")
    assert register(tmp_path, ROOT) == [str(ROOT), "/other"]
    assert register(tmp_path, ROOT) == [str(ROOT), "/other"]
    (tmp_path / "repos.json").write_text(json.dumps(["/other", str(ROOT)]), encoding="utf-8")
    assert register(tmp_path, ROOT) == [str(ROOT), "/other"], "its engine is used"


@pytest.mark.parametrize("left", [None, ""])
def test_the_local_repository_is_there_before_cm_starts(tmp_path: Path, left: str | None) -> None:
    local = tmp_path / "repos" / "local"
    if left == "":
        local.mkdir(parents=True)
        (local / "cmr.yaml").write_text(left, encoding="utf-8")
    register(tmp_path, ROOT)
    assert 'uid: "9a3280b14a4285c9"' in (local / "cmr.yaml").read_text(encoding="utf-8")
    assert sorted(path.name for path in (tmp_path / "repos").iterdir()) == ["local"]


@pytest.mark.parametrize("broken", ["", "[", '{"a": 1}'])
def test_a_broken_list_of_repositories_or_index_is_mended(tmp_path: Path, broken: str) -> None:
    (tmp_path / "repos.json").write_text(broken, encoding="utf-8")
    (tmp_path / "index.json").write_text('{"half', encoding="utf-8")
    assert register(tmp_path, ROOT) == [str(ROOT)]
    assert not (tmp_path / "index.json").exists()


@pytest.mark.parametrize("broken", ["", "[]", "null", '{"half'])
def test_an_index_that_a_killed_start_left_is_removed_from_a_registered_home(tmp_path: Path, broken: str) -> None:
    register(tmp_path, ROOT)
    (tmp_path / "index.json").write_text(broken, encoding="utf-8")
    register(tmp_path, ROOT)
    assert not (tmp_path / "index.json").exists()


def test_a_home_that_cannot_be_written_is_an_error_of_two_lines(tmp_path: Path) -> None:
    (tmp_path / "repos").write_text("no folder", encoding="utf-8")
    words = [sys.executable, str(ROOT / "src/crowdperf/call/cm_home.py"), str(tmp_path), str(ROOT)]
    failed = subprocess.run(words, capture_output=True, text=True, check=False)
    assert failed.returncode == 1
    assert failed.stderr.startswith(
        f"cannot set up the CM home {tmp_path}: File exists: {tmp_path / 'repos'}\n  hint: "
    )
    assert len(failed.stderr.splitlines()) == 2


def test_the_index_is_the_one_that_cm_makes_without_what_it_says_of_it(tmp_path: Path) -> None:
    checkout = copy_engine(tmp_path / "checkout")
    shutil.copytree(ROOT / "script/detect-os", checkout / "script/detect-os")
    for home in (tmp_path / "ours", tmp_path / "cm"):
        register(home, checkout)
    words = [sys.executable, str(ROOT / "src/crowdperf/call/cm_home.py"), str(tmp_path / "ours"), str(checkout)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
    cm = [sys.executable, "-c", "from cmind.cli import run; run()", "version", "core"]
    told = subprocess.run(cm, env={**os.environ, "CM_REPOS": str(tmp_path / "cm")}, check=True, capture_output=True)
    assert b"reindex" in told.stdout
    ours, theirs = ((tmp_path / name / "index.json").read_text(encoding="utf-8") for name in ("ours", "cm"))
    assert json.loads(ours.replace("ours", "cm")) == json.loads(theirs)
    assert "detect-os" in ours


def test_eight_processes_share_a_home_that_was_just_registered(tmp_path: Path) -> None:
    """cmind fails when several of its processes start in an empty home; in one that run.sh has prepared all get it."""
    checkout = copy_engine(tmp_path / "checkout")
    for name in ("detect-os", "get-python3"):
        shutil.copytree(ROOT / "script" / name, checkout / "script" / name)
    shutil.copytree(ROOT / "src", checkout / "src", dirs_exist_ok=True)
    home = tmp_path / "home"
    home.mkdir()
    register(home, checkout)
    env = {**os.environ, "CM_REPOS": str(home)}
    cm = str(Path(sys.executable).parent / "cm")
    command = [cm, "run", "script", "--tags=get,python3", "--quiet", "--out=json"]
    children = [
        subprocess.Popen(command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(8)
    ]
    ends = [(*child.communicate(timeout=120), child.returncode) for child in children]
    assert [code for _, _, code in ends] == [0] * 8, ends
    assert len({json.loads(out)["cache_entry"]["uid"] for out, _, _ in ends}) == 1
