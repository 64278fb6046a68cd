"""What the last lines of a failed program mean, and what to try: a table of patterns."""

import re
from collections.abc import Iterable
from typing import NamedTuple


class Rule(NamedTuple):
    """One kind of failure: its ``name``, the regular expression that matches its output, and what to try."""

    name: str
    pattern: str
    suggestion: str


TABLE = r"""
disk full: No space left on device|Disk quota exceeded|ENOSPC
    free disk space (df -h shows the disks, cm gc cache --dry-run shows the removable entries), or move the cache:
    export CROWDPERF_CACHE=/big/disk/cache
read-only disk: Read-only file system
    choose a writable folder: run from another one, or export CROWDPERF_CACHE=/some/writable/folder
gpu memory: CUDA out of memory|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|torch\.(?:cuda\.)?OutOfMemoryError
    |HIP out of memory
    use less GPU memory: a smaller --batch_size. nvidia-smi shows which processes use it
memory: MemoryError|std::bad_alloc|[Cc]annot allocate memory|[Oo]ut of memory|virtual memory exhausted
    provide more memory, or use less at a time: a smaller --batch_size, fewer parallel jobs (free -h shows the
    memory)
no processes: can't start new thread|fork: (?:retry: )?Resource temporarily unavailable
    |unable to start watchdog thread|pthread_create(?: failed|\(\))[^\n]*Resource temporarily unavailable
    allow more processes and threads: ulimit -u, pids.max of the control group (--pids-limit of a container)
container runtime: cgroups in hybrid mode not supported
    crun, Podman's default runtime, does not run with the control groups of this machine: install runc and write
    runtime = "runc" below [engine] in /etc/containers/containers.conf
killed program: died with <Signals\.SIGKILL|Killed signal terminated program|internal compiler error: Killed
    |: line \d+:\s+\d+ Killed\b|\*\*\* \[[^\n]*\] Killed\b
    a program was killed by SIGKILL, usually because memory ran out: use less at a time (a smaller --batch_size,
    fewer parallel jobs)
gpu driver: CUDA driver version is insufficient|forward compatibility was attempted|no CUDA-capable device
    |couldn't communicate with the NVIDIA driver|libcuda\.so\S*: cannot open
    the NVIDIA driver is missing or too old for this CUDA: nvidia-smi must work, and shows the newest CUDA version
    that the driver supports
python of the system: externally-managed-environment
    install into a virtual environment, not into the system's Python: cm run script --tags=install,python-venv
    --name=mine, then --adr.python.name=mine
no pip or venv: No module named (?:pip|venv|ensurepip)\b|ensurepip is not available
    install them for this Python: sudo apt-get install -y python3-pip python3-venv
no python headers: Python\.h: No such file
    install the headers of this Python: sudo apt-get install -y python3-dev
missing python package: (?:ModuleNotFoundError|ImportError): No module named '?(?P<module>[A-Za-z0-9_]+)
    install the package that provides the module {module}: cm run script --tags=get,generic-python-lib,_package.{module}
    (the package name may differ from the module name)
no such package: No matching distribution found for (?P<package>\S+)
    |Could not find a version that satisfies the requirement (?P<wanted>\S+)
    no file of this package is compatible with this Python and machine: request another version, or use another
    Python with --adr.python.version=3.11
c library: version [`'](?P<symbol>GLIBC(?:XX)?_[0-9.]+)' not found
    this file was built on a newer system ({symbol} is needed, and ldd --version shows the installed version): build it
    here, use an older release of it, or run on a newer system
no programs here: failed to map segment from shared object
    the disk of this library forbids programs (findmnt -o TARGET,OPTIONS -T shows noexec): move the cache with export
    CROWDPERF_CACHE=/path/of/another/folder. Without noexec the limit of memory is too low (ulimit -v)
shared library: error while loading shared libraries: \S+|lib\S+\.so\S*: cannot open shared object
    a shared library is missing: install the package that contains it, or add its folder with
    --env.+LD_LIBRARY_PATH,=/its/folder
name lookup: Could not resolve host|Name or service not known|Temporary failure in name resolution|getaddrinfo failed
    |nodename nor servname
    this machine cannot look up that name: check the network, and behind a proxy set http_proxy, https_proxy and
    no_proxy before running again
certificate: SSL certificate problem|CERTIFICATE_VERIFY_FAILED|certificate verify failed
    |server certificate verification
    the server's certificate is not trusted here: correct the clock, or point to the certificates of your network:
    export SSL_CERT_FILE=/path/ca.pem CURL_CA_BUNDLE=/path/ca.pem
login: \b401\b[^\n]*Unauthorized|Unauthorized[^\n]*\b401\b|\b403\b[^\n]*Forbidden|Forbidden[^\n]*\b403\b|gated repo
    |Authentication failed for|could not read Username
    the server requires authentication: accept the license there and give a token, such as --hf_token=... or
    --gh_token=...
gone: \b404\b:? Not Found|404 Client Error|returned error: 404|ERROR 404
    the file no longer exists: update the recipes (cm pull repo), or use another address or version
no connection: Connection refused|Connection timed out|Network is unreachable|No route to host|ConnectTimeout
    |Connection reset by peer|Operation timed out|Read timed out
    the server did not answer: check the network and the proxy settings, then rerun the command. A partial download
    is resumed
address in use: [Aa]ddress already in use|EADDRINUSE
    another program listens on that port: stop it (ss -ltnp shows which), or choose another port
sudo: sudo: (?:a password is required|a terminal is required|no tty present)
    sudo cannot prompt for a password here: run the failed command once yourself, or ask an administrator to
package lock: Could not get lock /var/lib/(?:dpkg|apt)|dpkg frontend lock|dpkg was interrupted
    another package manager is running, or was interrupted: wait for it, else run sudo dpkg --configure -a
no system package: E: Unable to locate package (?P<package>\S+)
    refresh the list of packages: sudo apt-get update (and see whether {package} exists on this system)
docker: Cannot connect to the Docker daemon|docker\.sock[^\n]*permission denied|permission denied[^\n]*docker\.sock
    Docker is not running, or you may not use it: sudo systemctl start docker, or sudo usermod -aG docker $USER,
    then log in again
wrong machine: Exec format error|cannot execute binary file
    that program was built for another kind of machine than this one (uname -m): use the build for this one
line ends: \\r': command not found|\^M: bad interpreter|bash\\r
    a script has Windows line ends: git config core.autocrlf input, then check out the files again
git owner: detected dubious ownership
    the folder belongs to another user: git config --global --add safe.directory <the folder>
checksum: checksum mismatch|FAILED\b[^\n]*checksum|(?i:md5|sha-?256|hash)[^\n]* (?:mismatch|do(?:es)? not match)
    the file differs from the one that the recipe expects: rerun to download it again. If it still differs, the
    recipe or the server has changed, so do not use it
no compiler: No CMAKE_C(?:XX)?_COMPILER could be found|C(?:\+\+)? compiler cannot create executables
    |unable to execute '(?:gcc|g\+\+|cc|c\+\+)
    install a compiler: sudo apt-get install -y build-essential
open files: Too many open files
    allow more open files in this shell and rerun: ulimit -n 65536
not allowed: Permission denied|Operation not permitted|EACCES
    you may not touch that file or folder: ls -ld shows its owner. Use your own folder, or chown it
no such file: (?P<file>/\S+?)'?: No such file or directory|No such file or directory: '(?P<path>[^'\n]+)'
    {file}{path} does not exist: correct the path, or first run the step that creates it
"""
"""A name and its pattern, whose further lines start with ``|``, then the suggestion; ``{name}`` in it stands for the
group of that name in the pattern. The first rule that matches wins, so special ones come before general ones."""
_ROW = re.compile(r"^(\S[^:]*): (.+(?:\n +\|.+)*)\n((?: +[^ |].*\n)+)", re.MULTILINE)
ADVICE = tuple(
    Rule(name, re.sub(r"\n +", "", pattern), " ".join(suggestion.split()))
    for name, pattern, suggestion in _ROW.findall(TABLE)
)


