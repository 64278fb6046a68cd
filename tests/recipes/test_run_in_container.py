"""run-in-container: image files and command lines that no value can break, and what happens with an engine."""

import json
import os
import re
import resource
import shlex
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest
from machine_builder import build, every_shipped, shipped, t4
from recipe_engine.running.console import as_called
from recipe_loader import exported, load_module, load_recipe

from crowdperf.machine import images, probe

bases = load_module("run-in-container", "bases")
dockerfile = load_module("run-in-container", "dockerfile")
image = load_module("run-in-container", "image")
facts = load_module("run-in-container", "facts")
launch = load_module("run-in-container", "launch")
shell_words = load_module("run-in-container", "shell_words")
recipe = load_recipe("run-in-container")
make_workspace = load_module("run-mlperf-make", "workspace")
CACHE = "/home/bench/CM/containers/docker.io-library-python-3.11-slim-bookworm"

COMMIT = "0123456789abcdef0123456789abcdef01234567"
CHECKOUT = str(recipe.CHECKOUT)
GIT = f"git -c safe.directory={CHECKOUT} -C {CHECKOUT}"
COMMANDS = {f"{GIT} rev-parse --verify HEAD": {"stdout": COMMIT + "\n"}}
HOME = {"HOME": "/home/bench", "PATH": "/usr/bin"}
PINNED = f"ubuntu:24.04@sha256:{'ab' * 32}"


def engine(name: str = "docker", program: str = "", trouble: str = "") -> dict[str, Any]:
    """A row of get-docker's state."""
    return {"name": name, "program": program or name, "is_usable": not trouble, "trouble": trouble}


def planned(folder: Path, hook_input: Any, *, engines: Any = None, machine: Any = None, **inputs: Any) -> Any:
    """What the recipe answers as a plan, its env and its state."""
    machine = machine or build(folder, commands=COMMANDS, environment=HOME)
    state = {"container_engines": [engine()] if engines is None else engines}
    call = hook_input({"CM_CONTAINER_IS_PLAN": "yes", **inputs}, state, machine=machine)
    return recipe.preprocess(call), call["env"], call["state"].get("container_plan", {})


def instructions(text: str) -> list[str]:
    """The instructions of a Dockerfile, as BuildKit's parser counts them: one for each line, no here-documents."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    for line in lines:
        assert not line.endswith("\\"), "the line would go on"
        if line.startswith(("RUN ", "COPY ")):
            assert "<<" not in line, "BuildKit would look for a here-document"
    return [line.split(" ", 1)[0] for line in lines]


def run_words(text: str) -> list[list[str]]:
    """The words of all RUN instructions; they have to be JSON, or the engine would give them to a shell."""
    return [json.loads(line[line.index("[") :]) for line in text.splitlines() if line.startswith("RUN ")]


def test_the_plan_of_a_recipe_has_a_pinned_base_and_a_layer_for_each_step(tmp_path: Path, hook_input: Any) -> None:
    inputs = {"CM_CONTAINER_RECIPE_TAGS": "get,python3", "CM_CONTAINER_COMMANDS": "id\nmake build"}
    answer, env, plan = planned(tmp_path, hook_input, CM_CONTAINER_ACTION="build", **inputs)
    assert answer == {"return": 0}
    lines = plan["file"].splitlines()
    assert f"FROM {bases.TABLE['python'].reference} AS build" in lines
    assert f'LABEL org.opencontainers.image.revision="{COMMIT}"' in lines
    assert "USER 1000:1000" in lines
    sources = lines.index('COPY [".", "/opt/crowdperf"]')
    assert all(COMMIT not in line for line in lines[:sources]), "another commit would make all layers again"
    mount = "--mount=type=cache,id=crowdperf-cm-cache-1000,target=/cm-cache,uid=1000,gid=1000"
    assert [line for line in lines if mount in line] == [
        f'RUN {mount} ["/opt/cm/bin/cm", "run", "script", "--tags=get,python3", "--quiet"]',
        f'RUN {mount} ["/bin/sh", "-c", "id"]',
        f'RUN {mount} ["/bin/sh", "-c", "make build"]',
    ]
    assert (
        lines.index("FROM build AS user")
        < lines.index("USER 1000:1000")
        < lines.index(f'RUN {mount} ["/bin/sh", "-c", "id"]')
    )
    assert [line[:5] for line in plan["commands"]] == [
        ["docker", "build", "--file=Dockerfile", "--target=build", "--tag=mlperf-inference:bench-latest"],
        ["docker", "build", "--file=Dockerfile", "--target=user", "--tag=mlperf-inference:bench"],
    ]
    assert exported("run-in-container", env) == {
        "CM_CONTAINER_BASE_IMAGE": bases.TABLE["python"].reference,
        "CM_CONTAINER_ENGINE": "docker",
        "CM_CONTAINER_IMAGE": "mlperf-inference:bench",
    }


def test_headless_commands_are_run_inside_and_are_no_layers(tmp_path: Path, hook_input: Any) -> None:
    _, _, plan = planned(
        tmp_path, hook_input, CM_CONTAINER_COMMANDS='["make build", "make run"]', CM_CONTAINER_NAME="c1"
    )
    assert "make build" not in plan["file"]
    assert plan["commands"][2][:5] == ["docker", "run", "--detach", "--tty", "--name=c1"]
    assert plan["commands"][3:] == [
        ["docker", "exec", "--workdir=/work", "c1", "/bin/sh", "-c", "make build"],
        ["docker", "exec", "--workdir=/work", "c1", "/bin/sh", "-c", "make run"],
        ["docker", "stop", "-t", "10", "c1"],
        ["docker", "rm", "--force", "c1"],
    ]


HOSTILE = (
    "$(touch /tmp/pwned)",
    "`id`",
    'a"] \nRUN ["rm", "-rf", "/"]',
    'a"]',
    "]\\",
    "x \\",
    "'; rm -rf / #",
    "<<EOF",
    'echo "<<EOF"',
    "# escape=`",
    "ONBUILD RUN id",
    "a\rRUN id",
    "a\u2028RUN id",
    "a\x00b",
    "${PATH}",
    "{{ .Secret }}",
    "{{{{x",
    "%post",
    "\ud800",
    "--mount=type=bind,source=/,target=/host",
    "ünïcode ✓",
)


@pytest.mark.parametrize("kind", ["docker", "apptainer"])
@pytest.mark.parametrize(
    "where",
    ["COMMANDS", "RECIPE_ARGS", "IMAGE_ENV", "ENV", "RUN_ARGS", "BUILD_ARGS", "RECIPE_TAGS", "PACKAGES", "TAG", "NAME"],
)
@pytest.mark.parametrize("action", ["build", "headless"])
def test_no_value_changes_the_structure_of_the_file_or_reaches_a_shell(
    tmp_path: Path, hook_input: Any, kind: str, where: str, action: str
) -> None:
    base = {"CM_CONTAINER_RECIPE_TAGS": "get,x", "CM_CONTAINER_COMMANDS": ["true"], "CM_CONTAINER_ACTION": action}
    harmless = {"IMAGE_ENV": ["A=b"], "ENV": ["A=b"], "RECIPE_TAGS": "get,x", "TAG": "t", "NAME": "nn"}.get(
        where, ["b"]
    )
    key = f"CM_CONTAINER_{where}"
    machine = build(tmp_path, commands=COMMANDS, environment=HOME)

    def made(given: Any) -> Any:
        call = {"engines": [engine(kind)], "machine": machine, **base, key: given}
        answer, _, plan = planned(tmp_path, hook_input, **call)
        return answer, plan

    _, usual = made(harmless)
    for value in HOSTILE:
        given = f"A={value}" if where in ("IMAGE_ENV", "ENV") else value
        answer, plan = made(given if where in ("RECIPE_TAGS", "TAG", "NAME") else [given])
        if answer["return"]:
            assert answer["return"] == 1
            assert "allowed:" in answer["error"] or "hint:" in answer["error"]
            continue
        assert_same_structure(kind, plan, usual)
        if where == "COMMANDS" and action == "build":
            if kind == "docker":
                words = run_words(plan["file"])[-1]
            else:
                lines = [one for one in plan["file"].splitlines() if one.startswith("    /bin/sh -c")]
                (words,) = [shlex.split(line) for line in lines if "set -eu" not in line]
            assert words == ["/bin/sh", "-c", value.strip()]


def assert_same_structure(kind: str, plan: dict[str, Any], usual: dict[str, Any]) -> None:
    """Assert that the values of a plan differ from the usual one's, and nothing else."""
    assert len(plan["file"].splitlines()) == len(usual["file"].splitlines())
    assert [len(line) for line in plan["commands"]] == [len(line) for line in usual["commands"]], "no word became two"
    if kind == "docker":
        assert instructions(plan["file"]) == instructions(usual["file"])
        assert [len(one) for one in run_words(plan["file"])] == [len(one) for one in run_words(usual["file"])]
    else:
        assert "{{" not in plan["file"]
        sections = [[line for line in one["file"].splitlines() if line.startswith("%")] for one in (plan, usual)]
        assert sections[0] == sections[1]


