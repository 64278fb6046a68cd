# Sourced by test.sh --full: sees to it that the tests of the static pages find a browser.
# Installs Debian's headless Chromium where that needs nobody's leave (root, with apt-get); else the tests say that they
# were skipped, and why. CROWDPERF_BROWSER names another browser.

prepare_browser() {
  local name
  for name in ${CROWDPERF_BROWSER:+"$CROWDPERF_BROWSER"} chromium-headless-shell chromium chromium-browser \
    google-chrome google-chrome-stable; do
    if command -v "$name" >/dev/null 2>&1; then
      return 0
    fi
  done
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    say "installing chromium-headless-shell for the tests of the static pages ..."
    if install_package chromium-headless-shell || install_package chromium; then
      return 0
    fi
  fi
  say "no browser for the tests of the static pages; hint: sudo apt-get install -y chromium-headless-shell"
}

install_package() {
  local install=(env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@")
  "${install[@]}" >/dev/null 2>&1 && return 0
  apt-get update >/dev/null 2>&1 || return 1
  "${install[@]}" >/dev/null 2>&1
}
