"""A collector in the test's own process, and uploads whose content the test decides."""

import contextlib
import dataclasses
import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the packages of the results server are not installed")
pytest.importorskip("cryptography", reason="the packages of the results server are not installed")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it would rather have httpx2 than httpx
    from starlette.testclient import TestClient
from web_builder import crowd_result, signer

from crowdperf.store.archive import Limits
from crowdperf.store.bundle import Manifest, ReadBundle
from crowdperf.store.model import NewResult
from crowdperf.store.refusal import refused
from crowdperf.web.access import Tokens
from crowdperf.web.app import create_app
from crowdperf.web.settings import Settings

TOKENS = Tokens("an-upload-token-of-tests", "a-moderation-token-of-tests")
GZIP = {"Content-Type": "application/gzip"}
BEARER = GZIP | {"Authorization": f"Bearer {TOKENS.upload}"}


def body(run_id: str = "run-1", key: int = 1, **changes: Any) -> bytes:
    """What `reader` makes a bundle of: its run, the number of its key, and fields of the result."""
    return json.dumps({"run_id": run_id, "key": key, "changes": changes}).encode()


def reader(content: bytes, limits: Limits) -> tuple[ReadBundle, tuple[NewResult, ...]]:
    """Stands for the real reader, which has tests of its own: a body of `body`, or a refusal."""
    try:
        said = json.loads(content)
    except ValueError:
        raise refused("FORM", "results.json", "another digest", "that of the manifest") from None
    new = crowd_result(said["run_id"], **said["changes"])
    sender = signer(said["key"])
    manifest = Manifest(run_id=said["run_id"], made_utc="2026-11-23T10:15Z", recipes_sha256="3" * 64,
                        public_key=sender.public_key, alias="", files=(), digests={})  # fmt: skip
    found = ReadBundle(manifest=manifest, signer=sender, digest="4" * 64, files={})
    return found, (new,)


@contextlib.contextmanager
def collector(folder: Path, tokens: Tokens | None = TOKENS, **settings: Any) -> Iterator[TestClient]:
    """A client of a new collector whose database is in `folder`."""
    given = Settings(
        database=folder / "results.sqlite", token_file=folder / "tokens" if tokens else None, min_free_bytes=0
    )
    app = create_app(dataclasses.replace(given, **settings), tokens)
    app.state.collector.reader = reader
    with TestClient(app, base_url="http://127.0.0.1:8090", raise_server_exceptions=False) as client:
        yield client
