"""Every page, requested as a browser does: what it holds, what it is never true, and what stands where nothing is."""

import csv
import dataclasses
import io
import random
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from collector_client import TOKENS, collector
from starlette.testclient import TestClient
from web_builder import DIGITS, HOST, SOURCE, crowd_result, curve_result, fill, published_results, signer

from crowdperf.store import facts
from crowdperf.store.facts import Documents
from crowdperf.store.model import Figure
from crowdperf.store.store import Store
from crowdperf.web import comparison, pages
from crowdperf.web.links import round_url


@dataclasses.dataclass
class Shown:
    """A collector with results of all kinds."""

    client: TestClient
    ids: list[str]
    database: Path

    def pages(self) -> dict[str, str]:
        """Every kind of page, by name."""
        crowd, curve, other, published = (self.ids[place] for place in (0, 14, 15, 16))
        row = next(row for row in self.client.get("/api/v1/results.json?all=1").json()["results"] if row["signer"])
        return {
            "home": "/",
            "all": "/?all=1&sort=-value&column=value&column=each&column=labels",
            "result": f"/r/{crowd}",
            "published": f"/r/{published}",
            "configuration": row["configuration"],
            "system": f"/system/{row['system_key']}",
            "signer": f"/signer/{row['signer']}",
            "curve": f"/curve/{curve}?with={other}",
            "compare": f"/compare?a={crowd}&b={self.ids[1]}",
            "refused comparison": f"/compare?a={crowd}&b={curve}",
            "about": "/about",
            "moderation": "/moderation",
        }


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    """One collector for the tests that only read."""
    folder = tmp_path_factory.mktemp("pages")
    with Store.open(folder / "results.sqlite") as store, store.transaction():
        ids = fill(store)
    with collector(folder) as client:
        yield Shown(client, ids, folder / "results.sqlite")


class Outline(HTMLParser):
    """What a page consists of: tags, attributes, the number of h1, controls and labels."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag."""
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def all(self, tag: str) -> list[dict[str, str]]:
        """The attributes of each of these tags."""
        return [attributes for name, attributes in self.tags if name == tag]


def test_every_page_is_whole_and_runs_nothing(shown: Shown) -> None:
    for name, address in shown.pages().items():
        answer = shown.client.get(address)
        outline = Outline(answer.text)
        assert answer.status_code == 200, name
        assert len(outline.all("h1")) == 1, name
        assert outline.all("html")[0]["lang"] == "en"
        assert not outline.all("script") and not outline.all("style") and not outline.all("iframe"), name
        attributes = {attribute for _, found in outline.tags for attribute in found}
        assert not [one for one in attributes if one.startswith("on") or one == "style"], name
        assert "None" not in re.sub(r"<[^>]*>", " ", answer.text), name


def test_every_answer_carries_the_policy(shown: Shown) -> None:
    addresses = [*shown.pages().values(), "/style.css", "/api/v1/results.csv", "/healthz", "/none", "/api/v1/none"]
    for address in addresses:
        headers = shown.client.get(address).headers
        assert headers["content-security-policy"].startswith("default-src 'none'; style-src 'self'"), address
        assert (headers["x-content-type-options"], headers["referrer-policy"]) == ("nosniff", "no-referrer"), address
        assert "set-cookie" not in headers and "server" not in headers, address


def test_every_link_of_a_page_leads_somewhere(shown: Shown) -> None:
    seen, waiting = set(), list(shown.pages().values())
    while waiting and len(seen) < 60:
        address = waiting.pop(0)
        if address in seen or not address.startswith("/"):
            continue
        seen.add(address)
        answer = shown.client.get(address)
        assert answer.status_code == 200, address
        if "html" in answer.headers["content-type"]:
            outline = Outline(answer.text)
            waiting += [found["href"] for found in outline.all("a")]
            assert {found["for"] for found in outline.all("label") if "for" in found} <= {
                found["id"] for _, found in outline.tags if "id" in found
            }


def test_a_result_shows_its_value_labels_command_and_checks(shown: Shown) -> None:
    text = shown.client.get(f"/r/{shown.ids[0]}").text
    for words in ("unofficial", "test run", "new contributor", "cm run script --tags=run,mlperf,inference", "V13",
                  "logs consistent", "MLCommons did not review the result.", "recomputed"):  # fmt: skip
        assert words in text, words
    assert "verified result" not in text
    assert "unofficial" not in re.findall(r"<main.*</main>", shown.client.get(f"/r/{shown.ids[16]}").text, re.DOTALL)[0]