def advice(lines: Iterable[str]) -> str:
    """The suggestion for a program that ended with these lines of output; empty when nothing is known of them."""
    text = "\n".join(lines)
    for rule in ADVICE:
        if found := re.search(rule.pattern, text):
            return rule.suggestion.format_map(found.groupdict(default=""))
    return ""


_NOT_FOUND = (
    re.compile(r"^.*?: (?:line )?\d+: (?P<name>[^\s:]+): (?:command )?not found$", re.MULTILINE),
    re.compile(r"^(?:\S*sh|sudo): (?P<name>[^\s:]+): (?:command )?not found$", re.MULTILINE),
    re.compile(r"^(?:\S*sh): command not found: (?P<name>\S+)$", re.MULTILINE),
    re.compile(
        r"^(?:\S*/)?env: [\u2018'`]?(?P<name>[^\s:\u2019'`]+)[\u2019'`]?: No such file or directory$", re.MULTILINE
    ),
)
"""How bash, dash, zsh, sudo and env say that there is no such program."""
_NO_SUCH_FILE = re.compile(r"^.*?: line \d+: (?P<name>\S+): No such file or directory$", re.MULTILINE)
"""How bash says so of a program given with its path; it says the same of files, so the exit code must decide."""


def missing_program(lines: Iterable[str], *, is_certain: bool) -> str:
    """The program that a shell did not find, by the shell's own words; empty when it did not say.

    ``is_certain`` when the exit code (127) says that there is one.
    """
    text = "\n".join(lines)
    for pattern in (*_NOT_FOUND, _NO_SUCH_FILE) if is_certain else _NOT_FOUND:
        found = list(pattern.finditer(text))
        if found:
            return found[-1]["name"]
    return ""


PROGRAMS = {
    **dict.fromkeys(("c++", "cc", "g++"), "gcc"),
    **dict.fromkeys(("mpiexec", "mpirun"), "mpi"),
    **dict.fromkeys(("pip", "pip3", "python"), "python3"),
    "clang++": "clang",
    "gmake": "make",
    "nvcc": "cuda",
    "trtexec": "tensorrt",
}
"""Programs that come with a package of another name."""


def tags_for_program(program: str) -> tuple[tuple[str, ...], ...]:
    """The queries by which a recipe that gives a program would be found, the most likely first."""
    name = program.rpartition("/")[2]
    plain = re.sub(r"-?\d+(\.\d+)*$", "", name)
    names = dict.fromkeys(word for word in (PROGRAMS.get(name, ""), name, PROGRAMS.get(plain, ""), plain) if word)
    return tuple((verb, word) for word in names for verb in ("get", "install"))
