"""A real Slurm below a temporary folder: one controller, some emulated nodes, and a munge of its own.

Needs Debian's packages slurmctld, slurmd, slurm-client and munge, and root; no systemd, no cgroup, no network but
127.0.0.1. Debian's slurmd is built so that several run on one machine (`slurmd -C`, "MULTIPLE_SLURMD"). Seen with Slurm
22.05.8.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "scancel", "sinfo", "setpriv")

CONF = """
ClusterName=sandbox
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket,cred_expire=5
CryptoType=crypto/munge
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmdSpoolDir={folder}/spool-%n
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/filetxt
JobCompLoc={folder}/jobcomp.txt
SchedulerParameters=sched_interval=1,sched_min_interval=100000,bf_interval=1
ReturnToService=2
SlurmdParameters=config_overrides
SlurmdTimeout=15
KillWait=5
MinJobAge={min_job_age_s}
InactiveLimit=0
MpiDefault=none
SwitchType=switch/none
"""


def reason_against() -> str:
    """Why no Slurm can be started here; empty if one can."""
    missing = [name for name in PROGRAMS if shutil.which(name, path=search_path()) is None]
    if missing:
        return f"{', '.join(missing)} missing; hint: sudo apt-get install -y slurmctld slurmd slurm-client munge"
    if os.getuid() != 0:
        return "a Slurm below a temporary folder needs root"
    try:
        socket.getaddrinfo(socket.gethostname(), None, flags=socket.AI_ADDRCONFIG)
    except OSError as error:
        return f"the name of this machine, {socket.gethostname()}, does not resolve: {error}; hint: /etc/hosts"
    return ""


def search_path() -> str:
    """PATH with the folder of daemons, which users need not have on theirs."""
    return f"{os.environ.get('PATH', '')}:/usr/sbin"


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


class Sandbox:
    """A Slurm that runs from `start` to `stop`; use it as a context."""

    def __init__(self, nodes: int, cores: int = 4, min_job_age_s: int = 300, extra: str = "") -> None:
        self.nodes = [f"n{number}" for number in range(1, nodes + 1)]
        self.folder = Path(tempfile.mkdtemp(prefix="slurm-", dir="/tmp"))
        self.conf = self.folder / "slurm.conf"
        host = socket.gethostname().partition(".")[0]
        text = CONF.format(host=host, port=_free_port(), folder=self.folder, min_job_age_s=min_job_age_s) + extra
        for node in self.nodes:
            text += f"\nNodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={_free_port()} CPUs={cores}"
            text += " RealMemory=4000 State=UNKNOWN"
        text += f"\nPartitionName=bench Nodes={','.join(self.nodes)} Default=YES MaxTime=INFINITE State=UP\n"
        self.conf.write_text(text, encoding="ascii")
        self.environment = {**os.environ, "PATH": search_path(), "SLURM_CONF": str(self.conf)}
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Sandbox:
        try:
            self._start_munge()
            (self.folder / "state").mkdir()
            self.start_controller()
            for node in self.nodes:
                self.start_node(node)
            self.until(lambda: self.run("sinfo", "-h", "-N", "-o", "%t").split() == ["idle"] * len(self.nodes))
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _start_munge(self) -> None:
        folder = self.folder / "munge"
        folder.mkdir()
        self.folder.chmod(0o755)
        folder.chmod(0o711)
        key = folder / "key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o400)
        words = [f"--{name}={folder / name}" for name in ("socket", "pid-file", "log-file", "seed-file")]
        self._daemon("munged", "munged", "--foreground", "--force", f"--key-file={key}", *words)
        self.until((folder / "socket").exists)

    def _daemon(self, name: str, *words: str) -> None:
        """Starts a daemon that ends with the thread that starts it, also where that is killed."""
        self._daemons[name] = subprocess.Popen(
            ["setpriv", "--pdeathsig", "TERM", *words],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def start_controller(self) -> None:
        """Starts slurmctld, which goes on with the jobs that its state folder knows."""
        self._daemon("slurmctld", "slurmctld", "-D", "-f", str(self.conf))

    def start_node(self, node: str) -> None:
        """Starts the slurmd of a node."""
        (self.folder / f"spool-{node}").mkdir(exist_ok=True)
        self._daemon(node, "slurmd", "-D", "-f", str(self.conf), "-N", node)

    def kill_controller(self) -> None:
        """Kills slurmctld, and waits until it is gone."""
        self._daemons["slurmctld"].kill()
        self._daemons["slurmctld"].wait(30)

    def run(self, *words: str) -> str:
        """What a client of this Slurm prints, on stdout; empty where it fails."""
        answer = subprocess.run(
            words, env=self.environment, capture_output=True, text=True, timeout=60, check=False, errors="replace"
        )
        return answer.stdout if answer.returncode == 0 else ""

    def until(self, is_so: Callable[[], bool], seconds: float = 60.0) -> None:
        """Waits for a condition. Raises AssertionError with the end of the controller's log."""
        end = time.monotonic() + seconds
        while not is_so():
            if time.monotonic() > end:
                log = self.folder / "slurmctld.log"
                raise AssertionError(log.read_text(errors="replace")[-2000:] if log.exists() else "no slurmctld.log")
            time.sleep(0.05)

    def processes(self) -> list[int]:
        """All that belongs to this Slurm: daemons by their command or open files, jobs by their environment."""
        found = []
        mark = str(self.folder).encode()
        for entry in os.scandir("/proc"):
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                with contextlib.suppress(OSError):
                    own = Path(entry.path, "environ").read_bytes() + Path(entry.path, "cmdline").read_bytes()
                    if mark in own and Path(entry.path, "stat").read_text().rpartition(")")[2].split()[0] != "Z":
                        found.append(int(entry.name))
        return found

    def stop(self) -> None:
        """Ends every job and daemon, and removes the folder; checks that none is left."""
        if "slurmctld" in self._daemons:
            self.run("scancel", "-u", "root")
        for daemon in reversed(self._daemons.values()):
            daemon.terminate()
        for daemon in self._daemons.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                daemon.wait(10)
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.until(lambda: not self.processes(), 20)
        for daemon in self._daemons.values():
            daemon.wait(10)
        shutil.rmtree(self.folder)
