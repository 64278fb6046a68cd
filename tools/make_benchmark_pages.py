"""Writes what follows from the records of benchmarks and backends: the variations of app-mlperf-inference, the names
that the recipes above it offer, the dependencies of get-mlperf-model-request, docs/reference/benchmarks.md, a page for
each benchmark in docs/reference/benchmarks/, and the tables of docs/howto/rules.md.

python tools/make_benchmark_pages.py [--check]
"""

import argparse
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
APP = CHECKOUT / "script" / "app-mlperf-inference" / "_cm.yaml"
ABOVE = [CHECKOUT / "script" / name / "_cm.yaml" for name in ("run-mlperf-inference", "run-mlperf-inference-app")]
REQUEST = CHECKOUT / "script" / "get-mlperf-model-request" / "_cm.yaml"
PAGE = CHECKOUT / "docs" / "reference" / "benchmarks.md"
PAGES = CHECKOUT / "docs" / "reference" / "benchmarks"
sys.path.append(str(CHECKOUT / "src"))

from benchmark_page import benchmark_page  # noqa: E402
from reader import exit_code  # noqa: E402
from rules_tables import RULES_PAGE, rules_page  # noqa: E402

from crowdperf.harness.base.calibration_lists import OFFICIAL  # noqa: E402
from crowdperf.rules.backends import BACKENDS, SIMULATORS, default_backend, default_precision  # noqa: E402
from crowdperf.rules.benchmarks import RECORDS, benchmarks_of, dataset_module  # noqa: E402
from crowdperf.rules.record import BackendRecord, Package, Record  # noqa: E402
from crowdperf.rules.rounds import rounds_of, scenarios_of  # noqa: E402

_BLOCK = re.compile(r'^  "?([^\s":]+)"?:\n(?:    .*\n)*', re.MULTILINE)
_MADE_GROUPS = ("    group: model\n", "    group: backend\n", "    alias: ")
_FIRST_OF_ROWS = "# By name, from the records (tools/make_benchmark_pages.py).\n"
_LAST_OF_ROWS = "# End of the rows from the records.\n"
_QUANTISED = ("int8", "fp16")
"""Precisions in which quantize,ml-model writes ONNX files of their own."""

DEVICES = ("cpu", "cuda", "inferentia")
FIXED = ("pytorch", "synthetic", "tiny")
"""What a benchmark with one model and one data set does not have."""

SERVERS = sorted({one.server for one in BACKENDS.values() if one.server})
"""Backends whose server others run behind: `_triton,_neuron` is neuron, `_triton` alone Triton with its own models."""


def _dependencies(folder: str, record: Record) -> str:
    """Return the `deps` of a benchmark. A fixed one has handles of its own, which source and framework do not touch."""
    recipes = record.recipes
    dataset = f"dataset-{folder}" if recipes.is_fixed else "dataset"
    rows = [(dataset, recipes.dataset)]
    if recipes.preprocessed:
        names = "dataset-preprocessed" + (", detection-preprocessed" if recipes.is_detector else "")
        rows.append((names, recipes.preprocessed))
    rows += [(_model_handles(folder, record), recipes.model)] if recipes.model else []
    shown = [f"    - names: [{names}]\n      tags: {tags}\n" for names, tags in rows]
    if recipes.prompts:
        shown[0] = f"    - names: [{dataset}]\n      skip_if_env: {_SPEED_OF_SERVER}\n      tags: {recipes.dataset}\n"
        only = f"    - names: [{dataset}]\n      enable_if_env: {_SPEED_OF_SERVER}\n      tags: {recipes.prompts}\n"
        shown.insert(1, only)
    return "    deps:\n" + "".join(shown)


_REMOTE = ", ".join(name for name, one in BACKENDS.items() if one.is_remote)
_SPEED_OF_SERVER = f"{{CM_MLPERF_BACKEND: [{_REMOTE}], CM_MLPERF_LOADGEN_MODE: [performance]}}"
"""A performance run where a server that is not this tool's answers: no answer is scored."""


