"""What tests share that run points on a Slurm of their own."""

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
from slurm_sandbox import Sandbox

from crowdperf.sweeps.sbatch import SlurmOptions
from crowdperf.sweeps.slurm import SlurmExecutor


@contextlib.contextmanager
def slurm(monkeypatch: pytest.MonkeyPatch, nodes: int, **more: Any) -> Iterator[Sandbox]:
    """A Slurm of so many nodes, which the clients of this process talk to."""
    with Sandbox(nodes, **more) as sandbox:
        for name in ("SLURM_CONF", "PATH"):
            monkeypatch.setenv(name, sandbox.environment[name])
        yield sandbox


def executor(said: list[str] | None = None, **options: Any) -> SlurmExecutor:
    """An executor that is quicker to notice things than usual."""
    given = {"heartbeat_s": 1.0, "poll_s": 0.1, "exclusive": False, "cpus": 1, **options}
    return SlurmExecutor(SlurmOptions(**given), ([] if said is None else said).append)
