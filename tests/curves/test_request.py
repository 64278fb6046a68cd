"""What a call asks for: every fault at once, and the points with what each is to do."""

from pathlib import Path

import pytest
from curve_builder import SAMPLES, SCORED, typed

from crowdperf.curves.curve import plan_text
from crowdperf.curves.pointinputs import inputs_from
from crowdperf.curves.request import CurveRequest, RequestError, read_request


def request(folder: Path, **changed: str) -> CurveRequest:
    return read_request(typed(folder, **{"url": "http://host:8000/v1", **changed}), folder)


def refusal(folder: Path, **changed: str) -> str:
    with pytest.raises(RequestError) as caught:
        request(folder, **changed)
    return str(caught.value)


def test_without_a_url_the_server_and_key_are_those_of_openais_clients(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "--url is missing: the URL of the server (or set OPENAI_BASE_URL)" in refusal(tmp_path, url="")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://there:8000/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-4711")
    assert request(tmp_path).settings.url == "http://host:8000"
    settings = request(tmp_path, url="").settings
    assert (settings.url, settings.key_variable) == ("http://there:8000", "OPENAI_API_KEY")
    assert request(tmp_path, url="", api_key_variable="MINE").settings.key_variable == "MINE"


def test_all_faults_are_named_at_once(tmp_path: Path) -> None:
    text = refusal(tmp_path, url="http://me:sesame@host:8000", model="gpt-oss-120", c_max="32", points="",
                   dataset="absent.jsonl", tokenizer="", curve="../up", api_key_variable="MY KEY")  # fmt: skip
    for words in (
        "--url must have no user name, password or query",
        "'gpt-oss-120' is not a model",
        "C_max must be greater than 32, got 32",
        "absent.jsonl is not a file",
        "--tokenizer is missing",
        "--curve must be letters",
        "--api_key_variable must be the name",
    ):
        assert words in text, text
    assert "MY KEY" not in text and "sesame" not in text
    assert len(text.splitlines()) == len(set(text.splitlines()))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"points": "1,1,40"}, "different whole numbers"),
        ({"points": "1,x"}, "different whole numbers"),
        ({"points": "1,45"}, "45 is above 1.1 x C_max, which is 44"),
        ({"points": "1,30", "offline": "elected"}, "add 40 to --points"),
        ({"points": "33,40"}, "C_min must be 1 to 32"),
        ({"accuracy": "mandatory"}, "--eval_method is missing"),
        ({**SCORED, "extractor": ""}, "--extractor is missing: --eval_method=string_match needs one, such as identity"),
        ({"target_cohort": "2027-01-C0"}, "seed set A is for 2026-10-C1, 2026-11-C0, 2026-11-C1, 2026-12-C0"),
        ({"generation": "[]"}, "--generation must be a JSON object"),
        ({"execution_mode": "valid"}, "a submission has 7 to 32 points, got 2"),
    ],
)
def test_what_is_refused(tmp_path: Path, changed: dict[str, str], words: str) -> None:
    assert words in refusal(tmp_path, **changed)


def test_other_formats_need_the_number_of_samples(tmp_path: Path) -> None:
    (tmp_path / "data.parquet").write_bytes(b"PAR1")
    assert "--dataset_samples is missing" in refusal(tmp_path, dataset="data.parquet")
    assert request(tmp_path, dataset="data.parquet", dataset_samples="6396").dataset_samples == 6396


def test_a_curve_that_is_no_valid_run_only_notes_what_a_submission_lacks(tmp_path: Path) -> None:
    found = request(tmp_path)
    assert found.points == (1, 4) and found.dataset_samples == SAMPLES
    assert any("7 to 32 points" in note for note in found.notes)
    assert any("the server knows the model as" in note for note in found.notes)
    assert found.settings.url == "http://host:8000"


def test_steady_state_and_accuracy_of_a_valid_curve(tmp_path: Path) -> None:
    found = request(tmp_path, execution_mode="valid", points="", served_model="", offline="elected", **SCORED)
    points = found.point_inputs("0.1.0", "abc")
    assert [one.concurrency for one in points] == [1, 2, 3, 5, 8, 14, 24, 40]
    assert [one.floor_s for one in points] == [600] * 7 + [1200]
    assert [one.concurrency for one in points if one.has_accuracy] == [1, 2, 5, 14, 40]
    assert found.notes == ()


@pytest.mark.parametrize(("offline", "count", "scored"), [("elected", 2, 2), ("dedicated", 3, 3), ("none", 2, 2)])
def test_the_offline_result_is_scored_too(tmp_path: Path, offline: str, count: int, scored: int) -> None:
    points = request(tmp_path, offline=offline, points="1,40", **SCORED).point_inputs("", "")
    assert len(points) == count and sum(one.has_accuracy for one in points) == scored
    assert [one.name for one in points if not one.concurrency] == (["offline"] if offline == "dedicated" else [])


def test_agentic_models_are_not_measured(tmp_path: Path) -> None:
    assert "kimi-k3 is an agentic model" in refusal(tmp_path, model="kimi-k3", offline="none")


def test_a_point_is_read_back_from_its_inputs(tmp_path: Path) -> None:
    for point in request(tmp_path, offline="dedicated", **SCORED).point_inputs("0.1.0", "abc"):
        inputs = point.as_inputs()
        assert all(isinstance(value, str) for value in inputs.values())
        assert inputs_from(inputs) == point


def test_the_plan_says_regions_seconds_and_what_a_submission_lacks(tmp_path: Path) -> None:
    found = request(tmp_path, points="", offline="elected", execution_mode="valid", **SCORED)
    text = plan_text(found, found.point_inputs("", ""))
    assert "regions: low 2-4, medium 5-13, high 14-40, margin 41-44" in text
    assert "r40  high_concurrency 1200 s of steady state, then accuracy" in text
    # 7 x 600 and 1,200 s, a tenth more; 20 s of calibration and two starts of the client for each of 8 points
    assert f"expected: {1.1 * 5400 + 8 * 50:,.0f} s" in text and "5 accuracy runs" in text
    assert "a submission would be refused: the server knows the model as" in text
