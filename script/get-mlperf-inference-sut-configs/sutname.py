"""What a system under test is called: `<hw>-crowdperf-<device>-<backend>-v<version>-<run config>`. Pure.

The form is that of the CM community. The hardware's part is made of the names of processors and GPUs; it is never true
the name of the host, which says who runs it. The implementation is always `crowdperf`: that is the program that runs.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

IMPLEMENTATION = "crowdperf"
DEFAULT_RUN_CONFIG = "default_config"
NO_VERSION = "default"
_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+]*")
_NOISE = re.compile(r"\((r|tm|c)\)|\bcpu\b|@.*$|\bprocessor\b|\bwith\b.*$", re.IGNORECASE)


class BadName(ValueError):
    """A part of the name that cannot be one; the text says what is allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sut:
    """One system under test."""

    hw_name: str
    device: str
    backend: str
    backend_version: str
    run_config: str

    @property
    def name(self) -> str:
        """Its name, which is also that of its folder among results."""
        version = f"v{self.backend_version}"
        return "-".join((self.hw_name, IMPLEMENTATION, self.device, self.backend, version, self.run_config))

    @property
    def backend_folder(self) -> Path:
        """The folder of its backend among the configurations."""
        places = (self.hw_name, f"{IMPLEMENTATION}-implementation", f"{self.device}-device")
        return Path(*places, f"{self.backend}-framework")

    @property
    def config_file(self) -> Path:
        """Its file among the configurations."""
        return self.backend_folder / f"framework-version-v{self.backend_version}" / f"{self.run_config}-config.yaml"

    @property
    def record(self) -> dict[str, str]:
        """The facts for other recipes."""
        return {
            "sut": self.name,
            "hw_name": self.hw_name,
            "implementation": IMPLEMENTATION,
            "device": self.device,
            "backend": self.backend,
            "backend_version": self.backend_version,
            "run_config": self.run_config,
        }


def slug(text: str) -> str:
    """A product's name as a part of names: `Intel(R) Xeon(R) Gold 6348 CPU @ 2.60GHz` is `intel_xeon_gold_6348`."""
    bare = _NOISE.sub(" ", text)
    return re.sub(r"[^a-z0-9.]+", "_", bare.lower()).strip("_.")


def hardware_name(processor: str, sockets: int, cores: int, gpus: Sequence[str]) -> str:
    """The name of the hardware: its GPUs where there are some, else the processor; `8x_` for several alike.

    Processors that hide their model (in virtual machines) are told apart by their cores.
    """
    if gpus:
        kinds = dict.fromkeys(gpus)
        return "_".join((f"{gpus.count(kind)}x_" if gpus.count(kind) > 1 else "") + slug(kind) for kind in kinds)
    name = slug(processor) or "unknown_processor"
    if not any(letter.isdigit() for letter in name):
        name += f"_{cores}_cores"
    return f"{sockets}x_{name}" if sockets > 1 else name


def checked_part(text: str, what: str) -> str:
    """A part of the name, hyphens made underscores. Raises BadName."""
    part = text.replace("-", "_")
    if not _PART.fullmatch(part):
        raise BadName(
            f"{what}: found {text!r}; allowed: letters, digits, dot, plus, underscore, a letter or digit first"
        )
    return part
