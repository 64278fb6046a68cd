"""A curve of MLPerf Endpoints that a volunteer sends: kept, and shown with how its figures were come by."""

from pathlib import Path

import pytest
from collector_client import BEARER, collector
from curve_tree import small_curve

from crowdperf.store.bundle import make_curve_bundle
from crowdperf.store.signatures import new_key
from crowdperf.web import bundle_checks


@pytest.fixture(scope="module")
def curve(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a curve of one point."""
    folder = tmp_path_factory.mktemp("curve")
    small_curve(folder)
    return folder


@pytest.mark.parametrize(
    ("with_events", "words"),
    [
        (True, ("logs consistent", "E14", "recomputed from the times of each sample", "unofficial")),
        (False, ("summary", "the values are claimed", "claimed, because there are no samples", "unofficial")),
    ],
)
def test_a_volunteer_sends_a_curve_and_sees_how_its_figures_were_come_by(
    tmp_path: Path, curve: Path, with_events: bool, words: tuple[str, ...]
) -> None:
    bundle = make_curve_bundle(curve, new_key(), with_events=with_events)
    with collector(tmp_path) as client:
        client.app.state.collector.reader = bundle_checks.read_and_check  # type: ignore[attr-defined]
        answer = client.post("/api/v1/bundles", content=bundle.content, headers=BEARER)
        assert answer.status_code == 201, answer.text
        told = answer.json()
        page = client.get(told["url"]).text
        assert all(word in page for word in words)
        assert "LoadGen" not in page.partition("Recomputed and compared")[2].partition("</details>")[0]
        assert "gpt-oss-120b: curve" in client.get(f"/curve/{told['id']}").text
        assert client.post("/api/v1/bundles", content=bundle.content, headers=BEARER).status_code == 200