def test_who_asks_for_nothing_sees_comparable_results_of_real_inputs(shown: Shown) -> None:
    text = shown.client.get("/").text
    assert "Newest from volunteers" in text and "Without label: synthetic" in text
    assert re.search(r'aria-sort="descending"', text)


def test_the_table_tells_settings_and_scores_of_results_apart(shown: Shown) -> None:
    page = shown.client.get("/?benchmark=digits").text
    assert "Chosen settings" in page and "batch_size 32" in page
    assert re.search(r'data-label="Accuracy"><span>\d\d\.', page)


def test_paging_shows_every_result_once(tmp_path: Path) -> None:
    with Store.open(tmp_path / "results.sqlite") as store, store.transaction():
        ids = [
            store.add(crowd_result(f"run-{number}", value=float(number % 7 + 1)), SOURCE).id for number in range(230)
        ]
    with collector(tmp_path) as client:
        address, seen = "/?all=1&sort=value", []
        while address:
            text = client.get(address).text
            seen += re.findall(r'<th scope="row"><a href="/r/(\w+)">', text)
            following = re.search(r'rel="next" href="([^"]+)"', text)
            address = following[1].replace("&amp;", "&") if following else ""
    assert sorted(seen) == sorted(ids) and len(ids) == 230


def test_filters_of_pages_and_of_the_api_agree(shown: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "BATCH", 3)
    for words in ("benchmark=digits", "q=volunteer", "label=test+run", "without=unofficial", "kind=published",
                  "accelerator=NVIDIA+L40S&scenario=Server"):  # fmt: skip
        page_text = shown.client.get(f"/?all=1&{words}").text
        total = int(re.search(r"<strong>([\d,]+) results?</strong>|No result", page_text)[1] or 0)  # type: ignore[index]
        rows = list(csv.DictReader(io.StringIO(shown.client.get(f"/api/v1/results.csv?all=1&{words}").text)))
        assert shown.client.get(f"/api/v1/results.json?all=1&{words}").json()["total"] == total == len(rows) > 0, words


def test_figures_of_a_language_model_stand_at_the_top_and_in_words(tmp_path: Path) -> None:
    figures = [Figure(name=name, value=value, unit="ms") for name, value in (("TTFT 99", 640.4), ("TPOT 99", 55.1))]
    figures.append(Figure(name="tokens per second", value=295.4, unit="tokens/s"))
    with collector(tmp_path) as client:
        with Store.open(tmp_path / "results.sqlite") as store:
            one = store.add(crowd_result(figures=tuple(figures)), SOURCE).id
        text = client.get(f"/r/{one}").text
    for words in (
        "TTFT p99",
        "640.4 ms",
        "TPOT p99",
        "295.4 tokens/s",
        "Time to first token (TTFT) p99",
    ):
        assert words in text, words


def test_a_server_behind_an_endpoint_is_not_shown_as_the_machine_of_its_client(tmp_path: Path) -> None:
    engine = {"endpoint": {"value": "https://gpu7.example.org/v1"}, "model": {"value": "my-llm"}}
    documents = Documents(
        result={
            "run": {"backend": {"value": "endpoint"}, "device": {"value": "cpu"}}, "text": {"engine": engine},
            "machine": {"processor": "Client CPU", "usable_core_count": 2},
        }
    )  # fmt: skip
    place = facts.RunPlace(benchmark="llama3.1-8b", scenario="Offline", run_class="fast")
    configuration = facts.configuration_of(place, documents)
    labels, _ = facts.labels_of("", configuration, documents)
    with collector(tmp_path) as client:
        with Store.open(tmp_path / "results.sqlite") as store:
            one = store.add(crowd_result(configuration=configuration, labels=labels), SOURCE).id
        shown, table = client.get(f"/r/{one}").text, client.get("/?all=1").text
    assert "server behind an endpoint" in shown and "server behind an endpoint" in table
    assert "Client CPU" not in table
    assert shown.count("Client CPU") == len(re.findall(r"client processor<[^>]*>\s*<[^>]*>Client CPU<", shown)) == 1
    assert "its hardware is not known" in shown and "my-llm" in shown and "gpu7" not in shown
    assert "Processor<" not in shown and "Device<" not in shown


def test_published_rows_link_their_round_and_no_others_do(shown: Shown) -> None:
    link = 'href="https://github.com/mlcommons/inference_results_v6.1" rel="noopener nofollow"'
    assert shown.client.get("/?all=1&kind=published&column=round").text.count(link) == 60
    assert shown.client.get(f"/r/{shown.ids[16]}").text.count(link) == 1
    assert "https://" not in shown.client.get("/?all=1&kind=crowd&column=round").text
    for kind, name in (("crowd", "v6.1"), ("published", "v6.1/../x"), ("published", ""), ("published", "v6.1\n")):
        assert round_url(kind, name) == ""


