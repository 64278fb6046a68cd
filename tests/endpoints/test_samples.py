"""samples.csv keeps what every figure follows from, and no text."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from curve_tree import count_words
from report_folder import Setup, simulated, write_report

from crowdperf.curves import tokens
from crowdperf.endpoints.events import derive, read_samples
from crowdperf.endpoints.samples import SAMPLES, EventsError, Sample, csv_of, derived_of, samples_of

SETUP = Setup(concurrency=4, samples=16, dataset_samples=8)


@pytest.mark.parametrize("count", [count_words, None])
def test_the_figures_are_those_of_the_events_and_no_text_is_kept(tmp_path: Path, count: tokens.CountTokens | None):
    samples = simulated(SETUP)
    samples[3] = replace(samples[3], is_failed=True)
    events = write_report(tmp_path / "run", SETUP, samples) / "events.jsonl"
    kept = csv_of(read_samples(events, count))
    (tmp_path / SAMPLES).write_text(kept)
    assert derive(tmp_path / SAMPLES) == derive(events, count)
    assert not any(word in kept for word in ("question", "red", "house"))
    assert csv_of(samples_of(kept)) == kept


HEAD = csv_of(())


@pytest.mark.parametrize(
    "text",
    ["", "a,b\n", HEAD[:-1], HEAD + "1,,,0,,0,,,", HEAD + "1,2\n", HEAD + ",,,0,,0,,,\n", HEAD + "-1,,,0,,0,,,\n",
     HEAD + "1.5,,,0,,0,,,\n", HEAD + f"{'9' * 20},,,0,,0,,,\n", HEAD + "1,x,,0,,0,,,\n", HEAD + "\u0661,,,0,,0,,,\n"],
)  # fmt: skip
def test_a_damaged_file_is_refused(text: str):
    with pytest.raises(EventsError, match=SAMPLES):
        samples_of(text)


def test_samples_without_an_answer_are_issued_and_no_more():
    derived = derived_of([Sample(0), Sample(5, errors=1)])
    assert (derived.issued, derived.completed, derived.failed, derived.duration_ns) == (2, 0, 1, 0)
    assert derived_of(()).issued == 0


def test_the_clients_python_counts_where_ours_cannot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A Python beside the client that has a package `tokenizers`, here one that splits at blanks."""
    monkeypatch.setattr(tokens.importlib, "import_module", lambda name: (_ for _ in ()).throw(ImportError(name)))
    (tmp_path / "tokenizer.json").write_text("{}")
    assert tokens.counter_of(tmp_path) is None
    assert tokens.counter_of(tmp_path, tmp_path / "bin" / "client") is None
    package = (
        "import sys, types\nmodule = types.ModuleType('tokenizers')\n"
        "class Tokenizer:\n    from_file = classmethod(lambda cls, path: cls())\n"
        "    encode = lambda self, text, add_special_tokens: types.SimpleNamespace(ids=text.split())\n"
        "module.Tokenizer = Tokenizer\nsys.modules['tokenizers'] = module\n"
        "sys.argv = ['-c', *sys.argv[4:]]\nexec(sys.orig)\n"
    )
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text(f"#!{sys.executable}\nimport sys\nsys.orig = sys.argv[3]\n{package}")
    python.chmod(0o755)
    counter = tokens.counter_of(tmp_path, tmp_path / "bin" / "client")
    assert counter is not None
    assert [counter(text) for text in ("a b c", "", "line\nbreak \u00e4")] == [3, 0, 3]
    counter.process.kill()  # type: ignore[attr-defined]
    with pytest.raises(tokens.TokenizerError, match="cannot count"):
        counter("a")
