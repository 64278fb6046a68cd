"""Moderation: with a token, from this site only, with a reason, and nothing is lost."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from collector_client import BEARER, TOKENS, body, collector
from starlette.testclient import TestClient
from web_builder import signer

from crowdperf.web.access import PASS_LASTS_S, Passes


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    """A client of a collector with one result of key 1."""
    with collector(tmp_path) as found:
        assert found.post("/api/v1/bundles", content=body(), headers=BEARER).status_code == 201
        yield found


def given_pass(client: TestClient) -> str:
    """The pass in the forms for who has the token."""
    text = client.post("/moderation", data={"token": TOKENS.moderation}).text
    found = re.search(r'name="pass" value="([^"]+)"', text)
    assert found
    return found[1]


def only_result(client: TestClient) -> str:
    """The id of the one result."""
    return str(client.get("/api/v1/results.json?all=1").json()["results"][0]["id"])


def test_a_result_is_hidden_with_a_reason_and_shown_again(client: TestClient) -> None:
    result_id, given = only_result(client), given_pass(client)
    act = {"pass": given, "what": "hide", "target": result_id, "reason": "the processor is misspelt"}
    row = client.get("/api/v1/results.json?all=1").json()["results"][0]
    pages = [f"/c/{row['key']}", f"/api/v1/configurations/{row['key']}.json", f"/system/{row['system_key']}"]
    assert [client.get(page).status_code for page in pages] == [200] * 3
    assert "Done: hide" in client.post("/moderation/act", data=act).text
    assert [client.get(page).status_code for page in pages] == [404] * 3
    gone = client.get(f"/r/{result_id}")
    assert gone.status_code == 410 and "the processor is misspelt" in gone.text
    assert client.get("/api/v1/results.json?all=1").json()["total"] == 0
    assert client.get(f"/r/{result_id}/files/digits/Offline/performance/run_1/mlperf_log_detail.txt").status_code == 404
    client.post("/moderation/act", data=act | {"what": "unhide", "reason": "it is right"})
    text = client.get(f"/r/{result_id}").text
    assert "it is right" in text and "the processor is misspelt" in text


def test_a_blocked_key_sends_nothing_and_its_results_are_hidden(client: TestClient) -> None:
    result_id, given, key_id = only_result(client), given_pass(client), signer(1).key_id
    act = {"pass": given, "what": "block", "target": key_id, "reason": "made-up logs"}
    assert "Done: block" in client.post("/moderation/act", data=act).text
    assert client.get(f"/r/{result_id}").status_code == 410
    assert client.post("/api/v1/bundles", content=body("run-2"), headers=BEARER).status_code == 403
    text = client.get(f"/signer/{key_id}").text
    assert "This key was blocked" in text and "made-up logs" in text


def test_a_known_key_is_no_new_contributor(client: TestClient) -> None:
    result_id, given = only_result(client), given_pass(client)
    assert ">new contributor<" in client.get(f"/r/{result_id}").text
    client.post("/moderation/act", data={"pass": given, "what": "know", "target": signer(1).key_id, "reason": "met"})
    assert ">new contributor<" not in client.get(f"/r/{result_id}").text


@pytest.mark.parametrize("given", ["", "9999999999.", "9999999999." + "0" * 64, "x", "é.é", "." * 200])
def test_an_action_without_a_pass_is_refused(client: TestClient, given: str) -> None:
    act = {"pass": given, "what": "hide", "target": only_result(client), "reason": "x"}
    assert client.post("/moderation/act", data=act).status_code == 403
    assert client.get("/api/v1/results.json?all=1").json()["total"] == 1


def test_a_form_of_another_site_is_refused_even_with_a_pass(client: TestClient) -> None:
    act = {"pass": given_pass(client), "what": "hide", "target": only_result(client), "reason": "x"}
    for address, data in (("/moderation/act", act), ("/moderation", {"token": TOKENS.moderation})):
        assert client.post(address, data=data, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert client.get("/api/v1/results.json?all=1").json()["total"] == 1


@pytest.mark.parametrize("change", [{"what": "withdraw"}, {"what": "drop"}, {"reason": ""}, {"target": ""}])
def test_an_action_needs_a_known_word_a_target_and_a_reason(client: TestClient, change: dict[str, str]) -> None:
    act = {"pass": given_pass(client), "what": "hide", "target": only_result(client), "reason": "x"} | change
    assert client.post("/moderation/act", data=act).status_code == 400


def test_moderation_is_never_kept_by_a_browser(client: TestClient) -> None:
    answer = client.post("/moderation", data={"token": TOKENS.moderation})
    assert answer.headers["cache-control"] == "no-store" and "set-cookie" not in answer.headers


def test_a_pass_ends_and_is_of_one_process() -> None:
    passes = Passes()
    given = passes.make(1_000.0)
    assert passes.is_good(given, 1_000.0 + PASS_LASTS_S - 1)
    assert not passes.is_good(given, 1_000.0 + PASS_LASTS_S)
    assert not Passes().is_good(given, 1_000.0)
