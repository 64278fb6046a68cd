#!/usr/bin/env bash
# One command to a first result: sets up everything inside this checkout and runs the default benchmark.
# Further words go to cm, e.g. ./run.sh --scenario=Offline --execution_mode=fast
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/tools/prepare.sh"
prepare_environment .venv requirements.txt
prepare_cm_home
exec "$CHECKOUT/.venv/bin/cm" run script --tags=run,mlperf,inference --quiet "$@"
