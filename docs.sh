#!/usr/bin/env bash
# Builds the documentation site and serves it on this machine: http://127.0.0.1:8000/. --port=8123 chooses another port,
# --build only builds it, below build/site-pages/site/. Search needs no network, but pages served over http.
# CROWDPERF_URL=https://... makes links to source files lead to that repository.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/tools/prepare.sh"
port=8000
serve=yes
for word in "$@"; do
  case "$word" in
    --build) serve=no ;;
    --port=*) port="${word#--port=}" ;;
    *)
      say "./docs.sh: unknown option $word; allowed: --build, --port=NUMBER"
      exit 1
      ;;
  esac
done
prepare_environment .venv-docs docs/requirements.txt
cd "$CHECKOUT"
.venv-docs/bin/python tools/make_site.py
(cd build/site-pages && "$CHECKOUT/.venv-docs/bin/zensical" build --strict)
say "the site: $CHECKOUT/build/site-pages/site/index.html"
if [ "$serve" = yes ]; then
  say "serving it at http://127.0.0.1:$port/ until Ctrl-C"
  exec .venv-docs/bin/python -m http.server "$port" --bind 127.0.0.1 --directory build/site-pages/site
fi