@pytest.mark.parametrize("value", ["plain", "$HOME", 'a"b', "it's", "a b", "$(id)", "`id`", "#x", "{{ a }}", "{{{"])
def test_words_of_a_definition_come_back_from_a_shell(value: str) -> None:
    told = subprocess.run(
        ["sh", "-c", f"printf %s {dockerfile.shell_word(value)}"], capture_output=True, text=True, check=True
    )
    assert told.stdout == value
    assert "{{" not in dockerfile.shell_word(value)


def test_values_of_the_image_are_quoted_for_an_engine_that_knows_variables(tmp_path: Path, hook_input: Any) -> None:
    inputs = {"CM_CONTAINER_COMMANDS": "true", "CM_CONTAINER_IMAGE_ENV": ['A=$HOME "x"', "B=1"]}
    _, _, plan = planned(tmp_path, hook_input, **inputs)
    assert 'ENV A="\\$HOME \\"x\\""' in plan["file"].splitlines()
    answer, _, _ = planned(tmp_path, hook_input, **{**inputs, "CM_CONTAINER_IMAGE_ENV": ["A=x\\"]})
    assert "--container_env" in answer["error"]


@pytest.mark.parametrize(
    "inputs",
    [
        {"IMAGE_ENV": "HF_TOKEN=hunter2"},
        {"ENV": "AWS_SECRET=hunter2"},
        {"COMMANDS": "export GH_TOKEN=hunter2"},
        {"COMMANDS": "curl --api-key=hunter2 x"},
        {"COMMANDS": "git clone https://me:hunter2@example.org/x"},
        {"COMMANDS": "login hf_" + "hunter2" * 5},
        {"COMMANDS": "login nv" + "api-" + "hunter2" * 7},
        {"COMMANDS": "login sk-" + "proj-" + "hunter2" * 4},
        {"COMMANDS": "login xo" + "xb-" + "hunter2" * 3},
        {"COMMANDS": "curl -H 'Authorization: Bearer hunter2'"},
        {"COMMANDS": "git clone https://" + "hunter2" * 3 + "@example.org/x"},
        {"COMMANDS": "curl 'https://x.org/f?a=1&sig=hunter2'"},
        {"COMMANDS": "huggingface-cli login --token hunter2"},
        {"COMMANDS": "ngc --api-key 'hunter2' x"},
        {"COMMANDS": "docker login -u me -p hunter2 nvcr.io"},
        {"COMMANDS": "docker login -u me -phunter2 nvcr.io"},
        {"COMMANDS": "sshpass -p hunter2 ssh x"},
        {"COMMANDS": "mysql -u me -phunter2"},
        {"COMMANDS": "curl -u me:hunter2 https://x.org"},
        {"RECIPE_ARGS": "--hf_token=hunter2"},
        {"RUN_ARGS": "-e HF_TOKEN=hunter2"},
        {"RUN_ARGS": "-eHF_TOKEN=hunter2"},
        {"RUN_ARGS": "-eTOKEN=hunter2"},
        {"COMMANDS": "TOKEN='hunter2' make"},
        {"RUN_ARGS": "--env=HF_TOKEN=hunter2"},
        {"BUILD_ARGS": "--build-arg=HF_TOKEN=hunter2"},
        {"BUILD_ARGS": "--build-arg HF_TOKEN=hunter2"},
        {"REPO_URL": "https://me:hunter2@example.org/x", "REPO_COMMIT": COMMIT},
        {"PASSED_NAMES": "HF_TOKEN=hunter2"},
    ],
)
def test_values_of_secrets_are_refused_and_not_repeated(
    tmp_path: Path, hook_input: Any, inputs: dict[str, str]
) -> None:
    given = {"CM_CONTAINER_RECIPE_TAGS": "get,x", **{f"CM_CONTAINER_{key}": value for key, value in inputs.items()}}
    answer, _, plan = planned(tmp_path, hook_input, **given)
    assert answer["return"] == 1
    assert "hunter2" not in answer["error"] + str(plan)
    assert "--secrets=" in answer["error"]


