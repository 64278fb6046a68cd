#!/usr/bin/env bash
# Runs a command in a network namespace of its own that has no interface but lo: without_network.sh COMMAND [WORD ...]
# Exits with 125 and the reason where the machine allows no such namespace.
set -euo pipefail
# As root without a namespace of users: the command stays root on the machine's own files.
words=(unshare --net)
if [ "$(id -u)" != 0 ]; then words=(unshare --user --map-current-user --keep-caps --net); fi
# lo up (SIOCSIFFLAGS: up, loopback, running), and with a second address (SIOCSIFADDR): where a machine has 127.0.0.1 only,
# getaddrinfo() with AI_ADDRCONFIG finds no name, not even those of /etc/hosts, and Slurm asks so.
up='import fcntl, socket, struct
fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sh14x", b"lo", 0x49))
fcntl.ioctl(socket.socket(), 0x8916, struct.pack("16sHH4s8x", b"lo:1", socket.AF_INET, 0, bytes([127, 0, 0, 2])))'
if ! reason="$("${words[@]}" python3 -c "$up" 2>&1)"; then
  printf '%s\n' "no network namespace can be made here: ${reason##*$'\n'}" >&2
  exit 125
fi
# shellcheck disable=SC2016 # expanded by the inner shell
exec "${words[@]}" bash -c 'python3 -c "$1" && shift && exec "$@"' bash "$up" "$@"