def test_an_answer_that_has_not_changed_is_not_sent_again(shown: Shown) -> None:
    first = shown.client.get("/?all=1")
    again = shown.client.get("/?all=1", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    "address",
    ["/r/none", "/c/none", "/system/none", "/signer/none", "/curve/none", "/r/../../etc/passwd", "/r/%2e%2e%2fetc",
     "/r/..%5c..%5cetc", "/static/../app.py", "/style.css/../app.py", "/api/v1/results/none.json",
     "/api/v1/configurations/none.json", "/r/%00", "/templates/home.html"],
)  # fmt: skip
def test_what_is_not_there_is_404(shown: Shown, address: str) -> None:
    assert shown.client.get(address).status_code == 404


def test_a_file_is_a_download_of_no_kind_and_only_of_its_result(shown: Shown) -> None:
    name = "digits/Offline/performance/run_1/mlperf_log_detail.txt"
    answer = shown.client.get(f"/r/{shown.ids[0]}/files/{name}")
    assert answer.content == b"::MLLOG a made-up line\n"
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"].startswith("attachment")
    for wrong in ("digits/Offline/accuracy/mlperf_log_accuracy.json", "../../results.sqlite", "/etc/passwd", "x"):
        assert shown.client.get(f"/r/{shown.ids[0]}/files/{wrong}").status_code == 404


def test_results_of_other_benchmarks_or_metrics_are_not_compared(shown: Shown) -> None:
    assert "different benchmarks" in shown.client.get(f"/compare?a={shown.ids[0]}&b={shown.ids[14]}").text
    assert "Result not found: nothing" in shown.client.get("/compare?a=nothing").text
    text = shown.client.get(f"/compare?id={shown.ids[0]}&id={shown.ids[1]}&id={shown.ids[2]}").text
    assert "What differs" in text and "B: onnxruntime 1.30" in text and "Relative to A" in text
    assert re.search(r"\+[\d.]+ %</td>", text)


def test_an_outlier_is_marked_and_an_unknown_value_refused_by_nobody(tmp_path: Path) -> None:
    with Store.open(tmp_path / "results.sqlite") as store, store.transaction():
        values = [100.0, 101.0, 102.0, 99.0, 100.5, 300.0]
        ids = [store.add(crowd_result(f"run-{place}", value=value), SOURCE).id for place, value in enumerate(values)]
    with collector(tmp_path) as client:
        assert ">outlier<" in client.get(f"/r/{ids[5]}").text
        assert ">outlier<" not in client.get(f"/r/{ids[0]}").text


HOSTILE = (
    "<script>alert(1)</script>", '"onmouseover="alert(1)', "javascript:alert(1)", "=cmd()|'/c calc'!A0",
    "\u202egnp.exe", "{{ 7 * 7 }}", "x" * 65_536, "a\x00b", "a\ud800b", "'; DROP TABLE result; --",
    "</title><img src=x onerror=alert(1)>",
)  # fmt: skip


def hostile_result(text: str, number: int) -> Any:
    """A result all of whose texts are this one."""
    system = dataclasses.replace(HOST, cpu=text, accelerator=text, accelerator_count=2, facts={text: text})
    names = ("benchmark", "round", "division", "category", "scenario", "precision", "tier", "stack", "device",
             "data_kind", "run_class", "model_digest")  # fmt: skip
    configuration = dataclasses.replace(DIGITS, **dict.fromkeys(names, text), settings={text: text}, system=system)
    changes = dict.fromkeys(
        ("stack_version", "metric", "unit", "command", "submitter", "system_name", "made_utc"), text
    )
    made = crowd_result(f"hostile-{number}", kind="published" if number % 2 else "crowd", configuration=configuration,
                        labels=(text,), notes=(text,), raw={text: text},
                        figures=tuple(Figure(name=f"p{n} latency {text}", value=n, unit=text) for n in (50, 90, 99)),
                        **changes)  # fmt: skip
    point = dataclasses.replace(curve_result("c", "x", 1.0).curve[0], region=text)
    score = dataclasses.replace(made.accuracy[0], name=text)
    return dataclasses.replace(made, curve=(point,), accuracy=(score,))


