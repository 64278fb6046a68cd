#!/bin/bash
# Imports a bundle, with the package that checks its signature. Everything else has been imported by the hook.
set -euo pipefail

if [ "${CM_TMP_IMPORT_KIND}" = "bundle" ]; then
  rm -f tmp-import.json
  "${CM_MLPERF_RESULTS_SERVER_PYTHON}" -B -m crowdperf.store.bundle_import \
    "${CM_TMP_IMPORT_DB}" "${CM_TMP_IMPORT_PATH}" tmp-import.json
fi