_NEEDS_TOKENIZER = "mlperf-text-model"
"""The name of a model whose recipe has the variation `_tokenizer`: enough where a server has the weights."""


def _model_handles(folder: str, record: Record) -> str:
    """Return the names of a benchmark's model: a backend for networks chooses other files than one for texts."""
    if record.recipes.is_fixed:
        has_variations = record.generation is not None and not record.recipes.is_own
        return f"{folder}-model" + (", text-model" if has_variations else "")
    return f"ml-model, text-model, {_NEEDS_TOKENIZER}" if record.generation is not None else "benchmark-model, ml-model"


def _library(*modules: str) -> str:
    """Return the line with the modules that the harness loads by name for a variation."""
    return f"    library: [{', '.join(modules)}]\n"


def _modules(folder: str, record: Record) -> str:
    own, dataset = f"crowdperf.benchmarks.{folder}", dataset_module(record.dataset)
    return _library(own) if dataset.startswith(f"{own}.") else _library(own, dataset)


def _key(name: str) -> str:
    """Return a name as YAML has it: `null` would be no text."""
    return f'"{name}"' if name == "null" else name


def _default(is_default: bool) -> str:
    return "    default: true\n" if is_default else ""


def of_benchmark(folder: str, record: Record) -> Iterator[tuple[str, str]]:
    """Yield a benchmark's variations with their text: one for each level, what they share, other spellings."""
    for spelling in record.spellings:
        yield spelling, f"    alias: {record.names[0]}\n"
    group = "    group: model\n"
    bases = "engines_" if record.recipes.is_own else "quantized_, engines_"
    base = f"    base: [{bases}]\n" if record.generation is None else ""
    usual = (
        "" if record.generation is None else f"    default_variations: {{backend: {default_backend(record.name)}}}\n"
    )
    needs = base + _default(record.is_default) + usual + _dependencies(folder, record)
    if not record.levels:
        yield record.name, needs + f"    env: {{CM_MLPERF_MODEL: {record.name}}}\n" + group + _modules(folder, record)
        return
    yield record.name, f"    alias: {record.names[0]}\n"
    yield f"{record.name}_", needs + _modules(folder, record)
    for name in record.names:
        yield name, f"    base: [{record.name}_]\n    env: {{CM_MLPERF_MODEL: {name}}}\n" + group


_SIMULATED = "CM_MLPERF_SIMULATE: [{}]"
"""What `--simulate` sets: a stand-in then takes the place of the backend."""


_OPTIONAL = """\
      continue_on_error: true
      env: {CM_GENERIC_PYTHON_PIP_EXTRA: '--only-binary=:all: --retries=0 --timeout=5'}
"""
"""Of a package that a run goes on without: nothing is compiled, and a machine without a network is not kept waiting."""


def _packages(packages: tuple[Package, ...], recipes: tuple[str, ...] = (), more: str = "") -> str:
    rows = [
        f"    - names: [{','.join(tags.split(',')[1:3]).replace(',', '-')}]\n{more}      tags: {tags}\n"
        for tags in recipes
    ]
    rows += [
        f"    - names: [{one.name}]\n      tags: get,generic-python-lib,{one.tags}\n"
        + (f'      version_max: "{one.version_max}"\n' if one.version_max else "")
        + (f'      version_min: "{one.version_min}"\n' if one.version_min else "")
        + (_OPTIONAL if one.is_optional else "")
        for one in packages
    ]
    return "    deps:\n" + "".join(rows) if rows else ""


def _joined(first: str, second: str) -> str:
    """Return two lists of dependencies as one."""
    return first + second.removeprefix("    deps:\n") if first else second


def _usual(name: str, record: BackendRecord) -> str:
    """Return what a backend takes where nothing is named, as far as it cannot take what others do."""
    usual = {} if "cpu" in record.devices else {"device": record.devices[0]}
    if (precision := default_precision(name)) != "fp32":
        usual["precision"] = precision
    rows = ", ".join(f"{group}: {word}" for group, word in usual.items())
    return f"    default_variations: {{{rows}}}\n" if rows else ""


