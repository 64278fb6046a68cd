"""What follows from events.jsonl is what the client computed; what does not follow is named."""

import gzip
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from curve_tree import count_words
from report_folder import Setup, events_of, simulated, write_report

from crowdperf.endpoints.clientfiles import read_run
from crowdperf.endpoints.events import derive
from crowdperf.endpoints.samples import EventsError, compared, differences

RECORDED = os.environ.get("CROWDPERF_ENDPOINTS_RECORDED", "")
SETUP = Setup(concurrency=4, samples=16, dataset_samples=8)


@pytest.mark.parametrize("setup", [SETUP, replace(SETUP, concurrency=1), replace(SETUP, is_offline=True)])
def test_every_figure_follows_from_the_events(tmp_path: Path, setup: Setup):
    run = read_run(write_report(tmp_path / "run", setup))
    assert run.events is not None
    derived = derive(run.events, count_words)
    assert differences(run.summary, derived) == ()
    assert len(list(compared(run.summary, derived))) == 84
    assert derived.greatest_in_flight == (16 if setup.is_offline else setup.concurrency)
    assert (derived.issued, derived.distinct_prompts, derived.echoed) == (16, 8, 0)


@pytest.mark.skipif(not RECORDED, reason="CROWDPERF_ENDPOINTS_RECORDED names no folder with runs of the client")
def test_every_figure_of_real_runs_follows_from_their_events():
    """The tokenizer of those runs splits at whitespace."""
    folders = sorted(one.parent for one in Path(RECORDED).glob("*/config.yaml"))
    assert folders
    for folder in folders:
        run = read_run(folder)
        assert run.events is not None
        derived = derive(run.events, count_words)
        assert differences(run.summary, derived) == ()
        assert derived.greatest_in_flight == (run.config.concurrency or run.summary.issued)


def test_without_a_tokenizer_the_times_follow_all_the_same(tmp_path: Path):
    run = read_run(write_report(tmp_path / "run", SETUP))
    assert run.events is not None
    derived = derive(run.events)
    assert derived.tpot is None and derived.output_tokens is None
    assert differences(run.summary, derived) == ()


def test_a_failed_request_is_counted_as_the_client_counts_it(tmp_path: Path):
    samples = simulated(SETUP)
    samples[3] = replace(samples[3], is_failed=True)
    run = read_run(write_report(tmp_path / "run", SETUP, samples))
    assert run.events is not None
    derived = derive(run.events, count_words)
    assert (derived.completed, derived.failed) == (16, 1)
    assert derived.tpot is not None and differences(run.summary, derived) == ()


def test_a_compressed_file_reads_the_same(tmp_path: Path):
    folder = write_report(tmp_path / "run", SETUP)
    events = folder / "events.jsonl"
    (folder / "events.jsonl.gz").write_bytes(gzip.compress(events.read_bytes()))
    plain = derive(events, count_words)
    events.unlink()
    run = read_run(folder)
    assert run.events == folder / "events.jsonl.gz"
    assert derive(run.events, count_words) == plain


def test_answers_with_reasoning_have_times_but_no_tokens(tmp_path: Path):
    path = tmp_path / "events.jsonl"
    lines = events_of(simulated(SETUP))
    path.write_text("\n".join(lines).replace('"],null,null]', '"],"because",null]', 1))
    assert derive(path, count_words).output_tokens is None
    assert derive(path, count_words).completed == 16


def test_prompts_of_tokens_are_counted_and_prompts_of_messages_are_not(tmp_path: Path):
    lines = events_of(simulated(SETUP))
    texts = [line for line in lines if '"PromptData","question' in line]
    path = tmp_path / "events.jsonl"
    prompt = json.loads(texts[0])["data"]
    for data, total in (
        (["PromptData", None, [5, 6, 7], None], 3),
        (["PromptData", None, None, [{"role": "user"}]], None),
    ):
        as_text = [json.dumps(one, separators=(",", ":")) for one in (prompt, data)]
        path.write_text("\n".join(line.replace(as_text[0], as_text[1]) for line in [lines[3], texts[0]]))
        found = derive(path, count_words).input_tokens
        assert (found.total if found else None) == total


def test_the_span_of_a_window_is_taken_over_its_times_of_issue(tmp_path: Path):
    run = read_run(write_report(tmp_path / "run", SETUP))
    assert run.events is not None
    derived = derive(run.events)
    assert derived.issue_span_s(8, 8) == (derived.timings[15].issued_ns - derived.timings[8].issued_ns) / 1e9
    assert derived.issue_span_s(16) == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "never starts"),
        ("not json\n", "cannot be read"),
        ('{"event_type":"session.started"}\n', "events.jsonl:1: not an event"),
        (
            '{"event_type":"session.start_performance_tracking","timestamp_ns":1}\n' * 2,
            ":2: performance tracking starts",
        ),
        ("[" * 100_000, "cannot be read"),
    ],
)
def test_a_file_that_the_client_did_not_write_is_refused(tmp_path: Path, text: str, words: str):
    path = tmp_path / "events.jsonl"
    path.write_text(text)
    with pytest.raises(EventsError, match=words):
        derive(path)


def test_a_cut_archive_is_refused(tmp_path: Path):
    path = tmp_path / "events.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"event_type":"session.started","timestamp_ns":1}\n' * 99)[:40])
    with pytest.raises(EventsError, match="cannot be read"):
        derive(path)
