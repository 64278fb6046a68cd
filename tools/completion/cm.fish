# Completion of cm and ./cm for fish: ./cm completion fish | source
function _crowdperf_cm
    @COMPLETE@ (commandline -cp | string collect) 2>/dev/null | string trim --right
end
complete -c cm -a '(_crowdperf_cm)'