def _own_variation(name: str) -> str:
    """Return the variation in the group of backends that stands for one."""
    return f"{name}_{BACKENDS[name].model_files}" if name in SERVERS else name


def of_backend(name: str, record: BackendRecord) -> Iterator[tuple[str, str]]:
    """Yield a backend's variations with their text: its own, one for each device that has packages of its own, and for
    a server's the word for it that does not rule out the others behind it."""
    simulator = SIMULATORS.get(name, "")
    recipes = _packages((), record.recipes, f"      skip_if_env: {{{_SIMULATED.format(name)}}}\n" if simulator else "")
    if simulator:
        also = _packages((), BACKENDS[simulator].recipes, f"      enable_if_env: {{{_SIMULATED.format(name)}}}\n")
        recipes += also.removeprefix("    deps:\n")
    handles = ("text-model",) if record.is_text else ("benchmark-model", "detection-preprocessed")
    files = [f"      {handle}: {{tags: _{record.model_files}}}\n" for handle in handles if record.model_files]
    files += [f"      {_NEEDS_TOKENIZER}: {{tags: _tokenizer}}\n"] if record.is_remote else []
    own_name = _own_variation(name)
    if own_name != name:
        yield name, f"    default_variations: {{backend: {own_name}}}\n"
    yield (
        own_name,
        (
            ("    adr:\n" + "".join(files) if files else "")
            + _default(record.is_default and not record.is_text)
            + _usual(name, record)
            + _joined(recipes, _packages(tuple(one for one in record.packages if not one.device)))
            + f"    env: {{CM_MLPERF_BACKEND: {_key(name)}}}\n    group: backend\n"
            + _library(*(f"crowdperf.harness.backends.{one}" for one in (name, simulator) if one))
        ),
    )
    for device in record.devices:
        own = tuple(one for one in record.packages if one.device == device)
        if own:
            yield f"{own_name},{device}", _packages(own)
    if record.gpu_recipes:  # the same recipes in another variation: the handle of each gets its tags
        rows = [
            (tags.split(","), more.rpartition(",")[2])
            for tags, more in zip(record.recipes, record.gpu_recipes, strict=True)
        ]
        text = "".join(f"      {'-'.join(words[1:3])}: {{tags: {variation}}}\n" for words, variation in rows)
        yield f"{own_name},cuda", f"    adr:\n{text}"


def _quantised() -> str:
    """Return the dependencies that turn a model's own files into other precisions."""
    rows = []
    for precision in _QUANTISED:
        names: dict[str, list[str]] = {}
        for name, one in BACKENDS.items():
            if one.model_files == "onnx" and precision in one.precisions:
                names.setdefault(one.int8_files if precision == "int8" else "", []).append(name)
        for files, backends in sorted(names.items()):
            rows.append(
                f"    - enable_if_env:\n        CM_MLPERF_BACKEND: [{', '.join(backends)}]\n"
                f"        CM_MLPERF_MODEL_PRECISION: [{precision}]\n"
                f"      names: [quantized-model]\n"
                f"      tags: {','.join(filter(None, ('quantize,ml-model', f'_{precision}', files)))}\n"
            )
    return "    deps:\n" + "".join(rows)


def _engines() -> str:
    """Return the dependencies that build what some backends read from a model's files."""
    rows = [row for name, one in BACKENDS.items() if one.engine for row in _engine_rows(name, one)]
    return "    deps:\n" + "".join(rows)


def _engine_rows(name: str, record: BackendRecord) -> Iterator[str]:
    """Yield the dependency that builds what a backend reads; of a stand-in also for `--simulate`."""

    def row(conditions: str) -> str:
        return (
            f"    - enable_if_env:\n{conditions}"
            "      env: {CM_MODEL_REQUEST_IS_MET: 'yes'}\n"
            f"      names: [engine]\n{skipped}      tags: generate,engine,_{record.engine}\n"
        )

    skipped = f"      skip_if_env:\n        {_SIMULATED.format(name)}\n" if name in SIMULATORS else ""
    yield row(f"        CM_MLPERF_BACKEND: [{name}]\n")
    if record.simulates:
        yield row(f"        CM_MLPERF_BACKEND: [{record.simulates}]\n        {_SIMULATED.format(record.simulates)}\n")


