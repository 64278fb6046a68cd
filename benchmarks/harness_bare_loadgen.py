"""The least Python between LoadGen and an answer: what the harness's null backend is measured against (see
harness_limits.py).

Run as its own process: harness_bare_loadgen.py SCENARIO OUT_FOLDER MIN_DURATION_MS TARGET. TARGET is LoadGen's
target_latency in ms in the streams, target_qps elsewhere. Each query is answered with the same 40 bytes:

    SingleStream, Server   fast SUT, one response object used again and again, completed inside the callback
    MultiStream            the same with eight objects
    Offline                the same with 1,024 objects, part by part (one object per sample and one completion is
    slower)

Ids are written by the function behind the attribute, which needs less time than an assignment to it.
"""

import array
import sys
from pathlib import Path

import mlperf_loadgen as lg

RESPONSE_FLOATS = 10
SAMPLES = 500
POOL = 1024
set_id = lg.QuerySampleResponse.id.fset.__func__


def reused(count: int, address: int, size: int):
    """Return a callback that answers queries of `count` samples with `count` objects."""
    responses = [lg.QuerySampleResponse(0, address, size) for _ in range(count)]
    complete = lg.QuerySamplesComplete
    if count == 1:
        response = responses[0]

        def issue(ids: list[int], indices: list[int]) -> None:
            set_id(response, ids[0])
            complete(responses)

        return issue

    def issue_many(ids: list[int], indices: list[int]) -> None:
        any(map(set_id, responses, ids))
        complete(responses)

    return issue_many


def pooled(address: int, size: int):
    """Return a callback that answers one big query in parts, with the same objects for each part."""
    responses = [lg.QuerySampleResponse(0, address, size) for _ in range(POOL)]
    complete = lg.QuerySamplesComplete

    def issue(ids: list[int], indices: list[int]) -> None:
        for start in range(0, len(ids), POOL):
            part = ids[start : start + POOL]
            chosen = responses if len(part) == POOL else responses[: len(part)]
            any(map(set_id, chosen, part))
            complete(chosen)

    return issue


def main(scenario: str, folder: Path, min_duration_ms: int, target: float) -> None:
    """Run LoadGen once; its logs are then in `folder`."""
    buffer = array.array("f", [0.0] * RESPONSE_FLOATS)
    address, _ = buffer.buffer_info()
    size = buffer.itemsize * RESPONSE_FLOATS
    if scenario == "Offline":
        issue = pooled(address, size)
    else:
        issue = reused(8 if scenario == "MultiStream" else 1, address, size)
    key = "target_latency" if scenario.endswith("Stream") else "target_qps"
    conf = folder / "user.conf"
    conf.write_text(
        f"*.*.min_duration = {min_duration_ms}\n*.{scenario}.min_query_count = 1\n*.{scenario}.{key} = {target}\n"
    )
    settings = lg.TestSettings()
    settings.FromConfig(str(conf), "digits", scenario, 1)
    settings.scenario = getattr(lg.TestScenario, scenario)
    settings.mode = lg.TestMode.PerformanceOnly
    output = lg.LogOutputSettings()
    output.outdir = str(folder)
    log = lg.LogSettings()
    log.log_output = output
    log.enable_trace = False
    sut = lg.ConstructFastSUT(issue, lambda: None)
    qsl = lg.ConstructQSL(SAMPLES, SAMPLES, lambda indices: None, lambda indices: None)
    lg.StartTestWithLogSettings(sut, qsl, settings, log, str(folder / "audit.config"))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
