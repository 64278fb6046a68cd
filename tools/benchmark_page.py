"""The page of one benchmark, docs/reference/benchmarks/<name>.md: facts of its record under NVIDIA's headings, and
below each what `page.md` beside the record says about it in words.

`page.md` has sections of these headings only, in this order; no section is needed.
"""

import re
import textwrap
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from crowdperf.rules.benchmarks import benchmarks_of
from crowdperf.rules.compliance import tests_needed
from crowdperf.rules.names import Scenario
from crowdperf.rules.record import GB, MB, TB, Generation, Record, Size
from crowdperf.rules.rounds import rounds_of, rules_in

CHECKOUT = Path(__file__).resolve().parent.parent
BENCHMARKS = CHECKOUT / "src" / "crowdperf" / "benchmarks"
HEADINGS = (
    "Dataset",
    "Model",
    "Optimizations",
    "Calibration",
    "Audits",
    "New weights",
    "New validation data",
    "New calibration data",
)
"""Those of the benchmarks' README files in mlcommons/inference_results_v0.7, closed/NVIDIA/code (31060d57)."""
OWN_COPIES = "../../howto/run-a-benchmark.md#use-your-own-data-and-models"


def words_of(folder: str) -> Mapping[str, str]:
    """The sections of a benchmark's page.md; raises ValueError for a heading that is not one of HEADINGS."""
    path = BENCHMARKS / folder / "page.md"
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    before, *parts = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)
    sections = dict(zip(parts[::2], (body.strip() for body in parts[1::2]), strict=True))
    if before.strip() or list(sections) != [name for name in HEADINGS if name in sections]:
        raise ValueError(f"{path}: sections are {list(sections)}, allowed, in this order: {', '.join(HEADINGS)}")
    return sections


@lru_cache(maxsize=1)
def _recipe_tags() -> Mapping[str, frozenset[str]]:
    found = {}
    for path in sorted(CHECKOUT.glob("script/*/_cm.yaml")):
        block = re.search(r"^tags:\n((?:- .+\n)+)", path.read_text(encoding="utf-8"), re.MULTILINE)
        found[path.parent.name] = frozenset(re.findall(r"^- (.+)$", block[1], re.MULTILINE) if block else ())
    return found


def _recipe(query: str) -> str:
    """A link to the README of the recipe with these tags: of several the one with the fewest others."""
    words = {word for word in query.split(",") if not word.startswith("_")}
    fitting = [(len(tags), name) for name, tags in _recipe_tags().items() if words <= tags]
    if not fitting:
        raise SystemExit(f"no recipe has the tags {query}, which a record names: add the recipe, or correct the record")
    name = min(fitting)[1]
    return f"[{name}](../../../script/{name}/README.md)"


def _scenarios(scenarios: tuple[Scenario, ...]) -> str:
    return ", ".join(one.value for one in scenarios) or "none"


def _spans(record: Record) -> Iterator[str]:
    yield "| rounds | edge | datacenter | edge and datacenter, if that is more |"
    yield "|---|---|---|---|"
    for level, spans in ((record.names[0], record.spans), (record.names[-1], record.spans_of_999)):
        for span in spans:
            named = f" (`{level}`)" if record.spans_of_999 else ""
            rounds = span.first if span.first == span.last else f"{span.first} to {span.last}"
            is_more = bool(set(span.scenarios) - {*span.edge, *span.datacenter})
            both = _scenarios(span.scenarios) if is_more else ""
            yield f"| {rounds}{named} | {_scenarios(span.edge)} | {_scenarios(span.datacenter)} | {both} |"
    yield ""


def _targets(folder: str, record: Record) -> Iterator[str]:
    rows = benchmarks_of(folder)
    if not rows:
        yield "Target: 99 % of the model's own score."
        return
    newest = rounds_of(rows[0].name)[-1]
    yield f"| {newest}, closed division | metric | fp32 reference | target |"
    yield "|---|---|---|---|"
    for row in rows:
        for one in rules_in(row.name, rounds_of(row.name)[-1]).targets:
            yield f"| `{row.name}` | {one.metric} | {one.reference:,.8g} | {round(one.target, 4):,} |"
    yield ""
    limits = [f"Offline has at least {record.offline_min_sample_count:,} samples"]
    if record.generation is not None:
        limits += list(_token_limits(record.generation))
    elif record.spans and record.server_target_latency_ms is not None:
        limits.append(f"Server has to answer 99 % of its queries within {record.server_target_latency_ms:,.0f} ms")
    yield ". ".join(limits) + ". All rules: [rules](../../howto/rules.md)."