@pytest.mark.parametrize(
    "command",
    [
        "curl -H 'Authorization: Bearer $TOKEN' x",
        "docker login --password=$X",
        "git clone https://${GH_TOKEN}@x.org/y",
        "docker login -u me -p $X nvcr.io",
        "docker login -u me --password-stdin nvcr.io",
        "huggingface-cli login --token $HF_TOKEN",
        "docker build --secret id=HF_TOKEN .",
        "curl -u me:$X https://x.org",
        "mkdir -p /work/a",
        "python3 run.py --max-new-tokens 12 -p 8",
    ],
)
def test_names_of_secrets_in_commands_are_no_values(tmp_path: Path, hook_input: Any, command: str) -> None:
    given = {"CM_CONTAINER_RECIPE_TAGS": "get,x", "CM_CONTAINER_COMMANDS": command}
    assert planned(tmp_path, hook_input, **given)[0]["return"] == 0


@pytest.mark.parametrize("kind", ["docker", "podman"])
def test_a_secret_goes_by_name_and_is_a_file_of_one_step(
    tmp_path: Path, hook_input: Any, capsys: Any, kind: str
) -> None:
    machine = build(tmp_path, commands=COMMANDS, environment={**HOME, "HF_TOKEN": "hunter2"})
    inputs = {
        "CM_CONTAINER_COMMANDS": "echo $HF_TOKEN",
        "CM_CONTAINER_PASSED_NAMES": "HF_TOKEN",
        "engines": [engine(kind)],
    }
    _, _, plan = planned(tmp_path, hook_input, machine=machine, CM_CONTAINER_ACTION="build", **inputs)
    assert "--mount=type=secret,id=HF_TOKEN,target=/run/secrets/HF_TOKEN,required=true" in plan["file"]
    assert "--secret=id=HF_TOKEN,env=HF_TOKEN" in plan["commands"][1]
    _, _, headless = planned(tmp_path, hook_input, machine=machine, **inputs)
    assert "--env=HF_TOKEN" in headless["commands"][2]
    assert "hunter2" not in str(plan) + str(headless) + capsys.readouterr().out
    answer, _, _ = planned(tmp_path, hook_input, **inputs)
    assert "export HF_TOKEN=" in answer["error"]


def test_apptainer_takes_no_secret_into_an_image(tmp_path: Path, hook_input: Any) -> None:
    machine = build(tmp_path, commands=COMMANDS, environment={**HOME, "HF_TOKEN": "hunter2"})
    inputs = {"CM_CONTAINER_COMMANDS": "id", "CM_CONTAINER_PASSED_NAMES": "HF_TOKEN", "engines": [engine("apptainer")]}
    answer, _, _ = planned(tmp_path, hook_input, machine=machine, CM_CONTAINER_ACTION="build", **inputs)
    assert "_headless" in answer["error"]
    assert planned(tmp_path, hook_input, machine=machine, **inputs)[0] == {"return": 0}


@pytest.mark.parametrize("where", ["nvidia", "podman", "apptainer", "wrapped"])
@pytest.mark.parametrize(
    ("asked", "visible", "docker", "podman"),
    [
        ("auto", "", ["--gpus=all"], ["--device=nvidia.com/gpu=all"]),
        ("all", "", ["--gpus=all"], ["--device=nvidia.com/gpu=all"]),
        ("", "0,2,4", ['--gpus="device=0,2,4"'], [f"--device=nvidia.com/gpu={one}" for one in (0, 2, 4)]),
        ("1", "0,2,4", ['--gpus="device=1"'], ["--device=nvidia.com/gpu=1"]),
        ("none", "", [], []),
    ],
)
def test_gpus_are_chosen_in_the_way_of_each_engine(
    tmp_path: Path, hook_input: Any, where: str, asked: str, visible: str, docker: list[str], podman: list[str]
) -> None:
    files = {"/usr/bin/nvidia-docker": ""} if where == "wrapped" else {}
    environment = {**HOME, **({"NVIDIA_VISIBLE_DEVICES": visible} if visible else {})}
    machine = t4(tmp_path, files=files, commands=COMMANDS, environment=environment)
    kind = {"nvidia": "docker", "wrapped": "docker"}.get(where, where)
    inputs = {"CM_CONTAINER_COMMANDS": "id", "CM_CONTAINER_GPUS": asked}
    _, _, plan = planned(tmp_path, hook_input, machine=machine, engines=[engine(kind)], **inputs)
    start = plan["commands"][1 if kind == "apptainer" else 2]
    flags = [word for word in start if word.startswith(("--gpus", "--device", "--nv"))]
    seen = "void" if asked == "none" else (asked if asked not in ("", "auto") else "") or visible or "all"
    expected = {"nvidia": docker, "wrapped": [], "podman": podman, "apptainer": ["--nv"] if docker else []}[where]
    assert flags == expected
    assert start[0] == ("nvidia-docker" if where == "wrapped" and docker else kind)
    if kind != "apptainer":
        assert f"--env=NVIDIA_VISIBLE_DEVICES={seen}" in start


