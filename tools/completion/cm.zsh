# Completion of cm and ./cm for zsh, after compinit: eval "$(./cm completion zsh)"
_crowdperf_cm() {
  local -a found
  found=("${(@f)$(@COMPLETE@ "$LBUFFER" 2>/dev/null)}")
  if [[ -n "${found[1]}" ]]; then compadd -Q -S '' -- "${found[@]}"; else _files; fi
}
compdef _crowdperf_cm cm
