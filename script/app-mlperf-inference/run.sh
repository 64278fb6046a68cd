#!/bin/bash
# Runs one LoadGen test with the harness (src/crowdperf/harness); what it prints is kept in the folder of the run too.
set -euo pipefail

export CUDA_DEVICE_ORDER="${CUDA_DEVICE_ORDER:-PCI_BUS_ID}" # GPU n is nvidia-smi's GPU n; CUDA's own order is by speed

export HARNESS_ENDS_WITH="${CM_TMP_MLPERF_OWNER:-}" # when cm is killed, nobody waits for this run

if [ "${CM_MLPERF_RUN_ON_TERMINAL:-no}" = "yes" ]; then
  exec 3>&2
  export HARNESS_PROGRESS_FD=3 # the line that is rewritten all the time: to the user, not into the file
fi

# What a program that a signal has ended could not say itself.
cause_of() {
  case "$1" in
    134) echo "a library ended the process, most often because there was no memory left" ;;
    135 | 139) echo "a library crashed; no memory left, or a library that does not suit this machine" ;;
    137) echo "it was killed: by a user, or by the system because memory ran out (dmesg tells)" ;;
    153) echo "a file grew over its limit (ulimit -f)" ;;
    *) echo "signal $(($1 - 128))" ;;
  esac
}

cd "${CM_MLPERF_OUTPUT_DIR}"
status=0
"${CM_PYTHON_BIN_WITH_PATH}" -m crowdperf.harness "${CM_MLPERF_RUN_JSON}" 2>&1 | tee "${CM_MLPERF_RUN_CONSOLE_FILE}" || status=$?
if [ "${status}" -gt 128 ]; then
  {
    echo "harness: error: the run ended with code ${status}: $(cause_of "${status}")"
    echo "harness: hint: nothing was recorded; run it again, with a smaller batch_size or fewer instances if it was memory"
  } | tee -a "${CM_MLPERF_RUN_CONSOLE_FILE}"
fi
[ "${status}" -eq 0 ] || exit "${status}"