@pytest.mark.parametrize("kind", ["docker", "podman", "apptainer"])
def test_what_is_printed_names_the_cm_of_the_container(
    tmp_path: Path, hook_input: Any, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """A user of ./cm sees commands with ./cm; inside a container there is none where the command runs."""
    monkeypatch.setenv("CROWDPERF_CM", "./cm")
    _, _, plan = planned(tmp_path, hook_input, engines=[engine(kind)], CM_CONTAINER_RECIPE_TAGS="get,python3")
    printed = [plan["file"], *map(shlex.join, plan["commands"])]
    assert any("/opt/cm/bin/cm run script" in text for text in printed)
    assert [as_called(text) for text in printed] == printed


def test_podman_without_cdi_is_told_the_command(tmp_path: Path, hook_input: Any) -> None:
    machine = t4(tmp_path, commands=COMMANDS, environment=HOME)
    _, _, plan = planned(tmp_path, hook_input, machine=machine, engines=[engine("podman")], CM_CONTAINER_COMMANDS="id")
    assert "nvidia-ctk cdi generate" in " ".join(plan["notes"])
    assert "--userns=keep-id" in plan["commands"][2]


def workspace(folder: Path) -> str:
    """A folder with the Makefile of a workspace."""
    made = make_workspace.make_workspace(folder / "W", "NVIDIA", "closed", "cm")
    return str(made)


@pytest.mark.parametrize("kind", ["docker", "podman", "apptainer"])
@pytest.mark.parametrize(
    "inputs",
    [{}, {"WORK": "/data/W/closed/NVIDIA"}, {"SCRATCH": "/data/S", "HOME": "yes"}, {"REPO_URL": "https://x.example/r"}],
)
def test_no_mount_hides_this_repository(tmp_path: Path, hook_input: Any, kind: str, inputs: dict[str, str]) -> None:
    more = {f"CM_CONTAINER_{name}": value for name, value in inputs.items()}
    more |= {"CM_CONTAINER_REPO_COMMIT": COMMIT, "CM_TMP_CURRENT_PATH": workspace(tmp_path)}
    _, _, plan = planned(tmp_path, hook_input, engines=[engine(kind)], CM_CONTAINER_COMMANDS="make info", **more)
    sources = re.findall(r'\["(/[^"]+)"\]', plan["file"].replace('\\"', '"'))[0]
    folders = []
    start = next(line for line in plan["commands"] if "run" in line or "start" in line)
    for word in start:
        if word.startswith("--bind="):
            folders.append(word.split(":")[1])
        if word.startswith("--mount="):
            folders.append(re.findall(r"target=([^,]+)", word)[0])
    assert "/work" in folders
    hidden = [one for one in folders if f"{sources}/".startswith(f"{one}/") or "/cm/".startswith(f"{one}/")]
    assert hidden == []
    assert f'"{sources}"' in plan["file"] or f" {sources}" in plan["file"], "nothing is put there"


def test_outside_a_workspace_nothing_is_mounted_and_the_image_has_a_makefile(tmp_path: Path, hook_input: Any) -> None:
    more = {"CM_CONTAINER_COMMANDS": "make build", "CM_TMP_CURRENT_PATH": str(tmp_path)}
    _, _, plan = planned(tmp_path, hook_input, **more)
    assert not [word for word in plan["commands"][2] if "target=/work" in word]
    assert "closed/container/Makefile /work/" in plan["file"]
    assert 'ENV CROWDPERF_MAKE_CM="cm"' in plan["file"].splitlines()
    assert any("--work=FOLDER" in note for note in plan["notes"])
    assert '"make"]' in plan["file"], "the package with make is missing"


def test_the_makefile_of_a_workspace_begins_as_facts_expect() -> None:
    assert make_workspace.FIRST_LINE.startswith(facts.MAKEFILE_START)


def test_mounts_and_options(tmp_path: Path, hook_input: Any) -> None:
    inputs = {
        "CM_CONTAINER_COMMANDS": "id",
        "CM_CONTAINER_SCRATCH": "/data/scratch",
        "CM_CONTAINER_HOME": "yes",
        "CM_CONTAINER_SHM_SIZE": "32g",
        "CM_CONTAINER_RUN_ARGS": "-v '/a b:/c' --network=host",
        "CM_TMP_CURRENT_PATH": workspace(tmp_path),
    }
    _, _, plan = planned(tmp_path, hook_input, **inputs)
    start = plan["commands"][2]
    for source, target in (
        (workspace(tmp_path), "/work"),
        ("/data/scratch", "/data/scratch"),
        ("/home/bench/CM/local/cache", "/home/bench/CM/local/cache,readonly"),
        (CACHE, CACHE),
        ("/home/bench", "/mnt/home/bench"),
    ):
        assert f"--mount=type=bind,source={source},target={target}" in start
    assert f"--env=CROWDPERF_CACHE={CACHE}" in start
    at = start.index("-v")
    assert start[at : at + 4] == ["-v", "/a b:/c", "--network=host", "mlperf-inference:bench"]
    assert "--env=MLPERF_SCRATCH_PATH=/data/scratch" in start
    assert "--shm-size=32g" in start
    assert not [word for word in start if "security" in word]
    _, _, plan = planned(tmp_path, hook_input, CM_CONTAINER_SECURITY="unconfined", **inputs)
    assert {"--security-opt=apparmor=unconfined", "--security-opt=seccomp=unconfined"} <= set(plan["commands"][2])
    none = {"CM_CONTAINER_WORK": "no", "CM_CONTAINER_CACHE": "no", "CM_CONTAINER_ACTION": "build"}
    _, _, plan = planned(tmp_path, hook_input, **{"CM_CONTAINER_COMMANDS": "id", **none})
    assert "target=/cm-cache" not in plan["file"], "what the recipe keeps lies in the layer"


def test_apptainer_gets_variables_in_its_environment_and_the_user_stays_the_caller(
    tmp_path: Path, hook_input: Any, capsys: Any
) -> None:
    inputs = {
        "CM_CONTAINER_COMMANDS": "id",
        "CM_CONTAINER_ENV": "A='x, y'",
        "CM_CONTAINER_TAG": "t",
        "CM_CONTAINER_NAME": "c1",
    }
    _, _, plan = planned(tmp_path, hook_input, engines=[engine("apptainer", "singularity")], **inputs)
    assert "passwd" not in plan["file"]
    _, _, environment = plan["file"].partition("%environment\n")
    assert re.search(r'^    export PATH=.*:"\$PATH"$', environment, re.MULTILINE) and "export HOME" not in plan["file"]
    assert plan["file"].startswith(f"Bootstrap: docker\nFrom: docker.io/library/python@{bases.PYTHON}\n"), "no tag"
    sif = "/home/bench/CM/containers/t.sif"
    assert plan["commands"][0] == ["singularity", "build", "--force", sif, "Dockerfile"]
    assert plan["commands"][1][:3] == ["singularity", "instance", "start"]
    assert plan["commands"][1][-2:] == [sif, "c1"]
    assert plan["commands"][2] == ["singularity", "exec", "--pwd=/work", "instance://c1", "/bin/sh", "-c", "id"]
    assert plan["commands"][3] == ["singularity", "instance", "stop", "c1"]
    assert "SINGULARITYENV_A='x, y'" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("inputs", "told"),
    [
        ({"COMMANDS": ""}, "no command to run"),
        ({"BASE_IMAGE_ASKED": "UPPER CASE"}, "is not a reference"),
        ({"BASE_IMAGE_ASKED": "ubuntu@sha256:12"}, "64 hexadecimal digits"),
        ({"BASE_IMAGE_ASKED": "ubuntu AS x"}, "is not a reference"),
        ({"REPO_URL": "https://example.org/x", "REPO_COMMIT": "main"}, "git ls-remote"),
        ({"REPO_URL": "ext::sh -c id", "REPO_COMMIT": COMMIT}, "https://"),
        ({"SCRATCH": "/data:/etc"}, "without colon"),
        ({"SCRATCH": "/etc"}, "a folder of the system"),
        ({"SCRATCH": "/data/../etc"}, "a folder of the system"),
        ({"WORK": "relative"}, "an absolute path"),
        ({"GPUS": "0;id"}, "auto, all, none"),
        ({"SHM_SIZE": "much"}, "32g"),
        ({"USER_ID": "0"}, "not 0"),
        ({"RUN_ARGS": "-v 'x"}, "quotes that end"),
        ({"COMMANDS": "[1]"}, "not a string"),
        ({"COMMANDS": "[oops"}, "JSON"),
        ({"ENV": "1A=x"}, "NAME=VALUE"),
        ({"RECIPE_TAGS": "get,x", "WITH_CM": "no"}, "--with_cm"),
        ({"RECIPE_ARGS": "--x"}, "--recipe_tags"),
    ],
)
def test_what_cannot_be_used_is_refused_with_what_is_allowed(
    tmp_path: Path, hook_input: Any, inputs: dict[str, str], told: str
) -> None:
    given = {"CM_CONTAINER_COMMANDS": "id", **{f"CM_CONTAINER_{key}": value for key, value in inputs.items()}}
    answer, _, _ = planned(tmp_path, hook_input, **given)
    assert answer["return"] == 1
    assert told in answer["error"]


