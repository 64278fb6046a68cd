#!/usr/bin/env bash
# Sets up and runs the whole test suite. --python=3.12 or --python=/usr/bin/python3 chooses a Python, which gets
# environments of its own; --full adds the slow tests, and then the others on every further Python that is there.
# --changed or --changed=REVISION runs what a change can reach, --quick a core of all areas (docs/testing.md).
# Further words go to pytest.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/tools/prepare.sh"
. "$CHECKOUT/tools/browser.sh"
. "$CHECKOUT/tools/slurm.sh"
full=()
version=""
chosen=()
while [ $# -gt 0 ]; do
  case "$1" in
    --full) full=(--full) ;;
    --python=*) version="${1#--python=}" ;;
    --changed) chosen=(changed) ;;
    --changed=*) chosen=(changed --base="${1#--changed=}") ;;
    --quick) chosen=(quick) ;;
    *) break ;;
  esac
  shift
done
if [ "${#chosen[@]}" -gt 0 ] && [ "${#full[@]}" -gt 0 ]; then
  say "--full runs all tests: leave out --${chosen[0]}, or --full"
  exit 2
fi
if [ -n "$version" ]; then
  CROWDPERF_PYTHON="$(python_of "$version")" || {
    say "--python=$version: not one of the Pythons from 3.10 on that are on PATH or in pyenv: $(pythons)"
    exit 2
  }
  export CROWDPERF_PYTHON CROWDPERF_TORCH=optional
  own="-${version#/}" # a folder's name for a path, too
  own="${own//\//-}"
fi
test_env=".venv-test${own:-}"
harness_env=".venv-harness${own:-}"
# Three workers for two cores: many tests wait for processes and for time to pass. Eight at most. -n0 makes it one.
workers=(-n "$((count = $(nproc) * 3 / 2, count > 8 ? 8 : count))" --dist worksteal)
cd "$CHECKOUT"
# Tests make and remove tens of thousands of folders, and some disks wait whenever one goes (ext4 that discards: 5 ms).
# Their temporary folders are in memory where it has room and programs may run from it; those of failed tests stay.
retention=()
memory_kb="$({ df -Pk /dev/shm | awk 'NR == 2 { print $4 }' && awk '/^MemAvailable:/ { print $2 }' /proc/meminfo; } \
  2>/dev/null | sort -n | head -n 1)" || memory_kb=0
if [ -z "${TMPDIR:-}" ] && [ "${#full[@]}" -eq 0 ] && [ "${memory_kb:-0}" -gt $((12 << 20)) ] && [ -w /dev/shm ]; then
  TMPDIR="$(mktemp -d /dev/shm/crowdperf-XXXXXX)"
  chmod 1777 "$TMPDIR" # as /tmp: some tests run programs as another user
  printf '#!/bin/sh\n' >"$TMPDIR/program" && chmod 755 "$TMPDIR/program"
  if "$TMPDIR/program" 2>/dev/null; then
    export TMPDIR
    retention=(-o tmp_path_retention_policy=failed)
  else
    rm -rf "$TMPDIR"
    unset TMPDIR
  fi
fi
# ended CODE: nothing goes on behind a failure, and no memory is kept after a success.
ended() {
  wait
  if [ "${#retention[@]}" -eq 0 ]; then return; fi
  if [ "$1" -eq 0 ]; then rm -rf "$TMPDIR"; else say "folders of failed tests are in memory: rm -rf $TMPDIR"; fi
}
prepare_environment "$harness_env" tests/requirements-harness.txt \
  "torch, mlperf_loadgen, numpy, onnx, pytest, scipy, sklearn.datasets, sklearn.metrics, xdist" &
preparing=$!
trap 'ended $?' EXIT
prepare_environment "$test_env" tests/requirements.txt \
  "cmind, cryptography.x509, httpx, hypothesis, jinja2, jsonschema, pytest, requests, starlette.routing, uvicorn, xdist"
bin="$CHECKOUT/$test_env/bin"