def _by_name(record: Record) -> str:
    """Return the dependencies of a call that names a benchmark: its samples and its ONNX model; none of a language
    model, of which no engine is built."""
    if record.generation is not None or record.recipes.is_own:
        return ""
    recipes = record.recipes
    data = (recipes.preprocessed + (",_onnx" if recipes.is_detector else "")) or recipes.dataset
    model = recipes.model + ("" if recipes.is_fixed else ",_onnx")
    made = "" if recipes.is_fixed else ", made-synthetic, made-tiny"
    asked = f"CM_MODEL_REQUEST_NAME: [{record.name}]"
    return (
        f"- enable_if_env: {{{asked}, CM_MODEL_REQUEST_WITH_DATA: ['yes']}}\n  names: [dataset{made}]\n  tags: {data}\n"
        f"- enable_if_env: {{{asked}}}\n  names: [ml-model{made}]\n  tags: {model}\n"
    )


def with_dependencies(text: str) -> str:
    """Return a recipe's `_cm.yaml` with the dependencies of every benchmark between the two comments."""
    first, rest = text.split(_FIRST_OF_ROWS)
    _, last = rest.split(_LAST_OF_ROWS)
    return first + _FIRST_OF_ROWS + "".join(map(_by_name, RECORDS.values())) + _LAST_OF_ROWS + last


def _made() -> Iterator[tuple[str, str]]:
    for folder, record in RECORDS.items():
        yield from of_benchmark(folder, record)
    for name, backend in BACKENDS.items():
        yield from of_backend(name, backend)
    yield "quantized_", _quantised()
    yield "engines_", _engines()


def with_variations(text: str) -> str:
    """Return app-mlperf-inference's `_cm.yaml` with the variations of the records instead of those it has."""
    head, mark, rest = text.partition("\nvariations:\n")
    blocks = {found[1]: found[0] for found in _BLOCK.finditer(rest)}
    kept = {
        name: block
        for name, block in blocks.items()
        if not any(group in block for group in _MADE_GROUPS) and not name.endswith("_") and "," not in name
    }
    made = {name: f"  {_key(name)}:\n{body}" for name, body in _made()}
    joined = {**kept, **made}
    return _with_combinations(head) + mark + "".join(joined[name] for name in sorted(joined))


def with_choices(text: str) -> str:
    """Return the `_cm.yaml` of a recipe that takes benchmarks and backends by name, with all names as its choices."""
    known = {word for one in RECORDS.values() for word in (*one.names, *one.spellings, one.name)}
    for name, words in (("backend", list(BACKENDS)), ("model", sorted(known))):
        rows = "".join(f"    - {word}\n" for word in words)
        listed = f"choices: [{', '.join(word.replace('null', repr('null')) for word in words)}],"
        listed = textwrap.fill(listed, 118, initial_indent=" " * 4, subsequent_indent=" " * 6, break_on_hyphens=False)
        text, in_rows = re.subn(rf"(\n  {name}:\n(?:    .+\n)*?    choices:\n)(?:    - .+\n)+", rf"\g<1>{rows}", text)
        text, in_list = re.subn(
            rf"(\n  {name}: \{{[^}}]*?\n) {{4}}choices: \[[^]]*\],",
            lambda found, listed=listed: found[1] + listed,
            text,
        )
        if in_rows + in_list != 1:
            raise SystemExit(f"a recipe of ABOVE describes --{name} in another form than this tool writes")
    return text


def _with_combinations(head: str) -> str:
    """Return the text with the combinations that cannot be: devices that a backend lacks, what a benchmark lacks."""
    real = [(name, one) for name, one in BACKENDS.items() if not one.stand_in]
    rows = [
        f"{device}, {_own_variation(name)}" for name, one in real for device in DEVICES if device not in one.devices
    ]
    rows += [
        f"{server}, {_key(name)}"
        for server in SERVERS
        for name, one in BACKENDS.items()
        if server not in (name, one.server)
    ]
    rows += [f"{one.name}, {other}" for one in RECORDS.values() if one.recipes.is_fixed for other in FIXED]
    made = "".join(f"- [{row}]\n" for row in sorted(rows))
    return re.sub(r"(?<=\ninvalid_variation_combinations:\n)(- \[.+\]\n)*", made, head)


