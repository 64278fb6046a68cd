#!/bin/bash
# Makes, fetches or takes the files of a benchmark; preprocess says which (CM_DATASET_TEXT_WORK). Then converts them.
set -euo pipefail

here="${CM_TMP_CURRENT_SCRIPT_PATH}"
python="${CM_PYTHON_BIN_WITH_PATH}"
files="${CM_DATASET_TEXT_FILES}"
checks=()

case "${CM_DATASET_TEXT_WORK}" in
make)
    "${python}" -B -m crowdperf.standins.datasets.mlperf_text --benchmark "${CM_DATASET_TEXT_BENCHMARK}" --output_dir "${files}" \
        --count "${CM_DATASET_TEXT_SIZE}" --lengths "${CM_DATASET_TEXT_LENGTHS}" --seed "${CM_DATASET_TEXT_SEED}"
    ;;
fetch)
    "${python}" -B "${here}/storage.py" --metadata "${CM_DATASET_TEXT_METADATA}" --output_dir "${files}"
    checks=(--is_published)
    ;;
convert) checks=(--is_published) ;;
*)
    echo "CM_DATASET_TEXT_WORK is ${CM_DATASET_TEXT_WORK}" >&2
    exit 2
    ;;
esac
"${python}" -B "${here}/convert.py" --benchmark "${CM_DATASET_TEXT_BENCHMARK}" --source "${files}" \
    --output_dir "${CM_DATASET_TEXT_FOLDER}" ${checks[@]+"${checks[@]}"}
