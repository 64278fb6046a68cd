#!/usr/bin/env bash
# The benchmark part of the crowd-benchmarking tutorial, command for command, on a CPU with synthetic inputs.
#
# Set before: CM_REPOS (the CM home), RESULTS, TREE (folders), REPOSITORY (a git URL), FACTS (a file with the facts of the
# system that no program can know), and EXECUTION_MODE (valid makes a submission; test and fast are refused by the check).
# Differences from the tutorial: --device=cpu; resnet50's tiny network with 50,000 made images instead of BERT; the facts
# file and --allow_synthetic, without which nothing made of synthetic inputs is taken; --push, for nothing is pushed
# without being asked.
set -euo pipefail

benchmark=(
  --adr.python.name=mlperf-cpu --model=resnet50 --implementation=reference --device=cpu --backend=onnxruntime --quiet
  --source=tiny --adr.dataset.tags=_size.50000 --adr.dataset-preprocessed.tags=_size.50000 --threads=1
)
results=(--execution-mode="${EXECUTION_MODE}" --results_dir="${RESULTS}")

cm run script "install python-venv" --name=mlperf-cpu
cm run script --tags=generate-run-cmds,inference,_find-performance,_all-scenarios "${benchmark[@]}"
cm run script --tags=generate-run-cmds,inference,_accuracy-only,_all-scenarios "${benchmark[@]}" "${results[@]}"
cm run script --tags=generate-run-cmds,inference,_performance-only,_all-scenarios "${benchmark[@]}" "${results[@]}"
cm run script --tags=generate-run-cmds,inference,_populate-readme,_all-scenarios "${benchmark[@]}" "${results[@]}"
# The tutorial's own line break: the backslash after "master" is missing, so the shell takes the last line for a command.
cm run script --tags=generate,inference,submission \
    --results_dir="${RESULTS}/${EXECUTION_MODE}_results" \
    --adr.python.name=mlperf-cpu \
    --device=cpu --submission_dir="${TREE}" --clean  \
    --run-checker --submitter=cTuning --adr.inference-src.version=master \
    --hw_notes_extra="Result taken by A Volunteer" --quiet \
    --system_facts="${FACTS}" --allow_synthetic=yes
cm run script --tags=push,github,mlperf,inference,submission \
    --submission_dir="${TREE}" \
    --adr.python.name=mlperf-cpu \
    --repo_url="${REPOSITORY}" \
    --commit_message="Crowd results added" --allow_synthetic=yes --push