def test_a_folder_without_git_needs_a_pinned_repository(tmp_path: Path, hook_input: Any) -> None:
    machine = build(tmp_path, environment=HOME)
    inputs = {"CM_CONTAINER_RECIPE_TAGS": "get,x"}
    refused = planned(tmp_path, hook_input, machine=machine, **inputs)[0]["error"]
    assert "--repo_url" in refused and "--with_cm=no" not in refused, "a recipe needs CM in the image"
    other = planned(tmp_path, hook_input, machine=machine, CM_CONTAINER_COMMANDS="id")[0]["error"]
    assert other.endswith(", or --with_cm=no")
    pulled = {"CM_CONTAINER_REPO_URL": "https://example.org/x.git", "CM_CONTAINER_REPO_COMMIT": COMMIT}
    _, _, plan = planned(tmp_path, hook_input, machine=machine, **inputs, **pulled)
    assert ["git", "clone", "--no-checkout", "https://example.org/x.git", "/opt/crowdperf"] in run_words(plan["file"])
    assert ["git", "-C", "/opt/crowdperf", "checkout", "--detach", COMMIT] in run_words(plan["file"])


def test_the_table_of_base_images_is_pinned_with_sources() -> None:
    for base in bases.TABLE.values():
        assert base.is_pinned and images.REFERENCE.fullmatch(base.reference)
        assert base.source and re.fullmatch(r"\d{4}-\d\d-\d\d", base.seen)


@pytest.mark.parametrize(
    ("digests", "reference"),
    [
        ([PINNED.replace(":24.04", "")], PINNED),
        (["docker.io/library/ubuntu@sha256:" + "ab" * 32], PINNED),
        (["example.org/other@sha256:" + "ab" * 32], None),
        (["ubuntu@sha256:12"], None),
        (["ubuntu@sha256:" + "ab" * 32 + "\nRUN id"], None),
        ([], None),
        (None, None),
    ],
)
def test_only_a_digest_of_the_same_repository_is_taken(digests: Any, reference: str | None) -> None:
    found = bases.resolved(bases.base_of("ubuntu:24.04"), digests)
    assert (found.reference if found else None) == reference


# --- with an engine ---

FAKE = """printf '%s\\037' "$@" >> "$FAKE_LOG"; printf '\\n' >> "$FAKE_LOG"
case "$1" in
  build) for word; do case "$word" in
           --file=*) cp "${word#--file=}" "$FAKE_LOG.file";; esac; done
         eval "context=\\${$#}"; ls -a "$context" > "$FAKE_LOG.context"; exit "${FAKE_BUILD:-0}";;
  image) [ -e "$FAKE_LOG.pulled" ] || exit 1; echo '["ubuntu@sha256:DIGEST"]';;
  pull) touch "$FAKE_LOG.pulled";;
  run) [ -z "$FAKE_RUN" ] || exit "$FAKE_RUN"; echo c0ffee;;
  exec) shift 3; exec "$@";;
esac""".replace("DIGEST", "ab" * 32)


