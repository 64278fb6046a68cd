"""Hooks of parse-mlperf-metadata: metadata.json files as VirtualClient's metrics, in its telemetry files.

Everything is decided in `crowdperf/fronts/metrics`; here files are found, read and named.
"""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

import sys
from pathlib import Path

from crowdperf.call.answers import runs_to_its_end
from crowdperf.fronts.metrics import metricfiles
from crowdperf.fronts.metrics.commandline import CommandLineError, parse_pairs
from crowdperf.fronts.metrics.discovery import MetadataFile, experiment_of, find, session_of
from crowdperf.fronts.metrics.metadata import MetadataError
from crowdperf.fronts.metrics.upstream import UpstreamFails
from crowdperf.rules.names import counted, printable, printable_lines

STRICT_KEY = "CM_MLPERF_METRICS_STRICT_UPSTREAM"
HINT = "hint: cm run script --tags=parse,mlperf,metadata --input=FOLDER   # FOLDER contains metadata.json at any depth"


class ParseError(Exception):
    """Nothing can be written; the text has every reason."""


plan = runs_to_its_end


def read_all(source: Path, *, is_strict: bool) -> list[MetadataFile]:
    """Every metadata.json below the source with its metrics. Raises ParseError with all that is wrong."""
    if not source.exists():
        raise ParseError(f"--input: {source} does not exist")
    found, problems = [], []
    for path in find(source):
        try:
            found.append(MetadataFile.read(path, is_strict=is_strict))
        except (MetadataError, UpstreamFails, OSError) as error:
            words = f"{path}: VirtualClient ends here with {error}" if isinstance(error, UpstreamFails) else str(error)
            problems.append(printable(words))
    if problems:
        raise ParseError(
            "\n  ".join([f"{counted(len(problems), 'file')} cannot be read, so no file was written", *problems])
        )
    if not found:
        raise ParseError(f"no metadata.json was found below {source}")
    return found


def preprocess(i):
    """CM hook: reads, writes the telemetry files, prints the summary."""
    env, values = i["env"], i["values"]
    folder = values["log_dir"]
    try:
        found = read_all(values["input"], is_strict=env.get(STRICT_KEY) == "yes")
        session = session_of(
            experiment_id=values["experiment_id"] or experiment_of(found),
            profile=values["profile"],
            system=values["system"] or "",
            client_id=values["client_id"] or "",
            metadata=parse_pairs(values["metadata"] or "", "--metadata"),
        )
        for one in found:
            for remark in one.remarks:
                print(f"! {printable(str(one.path))}: {printable(remark)}", file=sys.stderr)
            if not metricfiles.append(folder, one.metrics, session, one.source):
                print(f"already in {folder}: {printable(str(one.path))}", file=sys.stderr)
        print(printable_lines(metricfiles.write_summary(folder, session.experiment_id)))
    except (ParseError, CommandLineError, OSError) as error:
        return {"return": 1, "error": f"{error}\n{HINT}"}
    env["CM_MLPERF_METRICS_CSV"] = str(metricfiles.csv_files(folder)[-1])
    env["CM_MLPERF_METRICS_FILE"] = str(folder / metricfiles.JSON_NAME)
    rows = [{"name": m.name, "value": m.value, "unit": m.unit, **m.metadata} for one in found for m in one.metrics]
    i["state"]["mlperf_metrics"] = {"experiment_id": session.experiment_id, "metrics": rows}
    return {"return": 0}
