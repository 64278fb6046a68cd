# Sourced by test.sh --full: sees to it that the tests of sweeps on Slurm find one.
# Installs Debian's packages where that needs nobody's leave (root, with apt-get); else the tests say that they were
# skipped, and why. Slurm's services do not start without an /etc/slurm/slurm.conf, and none is written: the tests
# start a Slurm of their own below a temporary folder.

prepare_slurm() {
  local name missing=()
  for name in slurmctld slurmd sbatch munged; do
    PATH="$PATH:/usr/sbin" command -v "$name" >/dev/null 2>&1 || missing+=("$name")
  done
  if [ "${#missing[@]}" -eq 0 ]; then return 0; fi
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    say "installing slurmctld, slurmd, slurm-client and munge for the tests of sweeps ..."
    if install_package slurmctld slurmd slurm-client munge; then return 0; fi
  fi
  say "no Slurm for the tests of sweeps (${missing[*]}); hint: sudo apt-get install -y slurmctld slurmd slurm-client munge"
}
