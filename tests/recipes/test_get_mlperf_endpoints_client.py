"""get-mlperf-endpoints-client: finds the client in an environment, a checkout or on PATH; downloads nothing."""

import json
import subprocess
from pathlib import Path

import pytest
from recipe_loader import exported, load_module, load_recipe

recipe = load_recipe("get-mlperf-endpoints-client")
finder = load_module("get-mlperf-endpoints-client", "finder")
ALIAS = "get-mlperf-endpoints-client"


def environment(folder: Path, origin: object = None) -> Path:
    """A virtual environment with the client, which fails the test when it is started."""
    program = folder / "bin" / "inference-endpoint"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\nexit 99\n")
    program.chmod(0o755)
    metadata = folder / "lib/python3.12/site-packages/inference_endpoint-0.1.0.dist-info"
    metadata.mkdir(parents=True)
    if origin is not None:
        (metadata / "direct_url.json").write_text(json.dumps(origin))
    return program


def test_an_environment_names_version_and_commit(tmp_path: Path) -> None:
    origin = {"url": "https://example.com/endpoints", "vcs_info": {"vcs": "git", "commit_id": "ea332753"}}
    program = environment(tmp_path, origin)
    env = {"CM_MLPERF_ENDPOINTS_CLIENT": str(tmp_path)}
    assert recipe.preprocess({"env": env}) == {"return": 0}
    assert exported(ALIAS, env) == {
        "CM_MLPERF_ENDPOINTS_CLIENT_COMMIT": "ea332753",
        "CM_MLPERF_ENDPOINTS_CLIENT_VERSION": "0.1.0",
        "CM_MLPERF_ENDPOINTS_CLIENT_WITH_PATH": str(program),
    }


def test_an_installed_checkout_has_its_own_commit(tmp_path: Path) -> None:
    def git(*words: str) -> str:
        command = ["git", "-c", "user.name=t", "-c", "user.email=t@example.com", "-C", str(tmp_path / "src"), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    (tmp_path / "src").mkdir()
    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "x")
    environment(tmp_path / "src" / ".venv", {"url": f"file://{tmp_path / 'src'}", "dir_info": {}})
    assert finder.find(tmp_path / "src").commit == git("rev-parse", "HEAD")


@pytest.mark.parametrize("origin", [None, [], {"url": "file:///absent"}, {"url": 7}, {"vcs_info": {}}])
def test_an_unknown_commit_is_unknown(tmp_path: Path, origin: object) -> None:
    found = finder.find(environment(tmp_path, origin))
    assert (found.version, found.commit) == ("0.1.0", "")


def test_on_path_and_a_program_without_an_environment(tmp_path: Path) -> None:
    program = environment(tmp_path)
    assert finder.find(None, search_path=str(program.parent)).program == program
    alone = tmp_path / "own-name"
    alone.write_text("#!/bin/sh\n")
    alone.chmod(0o755)
    assert finder.find(alone) == finder.Client(alone, "", "")


def test_without_one_the_code_is_16_and_the_commands_install_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for given, words in (("", "is not on PATH"), (str(tmp_path), "neither in bin/ nor in .venv/bin/")):
        answer = recipe.plan({"env": {"CM_MLPERF_ENDPOINTS_CLIENT": given}})
        assert answer["return"] == 16 and words in answer["error"]
        assert "python3.12 -m venv" in answer["error"] and "--tags=get,mlperf,endpoints,client" in answer["error"]


def test_a_program_that_cannot_be_started_is_said(tmp_path: Path) -> None:
    environment(tmp_path).chmod(0o644)
    with pytest.raises(finder.ClientNotFound, match="chmod"):
        finder.find(tmp_path)
