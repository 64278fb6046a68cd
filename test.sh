#!/usr/bin/env bash
# Sets up and runs the whole test suite; --full adds the slow checks, --python=3.12 chooses a Python, which gets
# environments of its own. Further words go to pytest.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/tools/prepare.sh"
. "$CHECKOUT/tools/browser.sh"
full=()
version=""
while [ $# -gt 0 ]; do
  case "$1" in
    --full) full=(--full) ;;
    --python=*) version="${1#--python=}" ;;
    *) break ;;
  esac
  shift
done
if [ -n "$version" ]; then
  CROWDPERF_PYTHON="$(python_of "$version")" || {
    say "--python=$version: not one of the Pythons from 3.10 on that are on PATH or in pyenv: $(pythons)"
    exit 2
  }
  export CROWDPERF_PYTHON
fi
test_env=".venv-test${version:+-$version}"
harness_env=".venv-harness${version:+-$version}"
workers=(-n auto --maxprocesses=8 --dist worksteal)
cd "$CHECKOUT"
prepare_environment "$harness_env" tests/requirements-harness.txt &
prepare_environment "$test_env" tests/requirements.txt
wait $!
if [ "${#full[@]}" -gt 0 ]; then prepare_browser; fi
bin="$CHECKOUT/$test_env/bin"

say "ruff, mypy, shellcheck"
"$bin/ruff" check .
"$bin/ruff" format --check .
"$bin/mypy" -p recipe_engine -p machine_facts -p nvidia_library -p mlperf_data -p mlperf_gate -p submission
"$CHECKOUT/$harness_env/bin/mypy" -p harness -p mlperf_results
git ls-files -z -- '*.sh' run.sh test.sh .ci/run | xargs -0 "$bin/shellcheck" --severity=warning --shell=bash

words=("${full[@]}" "$@")
callers=$#
# part PYTHON -m pytest ...: one part of the suite. That the caller's words leave no test of it (5) is no failure.
part() {
  local code=0
  "$@" "${words[@]}" || code=$?
  [ "$code" -eq 0 ] || { [ "$code" -eq 5 ] && [ "$callers" -gt 0 ]; }
}

say "tests that need numpy, onnxruntime and LoadGen: the harness, and what recipes run with them"
mapfile -t with_harness < <(grep -l harness_libraries tests/recipes/test_*.py)
export CROWDPERF_REQUIRE_HARNESS=1
harness=("$CHECKOUT/$harness_env/bin/python" -m pytest tests/harness tests/results "${with_harness[@]}")
part "${harness[@]}" -m alone
# One worker for each core: most of these tests wait for processes. -n0 among the words makes it one.
part "${harness[@]}" -m "not alone" "${workers[@]}"
unset CROWDPERF_REQUIRE_HARNESS
say "tests of the engine, the adapters, the recipes and the docs"
part "$bin/python" -m pytest tests --ignore=tests/harness --ignore=tests/results -m "not alone" "${workers[@]}"
if [ "${#full[@]}" -gt 0 ]; then
  say "submissions from nothing, one by one: about 100 minutes"
  part "$bin/python" -m pytest tests/e2e -m alone
fi
