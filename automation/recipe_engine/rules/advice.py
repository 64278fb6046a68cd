"""What the last words of a failed program mean, and the one thing to try: a table of patterns, nothing else.

``ADVICE`` is read from the top and the first rule that matches wins, so the special ones stand before the general
ones. ``{name}`` in a suggestion stands for the group of that name in the pattern.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple


class Rule(NamedTuple):
    """One thing that goes wrong: its ``name``, the regular expression that tells it, and what to do about it."""

    name: str
    pattern: str
    suggestion: str


ADVICE = (
    Rule(
        "disk full",
        r"No space left on device|Disk quota exceeded|ENOSPC",
        "free disk space (df -h shows where; cm gc cache --dry-run what can be removed), or put the cache elsewhere: "
        "export CROWDPERF_CACHE=/big/disk/cache",
    ),
    Rule(
        "read-only disk",
        r"Read-only file system",
        "choose a folder that can be written: run from another one, or export CROWDPERF_CACHE=/some/writable/folder",
    ),
    Rule(
        "gpu memory",
        r"CUDA out of memory|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|torch\.(?:cuda\.)?OutOfMemoryError"
        r"|HIP out of memory",
        "give the GPU less to hold: a smaller --batch_size; nvidia-smi shows who else uses its memory",
    ),
    Rule(
        "memory",
        r"MemoryError|std::bad_alloc|[Cc]annot allocate memory|[Oo]ut of memory|virtual memory exhausted",
        "give it more memory or ask for less at a time: a smaller --batch_size, fewer parallel jobs (free -h shows "
        "what there is)",
    ),
    Rule(
        "killed program",
        r"died with <Signals\.SIGKILL|Killed signal terminated program|internal compiler error: Killed"
        r"|: line \d+:\s+\d+ Killed\b|\*\*\* \[[^\n]*\] Killed\b",
        "a program in it was killed by SIGKILL, as happens when memory runs out: ask for less at a time (a smaller "
        "--batch_size, fewer parallel jobs)",
    ),
    Rule(
        "gpu driver",
        r"CUDA driver version is insufficient|forward compatibility was attempted|no CUDA-capable device"
        r"|couldn't communicate with the NVIDIA driver|libcuda\.so\S*: cannot open",
        "the NVIDIA driver is missing or too old for this CUDA: nvidia-smi must work, and shows the newest CUDA that "
        "the driver can serve",
    ),
    Rule(
        "python of the system",
        r"externally-managed-environment",
        "install into a virtual environment, not into the system's Python: cm run script --tags=install,python-venv "
        "--name=mine, then --adr.python.name=mine",
    ),
    Rule(
        "no pip or venv",
        r"No module named (?:pip|venv|ensurepip)\b|ensurepip is not available",
        "install them for this Python: sudo apt-get install -y python3-pip python3-venv",
    ),
    Rule(
        "no python headers",
        r"Python\.h: No such file",
        "install the headers of this Python: sudo apt-get install -y python3-dev",
    ),
    Rule(
        "missing python package",
        r"(?:ModuleNotFoundError|ImportError): No module named '?(?P<module>[A-Za-z0-9_]+)",
        "install the package that has the module {module}: cm run script "
        "--tags=get,generic-python-lib,_package.{module} (packages may be called otherwise than their module)",
    ),
    Rule(
        "no such package",
        r"No matching distribution found for (?P<package>\S+)|Could not find a version that satisfies the requirement "
        r"(?P<wanted>\S+)",
        "no file of this package fits this Python and this machine: ask for another version, or use another Python "
        "with --adr.python.version=3.11",
    ),
    Rule(
        "c library",
        r"version [`'](?P<symbol>GLIBC(?:XX)?_[0-9.]+)' not found",
        "this file was built on a newer system ({symbol} is needed; ldd --version shows what is here): build it here, "
        "take an older release of it, or run on a newer system",
    ),
    Rule(
        "shared library",
        r"error while loading shared libraries: \S+|lib\S+\.so\S*: cannot open shared object",
        "a shared library is missing: install the package that has it, or add its folder with "
        "--env.+LD_LIBRARY_PATH,=/its/folder",
    ),
    Rule(
        "name lookup",
        r"Could not resolve host|Name or service not known|Temporary failure in name resolution"
        r"|getaddrinfo failed|nodename nor servname",
        "this machine cannot look up that name: check the network, and behind a proxy set http_proxy, https_proxy and "
        "no_proxy before running again",
    ),
    Rule(
        "certificate",
        r"SSL certificate problem|CERTIFICATE_VERIFY_FAILED|certificate verify failed|server certificate verification",
        "the server's certificate is not trusted here: set the clock right, or name the certificates of your network: "
        "export SSL_CERT_FILE=/path/ca.pem CURL_CA_BUNDLE=/path/ca.pem",
    ),
    Rule(
        "login",
        r"\b401\b[^\n]*Unauthorized|Unauthorized[^\n]*\b401\b|\b403\b[^\n]*Forbidden|Forbidden[^\n]*\b403\b"
        r"|gated repo|Authentication failed for|could not read Username",
        "the server wants to know who asks: accept the licence there and give a token, such as --hf_token=... or "
        "--gh_token=...",
    ),
    Rule(
        "gone",
        r"\b404\b:? Not Found|404 Client Error|returned error: 404|ERROR 404",
        "the file is not there any more: update the recipes (cm pull repo), or give another address or version",
    ),
    Rule(
        "no connection",
        r"Connection refused|Connection timed out|Network is unreachable|No route to host|ConnectTimeout"
        r"|Connection reset by peer|Operation timed out|Read timed out",
        "the other side did not answer: check the network and the proxy settings, then run the same line again; half "
        "a download goes on where it stopped",
    ),
    Rule(
        "address in use",
        r"[Aa]ddress already in use|EADDRINUSE",
        "another program listens on that port: end it (ss -ltnp shows which), or choose another port",
    ),
    Rule(
        "sudo",
        r"sudo: (?:a password is required|a terminal is required|no tty present)",
        "sudo cannot ask for a password here: run the failed command once by hand, or ask an administrator to",
    ),
    Rule(
        "package lock",
        r"Could not get lock /var/lib/(?:dpkg|apt)|dpkg frontend lock|dpkg was interrupted",
        "another package manager is at work, or was broken off: wait for it, else sudo dpkg --configure -a",
    ),
    Rule(
        "no system package",
        r"E: Unable to locate package (?P<package>\S+)",
        "refresh the list of packages: sudo apt-get update (and see whether {package} exists on this system)",
    ),
    Rule(
        "docker",
        r"Cannot connect to the Docker daemon|docker\.sock[^\n]*permission denied|permission denied[^\n]*docker\.sock",
        "Docker does not run, or you may not use it: sudo systemctl start docker; sudo usermod -aG docker $USER, then "
        "log in again",
    ),
    Rule(
        "wrong machine",
        r"Exec format error|cannot execute binary file",
        "that program was made for another kind of machine than this one (uname -m): take the build for this one",
    ),
    Rule(
        "line ends",
        r"\\r': command not found|\^M: bad interpreter|bash\\r",
        "a script has Windows line ends: git config core.autocrlf input, then get the files again",
    ),
    Rule(
        "git owner",
        r"detected dubious ownership",
        "the folder belongs to somebody else: git config --global --add safe.directory <the folder>",
    ),
    Rule(
        "checksum",
        r"checksum mismatch|FAILED\b[^\n]*checksum|(?i:md5|sha-?256|hash)[^\n]* (?:mismatch|do(?:es)? not match)",
        "the file differs from the one that the recipe names: run again to load it anew; when it differs again, the "
        "recipe or the server has changed, so do not use it",
    ),
    Rule(
        "no compiler",
        r"No CMAKE_C(?:XX)?_COMPILER could be found|C(?:\+\+)? compiler cannot create executables"
        r"|unable to execute '(?:gcc|g\+\+|cc|c\+\+)",
        "install a compiler: sudo apt-get install -y build-essential",
    ),
    Rule(
        "open files",
        r"Too many open files",
        "allow more open files in this shell and run again: ulimit -n 65536",
    ),
    Rule(
        "not allowed",
        r"Permission denied|Operation not permitted|EACCES",
        "you may not touch that file or folder: ls -ld shows whose it is; use a folder of your own, or chown it",
    ),
    Rule(
        "no such file",
        r"(?P<file>/\S+?)'?: No such file or directory|No such file or directory: '(?P<path>[^'\n]+)'",
        "{file}{path} is not there: give the right path, or run the step that makes it first",
    ),
)


def advice(lines: Iterable[str]) -> str:
    """The suggestion for a program that ended with these lines of output; empty when nothing is known of them."""
    text = "\n".join(lines)
    for rule in ADVICE:
        found = re.search(rule.pattern, text)
        if found:
            return _filled(rule.suggestion, found)
    return ""


def _filled(suggestion: str, found: re.Match[str]) -> str:
    for name, value in found.groupdict().items():
        suggestion = suggestion.replace("{" + name + "}", value or "")
    return suggestion


_NOT_FOUND = (
    re.compile(r"^.*?: (?:line )?\d+: (?P<name>[^\s:]+): (?:command )?not found$", re.MULTILINE),
    re.compile(r"^(?:\S*sh|sudo): (?P<name>[^\s:]+): (?:command )?not found$", re.MULTILINE),
    re.compile(r"^(?:\S*sh): command not found: (?P<name>\S+)$", re.MULTILINE),
    re.compile(
        r"^(?:\S*/)?env: [\u2018'`]?(?P<name>[^\s:\u2019'`]+)[\u2019'`]?: No such file or directory$", re.MULTILINE
    ),
)
"""How bash, dash, zsh, sudo and env say that they do not know a program."""
_NO_SUCH_FILE = re.compile(r"^.*?: line \d+: (?P<name>\S+): No such file or directory$", re.MULTILINE)
"""How bash says it of a program given with its path; it says the same of files, so the exit code must tell."""


def missing_program(lines: Iterable[str], *, is_certain: bool) -> str:
    """The program that a shell did not find, by the shell's own words; empty when it did not say.

    ``is_certain`` when the exit code (127) tells that there is one.
    """
    text = "\n".join(lines)
    for pattern in (*_NOT_FOUND, _NO_SUCH_FILE) if is_certain else _NOT_FOUND:
        found = list(pattern.finditer(text))
        if found:
            return found[-1]["name"]
    return ""


PROGRAMS = {
    "c++": "gcc",
    "cc": "gcc",
    "clang++": "clang",
    "g++": "gcc",
    "gmake": "make",
    "mpiexec": "mpi",
    "mpirun": "mpi",
    "nvcc": "cuda",
    "pip": "python3",
    "pip3": "python3",
    "python": "python3",
    "trtexec": "tensorrt",
}
"""Programs that come with something of another name."""


def tags_for_program(program: str) -> tuple[tuple[str, ...], ...]:
    """The queries by which a recipe that gives a program would be found, the most likely first."""
    name = program.rpartition("/")[2]
    plain = re.sub(r"-?\d+(\.\d+)*$", "", name)
    names = dict.fromkeys(word for word in (PROGRAMS.get(name, ""), name, PROGRAMS.get(plain, ""), plain) if word)
    return tuple((verb, word) for word in names for verb in ("get", "install"))