def _token_limits(asked: Generation) -> Iterator[str]:
    for name, one in (("Server", asked.server), ("Interactive", asked.interactive)):
        if one is not None:
            yield (
                f"{name}: of 100 answers 99 have their first token within {one.ttft_ms:,.0f} ms, and on average "
                f"{one.tpot_ms:,.0f} ms for each further one at most"
            )


def _head(folder: str, record: Record) -> Iterator[str]:
    yield f"# {record.name}"
    yield ""
    yield record.title[0].upper() + record.title[1:] + "."
    yield ""
    yield (
        "Generated by tools/make_benchmark_pages.py from `record.py` and `page.md` in "
        f"`src/crowdperf/benchmarks/{folder}/`, which have the sources of the numbers."
    )
    yield ""
    names = ", ".join(f"`{name}`" for name in record.names)
    others = [word for word in (record.name, *record.spellings) if word not in record.names]
    also = f". Also accepted: {', '.join(f'`{word}`' for word in others)}" if others else ""
    yield f"Names: {names}{also}."
    yield ""
    first = record.names[0]
    yield "```console"
    run = f"script --tags=run,mlperf,inference --model={first}"
    if not record.recipes.is_fixed:
        yield f"$ cm run {run} --source=tiny            # small generated model and data"
    yield f"$ cm plan {run}                         # what a run does, downloads and needs"
    yield f"$ cm run {run} --execution_mode=valid   # full-length runs"
    yield "```"
    yield ""
    if record.is_official:
        yield from _spans(record)
    yield from _targets(folder, record)


def _size(title: str, size: Size | None) -> str:
    if size is None:
        return ""
    unit, factor = next((pair for pair in (("TB", TB), ("GB", GB)) if size.size_bytes >= pair[1]), ("MB", MB))
    return f"{title} {size.size_bytes / factor:.3g} {unit} ({size.source})"


def _dataset(record: Record) -> Iterator[str]:
    if record.accuracy_sample_count:
        yield f"Accuracy runs have {record.accuracy_sample_count:,} separate samples."
        yield ""
    in_memory = record.performance_sample_count or record.dataset_count
    memory = "all" if in_memory == record.dataset_count else f"{in_memory:,}"
    yield f"{record.dataset_count:,} samples are measured. {memory} of them are in memory in performance runs."
    yield ""
    recipes = f"Recipe: {_recipe(record.recipes.dataset)}"
    if record.recipes.preprocessed:
        recipes += f", then {_recipe(record.recipes.preprocessed)}, which stores the preprocessed samples"
    yield recipes + "."
    yield ""
    sizes = record.sizes
    known = [_size("fetched", sizes.data), _size("prepared", sizes.prepared), _size("advised in all", sizes.advised)]
    if any(known):
        yield f"Space: {', '.join(filter(None, known))}."
    yield ""


def _model(record: Record) -> Iterator[str]:
    size = f" {_size('Size:', record.sizes.model)}." if record.sizes.model else ""
    if record.recipes.model:
        yield f"Recipe: {_recipe(record.recipes.model)}.{size}"
    yield ""


def _optimisations(record: Record) -> Iterator[str]:
    if record.generation is not None:
        most = record.generation.sampling.max_tokens
        yield (
            f"Prompts have at most {record.generation.longest_prompt:,} tokens, answers {most:,}. The engine "
            "answers many at once: `--max_in_flight` is their number."
        )
        return
    first, last = record.batch_size, record.largest_batch_size
    batch = f"The batch size is {first}"
    if last > first:
        batch = f"The search for the best batch size starts at {first} and ends at {last}. `--batch_size` sets one"
    yield f"Inputs are {record.input_type}. {batch} ([tune](../../howto/tune.md))."


