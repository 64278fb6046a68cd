"""tools/prepare.sh with real virtual environments: the usual way, without ensurepip, without pip, killed half-way."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
Shell = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A small checkout: the tools, and requirements that ask for nothing."""
    folder = tmp_path / "check out"  # a blank in the path must not matter
    shutil.copytree(ROOT / "tools", folder / "tools")
    (folder / "requirements.txt").write_text("# nothing\n", encoding="utf-8")
    return folder


@pytest.fixture
def shell(checkout: Path, tmp_path: Path) -> Shell:
    """Runs bash lines after sourcing prepare.sh, with pip kept offline except for the pip that Python bundles."""
    import ensurepip

    wheels = Path(ensurepip.__file__).parent / "_bundled"

    def run(lines: str, **env: str) -> subprocess.CompletedProcess[str]:
        script = f'set -euo pipefail\n. "{checkout}/tools/prepare.sh"\n{lines}'
        own = {
            **{key: value for key, value in os.environ.items() if not key.startswith(("PIP_", "CROWDPERF", "CM_"))},
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(wheels),
            "HOME": str(tmp_path / "home"),
            "CROWDPERF_PYTHON": sys.executable,
            **env,
        }
        return subprocess.run(["bash", "-c", script], env=own, capture_output=True, text=True, timeout=300)

    return run


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


def test_an_environment_is_made_once_and_again_only_when_the_requirements_change(shell: Shell, checkout: Path) -> None:
    first = shell("prepare_environment .venv requirements.txt")
    assert first.returncode == 0, first.stderr
    assert "preparing .venv" in first.stderr
    assert (checkout / ".venv" / "bin" / "pip").exists()
    assert shell("prepare_environment .venv requirements.txt").stderr == ""
    (checkout / "requirements.txt").write_text("# still nothing\n", encoding="utf-8")
    assert "preparing .venv" in shell("prepare_environment .venv requirements.txt").stderr


def test_a_half_made_environment_is_made_anew(shell: Shell, checkout: Path) -> None:
    (checkout / ".venv" / "bin").mkdir(parents=True)
    (checkout / ".venv" / "bin" / "python").write_text("half a file", encoding="utf-8")
    done = shell('prepare_environment .venv requirements.txt; "$CHECKOUT/.venv/bin/python" -c "print(6 * 7)"')
    assert done.stdout == "42\n", done.stderr


def test_without_ensurepip_the_pip_of_the_host_fills_the_environment(
    shell: Shell, checkout: Path, tmp_path: Path
) -> None:
    python = crippled_python(tmp_path / "debian", '*" -m venv "*--without-pip*) ;; *" -m venv "*')
    done = shell("prepare_environment .venv requirements.txt", CROWDPERF_PYTHON=python)
    assert done.returncode == 0, done.stderr
    assert "trying without ensurepip" in done.stderr
    assert (checkout / ".venv" / "bin" / "pip").exists()


def test_without_ensurepip_and_pip_the_one_command_that_helps_is_told(
    shell: Shell, checkout: Path, tmp_path: Path
) -> None:
    python = crippled_python(tmp_path / "bare", '*" -m pip "*|*" -m venv "*')
    failed = shell("prepare_environment .venv requirements.txt", CROWDPERF_PYTHON=python)
    assert failed.returncode != 0
    assert "hint: sudo apt-get install -y python3-venv" in failed.stderr
    assert not (checkout / ".venv").exists()


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
    subprocess.run([sys.executable, str(ROOT / "tools" / "register_repo.py"), str(home), str(checkout)], check=True)
    known: list[str] = json.loads((home / "repos.json").read_text(encoding="utf-8"))
    return known


def test_registering_keeps_other_repositories_and_is_done_once(tmp_path: Path) -> None:
    (tmp_path / "repos.json").write_text('["/other"]', encoding="utf-8")
    assert register(tmp_path, ROOT) == [str(ROOT), "/other"]
    assert register(tmp_path, ROOT) == [str(ROOT), "/other"]


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


def test_eight_processes_share_a_home_that_was_just_registered(tmp_path: Path) -> None:
    """cmind fails when several of its processes start in an empty home; in one that run.sh has prepared all get it."""
    register(tmp_path, ROOT)
    env = {**os.environ, "CM_REPOS": str(tmp_path)}
    cm = str(Path(sys.executable).parent / "cm")
    command = [cm, "run", "script", "--tags=get,python3", "--quiet", "--out=json"]
    children = [
        subprocess.Popen(command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(8)
    ]
    ends = [(*child.communicate(timeout=120), child.returncode) for child in children]
    assert [code for _, _, code in ends] == [0] * 8, ends
    assert len({json.loads(out)["cache_entry"]["uid"] for out, _, _ in ends}) == 1