say "ruff, shellcheck, mypy ($("$bin/python" --version))"
"$bin/ruff" check .
"$bin/ruff" format --check .
git ls-files -z -- '*.sh' '*.bash' cm run.sh test.sh .ci/run | xargs -0 "$bin/shellcheck" --severity=warning --shell=bash
words=("${full[@]}" "$@")
callers=$#
# part PYTHON -m pytest ...: one part of the suite. That the caller's words leave no test of it (5) is no failure.
part() {
  local code=0
  "$@" "${words[@]}" "${retention[@]}" || code=$?
  [ "$code" -eq 0 ] || { [ "$code" -eq 5 ] && [ "$callers" -gt 0 ]; }
}
# lines KIND: what tools/changed_tests.py said that is to be run so.
lines() { sed -n "s/^$1 //p" <<<"$answer"; }
answer="$("$bin/python" tools/changed_tests.py rooms)"
mapfile -t numpy_rooms < <(lines room) # those that stand on numpy, torch and LoadGen
mapfile -t harness_tests < <(lines folder)
mapfile -t harness_files < <(lines file)
if [ "${#chosen[@]}" -gt 0 ]; then
  answer="$("$bin/python" tools/changed_tests.py "${chosen[@]}")"
  if [ "$answer" != everything ]; then
    mapfile -t packages < <(lines mypy-plain)
    mapfile -t with_numpy < <(lines mypy-harness)
    mapfile -t with_harness < <(lines harness)
    mapfile -t plain < <(lines plain)
    if [ "${#packages[@]}" -gt 0 ]; then "$bin/mypy" "${packages[@]/#/-p}"; fi
    callers=1 # files of which every test is marked full or alone leave none to run
    if [ "${#with_harness[@]}" -gt 0 ] || [ "${#with_numpy[@]}" -gt 0 ]; then
      wait "$preparing"
      if [ -f "$CHECKOUT/$harness_env/without-torch" ]; then
        CROWDPERF_WITHOUT_TORCH="$(cat "$CHECKOUT/$harness_env/without-torch")"
        export CROWDPERF_WITHOUT_TORCH
        say "$CROWDPERF_WITHOUT_TORCH: tests that need torch are skipped, and mypy leaves the harness out"
      elif [ "${#with_numpy[@]}" -gt 0 ]; then
        "$CHECKOUT/$harness_env/bin/mypy" "${with_numpy[@]/#/-p}"
      fi
    fi
    if [ "${#with_harness[@]}" -gt 0 ]; then
      harness=(env CROWDPERF_REQUIRE_HARNESS=1 "$CHECKOUT/$harness_env/bin/python" -m pytest)
      mapfile -t alone < <(grep -l 'mark\.alone' "${with_harness[@]}")
      if [ "${#alone[@]}" -gt 0 ]; then part "${harness[@]}" "${alone[@]}" -m alone; fi
      part "${harness[@]}" "${with_harness[@]}" -m "not alone" "${workers[@]}"
    fi
    if [ "${#plain[@]}" -gt 0 ]; then
      part "$bin/python" -m pytest "${plain[@]}" -m "not alone" "${workers[@]}"
    fi
    exit 0
  fi
fi
rooms=()
for room in src/crowdperf/*/; do
  room="$(basename "$room")"
  [[ " ${numpy_rooms[*]} __pycache__ " = *" $room "* ]] || rooms+=(-p "crowdperf.$room")
done
"$bin/mypy" -p recipe_engine "${rooms[@]}"
if [ "${#full[@]}" -gt 0 ]; then
  prepare_browser
  prepare_slurm
fi

# One worker for each core: most of these tests wait for processes. -n0 among the words makes it one. They begin while
# the other environment, with torch in it, is still being filled.
say "tests of the engine, the adapters, the recipes and the docs"
part "$bin/python" -m pytest tests "${harness_tests[@]/#/--ignore=}" -m "not alone" "${workers[@]}"
wait "$preparing"
without_torch="$CHECKOUT/$harness_env/without-torch"
if [ -f "$without_torch" ]; then
  CROWDPERF_WITHOUT_TORCH="$(cat "$without_torch")"
  export CROWDPERF_WITHOUT_TORCH
  say "$CROWDPERF_WITHOUT_TORCH: tests that need torch are skipped and counted, and mypy leaves the harness out"
fi

say "tests that need numpy, onnxruntime and LoadGen: the harness, and what recipes run with them"
export CROWDPERF_REQUIRE_HARNESS=1
mapfile -t alone < <(grep -lr 'mark\.alone' "${harness_tests[@]}")
harness=("$CHECKOUT/$harness_env/bin/python" -m pytest)
if [ -f "$without_torch" ]; then harness+=(-rs); fi
part "${harness[@]}" "${alone[@]}" -m alone
if [ ! -f "$without_torch" ]; then # beside tests that need not be alone
  "$CHECKOUT/$harness_env/bin/mypy" "${numpy_rooms[@]/#/-pcrowdperf.}" &
  checking=$!
fi
part "${harness[@]}" "${harness_tests[@]}" "${harness_files[@]}" -m "not alone" "${workers[@]}"
if [ -n "${checking:-}" ]; then wait "$checking"; fi
unset CROWDPERF_REQUIRE_HARNESS
if [ "${#full[@]}" -gt 0 ]; then
  say "the collector's pages in a browser"
  browser_env=".venv-browser${own:-}"
  if prepare_environment "$browser_env" tests/requirements-browser.txt; then
    part "$CHECKOUT/$browser_env/bin/python" -m pytest tests/web/test_collector_in_browser.py
  else
    say "skipped: what tests/requirements-browser.txt names cannot be installed"
  fi
  say "sweeps, curves and results once more, on a machine without any network"
  if reason="$(tools/without_network.sh true 2>&1)"; then
    words=("$@") # those that are marked full may install what they need
    part tools/without_network.sh "$bin/python" -m pytest tests/{sweeps,endpoints,curves,store,web} "${workers[@]}"
    words=("${full[@]}" "$@")
  else
    say "skipped: $reason"
  fi
  say "submissions from nothing, one by one: about 100 minutes"
  part "$bin/python" -m pytest tests/e2e -m alone
fi
if [ "${#full[@]}" -gt 0 ] && [ -z "$version" ]; then
  failed=()
  for other in $(pythons); do
    if [ "$("$(python_of "$other")" --version)" != "$("$bin/python" --version)" ]; then
      say "the tests that are not slow, with Python $other"
      "$CHECKOUT/test.sh" --python="$other" "$@" || failed+=("$other")
    fi
  done
  if [ "${#failed[@]}" -gt 0 ]; then
    say "failed with Python ${failed[*]}: ./test.sh --python=${failed[0]} runs them again"
    exit 1
  fi
fi
