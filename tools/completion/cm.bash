# Completion of cm and ./cm for bash: eval "$(./cm completion bash)"
_crowdperf_cm() {
  local line="${COMP_LINE:0:COMP_POINT}" word replaced reply
  word="${line##*[[:space:]]}"
  replaced="${word%"${word##*[=:]}"}" # bash replaces what follows the last = or :
  COMPREPLY=()
  while IFS= read -r reply; do
    COMPREPLY+=("${reply#"$replaced"}")
  done < <(@COMPLETE@ "$line" 2>/dev/null)
}
complete -o bashdefault -o default -o nospace -F _crowdperf_cm cm