def _cells(folder: str, record: Record) -> Iterator[str]:
    rows = benchmarks_of(folder)
    yield ", ".join(f"`{name}`" for name in record.names)
    yield f"[{record.title}](benchmarks/{record.name}.md)"
    yield f"{rounds_of(rows[0].name)[0]} to {rounds_of(rows[0].name)[-1]}" if rows else "none: not an MLPerf benchmark"
    yield ", ".join(scenario.value for scenario in scenarios_of(rows[0].name if rows else record.name))
    yield f"{record.dataset_count:,}"
    targets = [", ".join(f"{one.metric} {round(one.target, 4):,}" for one in row.targets()) for row in rows]
    yield " and ".join(targets) or "99 % of the model's own score"
    if record.generation is not None:
        tokens = record.generation.server
        yield f"{tokens.ttft_ms:,.0f} ms, {tokens.tpot_ms:,.0f} ms a token" if tokens else "none"
        return
    limit_ms = record.server_target_latency_ms
    yield "none" if limit_ms is None else f"{limit_ms:,.0f} ms"


def _backend_cells(name: str, record: BackendRecord) -> Iterator[str]:
    yield f"`{name}`"
    yield ", ".join(record.devices)
    only_on_gpus = [f"{precision} (cuda only)" for precision in record.gpu_precisions]
    yield ", ".join((*record.precisions, *only_on_gpus))
    yield record.model_files or "none"
    names = dict.fromkeys(f"{one.name}{' (optional)' if one.is_optional else ''}" for one in record.packages)
    yield ", ".join(names) or "none"
    yield f"a stand-in: {record.stand_in}" if record.stand_in else record.transformation


def page() -> str:
    """Return docs/reference/benchmarks.md."""
    lines = [
        "# Benchmarks and backends",
        "",
        "Made by tools/make_benchmark_pages.py from the records in `src/crowdperf/harness/`",
        "(`benchmarks/*/record.py`, `backends/*/record.py`), which also have the sources of the numbers.",
        "",
        "Samples are those of the validation set, targets those of the closed division in the newest round. Edge and",
        "datacenter systems have different scenarios in some rounds: `crowdperf/rules/rounds.py`.",
        "",
        "| name | task | rounds | scenarios | samples | accuracy targets | Server limit |",
        "|---|---|---|---|---|---|---|",
        *(f"| {' | '.join(_cells(folder, record))} |" for folder, record in RECORDS.items()),
        "",
        "No backend has run on a GPU yet: device `cuda` is tested without hardware.",
        "",
        "| backend | devices | precisions | model files | packages | remark |",
        "|---|---|---|---|---|---|",
        *(f"| {' | '.join(_backend_cells(name, record))} |" for name, record in BACKENDS.items()),
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write the files, or with --check only say whether they are up to date; 1 where they are not."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing")
    is_check = parser.parse_args().check
    is_stale = False
    made = {APP: with_variations(APP.read_text(encoding="utf-8")), PAGE: page()}
    made |= {path: with_choices(path.read_text(encoding="utf-8")) for path in ABOVE}
    made[REQUEST] = with_dependencies(REQUEST.read_text(encoding="utf-8"))
    made[RULES_PAGE] = rules_page(RULES_PAGE.read_text(encoding="utf-8"))
    made |= {PAGES / f"{one.name}.md": benchmark_page(folder, one, OFFICIAL) for folder, one in RECORDS.items()}
    for path, text in made.items():
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        is_stale = True
        print(f"{path.relative_to(CHECKOUT)} differs from the records" if is_check else f"wrote {path}")
        if not is_check:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return 1 if is_check and is_stale else 0


if __name__ == "__main__":
    raise SystemExit(exit_code(main))