def test_hostile_texts_stay_texts_on_every_page(tmp_path: Path) -> None:
    sender = dataclasses.replace(signer(1), alias='<b onclick="alert(1)">')
    with Store.open(tmp_path / "results.sqlite") as store, store.transaction():
        ids = [store.add(hostile_result(text, n), SOURCE, sender).id for n, text in enumerate(HOSTILE)]
    with collector(tmp_path) as client:
        row = client.get("/api/v1/results.json?all=1").json()["results"]
        keys = [one["key"] for one in row]
        pages = ["/", "/?all=1", f"/signer/{sender.key_id}", f"/compare?a={ids[0]}&b={ids[0]}"]
        pages += [f"/r/{one}" for one in ids] + [f"/curve/{one}" for one in ids] + [f"/c/{key}" for key in keys]
        pages += [f"/?all=1&benchmark={text[:100]}&q={text[:100]}" for text in ("<script>", '"onfocus="')]
        for address in pages:
            answer = client.get(address)
            outline = Outline(answer.text)
            assert answer.status_code == 200, address
            assert not outline.all("script") and not outline.all("b") and not outline.all("img"), address
            assert not [name for _, found in outline.tags for name in found if name.startswith("on")], address
            assert not [found for found in outline.all("a") if not re.match(r"[/#]", found["href"])], address
            assert not re.search("[\x00-\x08\x0b-\x1f\u202a-\u202e\ud800-\udfff]", answer.text), address
            assert len(answer.text) < 2_000_000
        rows = list(csv.reader(io.StringIO(client.get("/api/v1/results.csv?all=1").text)))
    cells = [cell for row in rows for cell in row]
    assert not [cell for cell in cells if re.match(r"[=+@\t\r]|-\D", cell)]
    assert any(cell.startswith("'=cmd()") for cell in cells) and any("\\u202e" in cell for cell in cells)


SQL = ("' OR 1=1 --", "'; DROP TABLE result; --", '" OR ""="', "1); DELETE FROM action; --", "%", "_", "*", "NEAR(",
       "\\", "a AND", '"', "x'ff'", "0x1", "NULL", "\x00", "\ud800", "\u2028", "-", "(", "a:b", "{a b} : c",
       "^x")  # fmt: skip
WORDS = ("benchmark", "scenario", "kind", "division", "accelerator", "stack", "precision", "label", "without", "q",
         "sort", "column", "after", "all", "limit", "id", "a", "with")  # fmt: skip


def ask_everything(client: TestClient, words: dict[str, str]) -> None:
    """Ask each address that has filters; none may fail."""
    for address in ("/", "/api/v1/results.json", "/compare"):
        answer = client.get(
            address, params={"all": "1"} | {name: text.encode("utf-8", "replace") for name, text in words.items()}
        )
        assert answer.status_code == 200, (address, words)


def test_sql_in_all_filters_neither_fails_nor_works(shown: Shown) -> None:
    total = 14 + 2 + len(published_results())
    for place, text in enumerate(SQL):
        ask_everything(shown.client, {WORDS[place % len(WORDS)]: text})
        ask_everything(shown.client, dict.fromkeys(WORDS, text))
    assert shown.client.get("/api/v1/results.json?all=1").json()["total"] == total


@pytest.mark.full
def test_10_000_addresses_of_random_words_neither_fail_nor_change_anything(shown: Shown) -> None:
    chance = random.Random()
    letters = "abcXYZ019'\"();:*-%_\\/<>&=#{}[]^~ \t\x00\u202e\ud800\U0001f600"
    before = shown.client.get("/api/v1/results.json?all=1").json()["total"]
    for _ in range(3_334):
        names = chance.sample(WORDS, chance.randint(1, 4))
        ask_everything(
            shown.client,
            {name: chance.choice(SQL) + "".join(chance.choices(letters, k=chance.randint(0, 30))) for name in names},
        )
    assert shown.client.get("/api/v1/results.json?all=1").json()["total"] == before


def test_the_api_answers_other_origins_only_where_that_is_configured(tmp_path: Path) -> None:
    with collector(tmp_path, origin="https://results.example.org") as client:
        assert (
            client.get("/api/v1/results.json").headers["access-control-allow-origin"] == "https://results.example.org"
        )
        assert "access-control-allow-origin" not in client.get("/").headers
    with collector(tmp_path, TOKENS) as client:
        assert "access-control-allow-origin" not in client.get("/api/v1/results.json").headers


