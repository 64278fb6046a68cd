"""Compiles query.cu with a toolkit's nvcc and runs it, in a folder of its own."""

import re
from pathlib import Path
from typing import NamedTuple

from crowdperf.machine.probe import Machine, Ran

SOURCE = str(Path(__file__).with_name("query.cu"))
COMPILE_TIMEOUT_S = 300.0
RUN_TIMEOUT_S = 120.0
"""Longer than eight GPUs without persistence mode take to wake; a broken driver may hang for ever."""
COMPILER_TOO_NEW = re.compile(r"unsupported (GNU|clang) version", re.IGNORECASE)


class CompileError(Exception):
    """nvcc could not make the query. The text says what it said and what to try."""


def compiler_version(machine: Machine, nvcc: str) -> str:
    """What ``nvcc -V`` prints."""
    return machine.run((nvcc, "-V")).stdout.strip()


def build(machine: Machine, nvcc: str, folder: str) -> str:
    """Compiles the query into ``folder``; returns the program. Raises CompileError."""
    program = f"{folder}/query"
    done = machine.run((nvcc, "-o", program, SOURCE), timeout_s=COMPILE_TIMEOUT_S)
    if done.code != 0 and COMPILER_TOO_NEW.search(done.stderr):
        # the query needs nothing of the host compiler that a newer one could spoil
        done = machine.run((nvcc, "-allow-unsupported-compiler", "-o", program, SOURCE), timeout_s=COMPILE_TIMEOUT_S)
    if done.code != 0:
        raise CompileError(_compile_failure(nvcc, done))
    return program


def _compile_failure(nvcc: str, done: Ran) -> str:
    said = "\n".join(f"    {line}" for line in (done.stdout + done.stderr).strip().splitlines()[-8:]) or "    (nothing)"
    return (
        f"{nvcc} could not compile the query (exit code {done.code}). Its output:\n{said}\n"
        "  hint: nvcc needs a host compiler: sudo apt-get install -y g++ (or gcc-c++)\n"
        '  hint: cm run script "get cuda-devices _with-nvml"  (needs no compiler)'
    )


class Visible(NamedTuple):
    """CUDA_VISIBLE_DEVICES for the query: ``text`` as it is to be, ``count`` of devices that it names (0: not set)."""

    text: str = ""

    @property
    def count(self) -> int:
        """How many devices are named; 0 where none is."""
        return len([word for word in self.text.split(",") if word.strip()])


def run(machine: Machine, program: str, visible: Visible) -> Ran:
    """Runs the query. Devices are numbered as nvidia-smi numbers them, by their place on the bus."""
    settings = ["CUDA_DEVICE_ORDER=PCI_BUS_ID"]
    settings += [f"CUDA_VISIBLE_DEVICES={visible.text}"] if visible.text else []
    return machine.run(("env", *settings, program), timeout_s=RUN_TIMEOUT_S)
