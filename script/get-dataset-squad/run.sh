#!/bin/bash
# Makes synthetic questions in the current folder (the cache entry); given and downloaded ones need nothing.
set -euo pipefail

case "${CM_SQUAD_WORK}" in
synthetic | tiny)
  "${CM_PYTHON_BIN_WITH_PATH}" -B -m crowdperf.standins.datasets.squad --kind "${CM_SQUAD_WORK}" \
    --count "${CM_DATASET_SYNTHETIC_SIZE}" --seed "${CM_DATASET_SYNTHETIC_SEED}" --output_dir "${PWD}"
  ;;
given | download) ;;
*)
  echo "CM_SQUAD_WORK is ${CM_SQUAD_WORK}" >&2
  exit 2
  ;;
esac
