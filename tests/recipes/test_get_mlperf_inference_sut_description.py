"""get-mlperf-inference-sut-description: what is known of a system, from where, and what is asked or refused."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from recipe_loader import load_module, load_recipe, recipe_meta

recipe = load_recipe("get-mlperf-inference-sut-description")
answers = load_module("get-mlperf-inference-sut-description", "answers")
description = load_module("get-mlperf-inference-sut-description", "description")
discovery = load_module("get-mlperf-inference-sut-description", "discovery")
questions = load_module("get-mlperf-inference-sut-description", "questions")
Fact = description.Fact
TAGS = "get,mlperf,sut,description"
PERSON = {
    "status": "available",
    "system_name": "Box 1",
    "host_memory_configuration": "2 x 16 GB",
    "host_storage_type": "SSD",
    "host_storage_capacity": "1 TB",
    "host_networking": "1 Gb",
    "host_networking_topology": "N/A",
    "host_network_card_count": "1",
    "cooling": "air",
}
CALL = {"division": "open", "submitter": "cTuning", "category": "edge", "framework": "onnxruntime v1.31.1"}


def sources(**rows: dict[str, Any]) -> Any:
    names = ("given", "remembered", "call", "run", "detected")
    return description.Sources(**{name: rows.get(name, {}) for name in names})


# --- the rules ---


def test_there_is_a_question_for_each_official_key() -> None:
    from crowdperf.rules.system_keys import KEYS

    assert set(questions.QUESTIONS) == set(KEYS)


@pytest.mark.parametrize(
    ("first", "second"),
    [("given", "call"), ("call", "remembered"), ("remembered", "run"), ("run", "detected")],
)
def test_the_nearer_source_of_a_fact_wins(first: str, second: str) -> None:
    rows = {first: {"cooling": Fact("air", "a")}, second: {"cooling": Fact("liquid", "b")}}
    assert description.describe(sources(**rows))["cooling"] == Fact("air", "a")


@pytest.mark.parametrize(
    ("count", "interconnect", "model"),
    [("0", "N/A", "N/A"), ("1", "N/A", ""), ("8", "", ""), ("", "", "")],
)
def test_a_system_without_accelerators_needs_no_facts_of_them(count: str, interconnect: str, model: str) -> None:
    found = description.describe(sources(detected={"accelerators_per_node": Fact(count, "x")}))
    assert found["accelerator_interconnect"].value == interconnect
    assert found["accelerator_model_name"].value == model


def test_facts_of_this_machine_do_not_describe_runs_of_another() -> None:
    detected = {"cpu": {"model_name": "Example CPU", "threads": 4}, "memory_bytes": 16 * 1024**3}
    same = {"processor": "Example  CPU", "core_count": 4, "memory_bytes": 16 * 1024**3 - 4096}
    assert description.is_this_machine(same, detected)
    for name, value in (("processor", "Other CPU"), ("core_count", 8), ("memory_bytes", 8 * 1024**3)):
        assert not description.is_this_machine({**same, name: value}, detected)


def test_a_remark_is_added_to_the_notes_once() -> None:
    found = description.describe(sources(detected={"hw_notes": Fact("detected note", "x")}))
    once = description.with_note(found, "hw_notes", "Result taken by Jo")
    assert once["hw_notes"].value == "detected note; Result taken by Jo"
    assert description.with_note(once, "hw_notes", "Result taken by Jo") == once


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("cooling", "TBD", "is not an answer"),
        ("cooling", "unknown", "is not an answer"),
        ("cooling", "none", "is not an answer"),
        ("host_networking", "TBD", "is not an answer"),
        ("status", "sold", "allowed: available; preview; rdi"),
        ("system_type", "phone", "allowed: datacenter"),
        ("accelerators_per_node", "N/A", "is not a whole number"),
        ("coling", "air", r"did you mean cooling\?.*known: division, submitter"),
        ("cooling", ["air"], "one text or number"),
        ("cooling", True, "one text or number"),
    ],
)
def test_an_answer_that_a_description_may_not_hold_is_refused(key: str, value: object, words: str) -> None:
    with pytest.raises(questions.BadAnswer, match=words):
        questions.checked(key, value)


@pytest.mark.parametrize("key", ["host_networking", "host_networking_topology", "accelerator_interconnect"])
def test_a_machine_may_be_without_a_network_or_accelerators(key: str) -> None:
    assert questions.checked(key, "none") == "none"


def test_a_number_becomes_a_text_because_the_checker_takes_zero_for_empty() -> None:
    assert questions.checked("accelerators_per_node", 0) == "0"


def test_the_file_of_questions_can_be_filled_in_and_read(tmp_path: Path) -> None:
    path = tmp_path / "facts.yaml"
    path.write_text(questions.template("box", ("cooling", "status")), encoding="utf-8")
    assert answers.from_file(path) == {}
    path.write_text(path.read_text(encoding="utf-8").replace("cooling:", "cooling: air"), encoding="utf-8")
    assert answers.from_file(path) == {"cooling": Fact("air", "given with --system_facts=facts.yaml")}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"- a\n", "a YAML list, not a mapping"),
        (b"", "nothing, not a mapping"),
        (b"cooling: air\na: b: c\n", "facts.yaml cannot be read: not valid YAML .line 2: "),
        (b"cooling: air\nhost_networking: f\xfcnf\n", "not UTF-8 text .byte 0xfc in line 2.. Save it as UTF-8"),
        (b"cooling: TBD\ncolour: red\n", "colour"),
        (b"cooling: no\n", "got False. Put a text in quotes"),
    ],
)
def test_a_bad_file_of_facts_is_refused_with_every_reason(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "facts.yaml"
    path.write_bytes(content)
    with pytest.raises(answers.AnswersError, match=words):
        answers.from_file(path)


@pytest.mark.parametrize("content", [b"\xef\xbb\xbfcooling: air\r\n", b'{\n\t"cooling": "air"\n}\n'])
def test_facts_are_read_with_a_byte_order_mark_and_as_json_with_tabs(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "facts.yaml"
    path.write_bytes(content)
    assert answers.from_file(path)["cooling"].value == "air"


def test_a_person_is_asked_until_an_answer_is_allowed_and_may_leave_one_open() -> None:
    said, told = iter(["sold", "available", ""]), []
    found = questions.ask(("status", "cooling"), lambda prompt: next(said), told.append)
    assert found == {"status": "available"}
    assert len(told) == 1


def test_only_facts_of_the_system_are_remembered_and_damage_is_harmless(tmp_path: Path) -> None:
    given = {"cooling": Fact("air", "x"), "submitter": Fact("me", "x")}
    answers.remember(tmp_path, "box 1", given)
    assert {key: fact.value for key, fact in answers.remembered(tmp_path, "box 1").items()} == {"cooling": "air"}
    (file,) = (tmp_path / "sut-description").iterdir()
    file.write_text("{", encoding="utf-8")
    assert answers.remembered(tmp_path, "box 1") == {}


def test_disks_and_network_cards_are_told_as_far_as_the_machine_tells_them() -> None:
    texts = {
        "/sys/block/nvme0n1/size": "2000000000\n",
        "/sys/block/vda/size": "1000000000\n",
        "/sys/block/loop0/size": "8\n",
        "/sys/block/sdb/size": "100\n",
        "/sys/block/sdb/removable": "1\n",
    }
    folders = {
        "/sys/block": ("loop0", "nvme0n1", "sdb", "vda"),
        "/sys/class/net": ("eth0", "lo"),
        "/sys/class/net/eth0/device": ("vendor",),
    }
    machine = SimpleNamespace(read_text=lambda path: texts.get(path, ""), names=lambda path: folders.get(path, ()))
    found = discovery.detected({"submission": {}}, {}, machine)
    assert found["host_storage_capacity"].value == "1536 GB"
    assert "host_storage_type" not in found, "the kind of a virtual disk is not known"
    assert found["host_network_card_count"].value == "1"


# --- the recipe ---


def describe(home: Any, **inputs: Any) -> tuple[dict[str, str], dict[str, Any]]:
    """The description and its facts, from a real cm process."""
    (home.work / "call.json").write_text(json.dumps({**CALL, **inputs}), encoding="utf-8")
    done = home.run_cm(TAGS, "@call.json")
    assert done.code == 0, done.stderr
    state = done.answer["new_state"]
    return state["CM_SUT_META"], state["CM_SUT_DESCRIPTION"]


def test_a_description_is_complete_with_the_answers_and_remembers_them(home) -> None:
    meta, _ = describe(home, name="box1", system=PERSON)
    assert len(meta) == 35
    assert {key: meta[key] for key in PERSON} == PERSON
    assert (meta["submitter"], meta["system_type"], meta["number_of_nodes"]) == ("cTuning", "edge", "1")
    again, told = describe(home, name="box1")
    assert again == meta
    assert told["facts"]["cooling"]["origin"] == "answered before"


def test_open_questions_are_refused_with_the_list_and_a_file(home) -> None:
    done = home.run_cm(TAGS, "--name=box2", "--submitter=cTuning")
    assert done.code != 0
    error = done.answer["error"]
    for key in ("status", "cooling", "division", "framework"):
        assert f"\n  {key}: {questions.QUESTIONS[key]}" in error
    assert "cooling:\n" in (home.work / "system_facts.yaml").read_text(encoding="utf-8")


def test_runs_of_another_machine_are_described_by_their_own_record(home) -> None:
    gpus = [{"index": number, "name": "NVIDIA X1", "memory_bytes": 80 * 1024**3} for number in (0, 1)]
    machine = {"processor": "Other CPU", "core_count": 64, "memory_bytes": 64 * 1024**3, "gpus": gpus}
    meta, told = describe(home, run_machine=machine, env={"CM_SUT_DESC_IS_COMPLETE_NEEDED": "no"})
    assert meta["host_processor_model_name"] == "Other CPU"
    assert (meta["accelerators_per_node"], meta["accelerator_model_name"]) == ("2", "NVIDIA X1")
    assert meta["host_processor_caches"] == ""
    assert "host_processor_core_count" in told["missing"]
    assert (told["name"], told["is_this_machine"]) == ("X1x2", False)


def test_a_fact_can_be_given_by_env_or_file_and_the_call_wins(home) -> None:
    (home.work / "facts.json").write_text(json.dumps({**PERSON, "cooling": "liquid"}), encoding="utf-8")
    env = {"CM_SUT_STATUS": "preview"}
    meta, _ = describe(home, name="b", system_facts="facts.json", system={"cooling": "air"}, env=env)
    assert (meta["cooling"], meta["status"]) == ("air", "preview")


def test_every_input_is_described_and_sorted() -> None:
    meta = recipe_meta("get-mlperf-inference-sut-description")
    assert set(meta["input_mapping"]) <= set(meta["input_description"])
    assert list(meta["input_description"]) == sorted(meta["input_description"])


def test_a_run_on_a_slice_of_one_gpu_is_described_by_the_slice() -> None:
    name = "NVIDIA H100 80GB HBM3 MIG 1g.10gb"
    mig = {"profile": "1g.10gb", "parent": "NVIDIA H100 80GB HBM3"}
    machine = {"processor": "Xeon", "gpus": [{"index": 3, "name": name, "memory_bytes": 9856 * 1024**2, "mig": mig}]}
    told = {key: fact.value for key, fact in description.of_run(machine).items() if "accelerator" in key}
    assert told == {
        "accelerators_per_node": "1", "accelerator_model_name": name, "accelerator_memory_capacity": "9856 MiB"
    }  # fmt: skip