def _calibration(record: Record, lists: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    if record.generation is not None:
        yield "crowdperf does not quantize language models. Give the files of a quantized one."
        return
    names = list(lists.get(record.dataset, ()))
    if not names:
        none = f"crowdperf has no official calibration list for {record.dataset}"
        yield f"{none}: an int8 model built here is for the open division."
    else:
        shown = " or ".join(f"`{name}`" for name in names)
        where = "in `crowdperf/harness/datasets/calibration_lists`"
        yield f"Official list: {shown} ({where}), the only samples that the closed division allows."
    yield ""
    recipe = "[calibrate-ml-model](../../../script/calibrate-ml-model/README.md)"
    yield f"The ranges alone ({recipe}), or in a run with an int8 file built from them. Both are cached:"
    yield ""
    yield "```console"
    name, is_fixed = record.names[0], record.recipes.is_fixed
    yield f"$ cm run script --tags=calibrate,ml-model --model={name}{'' if is_fixed else ' --source=tiny'}"
    tags = f"app,mlperf,inference,_{name},_onnxruntime,_cpu,_int8{'' if is_fixed else ',_tiny'},_offline"
    yield f"$ cm run script --tags={tags}"
    yield "```"


def _audits(folder: str, record: Record) -> Iterator[str]:
    rows = benchmarks_of(folder)
    if not rows:
        yield "It is not an MLPerf benchmark, so it needs no compliance test."
        return
    name = rows[0].name
    tests = {one: tests_needed(name, one, "closed") for one in rounds_of(name)}
    yield "Compliance tests of the closed division:"
    yield ""
    yield "| rounds | tests |"
    yield "|---|---|"
    names = list(tests)
    starts = [place for place, one in enumerate(names) if place == 0 or tests[one] != tests[names[place - 1]]]
    for start, end in zip(starts, [*starts[1:], len(names)], strict=True):
        first, last = names[start], names[end - 1]
        rounds = first if first == last else f"{first} to {last}"
        yield f"| {rounds} | {', '.join(tests[first]) or 'none'} |"
    yield ""
    yield "```console"
    yield "$ cm run script --tags=run,mlperf,compliance --results_dir=<results folder> --division=closed"
    yield "```"
    yield ""
    readme = "../../../script/run-mlperf-compliance/README.md"
    yield f"[run-mlperf-compliance]({readme}) describes each test, and lists the unsupported ones."


def _new_weights(record: Record) -> Iterator[str]:
    if record.generation is not None and not record.recipes.is_fixed:
        yield "A folder as on Hugging Face: config.json, tokenizer.json, tokenizer_config.json and the weights:"
        yield ""
        yield "```console"
        yield f"$ cm run script --tags=run,mlperf,inference --model={record.names[0]} --model_path=<folder>"
        yield "```"
        return
    if record.recipes.is_fixed:
        yield "There is one model only. `--renew` of its recipe rebuilds it."
        return
    yield (
        "Another copy of the published file. The recipe's README states whether it also accepts your own file, in a "
        f"folder with a [`model.json`]({OWN_COPIES}):"
    )
    yield ""
    yield "```console"
    yield f"$ cm run script --tags=run,mlperf,inference --model={record.names[0]} --model_path=<file or folder>"
    yield "```"
    yield ""
    yield (
        "Quantized files, engines and results are rebuilt for it, because their entries contain its digest. Retrained "
        "weights are for the open division."
    )


def _new_data(record: Record) -> Iterator[str]:
    if record.recipes.is_fixed:
        yield "The recipe generates the only data set. Other copies cannot be used."
        return
    yield "Another copy is checked file by file when it is first used, and again when a file in it has changed:"
    yield ""
    yield "```console"
    yield f"$ cm run script --tags=run,mlperf,inference --model={record.names[0]} --dataset_path=<folder>"
    yield "```"
    yield ""
    yield "Preprocessed samples are rebuilt for it."


def _new_calibration(record: Record) -> Iterator[str]:
    if record.generation is not None:
        yield "None: see Calibration."
        return
    yield "A file with the index of one sample per line. Such a model is for the open division:"
    yield ""
    yield "```console"
    yield f"$ cm run script --tags=calibrate,ml-model --model={record.names[0]} --sample_list=<file>"
    yield (
        f"$ cm run script --tags=app,mlperf,inference,_{record.names[0]},_onnxruntime,_cpu,_int8,_offline"
        " --adr.calibration.sample_list=<file>"
    )
    yield "```"


def benchmark_page(folder: str, record: Record, lists: Mapping[str, Mapping[str, str]]) -> str:
    """The text of a benchmark's page. lists: the official calibration lists by data set and file name."""
    words = words_of(folder)
    facts = {
        "Dataset": _dataset(record),
        "Model": _model(record),
        "Calibration": _calibration(record, lists),
        "Audits": _audits(folder, record),
        "New weights": _new_weights(record),
        "New validation data": _new_data(record),
        "New calibration data": _new_calibration(record),
        "Optimizations": _optimisations(record),
    }
    lines = [_wrapped(line) for line in _head(folder, record)]
    for heading in HEADINGS:
        body = "\n".join(map(_wrapped, facts[heading])).strip()
        lines += ["", f"## {heading}", "", body, *(["", words[heading]] if heading in words else [])]
    return "\n".join(lines) + "\n"


def _wrapped(line: str) -> str:
    """A line of prose in lines of at most 120 characters; tables, commands and headings as they are."""
    is_prose = not line.startswith(("|", "$", "#", "-", " ", "`" * 3))
    return textwrap.fill(line, 120, break_long_words=False, break_on_hyphens=False) if line and is_prose else line
