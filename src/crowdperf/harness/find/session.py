"""One call of find-performance: from the request to find.json, and a result.json that says that it is none."""

import time
from collections.abc import Mapping
from dataclasses import replace
from importlib import metadata
from pathlib import Path

from crowdperf.harness.base.cores import available_cores
from crowdperf.harness.find import record
from crowdperf.harness.find.journal import Journal, say
from crowdperf.harness.find.probe_run import ProbeRunner
from crowdperf.harness.find.record import LABEL, Earlier
from crowdperf.harness.find.search import rounded
from crowdperf.harness.find.server import search_server
from crowdperf.harness.runner.config import RunConfig
from crowdperf.harness.runner.loadgen_run import available_memory_bytes
from crowdperf.harness.runner.query_memory import require_memory
from crowdperf.harness.runner.result import build_result
from crowdperf.harness.runner.run import Prepared, prepare
from crowdperf.harness.runner.settings import Origin, Setting, Settings, offline_rate
from crowdperf.kit.whole_file import write_json
from crowdperf.logs.layout import RunPaths
from crowdperf.logs.run_log import Json, LoadGenLog
from crowdperf.rules.names import ExecutionMode, Scenario

STREAM_PART = 0.75
"""Of the median latency that was measured, the expected latency of later runs: LoadGen makes twice the queries that
would fill the time at this latency, so a run ends for lack of queries only where it is 2.7 times as fast."""

OFFLINE_PART = 1.1
"""Of the rate that was measured, the expected rate of later runs: LoadGen makes 1.1 times the samples that would fill
the time at this rate, so a run is too short only where it is more than 1.2 times as fast."""


def _clear_probes(folder: Path, kept: int) -> None:
    """Remove the logs of an earlier search's runs: of all but the first `kept`."""
    for run_folder in sorted((folder / record.PROBES).glob("[0-9][0-9]")):
        if int(run_folder.name) > kept:
            for path in RunPaths(run_folder).made_by_a_run:
                path.unlink(missing_ok=True)


def _shape_of(prepared: Prepared) -> dict[str, Json]:
    shape = prepared.settings.shape
    return {
        "batch_size": shape.batch_size.value,
        "instances": shape.instances.value,
        "threads": shape.threads.value,
        "is_spinning": shape.is_spinning,
    }


def _in_shape(config: RunConfig, earlier: Earlier) -> Prepared:
    """Return the request made ready in the shape of the earlier search: its verdicts are about that one."""
    shape = {name: int(str(value)) for name, value in earlier.shape.items()}
    threads = shape["threads"] * shape["instances"]
    given = replace(config, batch_size=shape["batch_size"], instances=shape["instances"], threads=threads)
    prepared = prepare(given)
    return replace(prepared, config=config, found=replace(prepared.found, batch_size=shape["batch_size"]))


def _start(config: RunConfig) -> Journal:
    started_s = time.monotonic()
    inputs = record.inputs_of(config, len(available_cores()), metadata.version("mlcommons-loadgen"))
    earlier = record.unfinished(config.output_dir, inputs)
    if earlier is None:  # what is there is of another search: none of its figures may pass for this one's
        (config.output_dir / record.FILE).unlink(missing_ok=True)
    # All but Server are measured as a test run is, whatever the style: the figure is a target, not a result.
    run_config = config if config.scenario is Scenario.SERVER else replace(config, execution_mode=ExecutionMode.TEST)
    prepared = prepare(run_config) if earlier is None else _in_shape(run_config, earlier)
    if earlier is not None and dict(earlier.model_sha256) != prepared.parts.digests:
        prepared.opened.close()
        earlier, prepared = None, prepare(run_config)
    journal = Journal(prepared, inputs, _shape_of(prepared), started_s)
    if earlier is not None:
        journal.probes.extend(earlier.probes)
        journal.spent_before_s = earlier.spent_s
        say(f"resuming the search of {config.output_dir / record.FILE}: {len(earlier.probes)} runs finished")
    _clear_probes(config.output_dir, len(journal.probes))
    return journal


def find(config: RunConfig) -> dict[str, Json]:
    """Return the content of find.json after a whole search; raises HarnessError where no rate holds (find.json then
    has what was tried) and what `prepare` raises."""
    journal = _start(config)
    if config.scenario is Scenario.SERVER:
        content, settings, log = search_server(journal)
    else:
        content, settings, log = _measure(journal)
    prepared = journal.prepared
    shape = prepared.issue_shape(prepared.found.work)
    shape.close()
    result = build_result(config, settings, log, prepared.facts(shape.name))
    prepared.opened.close()
    label = "; ".join([LABEL, str(result["label"])])
    reasons = [f"{LABEL}: give a run what find.json says", *log.invalid_reasons]
    paths = RunPaths(config.output_dir)
    write_json(
        paths.result_json,
        {**result, "label": label, "valid": False, "invalid_reasons": reasons, "find": content["settings"]},
    )
    record.write(config.output_dir, content)  # the last file: it is what says that the search is done
    return content


def _measure(journal: Journal) -> tuple[dict[str, Json], Settings, LoadGenLog]:
    """Run a stream scenario or Offline once and return what a later run is to be given."""
    prepared = journal.prepared
    journal.probes.clear()
    settings, config = prepared.settings, prepared.config
    require_memory(settings, available_memory_bytes())
    start_s = time.monotonic()
    runner = ProbeRunner(prepared, RunPaths(journal.folder))
    outcome = runner.measure(journal.next_folder(), f"{config.model} {config.scenario.value} find")
    probe = journal.note(None, outcome, time.monotonic() - start_s, None)
    warm_up = prepared.found.warm_up
    if config.scenario is Scenario.OFFLINE:
        measured = 0.0 if outcome.log.metric is None else outcome.log.metric.value
        value, name, part = max(measured, offline_rate(warm_up.samples_per_second)), "target_qps", OFFLINE_PART
    else:
        seen = [figure for figure in (probe.p50_ms, warm_up.query_latency_ms) if figure]
        value, name, part = min(seen), "target_latency_ms", STREAM_PART
    found = Setting(rounded(value * part), Origin.SEARCH)
    words = f"{part:g} times {value:.4g}, the best of the warm-up and {probe.folder}"
    content = journal.content({name: {"value": found.value, "origin": words}}, None, None, is_finished=True)
    is_rate = config.scenario is Scenario.OFFLINE
    settings = replace(settings, target_qps=found) if is_rate else replace(settings, target_latency_ms=found)
    return content, settings, outcome.log


def tell(content: Mapping[str, Json]) -> str:
    settings, confidence = content["settings"], content["confidence"]
    parts = []
    for name, setting in settings.items() if isinstance(settings, Mapping) else ():
        if isinstance(setting, Mapping):
            parts.append(f"{name} {setting['value']:.6g} ({setting['origin']})")
    if isinstance(confidence, Mapping):
        parts.append(f"{confidence['valid_runs']} of {confidence['of_runs']} runs VALID, {confidence['ended_because']}")
    return f"found {', '.join(parts)}, {content['label']}"