class Engine:
    """A program that takes an engine's place: what it was called with, and the last file and context it got."""

    def __init__(self, log: Path) -> None:
        self.log = log

    @property
    def calls(self) -> list[list[str]]:
        lines = self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []
        return [line.split("\037")[:-1] for line in lines]

    @property
    def verbs(self) -> list[str]:
        return [call[0] for call in self.calls]


@pytest.fixture
def fake(tmp_path: Path, fake_tool: Any, monkeypatch: pytest.MonkeyPatch) -> Engine:
    log = tmp_path / "log"
    tools = fake_tool("docker", FAKE).parent
    fake_tool("podman", FAKE)
    fake_tool("apptainer", FAKE)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_LOG", str(log))
    monkeypatch.setenv("CM_REPOS", str(tmp_path / "cm"))
    monkeypatch.delenv("MLPERF_SCRATCH_PATH", raising=False)
    return Engine(log)


def run(hook_input: Any, *, engines: Any = None, **inputs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The answer for this machine with a fake engine, and the call; without CM in the image unless asked for."""
    state = {"container_engines": [engine()] if engines is None else engines}
    keys = {"WITH_CM": "no", "BASE_IMAGE_ASKED": PINNED, **inputs}
    call = hook_input({f"CM_CONTAINER_{key}": value for key, value in keys.items()}, state, machine=probe.Machine())
    return recipe.preprocess(call), call


def test_commands_run_inside_and_the_container_is_removed(fake: Engine, hook_input: Any, capfd: Any) -> None:
    answer, _ = run(hook_input, COMMANDS="echo one\necho two")
    assert answer == {"return": 0}
    assert fake.verbs == ["build", "build", "run", "exec", "exec", "stop", "rm"]
    assert capfd.readouterr().out == "one\ntwo\n"


def test_the_code_is_that_of_the_command_inside_and_nothing_runs_after_it(fake: Engine, hook_input: Any) -> None:
    answer, _ = run(hook_input, COMMANDS='["true", "exit 7", "echo never"]')
    assert answer["return"] == 7
    assert "exit 7" in answer["error"]
    assert fake.verbs[2:] == ["run", "exec", "exec", "stop", "rm"]


def test_a_container_that_did_not_start_is_removed_too(
    fake: Engine, hook_input: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_RUN", "125")
    answer, _ = run(hook_input, COMMANDS="true")
    assert answer["return"] == 125
    assert fake.verbs[2:] == ["run", "stop", "rm"]


def test_ctrl_c_ends_the_container(fake: Engine, hook_input: Any) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(hook_input, COMMANDS="kill -INT $PPID; sleep 5")
    assert fake.verbs[2:] == ["run", "exec", "stop", "rm"]


def test_a_broken_build_is_told_and_starts_nothing(
    fake: Engine, hook_input: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_BUILD", "3")
    answer, _ = run(hook_input, COMMANDS="true")
    assert answer["return"] == 3
    assert "Successful steps of the image are kept" in answer["error"]
    assert fake.verbs == ["build"]


def test_the_context_holds_the_files_of_the_commit_and_nothing_else(
    fake: Engine, hook_input: Any, tmp_path: Path
) -> None:
    head = subprocess.run(["git", "-C", CHECKOUT, "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    if head.returncode:
        pytest.skip("no git checkout")
    before = subprocess.run(["git", "-C", CHECKOUT, "diff", "--cached", "--name-only"], capture_output=True, check=True)
    answer, _ = run(hook_input, RECIPE_TAGS="get,x", ACTION="build", WITH_CM="yes")
    assert answer == {"return": 0}
    names = (tmp_path / "log.context").read_text(encoding="utf-8").split()
    assert {"requirements.txt", "script", "automation"} <= set(names)
    assert {".git", ".containerignore", ".dockerignore"}.isdisjoint(names)  # the latter would leave files out
    assert head.stdout.strip() in (tmp_path / "log.file").read_text(encoding="utf-8")
    after = subprocess.run(["git", "-C", CHECKOUT, "diff", "--cached", "--name-only"], capture_output=True, check=True)
    assert before.stdout == after.stdout
    (context,) = {call[-1] for call in fake.calls}
    assert not Path(context).parent.exists(), "nothing stays behind"


def test_a_tag_is_resolved_before_building_and_recorded(fake: Engine, hook_input: Any, tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    answer, call = run(hook_input, COMMANDS="true", ACTION="build", BASE_IMAGE_ASKED="ubuntu:24.04", SAVE=str(saved))
    assert answer == {"return": 0}
    assert fake.verbs == ["image", "pull", "image", "build", "build"]
    assert call["env"]["CM_CONTAINER_BASE_IMAGE"] == PINNED
    assert f"FROM {PINNED} AS build" in (tmp_path / "log.file").read_text(encoding="utf-8")
    assert f"FROM {PINNED} AS build" in (saved / "Dockerfile").read_text(encoding="utf-8")


@pytest.mark.parametrize("action", ["prebuild", "attach"])
def test_a_shell_needs_a_terminal_and_detached_does_not(
    fake: Engine, hook_input: Any, capsys: Any, action: str
) -> None:
    answer, _ = run(hook_input, ACTION=action)
    assert answer["return"] == 1
    assert "--detach (make: DOCKER_DETACH=1)" in answer["error"]
    assert fake.calls == []
    answer, call = run(hook_input, ACTION=action, DETACH="yes", NAME="c1")
    assert answer == {"return": 0}
    assert call["env"]["CM_DOCKER_CONTAINER_ID"] == "c0ffee"
    assert fake.verbs == ["build", "build", "run"]
    assert "docker rm --force c1" in capsys.readouterr().out


def test_a_folder_that_cannot_be_made_is_told(fake: Engine, hook_input: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    answer, _ = run(hook_input, COMMANDS="true", CACHE=f"{tmp_path}/file/cache")
    assert answer["return"] == 1
    assert "--cache_path" in answer["error"]


def test_a_missing_folder_is_told_before_anything_is_built(fake: Engine, hook_input: Any) -> None:
    answer, _ = run(hook_input, COMMANDS="true", SCRATCH="/no/such/folder")
    assert answer["error"].startswith("/no/such/folder is to be mounted at ")
    assert fake.calls == []


def test_podman_steps_in_and_extra_words_reach_no_shell(fake: Engine, hook_input: Any, tmp_path: Path) -> None:
    rows = [engine(trouble="no daemon"), engine("podman")]
    answer, _ = run(hook_input, engines=rows, COMMANDS="true", RUN_ARGS=f"'; touch {tmp_path}/pwned' $(id)")
    assert answer == {"return": 0}
    assert f"; touch {tmp_path}/pwned" in fake.calls[2]
    assert "$(id)" in fake.calls[2]
    assert not (tmp_path / "pwned").exists()


def test_apptainer_builds_a_file_and_gives_variables_by_its_environment(
    fake: Engine, hook_input: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hunter2")
    inputs = {
        "ENV": "A='x, y'",
        "PASSED_NAMES": "HF_TOKEN",
        "COMMANDS": 'echo "$APPTAINERENV_A" ${#APPTAINERENV_HF_TOKEN}',
    }
    answer, call = run(hook_input, engines=[engine("apptainer")], **inputs)
    assert answer == {"return": 0}
    assert fake.verbs == ["build", "instance", "exec", "instance"]
    assert capfd.readouterr().out == "x, y 7\n"
    assert call["env"]["CM_CONTAINER_IMAGE"].startswith(f"{tmp_path}/cm/containers/")
    assert "hunter2" not in str(fake.calls)


@pytest.mark.parametrize("rows", [[], [engine(trouble="Cannot connect to the Docker daemon")]])
def test_without_an_engine_the_whole_plan_is_printed_and_the_code_is_16(
    fake: Engine, hook_input: Any, capsys: Any, rows: Any
) -> None:
    answer, _ = run(hook_input, engines=rows, COMMANDS="true")
    assert answer["return"] == 16
    assert "get,docker" in answer["error"]
    text = capsys.readouterr().out
    assert f"FROM {PINNED} AS build" in text
    assert "docker run --detach" in text
    assert fake.calls == []
    assert run(hook_input, engines=rows, COMMANDS="true", IS_PLAN="yes")[0] == {"return": 0}


def test_planning_a_run_writes_nothing(fake: Engine, hook_input: Any, tmp_path: Path) -> None:
    env = {"CM_CONTAINER_COMMANDS": "id", "CM_CONTAINER_WITH_CM": "no", "CM_CONTAINER_SAVE": str(tmp_path / "saved")}
    call = hook_input(env, {"container_engines": [engine()]}, machine=probe.Machine())
    assert recipe.plan(call) == {"return": 0}
    assert not (tmp_path / "saved").exists()
    assert fake.calls == []


@pytest.mark.parametrize("name", every_shipped())
def test_each_shipped_machine_gets_a_plan(hook_input: Any, name: str) -> None:
    env = {"CM_CONTAINER_COMMANDS": "id", "CM_CONTAINER_WITH_CM": "no", "CM_CONTAINER_IS_PLAN": "yes"}
    assert recipe.preprocess(hook_input(env, machine=shipped(name))) == {"return": 0}
    answer = recipe.preprocess(hook_input({**env, "CM_CONTAINER_IS_PLAN": ""}, machine=shipped(name)))
    assert answer["return"] == 16


@pytest.mark.skipif(not (recipe.CHECKOUT / ".git").exists(), reason="the checkout has no git history")
@pytest.mark.parametrize("name", every_shipped())
def test_the_checkout_is_looked_at_here_while_another_machine_is_planned_for(hook_input: Any, name: str) -> None:
    env = {"CM_CONTAINER_ACTION": "build", "CM_CONTAINER_IS_PLAN": "yes", "CM_RECORDED_MACHINE": name}
    call = hook_input(env, {"container_engines": []})
    assert recipe.preprocess(call) == {"return": 0}
    assert facts.source(probe.Machine(), CHECKOUT).commit in json.dumps(call["state"])


def test_root_gets_another_user_inside_and_a_strange_name_becomes_a_plain_one(tmp_path: Path, hook_input: Any) -> None:
    for uid, name, line in ((0, "root", "1000:1000"), (1234, "a:b\nc", "1234:1234")):
        user = {"name": name, "uid": uid, "groups": []}
        machine = build(tmp_path, commands=COMMANDS, environment=HOME, user=user)
        _, _, plan = planned(tmp_path, hook_input, machine=machine, CM_CONTAINER_COMMANDS="id")
        assert f"USER {line}" in plan["file"].splitlines()
        assert 'ENV HOME="/home/mlperf"' in plan["file"].splitlines()


# --- the fixed scripts of the image ---


def test_the_account_replaces_one_with_the_same_name_or_number(tmp_path: Path) -> None:
    for name, text in (
        ("passwd", "root:x:0:0::/root:/bin/sh\nubuntu:x:1000:1000::/:/bin/sh\n"),
        ("group", "bench:x:7:\n"),
    ):
        (tmp_path / name).write_text(text, encoding="utf-8")
    script = image.USER_SCRIPT.replace("/etc/", f"{tmp_path}/").replace("/home/$1", f"{tmp_path}/home")
    script = script.replace("chown -R", ":")
    subprocess.run(["sh", "-c", script, "user", "bench", "1000", "1001"], check=True)
    lines = (tmp_path / "passwd").read_text(encoding="utf-8").splitlines()
    assert lines == ["root:x:0:0::/root:/bin/sh", f"bench:x:1000:1001::{tmp_path}/home:/bin/sh"]
    assert (tmp_path / "group").read_text(encoding="utf-8") == "bench:x:1001:\n"


def test_a_step_sees_its_secrets_as_variables(tmp_path: Path) -> None:
    (tmp_path / "A").write_text("one $(id)", encoding="utf-8")
    (tmp_path / "B").write_text("two", encoding="utf-8")
    script = image.SECRET_SCRIPT.replace("/run/secrets", str(tmp_path))
    line = ["sh", "-c", script, "step", "A", "B", "-", "sh", "-c", 'printf %s "$A|$B"']
    assert subprocess.run(line, capture_output=True, text=True, check=True).stdout == "one $(id)|two"


def podman_limits() -> str:
    """Podman's own limits are larger than those of a test that runs in a container itself."""
    rows = (("nofile", resource.RLIMIT_NOFILE), ("nproc", resource.RLIMIT_NPROC))
    return " ".join(f"--ulimit={name}={min(resource.getrlimit(row)[1], 4096)}" for name, row in rows)


@pytest.mark.full
def test_podman_builds_and_runs_for_real(tmp_path: Path, hook_input: Any, monkeypatch: Any, capfd: Any) -> None:
    """On an image made here of busybox; nothing is fetched."""
    busybox = os.environ.get("CROWDPERF_TEST_BUSYBOX") or shutil.which("busybox")
    if not shutil.which("podman") or not busybox:
        pytest.skip("needs podman, and a busybox that is linked statically (CROWDPERF_TEST_BUSYBOX)")
    tree, archive = tmp_path / "tree", tmp_path / "base.tar"
    (tree / "bin").mkdir(parents=True)
    shutil.copy(busybox, tree / "bin/busybox")
    for name in ("sh", "id", "cat", "echo", "sleep", "mkdir", "ln", "grep", "rm", "touch", "chown", "readlink", "true"):
        (tree / "bin" / name).symlink_to("busybox")
    for name in ("etc", "tmp"):
        (tree / name).mkdir()
    with tarfile.open(archive, "w") as tar:
        tar.add(tree, ".")
    monkeypatch.setenv("HF_TOKEN", "hunter2")
    monkeypatch.setenv("CM_REPOS", str(tmp_path / "cm"))
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    base = "localhost/crowdperf-test-base:1"
    quiet = {
        "RUN_ARGS": f"--network=none {podman_limits()}",
        "BUILD_ARGS": "--network=none",
        "TAG": "crowdperf-test",
        "WORK": "no",
    }
    inputs = {**quiet, "BASE_IMAGE_ASKED": base, "PASSED_NAMES": "HF_TOKEN", "engines": [engine("podman")]}
    try:
        subprocess.run(["podman", "import", "--quiet", str(archive), base], check=True)
        check = 'test "$HF_TOKEN" = hunter"2"; id -u; readlink /workspace; echo "$MLPERF_SCRATCH_PATH"; exit 7'
        answer, call = run(hook_input, COMMANDS=check, SCRATCH=str(scratch), **inputs)
        uid = os.getuid() or 1000
        assert answer["return"] == 7
        assert f"{uid}\n/work\n{scratch}\n" in capfd.readouterr().out
        assert "@sha256:" in call["env"]["CM_CONTAINER_BASE_IMAGE"]
        layers = {"COMMANDS": '["test \\"$HF_TOKEN\\" = hunter\\"2\\"", "echo \' <<EOF $(id) ] \'"]', "ACTION": "build"}
        assert run(hook_input, **layers, **inputs)[0] == {"return": 0}
        told = subprocess.run(
            ["podman", "history", "--no-trunc", "mlperf-inference:crowdperf-test"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert "hunter2" not in told.stdout
        names = subprocess.run(
            ["podman", "ps", "--all", "--format={{.Names}}"], capture_output=True, text=True, check=True
        )
        assert "crowdperf-test" not in names.stdout
    finally:
        images = ("mlperf-inference:crowdperf-test", "mlperf-inference:crowdperf-test-latest", base)
        for one in images:
            subprocess.run(["podman", "rmi", "--force", one], capture_output=True, check=False)


MOUNTS = """/ // /// //etc /etc/ssh /etc/../etc /run/docker.sock /var/run/docker.sock /var/lib/docker /var/lib /var /usr
/home /root /root/.ssh /home/me/.ssh /home/me/.aws/x /proc/1 /dev /dev/sda /sys/fs /boot/efi /lib/x /run/user/1000"""


@pytest.mark.parametrize("path", MOUNTS.split())
@pytest.mark.parametrize("name", ["SCRATCH", "WORK", "CACHE"])
def test_folders_of_the_system_are_not_mounted(tmp_path: Path, hook_input: Any, name: str, path: str) -> None:
    given = {"CM_CONTAINER_RECIPE_TAGS": "get,x", f"CM_CONTAINER_{name}": path}
    answer, _, _ = planned(tmp_path, hook_input, **given)
    assert answer["return"] == 1 and "cannot be mounted" in answer["error"]


def test_links_and_sockets_are_seen_through(tmp_path: Path, hook_input: Any) -> None:
    (tmp_path / "link").symlink_to("/etc")
    os.mkfifo(tmp_path / "fifo")
    for name in ("link", "fifo"):
        given = {"CM_CONTAINER_RECIPE_TAGS": "get,x", "CM_CONTAINER_SCRATCH": str(tmp_path / name)}
        answer, _, _ = planned(tmp_path, hook_input, **given)
        assert answer["return"] == 1 and "cannot be mounted" in answer["error"]


@pytest.mark.parametrize(
    "path", ["/mnt/data", "/data", "/home/me/scratch", "/root/CM", "/var/tmp/x", "/dev/shm/x", "//mnt"]
)
def test_other_folders_are_mounted(tmp_path: Path, hook_input: Any, path: str) -> None:
    given = {"CM_CONTAINER_RECIPE_TAGS": "get,x", "CM_CONTAINER_SCRATCH": path}
    assert planned(tmp_path, hook_input, **given)[0]["return"] == 0
