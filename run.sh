#!/usr/bin/env bash
# One command to a first result: sets up everything inside this checkout and runs the default benchmark.
# Further words go to cm, e.g. ./run.sh --scenario=Offline --execution_mode=fast
exec "$(dirname -- "${BASH_SOURCE[0]}")/cm" run script --tags=run,mlperf,inference --quiet "$@"
