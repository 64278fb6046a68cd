"""Connections are opened a few at first, then more; those that take long are counted."""

import asyncio
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from endpoint_client import asked, assert_right, run
from stub_openai import running_stub, write_tokenizer

from crowdperf.harness.backends.endpoint import connections
from crowdperf.harness.backends.endpoint.address import parse_address
from crowdperf.harness.backends.endpoint.connections import FEWEST, MOST, ConnectWindow, Pool
from crowdperf.harness.backends.endpoint.engine import open_engine
from crowdperf.harness.text.request import Endpoint


def test_the_window_grows_with_each_quick_connection_and_begins_anew_after_a_slow_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story() -> None:
        window = ConnectWindow()
        began_s = [await window.begin() for _ in range(FEWEST)]
        waiting = [asyncio.ensure_future(window.begin()) for _ in range(10)]
        await asyncio.sleep(0)
        assert not any(one.done() for one in waiting)
        waiting[0].cancel()
        window.end(began_s[0], is_open=True)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert [one.done() for one in waiting[1:4]] == [True, True, False]  # one more than before
        monkeypatch.setattr(connections, "SLOW_S", -1.0)
        window.end(began_s[1], is_open=True)
        assert (window.size, window.opened, window.slow) == (FEWEST, 2, 1)
        window.end(began_s[2], is_open=False)
        assert (window.size, window.opened, window.slow) == (FEWEST, 2, 1)
        for one in waiting:
            one.cancel()

    asyncio.run(story())


def test_the_window_has_an_end() -> None:
    async def story() -> None:
        window = ConnectWindow()
        for _ in range(MOST + 9):
            window.end(await window.begin(), is_open=True)
        assert window.size == MOST

    asyncio.run(story())


def test_a_free_connection_is_for_the_request_that_waits_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        pool, opened = Pool(parse_address(Endpoint(url="http://127.0.0.1:9/v1"), {}), 5.0, 4), asyncio.Event()
        monkeypatch.setattr(pool, "_opened", opened.wait)  # a server that accepts nothing for a while
        opening = [asyncio.ensure_future(pool.take()) for _ in range(FEWEST)]
        waiting = [asyncio.ensure_future(pool.take(needs_new)) for needs_new in (False, True, False, False)]
        await asyncio.sleep(0)
        free = [SimpleNamespace(is_open=True, idle_s=0.0, abort=lambda: None) for _ in range(3)]
        pool.give_back(free[0], can_be_used_again=True)  # type: ignore[arg-type]
        later = asyncio.ensure_future(pool.take())
        for _ in range(4):
            await asyncio.sleep(0)
        assert waiting[0].done() and waiting[0].result() is free[0] and not later.done()
        pool.give_back(free[1], can_be_used_again=True)  # type: ignore[arg-type]
        waiting[2].cancel()
        for _ in range(6):
            await asyncio.sleep(0)
        assert waiting[3].done() and waiting[3].result() is free[1]
        pool.give_back(free[2], can_be_used_again=True)  # type: ignore[arg-type]
        for _ in range(6):
            await asyncio.sleep(0)
        assert later.done() and later.result() is free[2] and not waiting[1].done()
        opened.set()
        await asyncio.gather(*opening, waiting[1])
        assert not pool.window.is_waited_for

    asyncio.run(story())


def test_many_requests_at_once_open_their_connections_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_tokenizer(tmp_path / "model")
    with running_stub() as (_, url):
        engine = open_engine(asked(f"{url}/ttft_ms=50/v1", folder))
        try:
            assert_right(run(engine, 200), 200)
            counts = engine.record()["counts"]
            assert counts["slow_connects"] == 0  # type: ignore[index,call-overload]
            assert 0 < counts["connected"] <= 200  # type: ignore[index,call-overload,operator]
            monkeypatch.setattr(connections, "SLOW_S", -1.0)
            assert_right(run(engine, 250), 250)
            counts = engine.record()["counts"]
            assert counts["slow_connects"] == counts["connected"] > 0  # type: ignore[index,call-overload,operator]
        finally:
            engine.close()
    assert threading.active_count() < 20