def test_the_home_page_has_a_chart_of_comparable_results_by_accelerator(shown: Shown) -> None:
    text = shown.client.get("/?all=1&benchmark=llama2-70b&scenario=Offline").text
    assert "llama2-70b Offline by accelerator" in text and text.index('class="chart') < text.index("<table")
    assert "per accelerator</text>" not in text and "hollow" in text and "unofficial" in text
    per = re.search(r'href="([^"]+)">Per accelerator</a>', text)
    assert per is not None
    divided = shown.client.get(per[1].replace("&amp;", "&")).text
    assert "Tokens/s per accelerator</text>" in divided and ">Whole system</a>" in divided
    assert "Charts of other benchmarks" in shown.client.get("/").text


def test_the_home_page_draws_curves_of_endpoints_with_the_limits_of_the_rules(shown: Shown) -> None:
    text = shown.client.get("/?all=1&benchmark=gpt-oss-120b").text
    assert "tokens/s over tokens/s for each user" in text and "Interactive TPOT 15 ms" in text
    assert text.count("NVIDIA B200-SXM-180GB: 5 points") == 4, "named and described, for a page and for a phone"


def test_token_rates_are_drawn_over_what_a_user_gets_where_results_say_it(tmp_path: Path) -> None:
    configuration = dataclasses.replace(DIGITS, benchmark="llama3.1-8b", scenario="Server")
    with Store.open(tmp_path / "results.sqlite") as store, store.transaction():
        for number in range(3):
            figures = (Figure(name="TPOT 99", value=20.0 * (number + 1), unit="ms"),)
            more = {"configuration": configuration, "figures": figures, "unit": "tokens/s"}
            store.add(crowd_result(f"r{number}", value=100.0 * (number + 1), **more), SOURCE)
    with collector(tmp_path) as client:
        text = client.get("/?all=1").text
    assert "by TPOT p99, 3 on the Pareto line" in text and "Server TPOT 100 ms" in text


def test_a_curve_can_be_shown_per_accelerator(shown: Shown) -> None:
    text = shown.client.get(f"/curve/{shown.ids[14]}?with={shown.ids[15]}").text
    assert "tokens/s of the system" in text and "Server TPOT 80 ms" in text
    href = re.search(r'href="([^"]+)">Per accelerator', text)
    assert href and "tokens/s per accelerator" in shown.client.get(href[1].replace("&amp;", "&")).text


def test_bars_of_a_comparison_are_named_by_what_differs() -> None:
    software = comparison.Fact("Software", ("x 1", "x 2", "x 2"))
    chosen = comparison.Fact("batch_size (chosen)", ("1", "1", "8"))
    equal = comparison.Fact("Precision", ("fp32",) * 3)
    results: list[Any] = [None] * 3
    assert comparison.names_of(results, [equal]) == ["A", "B", "C"]
    assert comparison.names_of(results[:2], [comparison.Fact("Software", ("x 1", "x 2"))]) == ["A: x 1", "B: x 2"]
    assert comparison.names_of(results, [chosen, software, equal]) == [
        "A: x 1, batch_size 1",
        "B: x 2, batch_size 1",
        "C: x 2, batch_size 8",
    ]


@pytest.mark.parametrize(
    ("ratio", "words"),
    [(None, "-"), (1.0, "+0.0 %"), (1.0791, "+7.9 %"), (1.5, "+50 %"), (0.8, "-20 %"), (12.0, "+1,100 %")],
)
def test_a_ratio_is_told_in_percent_of_the_first_result(ratio: float | None, words: str) -> None:
    assert comparison.relative_words(ratio) == words


def test_a_digest_is_short_with_all_of_it_in_a_tooltip(shown: Shown) -> None:
    text = shown.client.get(f"/r/{shown.ids[0]}").text
    digest = "ab" * 32
    assert f'<span class="hash" title="{digest}">{digest[:12]}…</span>' in text and f">{digest}<" not in text


def test_times_of_tokens_are_columns_and_a_single_result_has_no_spread(tmp_path: Path) -> None:
    times = (Figure(name="TTFT 99", value=41.25, unit="ms"), Figure(name="TPOT 99", value=3.125, unit="ms"))
    with Store.open(tmp_path / "results.sqlite") as store, store.transaction():
        first = store.add(dataclasses.replace(crowd_result("run-1"), figures=times), SOURCE).id
    with collector(tmp_path) as client:
        table = client.get("/?all=1").text
        assert "TTFT p99, ms" in table and "41.25" in table and "3.125" in table
        assert "single result, so the spread is unknown" in client.get(f"/r/{first}").text
    with Store.open(tmp_path / "results.sqlite") as store, store.transaction():
        store.add(crowd_result("run-2"), SOURCE)
    with collector(tmp_path) as client:
        assert "(n=2)" in client.get(f"/r/{first}").text
