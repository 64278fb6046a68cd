#!/bin/bash
# With _static: writes the pages. Everything else has been done by the hook.
set -euo pipefail

if [ -n "${CM_TMP_EXPORT_DB}" ]; then
  "${CM_MLPERF_RESULTS_SERVER_PYTHON}" -B -m crowdperf.web.static_site \
    "${CM_TMP_EXPORT_DB}" "${CM_TMP_EXPORT_OUTPUT}" "${CM_TMP_EXPORT_NAME}"
fi
