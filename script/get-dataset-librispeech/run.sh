#!/bin/bash
# Makes, converts or checks the data set; preprocess says which (CM_LIBRISPEECH_WORK).
set -euo pipefail

python="${CM_PYTHON_BIN_WITH_PATH}"

case "${CM_LIBRISPEECH_WORK}" in
synthetic)
    "${python}" -B -m crowdperf.standins.datasets.librispeech --output_dir "${PWD}" --count "${CM_DATASET_SYNTHETIC_SIZE}" \
        --longest_s "${CM_LIBRISPEECH_LONGEST_S}" --seed "${CM_DATASET_SYNTHETIC_SEED}" \
        --training_count "${CM_LIBRISPEECH_TRAINING_COUNT}"
    ;;
convert)
    "${python}" -B "${CM_TMP_CURRENT_SCRIPT_PATH}/convert.py" --source "${CM_LIBRISPEECH_FLAC_PATH}" --output_dir "${PWD}" \
        --workers "${CM_NUM_PREPROCESS_THREADS}" --expected "${CM_LIBRISPEECH_EXPECTED_RECORDINGS}"
    ;;
check) ;;
*)
    echo "CM_LIBRISPEECH_WORK is ${CM_LIBRISPEECH_WORK}" >&2
    exit 2
    ;;
esac
"${python}" -B -m crowdperf.harness.commands.check_dataset --dataset librispeech --folder "${CM_LIBRISPEECH_FOLDER}" --thorough \
    --count "${CM_LIBRISPEECH_EXPECTED_COUNT}"
if [ "${CM_LIBRISPEECH_IS_DOWNLOADED}" = yes ]; then
    rm -rf "${PWD}/LibriSpeech" # unpacked here by extract,file; the wav files hold the same sound
fi
