"""The backend endpoint against a server that accepts only its own temperature (stub_openai.py)."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path

import pytest
from endpoint_client import asked, folder_fixture, run, server_fixture  # noqa: F401
from stub_openai import Stub

from crowdperf.harness.backends.endpoint.engine import open_engine
from crowdperf.harness.base.errors import HarnessError


@pytest.mark.parametrize("more", ["", ",vague", ",random"])
def test_own_prompts_are_answered_at_the_servers_temperature_and_a_benchmarks_are_not(
    server: tuple[Stub, str], folder: Path, more: str
) -> None:
    request = asked(f"{server[1]}/warm{more}/v1", folder)
    engine = open_engine(replace(request, is_server_believed=True))
    with contextlib.closing(engine):
        assert len(run(engine, 3).answers) == 3
        assert "temperature" not in server[0].seen[-1]
        record = engine.record()
    expected = {"value": None, "origin": "the server's default", "accepted": False}
    assert record["sampling"]["temperature"] == expected  # type: ignore[index,call-overload]
    assert [note for note in record["notes"] if "answers were drawn at its default" in note] == record["notes"]  # type: ignore[union-attr,operator]
    with pytest.raises(HarnessError, match="temperature") as caught:
        open_engine(request)
    assert more == ",vague" or "the benchmark needs this setting" in caught.value.hint
