"""AWS Neuron in the recipes: what neuron-ls prints, what is refused without a device, where compiled models lie."""

import json
from pathlib import Path
from typing import Any

import pytest
from recipe_loader import load_module, load_recipe, recipe_meta

from crowdperf.machine import neuron, selection
from crowdperf.machine.probe import Machine, recorded

MODEL = load_recipe("get-ml-model-neuron")
SERVER = load_recipe("get-triton-server")
APP = load_recipe("app-mlperf-inference")
run_request = load_module("app-mlperf-inference", "run_request")


# In the form of AWS's guide (tools/neuron-sys-tools/neuron-ls.rst of aws-neuron/aws-neuron-sdk), with the devices of
# its table for an inf1.6xlarge: written by hand after both, not recorded on a machine.
INF1_6XLARGE = [
    {
        "neuron_device": number, "bdf": f"0000:00:1{place}.0", "connected_to": connected, "nc_count": 4,
        "memory_size": 8589934592, "neuron_processes": processes,
    }
    for number, (place, connected, processes) in enumerate(
        [
            ("c", [1], [{"pid": 23518, "command": "neuron-app01 infer", "neuron_runtime_version": "2.0.0"}]),
            ("d", [2, 0], []),
            ("e", [3, 1], []),
            ("f", None, None),
        ]
    )
]  # fmt: skip
HERE = {"CM_MLPERF_BACKEND": "neuron", "CM_MLPERF_MODEL": "resnet50", "CM_MLPERF_DEVICE": "inferentia"}


def machine(tmp_path: Path, devices: int, chip: str = "1d0f7064", **commands: Any) -> Machine:
    """A recorded machine with so many chips on its bus and as /dev/neuron*."""
    for name in ("dev", "proc/bus/pci"):
        (tmp_path / "root" / name).mkdir(parents=True, exist_ok=True)
    for number in range(devices):
        (tmp_path / "root" / "dev" / f"neuron{number}").touch()
    rows = "".join(f"{8 * number:04x}\t{chip}\t0\n" for number in range(devices))
    (tmp_path / "root" / "proc/bus/pci/devices").write_text(rows)
    (tmp_path / "machine.json").write_text(json.dumps({"commands": commands}))
    return recorded(tmp_path)


