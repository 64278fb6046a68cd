"""The plots of a run's load, and of what the measured server reported."""

from crowdperf.logs.load_plots import load_part, server_part

COLUMNS = ["time_s", "kv_cache", "running", "waiting"]


def test_what_a_server_reported_over_time_is_drawn() -> None:
    rows = [[0.0, 0.1, 1.0, None], [1.0, 0.5, 4.0, None], [2.0, 0.9, 4.0, None]]
    found = server_part("Offline", {"server": {"series": {"columns": COLUMNS, "rows": rows}}})
    assert "Offline, the server: KV cache in use 10 to 90 %; running requests 1 to 4" in found
    assert found.count("<svg") == 2 and "waiting" not in found


def test_nothing_is_drawn_without_a_server_or_its_metrics() -> None:
    assert server_part("Offline", {}) == ""
    assert server_part("Offline", {"server": {"why": "status 404"}}) == ""
    assert server_part("Offline", {"server": {"series": {"columns": COLUMNS, "rows": []}}}) == ""
    assert "Offline: no load was recorded" in load_part("Offline", None)
