#!/bin/bash
# Installs the packages, each with the digest that the list has for it, and asks them once.
set -euo pipefail

list="${CM_TMP_RESULTS_SERVER_PACKAGES:-requirements}.txt"
asked="cryptography.hazmat.primitives.asymmetric.ed25519, jinja2, starlette.applications, uvicorn"
if [ "${list}" = "datasette.txt" ]; then
  asked="datasette.app"
fi
cp -- "${CM_TMP_CURRENT_SCRIPT_PATH}/${list}" requirements.txt
"${CM_PYTHON_BIN_WITH_PATH}" -I -m pip install --disable-pip-version-check --no-input --quiet --require-hashes \
  --no-deps --requirement requirements.txt
"${CM_PYTHON_BIN_WITH_PATH}" -I -B -c "import ${asked}"
