"""What volunteers send: taken once, whole or not at all, from who may, as much as there is room for."""

import json
import secrets
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from collector_client import BEARER, GZIP, TOKENS, body, collector, reader
from starlette.testclient import TestClient

from crowdperf.store.signatures import new_key, sign_withdrawal
from crowdperf.store.store import Store

BUNDLES = "/api/v1/bundles"


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    """A client of an empty collector."""
    with collector(tmp_path) as found:
        yield found


def test_a_bundle_is_kept_once(client: TestClient) -> None:
    first = client.post(BUNDLES, content=body(), headers=BEARER)
    assert first.status_code == 201, first.text
    told = first.json()
    assert told["url"] == f"/r/{told['id']}" and told["verification"] == "logs consistent"
    assert told["labels"] == ["unofficial", "test run"] and len(told["results"]) == 1
    assert client.get(told["url"]).status_code == 200
    again = client.post(BUNDLES, content=body(), headers=BEARER)
    assert (again.status_code, again.json()["id"]) == (200, told["id"])
    other = client.post(BUNDLES, content=body(value=1.0), headers=BEARER)
    assert (other.status_code, other.json()["id"]) == (409, told["id"])
    stranger = client.post(BUNDLES, content=body(key=2), headers=BEARER)
    assert stranger.status_code == 201 and stranger.json()["id"] != told["id"]


@pytest.mark.parametrize(
    ("content", "headers", "status"),
    [
        (body(), GZIP, 401),
        (body(), GZIP | {"Authorization": "Bearer wrong"}, 401),
        (body(), GZIP | {"Authorization": "Basic wrong"}, 401),
        (body(), BEARER | {"Content-Type": "text/html"}, 415),
        (body(), BEARER | {"Content-Type": ""}, 415),
        (b"x" * 5_000_000, BEARER, 413),
        (b"x", BEARER | {"Content-Length": "99999999999999999999"}, 413),
        (b"no bundle", BEARER, 422),
        (b"", BEARER, 422),
    ],
)
def test_what_cannot_be_kept_is_refused(
    client: TestClient, content: bytes, headers: dict[str, str], status: int
) -> None:
    assert client.post(BUNDLES, content=content, headers=headers).status_code == status
    assert client.get("/api/v1/results.json?all=1").json()["total"] == 0


@pytest.mark.parametrize("value", [float("inf"), 10**400], ids=["infinity", "400 digits"])
def test_numbers_that_no_database_holds_are_refused(client: TestClient, value: float) -> None:
    answer = client.post(BUNDLES, content=body(value=value), headers=BEARER)
    assert (answer.status_code, answer.json()["problems"][0]["rule"]) == (422, "FORM")


def test_a_refusal_names_rule_file_found_and_expected(client: TestClient) -> None:
    assert client.post(BUNDLES, content=b"no bundle", headers=BEARER).json() == {
        "problems": [
            {"rule": "FORM", "file": "results.json", "found": "another digest", "expected": "that of the manifest"}
        ]
    }


def test_a_body_without_a_length_stops_at_the_limit(client: TestClient) -> None:
    sent = []

    def parts() -> Iterator[bytes]:
        for number in range(10_000):
            sent.append(number)
            yield b"x" * 10_000

    assert client.post(BUNDLES, content=parts(), headers=BEARER).status_code == 413


def test_wrong_tokens_are_slowed_down_and_never_who_has_the_right_one(client: TestClient) -> None:
    wrong = GZIP | {"Authorization": "Bearer wrong"}
    assert [client.post(BUNDLES, content=body(), headers=wrong).status_code for _ in range(10)] == [401] * 10
    answer = client.post(BUNDLES, content=body(), headers=wrong)
    assert answer.status_code == 429 and 0 < int(answer.headers["retry-after"]) <= 60
    assert client.post("/moderation", data={"token": "wrong"}).status_code == 401  # counted apart
    assert client.post(BUNDLES, content=body(), headers=BEARER).status_code == 201
    assert [client.post("/moderation", data={"token": "wrong"}).status_code for _ in range(10)][-1] == 429
    assert client.post("/moderation", data={"token": TOKENS.moderation}).status_code == 200


@pytest.mark.parametrize(
    ("settings", "host", "status"),
    [
        ({}, "evil.example", 421),
        ({}, "evil.example:8090", 421),
        ({}, "127.0.0.1.evil.example", 421),
        ({}, "", 421),
        ({}, "localhost:9000", 200),  # by ssh -L
        ({}, "LOCALHOST", 200),
        ({}, "[::1]:8090", 200),
        ({"behind_proxy": True}, "results.example.org", 200),
        ({"behind_proxy": True, "public_name": "results.example.org"}, "results.example.org", 200),
        ({"behind_proxy": True, "public_name": "results.example.org"}, "evil.example", 421),
        ({"public_name": "results.example.org"}, "results.example.org", 200),
    ],
)
def test_only_its_own_names_reach_a_collector(tmp_path: Path, settings: dict[str, Any], host: str, status: int) -> None:
    with collector(tmp_path, **settings) as client:
        answer = client.get("/api/v1/results.json", headers={"Host": host})
        assert answer.status_code == status
        assert "Content-Security-Policy" in answer.headers


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ("database is locked", 503),
        ("database or disk is full", 503),
        ("disk I/O error", 503),
        ("no such table: x", 500),
    ],
)
def test_a_database_that_cannot_be_used_now_says_when_to_come_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, status: int
) -> None:
    def fails(*_: Any, **__: Any) -> Any:
        raise sqlite3.OperationalError(words)

    with collector(tmp_path) as client:
        monkeypatch.setattr(Store, "add", fails)
        answers = [client.post(BUNDLES, content=body(), headers=BEARER)]
        monkeypatch.setattr(Store, "find", fails)
        answers.append(client.get("/?all=1"))
        assert [answer.status_code for answer in answers] == [status] * 2
        assert all(("retry-after" in answer.headers) is (status == 503) for answer in answers)
        assert all("Content-Security-Policy" in answer.headers for answer in answers)


