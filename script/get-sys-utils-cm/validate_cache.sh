#!/bin/bash
# Run by the engine before it reuses an entry of this recipe. Only builtins, so it costs no process. While something is
# missing, each run looks again; what was there has to be there still; a recorded machine says nothing about this one.

if [[ "${CM_SYS_UTILS_SIMULATED:-}" == yes ]]; then
  echo "it describes a recorded machine" >&2
  exit 1
fi
if [[ -n "${CM_SYS_UTILS_MISSING:-}" ]]; then
  echo "something was missing (${CM_SYS_UTILS_MISSING}), so this run looks again" >&2
  exit 1
fi
IFS=: read -r -a places <<< "${CM_SYS_UTILS_PLACES:-}"
for place in "${places[@]}"; do
  if [[ -n "${place}" && ! -e "${place}" ]]; then
    echo "${place} is gone" >&2
    exit 1
  fi
done
