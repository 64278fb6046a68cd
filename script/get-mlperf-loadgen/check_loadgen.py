"""Checks that the installed LoadGen is the one of an MLPerf round: its version and the random seeds compiled into it.

Stands alone and is run by run.sh with the Python whose LoadGen is meant; prints what it found as lines for CM:

    python3 check_loadgen.py --round v6.1
    CM_MLPERF_LOADGEN_VERSION=6.0.17

Each round has its own seeds, and a submission with another round's seeds is refused, so the version alone is not
enough.
"""

import argparse
import os
import sys
from dataclasses import dataclass
from importlib import metadata

PACKAGE = "mlcommons-loadgen"


@dataclass(frozen=True)
class Build:
    """A LoadGen release and the seeds compiled into it."""

    version: str
    qsl_seed: int
    sample_index_seed: int
    schedule_seed: int


# Seeds: per-round constants of MLCommons' submission checker (github.com/mlcommons/inference,
# tools/submission/submission_checker.py). All five were read out of the PyPI wheels (Linux, CPython 3.11) on 2026-11-21
# and are the same there. Where several wheels hold one round's seeds, the newest of that round's versions is taken.
BUILD_OF_ROUND = {
    "v4.1": Build("4.1.30", 3066443479025735752, 10688027786191513374, 14962580496156340209),
    "v5.0": Build("5.0.11", 6023615788873153749, 15036839855038426416, 9933818062894767841),
    "v5.1": Build("5.1.2", 1780908523862526354, 14771362308971278857, 18209322760996052031),
    "v6.0": Build("6.0.15", 2465351861681999779, 14276810075590677512, 3936089224930324775),
    "v6.1": Build("6.0.17", 2085463073848966840, 2747215439041700203, 16159082839903944936),
}


def installed_build() -> Build:
    """The LoadGen that this Python imports; raises ImportError where there is none."""
    import mlperf_loadgen  # here, so that the table can be read without LoadGen

    settings = mlperf_loadgen.TestSettings()
    settings.FromConfig(os.devnull, "any", "Offline", 1)  # reads the embedded settings; the named file is empty
    return Build(
        version=metadata.version(PACKAGE),
        qsl_seed=settings.qsl_rng_seed,
        sample_index_seed=settings.sample_index_rng_seed,
        schedule_seed=settings.schedule_rng_seed,
    )


def problem_of(found: Build, round_name: str) -> str:
    """What is wrong with `found` for the round, with the command to try; empty when it is the round's own build."""
    expected = BUILD_OF_ROUND[round_name]
    if found == expected:
        return ""
    what = "version and seeds" if found.version != expected.version else "seeds"
    return (
        f"LoadGen is not the one of MLPerf round {round_name}: its {what} differ\n"
        f"  found    {found}\n  expected {expected}\n"
        f"hint: cm run script --tags=get,generic-python-lib,_package.{PACKAGE} --version={expected.version} "
        "--adr.python.name=mlperf-inference"
    )


def main() -> int:
    """Command line entry; gives the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--round", required=True, choices=sorted(BUILD_OF_ROUND))
    round_name = parser.parse_args().round
    try:
        found = installed_build()
    except ImportError as error:
        print(f"check_loadgen.py: {sys.executable} cannot import LoadGen: {error}", file=sys.stderr)
        return 1
    problem = problem_of(found, round_name)
    if problem:
        print(f"check_loadgen.py: {problem}", file=sys.stderr)
        return 1
    print(f"CM_MLPERF_LOADGEN_VERSION={found.version}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
