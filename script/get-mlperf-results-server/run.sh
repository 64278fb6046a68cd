#!/bin/bash
# Installs the packages, each with the digest that requirements.txt has for it, and asks them once.
set -euo pipefail

cp -- "${CM_TMP_CURRENT_SCRIPT_PATH}/requirements.txt" requirements.txt
"${CM_PYTHON_BIN_WITH_PATH}" -I -m pip install --disable-pip-version-check --no-input --quiet --require-hashes \
  --no-deps --requirement requirements.txt
"${CM_PYTHON_BIN_WITH_PATH}" -I -B -c "import cryptography.hazmat.primitives.asymmetric.ed25519, jinja2, starlette.applications, uvicorn"