def test_a_key_sends_so_many_bundles_in_an_hour(tmp_path: Path) -> None:
    with collector(tmp_path, bundles_per_hour=2) as client:
        codes = [client.post(BUNDLES, content=body(f"run-{n}"), headers=BEARER).status_code for n in range(3)]
        assert codes == [201, 201, 429]
        assert client.post(BUNDLES, content=body("run-9", key=2), headers=BEARER).status_code == 201


def test_a_full_disk_takes_nothing_and_still_shows(tmp_path: Path) -> None:
    with collector(tmp_path, min_free_bytes=1 << 62) as client:
        assert client.post(BUNDLES, content=body(), headers=BEARER).status_code == 503
        assert client.get("/").status_code == 200


def test_uploads_without_a_token_where_that_is_chosen(tmp_path: Path) -> None:
    with collector(tmp_path, open_uploads=True) as client:
        assert client.post(BUNDLES, content=body(), headers=GZIP).status_code == 201


def test_a_read_only_collector_takes_nothing(tmp_path: Path) -> None:
    Store.open(tmp_path / "results.sqlite").close()
    with collector(tmp_path, tokens=None, read_only=True) as client:
        assert client.post(BUNDLES, content=body(), headers=GZIP).status_code in (404, 405)
        assert client.get("/moderation").status_code == 404


def test_a_check_that_takes_too_long_is_given_up(tmp_path: Path) -> None:
    def slow(content: bytes, limits: Any) -> Any:
        time.sleep(0.3)
        return reader(content, limits)

    with collector(tmp_path, verification_timeout_s=0.01) as client:
        client.app.state.collector.reader = slow  # type: ignore[attr-defined]
        answer = client.post(BUNDLES, content=body(), headers=BEARER)
        assert answer.status_code == 503 and int(answer.headers["retry-after"]) > 0
        assert client.get("/api/v1/results.json?all=1").json()["total"] == 0


def test_results_of_new_keys_can_be_held(tmp_path: Path) -> None:
    with collector(tmp_path, hold_new=True) as client:
        told = client.post(BUNDLES, content=body(), headers=BEARER).json()
        answer = client.get(told["url"])
        assert answer.status_code == 410 and "hidden until a moderator approves it" in answer.text
        assert client.get(f"/api/v1/results/{told['id']}.json").status_code == 410


def test_a_withdrawal_is_for_who_signed_and_works_once(tmp_path: Path) -> None:
    owner, other = new_key(), new_key()
    with collector(tmp_path) as client:
        client.app.state.collector.reader = lambda content, limits: signed_by(owner, content, limits)  # type: ignore[attr-defined]
        told = client.post(BUNDLES, content=body(), headers=BEARER).json()
        address = f"/api/v1/results/{told['id']}"
        request = sign_withdrawal(owner, told["id"])
        assert client.request("DELETE", address, content=sign_withdrawal(other, told["id"])).status_code == 403
        assert client.request("DELETE", address + "x", content=request).status_code == 403
        assert client.request("DELETE", address, content=request.replace(b"nonce", b"mence")).status_code == 422
        assert client.request("DELETE", address, content=b"[" * 10_000).status_code == 422
        assert client.get(told["url"]).status_code == 200
        assert client.request("DELETE", address, content=request).status_code == 200
        gone = client.get(told["url"])
        assert gone.status_code == 410 and "withdrawn" in gone.text and "172,084" not in gone.text
        assert client.request("DELETE", address, content=request).status_code == 409
        assert client.post(BUNDLES, content=body(), headers=BEARER).status_code == 410


def signed_by(key: Any, content: bytes, limits: Any) -> Any:
    """What `reader` gives, signed with this key."""
    import dataclasses
    import hashlib

    bundle, results = reader(content, limits)
    key_id = hashlib.sha256(key.public_key).hexdigest()[:16]
    sender = dataclasses.replace(bundle.signer, key_id=key_id, public_key=key.public_key)
    return dataclasses.replace(bundle, signer=sender), results


def test_the_token_of_uploads_does_not_moderate(client: TestClient) -> None:
    token = BEARER["Authorization"].removeprefix("Bearer ")
    assert client.post("/moderation", data={"token": token}).status_code == 401


def test_no_address_is_kept(tmp_path: Path) -> None:
    with collector(tmp_path) as client:
        client.post(BUNDLES, content=body(), headers=BEARER | {"X-Forwarded-For": "203.0.113.77"})
    for path in tmp_path.iterdir():
        content = path.read_bytes()
        assert b"203.0.113" not in content and b"testclient" not in content


def test_unknown_methods_and_addresses_of_the_api_answer_in_json(client: TestClient) -> None:
    assert client.put(BUNDLES).status_code == 405
    answer = client.get("/api/v1/" + secrets.token_hex(4))
    assert answer.status_code == 404 and json.loads(answer.text)["error"]
