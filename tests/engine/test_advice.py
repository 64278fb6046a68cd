"""What the last words of a program mean: every rule of the table with the words that real programs say."""

import re

import pytest
from recipe_engine.rules.advice import ADVICE, advice, missing_program, tags_for_program

CASES = (
    ("disk full", "OSError: [Errno 28] No space left on device: '/cache/x'", "df -h"),
    ("disk full", "cp: error writing 'x': Disk quota exceeded", "CROWDPERF_CACHE"),
    ("read-only disk", "mkdir: cannot create directory '/x': Read-only file system", "writable folder"),
    ("gpu memory", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB", "--batch_size"),
    ("gpu memory", "cudaErrorMemoryAllocation: out of memory", "nvidia-smi"),
    ("memory", "terminate called after throwing an instance of 'std::bad_alloc'", "free -h"),
    ("memory", "fork: Cannot allocate memory", "free -h"),
    ("no processes", "RuntimeError: can't start new thread", "ulimit -u"),
    (
        "container runtime",
        "error running container: from /usr/bin/crun creating container for [/bin/sh -c true]: "
        "cgroups in hybrid mode not supported, drop all controllers from cgroupv2",
        'runtime = "runc"',
    ),
    ("no processes", "RuntimeError: unable to start watchdog thread", "ulimit -u"),
    (
        "no processes",
        "OpenBLAS blas_thread_init: pthread_create failed for thread 1 of 2: Resource temporarily unavailable",
        "ulimit -u",
    ),
    ("no processes", "bash: fork: retry: Resource temporarily unavailable", "pids.max"),
    ("killed program", "subprocess.CalledProcessError: Command 'x' died with <Signals.SIGKILL: 9>.", "SIGKILL"),
    ("killed program", "c++: fatal error: Killed signal terminated program cc1plus", "parallel jobs"),
    ("killed program", "/x/run.sh: line 7:  4242 Killed                  python3 big.py", "SIGKILL"),
    ("gpu driver", "CUDA driver version is insufficient for CUDA runtime version", "nvidia-smi"),
    ("gpu driver", "OSError: libcuda.so.1: cannot open shared object file: No such file or directory", "driver"),
    ("python of the system", "error: externally-managed-environment", "--tags=install,python-venv"),
    ("no pip or venv", "/usr/bin/python3: No module named pip", "python3-pip"),
    ("no pip or venv", "virtual environment was not created because ensurepip is not available.", "python3-venv"),
    ("no python headers", "x.c:3:10: fatal error: Python.h: No such file or directory", "python3-dev"),
    ("missing python package", "ModuleNotFoundError: No module named 'yaml'", "_package.yaml"),
    ("missing python package", "ModuleNotFoundError: No module named 'torch.cuda'", "_package.torch"),
    ("no such package", "ERROR: No matching distribution found for onnxruntime==9.9", "--adr.python.version"),
    ("c library", "/lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.38' not found (required by ./a)", "GLIBC_2.38"),
    ("c library", "libstdc++.so.6: version `GLIBCXX_3.4.30' not found", "GLIBCXX_3.4.30"),
    ("no programs here", "ImportError: /c/x.so: failed to map segment from shared object", "noexec"),
    ("shared library", "./a: error while loading shared libraries: libfoo.so.1: cannot open", "LD_LIBRARY_PATH"),
    ("shared library", "ImportError: libGL.so.1: cannot open shared object file", "LD_LIBRARY_PATH"),
    ("name lookup", "curl: (6) Could not resolve host: files.example", "https_proxy"),
    ("name lookup", "urllib.error.URLError: <urlopen error [Errno -2] Name or service not known>", "network"),
    ("certificate", "curl: (60) SSL certificate problem: self-signed certificate", "SSL_CERT_FILE"),
    ("certificate", "ssl.SSLCertVerificationError: [SSL: CERTIFICATE_VERIFY_FAILED] failed", "CURL_CA_BUNDLE"),
    ("login", "401 Client Error: Unauthorized for url: https://files.example/x", "token"),
    ("login", "Cannot access gated repo for url https://files.example/x", "license"),
    ("login", "fatal: could not read Username for 'https://git.example': terminal prompts disabled", "--gh_token"),
    ("gone", "HTTP Error 404: Not Found", "cm pull repo"),
    ("gone", "curl: (22) The requested URL returned error: 404", "cm pull repo"),
    ("no connection", "curl: (7) Failed to connect to x port 443: Connection refused", "proxy"),
    ("no connection", "ReadTimeoutError: Read timed out.", "is resumed"),
    ("address in use", "OSError: [Errno 98] Address already in use", "ss -ltnp"),
    ("sudo", "sudo: a terminal is required to read the password", "administrator"),
    ("package lock", "E: Could not get lock /var/lib/dpkg/lock-frontend", "dpkg --configure -a"),
    ("no system package", "E: Unable to locate package libfoo-dev", "libfoo-dev"),
    ("docker", "Cannot connect to the Docker daemon at unix:///var/run/docker.sock.", "systemctl start docker"),
    ("docker", "permission denied while trying to connect to unix:///var/run/docker.sock", "usermod"),
    ("wrong machine", "bash: ./tool: cannot execute binary file: Exec format error", "uname -m"),
    ("line ends", "run.sh: line 2: $'\\r': command not found", "autocrlf"),
    ("git owner", "fatal: detected dubious ownership in repository at '/x'", "safe.directory"),
    ("checksum", "sha256 mismatch: expected ab, got cd", "differs"),
    ("no compiler", "CMake Error: No CMAKE_CXX_COMPILER could be found.", "build-essential"),
    ("no compiler", "error: unable to execute 'gcc': No such file or directory", "build-essential"),
    ("open files", "OSError: [Errno 24] Too many open files: 'x'", "ulimit -n"),
    ("not allowed", "mkdir: cannot create directory '/opt/x': Permission denied", "ls -ld"),
    ("no such file", "cat: /data/x.bin: No such file or directory", "/data/x.bin does not exist"),
    (
        "no such file",
        "FileNotFoundError: [Errno 2] No such file or directory: '/data/y.bin'",
        "/data/y.bin does not exist",
    ),
)


@pytest.mark.parametrize(("name", "line", "part"), CASES)
def test_words_of_a_program_have_one_suggestion(name: str, line: str, part: str) -> None:
    (rule,) = [rule for rule in ADVICE if rule.name == name]
    said = advice(["Traceback (most recent call last):", line, "make: *** [all] Error 1"])
    assert part in said
    fixed = [text for text in re.split(r"\{\w+\}", rule.suggestion) if text]
    assert all(text in said for text in fixed), f"another rule won: {said}"


def test_every_rule_has_a_case() -> None:
    assert {rule.name for rule in ADVICE} == {name for name, _, _ in CASES}


def test_no_suggestion_has_an_open_place_and_names_are_unique() -> None:
    assert not [line for _, line, _ in CASES if "{" in advice([line])]
    assert len({rule.name for rule in ADVICE}) == len(ADVICE)


@pytest.mark.parametrize("line", ["", "it failed", "assert 1 == 2", "3 files copied", "Error 1", "was it killed?"])
def test_what_is_not_known_has_no_suggestion(line: str) -> None:
    assert advice([line]) == ""


@pytest.mark.parametrize(
    ("line", "is_certain", "program"),
    [
        ("/x/run.sh: line 12: cmake: command not found", False, "cmake"),
        ("bash: cmake: command not found", False, "cmake"),
        ("/x/run.sh: 12: cmake: not found", False, "cmake"),
        ("sh: 1: g++: not found", False, "g++"),
        ("zsh: command not found: cmake", False, "cmake"),
        ("sudo: apt-get: command not found", False, "apt-get"),
        ("/usr/bin/env: ‘python’: No such file or directory", False, "python"),
        ("env: 'ninja': No such file or directory", False, "ninja"),
        ("/x/run.sh: line 3: /opt/cuda/bin/nvcc: No such file or directory", True, "/opt/cuda/bin/nvcc"),
        ("/x/run.sh: line 3: /data/file: No such file or directory", False, ""),
        ("cat: /data/file: No such file or directory", True, ""),
        ("404 page: not found", False, ""),
        ("", True, ""),
    ],
)
def test_the_missing_program_is_read_from_what_the_shell_says(line: str, is_certain: bool, program: str) -> None:
    assert missing_program(["before", line, "after"], is_certain=is_certain) == program


def test_of_several_missing_programs_the_last_one_counts() -> None:
    lines = ["run.sh: line 1: first: command not found", "run.sh: line 2: second: command not found"]
    assert missing_program(lines, is_certain=True) == "second"


@pytest.mark.parametrize(
    ("program", "first"),
    [
        ("cmake", ("get", "cmake")),
        ("/opt/cuda/bin/nvcc", ("get", "cuda")),
        ("g++", ("get", "gcc")),
        ("g++-12", ("get", "g++-12")),
        ("python3.11", ("get", "python3.11")),
    ],
)
def test_a_program_is_looked_for_by_its_name_and_by_what_brings_it(program: str, first: tuple[str, str]) -> None:
    found = tags_for_program(program)
    assert found[0] == first
    if program == "g++-12":
        assert ("get", "gcc") in found
    if program == "python3.11":
        assert ("get", "python") in found
