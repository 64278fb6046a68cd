"""What a call of generate-submission asks for, from the names that cm4mlops has, and what is refused."""

from pathlib import Path

import pytest
from generate_support import env_of, request_of
from recipe_loader import input_values

from crowdperf.submission.request import RequestError


def request(tmp_path: Path, **env: str):
    results = tmp_path / "results"
    results.mkdir(exist_ok=True)
    return request_of(env_of(results, tmp_path / "tree", **env), tmp_path / "elsewhere")


def test_the_defaults_are_those_of_the_tutorial(tmp_path: Path) -> None:
    wanted = request(tmp_path)
    assert (wanted.divisions, wanted.category, wanted.round_name) == (("open",), "edge", None)
    assert (wanted.is_clean, wanted.is_checked, wanted.is_truncated) == (False, False, True)
    assert wanted.beside.logs_folder == tmp_path / "tree_logs"
    assert wanted.beside.manifest == tmp_path / "tree_facts" / "manifest.json"


@pytest.mark.parametrize(
    ("text", "category"),
    [("edge", "edge"), ("datacenter-edge", "datacenter,edge"), ("edge,datacenter", "datacenter,edge")],
)
def test_a_category_may_be_written_as_the_community_does(tmp_path: Path, text: str, category: str) -> None:
    assert request(tmp_path, CM_MLPERF_SUBMISSION_CATEGORY=text).category == category


@pytest.mark.parametrize(
    ("text", "divisions"), [("closed", ("closed",)), ("open-closed", ("open", "closed")), ("Open", ("open",))]
)
def test_both_divisions_can_be_asked_for(tmp_path: Path, text: str, divisions: tuple[str, ...]) -> None:
    assert request(tmp_path, CM_MLPERF_SUBMISSION_DIVISION=text).divisions == divisions


@pytest.mark.parametrize("text", ["v6.1", "6.1"])
def test_a_round_may_lack_its_letter(tmp_path: Path, text: str) -> None:
    assert request(tmp_path, CM_VERSION=text).round_name == "v6.1"


def test_the_folder_of_a_run_style_is_found_below_the_folder_given_as_in_the_tutorial(tmp_path: Path) -> None:
    (tmp_path / "results" / "valid_results").mkdir(parents=True)
    assert request(tmp_path).results_folders == (tmp_path / "results" / "valid_results",)


def test_a_base_folder_gets_the_community_s_name(tmp_path: Path) -> None:
    env = {**env_of(tmp_path, tmp_path), "CM_MLPERF_INFERENCE_SUBMISSION_DIR": ""}
    wanted = request_of({**env, "CM_MLPERF_INFERENCE_SUBMISSION_BASE_DIR": str(tmp_path / "base")}, tmp_path / "x")
    assert wanted.submission_folder == tmp_path / "base" / "mlperf_inference_submission"


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({"CM_MLPERF_SUBMITTER": ""}, "--submitter is missing"),
        ({"CM_MLPERF_SUBMITTER": "My Company"}, "cannot name a folder"),
        ({"CM_MLPERF_SUBMITTER": "../x"}, "cannot name a folder"),
        ({"CM_VERSION": "v9.9"}, "--version=v9.9 is not a round"),
        ({"CM_MLPERF_MODEL_MAPS": "digits"}, "own-name:official-name"),
        ({"CM_HW_NAME": "../up"}, "--hw_name"),
        ({"CM_MLPERF_INFERENCE_RESULTS_DIR_": ""}, "--results_dir is missing"),
        (
            {"CM_MLPERF_INFERENCE_RESULTS_DIR_": "/nowhere/at/all"},
            "--results_dir: the folder /nowhere/at/all does not exist",
        ),
        ({"CM_MLPERF_INFERENCE_SUBMISSION_DIR": ""}, "--submission_dir is missing"),
        ({"CM_MLPERF_INFERENCE_SUBMISSION_DIR": "/"}, "would replace a folder"),
        ({"CM_MLPERF_INFERENCE_SUBMISSION_DIR": ".."}, "would replace a folder"),
    ],
)
def test_what_cannot_be_carried_out_is_refused(tmp_path: Path, env: dict[str, str], words: str) -> None:
    with pytest.raises(RequestError) as caught:
        request(tmp_path, **env)
    assert words in str(caught.value)


def test_a_link_to_the_home_folder_is_never_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "link").symlink_to("home")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    with pytest.raises(RequestError, match="would replace a folder"):
        request(tmp_path, CM_MLPERF_INFERENCE_SUBMISSION_DIR=str(tmp_path / "link"))


def test_a_link_to_itself_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "tree").symlink_to("tree")
    with pytest.raises(RequestError, match="is not a folder"):
        request(tmp_path)


def test_a_division_that_cannot_be_measured_here_is_refused_with_the_reason() -> None:
    (told,) = input_values("generate-submission", {}, division="network").problems()
    assert told.startswith("--division=network: its runs require a system under test behind a network (LoadGen's QDL)")


def test_all_bad_inputs_are_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(RequestError) as caught:
        request(tmp_path, CM_MLPERF_SUBMITTER="", CM_VERSION="x", CM_HW_NAME="../up")
    assert len(caught.value.problems) == 3