def test_neuron_ls_is_read_in_the_form_that_aws_documents(tmp_path: Path) -> None:
    devices = neuron.parse_devices(json.dumps(INF1_6XLARGE))
    assert [(one.number, one.cores, one.memory_bytes) for one in devices] == [(n, 4, 8 * 2**30) for n in range(4)]
    assert (devices[1].connected_to, devices[3].connected_to) == ((2, 0), ())
    assert (devices[0].address, devices[0].processes, devices[1].processes) == ("0000:00:1c.0", (23518,), ())
    found = machine(tmp_path, 4, **{f"{neuron.TOOL} -j": {"stdout": json.dumps(INF1_6XLARGE)}})
    assert neuron.devices(found) == devices and neuron.core_count(found) == 16


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"instance_type": "inf2.xlarge", "devices": []}', "no list"),
        ('[{"neuron_device": 0}]', "a device of another form: KeyError\\('nc_count'\\)"),
        ("[7]", "a device of another form"),
        ("Error: no devices", "Expecting value"),
    ],
)
def test_another_form_is_an_error_and_the_cores_are_then_those_of_the_chips(
    tmp_path: Path, text: str, words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        neuron.parse_devices(text)
    found = machine(tmp_path, 3, "1d0f7264", **{"neuron-ls -j": {"stdout": text}})
    assert neuron.devices(found) == () and neuron.core_count(found) == 6
    assert (neuron.sdk(found), neuron.missing(found)) == ("torch_neuronx", "")


@pytest.mark.parametrize(("name", "cores"), [("inf1-2xlarge", 4), ("inf1-6xlarge", 16), ("laptop", 0)])
def test_recorded_machines_have_their_cores(tmp_path: Path, name: str, cores: int) -> None:
    found = selection.choose(name, tmp_path).machine
    assert neuron.core_count(found) == cores
    assert neuron.sdk(found) == ("torch_neuron" if cores else "")
    assert bool(neuron.missing(found)) == (cores == 0)


def test_chips_without_a_driver_are_told_from_no_chips(tmp_path: Path) -> None:
    found = machine(tmp_path, 2)
    for number in range(2):
        (tmp_path / "root" / "dev" / f"neuron{number}").unlink()
    assert (
        neuron.missing(found)
        == "2 Neuron chips on the bus, but no /dev/neuron*: is the driver aws-neuronx-dkms loaded?"
    )


@pytest.fixture
def no_neuron(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without Neuron device, whatever this one has."""
    bare = selection.choose("laptop", Path.cwd()).machine
    for module in (MODEL, SERVER):
        monkeypatch.setattr(module, "Machine", lambda: bare)


def assert_refused(answer: dict[str, Any]) -> None:
    """Code 16 and everything that is missing, with AWS's date."""
    assert answer["return"] == 16
    for words in ("/dev/neuron*", "inf1", "aws-neuronx-dkms", "torch-neuron", "2026-03-11", "--simulate=neuron"):
        assert words in answer["error"], answer["error"]


def test_a_plan_for_a_recorded_machine_asks_this_one_for_no_device(no_neuron: None) -> None:
    asked = {"env": {"CM_TRITON_SERVER_KIND": "neuron", "CM_RECORDED_MACHINE": "inf1-6xlarge"}, "values": {}}
    assert SERVER.plan(asked) == {"return": 0}


def test_without_a_device_nothing_is_compiled_or_installed(no_neuron: None) -> None:
    assert_refused(MODEL.plan({"env": {"CM_NEURON_MODEL": "resnet50"}}))
    assert_refused(SERVER.plan({"env": {"CM_TRITON_SERVER_KIND": "neuron"}}))
    assert MODEL.plan({"env": {"CM_MLPERF_SIMULATE": "neuron"}}) == {"return": 0}
    assert SERVER.plan({"env": {"CM_TRITON_SERVER_KIND": "neuron-simulated"}}) == {"return": 0}


def planned(**env: str) -> dict[str, Any]:
    """The answer of app-mlperf-inference's plan."""
    keys = {"CM_MLPERF_LOADGEN_SCENARIO": "Offline", "CM_MLPERF_LOADGEN_MODE": "accuracy", "CM_MLPERF_SOURCE": "tiny"}
    meta = recipe_meta("app-mlperf-inference")
    run_style = {"CM_MLPERF_RUN_STYLE": "test", "CM_MLPERF_MODEL_PRECISION": "fp32"}
    return APP.plan({"env": {**HERE, **keys, **run_style, **env}, "meta": meta, "input": {}})  # type: ignore[no-any-return]


def test_a_run_is_refused_without_a_device_planned_for_a_recorded_one_and_simulated(tmp_path: Path) -> None:
    assert_refused(planned(CM_RECORDED_MACHINE="laptop"))
    assert planned(CM_RECORDED_MACHINE="inf1-6xlarge")["return"] == 0
    assert planned(CM_MLPERF_SIMULATE="neuron")["return"] == 0
    wrong = planned(CM_MLPERF_SIMULATE="neuron", CM_MLPERF_BACKEND="onnxruntime", CM_MLPERF_DEVICE="cpu")
    assert wrong["return"] == 1 and "found 'neuron' with backend onnxruntime" in wrong["error"]


def test_the_stand_in_has_a_name_of_its_own_in_every_request() -> None:
    found = run_request.stand_in(HERE, "neuron")
    assert found == {"CM_MLPERF_BACKEND": "neuron_simulated", "CM_MLPERF_DEVICE": "cpu"}
    assert run_request.stand_in(HERE, None) == {}


def test_compiled_models_lie_where_the_document_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    engine = {"compiled_batch": 5, "is_dynamic": True, "dtype": "fp32", "sizes": {}, "compiler": "SIMULATED",
              "from_sha256": {"model": "a"}}  # fmt: skip
    info = {"engine": engine, "is_synthetic": True, "files": {"model": {"file": "resnet50.pt", "sha256": "b"}}}
    source = tmp_path / "engine"
    source.mkdir()
    (source / "resnet50.pt").write_bytes(b"compiled")
    (source / "model.json").write_text(json.dumps(info))
    entry = tmp_path / "entry"
    entry.mkdir()
    monkeypatch.chdir(entry)
    env = {"CM_ML_MODEL_INFO_FILE": str(source / "model.json"), "CM_NEURON_MODEL": "resnet50"}
    assert MODEL.postprocess({"env": env})["return"] == 0
    place = entry / "resnet50/resnet50-pytorch-bs5/resnet50_neuron_bs5_dynamic.pt"
    assert place.read_bytes() == b"compiled" and env["CM_ML_MODEL_NEURON_FILE"] == str(place)
    facts = json.loads((place.parent / "compile.json").read_text())
    assert (facts["compiler"], facts["batch"], facts["dynamic"]) == ("SIMULATED", 5, True)
    assert str(MODEL.place_of("bert-99", 1)) == "bert/bert-pytorch-bs1/bert-large-int32-bs1-concat.pt"
    (source / "model.json").write_text("{}")
    assert "--new" in MODEL.postprocess({"env": env})["error"]


def test_the_folder_of_the_made_inputs_is_handed_on_and_an_empty_one_is_an_error(tmp_path: Path) -> None:
    hooks = load_recipe("generate-neuron-inputs")
    variation = recipe_meta("generate-neuron-inputs")["variations"]["bert"]
    env = {**variation["env"], "CM_MLPERF_SCRATCH_PATH": str(tmp_path)}
    assert "contains no samples" in hooks.postprocess({"env": env})["error"]
    folder = tmp_path / "preprocessed_data" / "squad_tokenized"
    folder.mkdir(parents=True)
    (folder / "input_ids.npy").touch()
    assert hooks.postprocess({"env": env}) == {"return": 0}
    assert env["CM_NEURON_INPUTS_PATH"] == str(folder)
