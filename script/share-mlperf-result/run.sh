#!/bin/bash
# Makes the bundle, shows it, asks and sends it; the reason of a failure is read by the hook that follows.
set -uo pipefail

mapfile -t arguments <<<"${CM_TMP_SHARE_WORDS}"
rm -f tmp-share.json
CM_MLPERF_COLLECTOR_TOKEN="${CM_TMP_SHARE_TOKEN-}" "${CM_MLPERF_RESULTS_SERVER_PYTHON}" -B -m crowdperf.store.share "${arguments[@]}"
[[ -s tmp-share.json ]]
