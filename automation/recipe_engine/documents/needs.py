"""What a step needs in addition to processor time: what its recipe declares under ``needs``, and what its code shows.

``needs`` may be wherever ``env`` may be (recipe, variation, version)::

    needs:
      downloads:
      - what: <<<CM_DOWNLOAD_URL>>>     # an address, or a name such as "PyPI: onnxruntime"
        size_bytes: 97800000
        sha256: 64 hex digits
        license: CC-BY-4.0
      disk_mb: 300
      memory_mb: 4000
      sudo: installs packages of the system
      container: runs the vendor's image
      gpu: runs on CUDA devices
      tokens: [HF_TOKEN]

Recipes of the community declare only ``required_disk_space``; for them the address that ends up in env and the words of
their scripts count, marked as seen in the code.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ..rules.amounts import whole_number
from ..rules.conditions import shown
from ..rules.env import expand_value
from ..rules.model import Configured
from ..rules.secrets import is_secret

URL_KEYS = ("CM_DOWNLOAD_URL", "CM_URL", "CM_GIT_URL", "CM_DAE_URL", "CM_PACKAGE_URL")
"""Env keys in which recipes of the community put what they fetch (cm4mlops e1d5c7cf0)."""
SHA256_KEYS = ("CM_DOWNLOAD_CHECKSUM_SHA256", "CM_DOWNLOAD_SHA256", "CM_DOWNLOAD_CHECKSUM")
_SECRET = r"[A-Z][A-Z0-9_]*(?:TOKEN|API_KEY|PASSWORD)\b"
_SECRET_IN_PYTHON = re.compile(f"""(?<=["'${{]){_SECRET}""")
"""An env key is a text there; a name without quotes is one of the program, such as the token that ends a sentence."""
_SECRET_IN_SCRIPT = re.compile(rf"\b{_SECRET}")
_SUDO = re.compile(r"(?m)^[^#\n]*(?:\bsudo\b|\$\{?CM_SUDO\b)")
_CONTAINER = re.compile(r"(?m)^[^#\n]*\b(?:docker|podman|apptainer) run\b")
GPU_TAGS = frozenset({"cuda-devices", "nvidia-driver", "rocm-devices"})
_NAMED = ("sudo", "container", "gpu")
_LISTS = ("downloads", *_NAMED, "tokens")


class Download(NamedTuple):
    """What a step fetches. ``size_bytes`` None: not declared; an empty ``sha256``: nothing to check it by."""

    what: str
    size_bytes: int | None = None
    sha256: str = ""
    license: str = ""


class Needs(NamedTuple):
    """What a step needs of the machine and its user; sizes in MB of 10**6 bytes.

    ``sudo``, ``container``, ``gpu`` and ``tokens`` are texts that say what for; empty means it does not.
    """

    downloads: tuple[Download, ...] = ()
    disk_mb: int = 0
    memory_mb: int = 0
    sudo: tuple[str, ...] = ()
    container: tuple[str, ...] = ()
    gpu: tuple[str, ...] = ()
    tokens: tuple[str, ...] = ()

    @property
    def total_disk_mb(self) -> int:
        """The declared disk space and the declared sizes of downloads, MB."""
        return self.disk_mb + sum((download.size_bytes or 0) for download in self.downloads) // 10**6

    def named(self, name: str) -> Needs:
        """The needs with the name of their step in front of what is said in words."""
        texts: dict[str, Any] = {field: tuple(f"{name}: {text}" for text in getattr(self, field)) for field in _NAMED}
        return self._replace(**texts)


NO_NEEDS = Needs()


def needs_together(steps: Iterable[Needs]) -> Needs:
    """The needs of several steps; the same download counts once, and of memory the largest."""
    rows = list(steps)
    united: dict[str, Any] = {}
    for field in _LISTS:
        united[field] = tuple(dict.fromkeys(item for row in rows for item in getattr(row, field)))
    memory_mb = max((row.memory_mb for row in rows), default=0)
    return Needs(disk_mb=sum(row.disk_mb for row in rows), memory_mb=memory_mb)._replace(**united)


def declared_needs(block: Mapping[str, Any]) -> Needs:
    """What a ``needs`` block says, as far as it can be used; the audit finds the rest."""
    return Needs(
        downloads=_declared_downloads(block),
        disk_mb=_whole(block.get("disk_mb")),
        memory_mb=_whole(block.get("memory_mb")),
        sudo=_texts(block.get("sudo")),
        container=_texts(block.get("container")),
        gpu=_texts(block.get("gpu")),
        tokens=_texts(block.get("tokens")),
    )


def needs_of(configured: Configured, code: Mapping[str, str], caller: Configured | None = None) -> Needs:
    """The needs of a configured recipe; ``code`` is the text of its Python files and native scripts by name.

    An address in its env does not count where the ``caller`` declares what is downloaded.
    """
    env = configured.env
    declared = declared_needs(expand_value(configured.layer.needs, env))
    is_declared = caller is not None and bool(caller.layer.needs.get("downloads"))
    script = "\n".join(code[name] for name in code if name.endswith(".sh"))
    tokens = [name for name in _keys_in_code(tuple(code.items())) if not env.get(name)]
    is_gpu = not GPU_TAGS.isdisjoint(configured.recipe.tags)
    return declared._replace(
        downloads=declared.downloads or (() if is_declared else _seen_downloads(env)),
        disk_mb=declared.disk_mb + configured.layer.required_disk_space_mb,
        sudo=declared.sudo or _texts(_SUDO.search(script) and "its code calls sudo"),
        container=declared.container or _texts(_CONTAINER.search(script) and "its code starts a container"),
        gpu=declared.gpu or _texts(is_gpu and "it queries the devices"),
        tokens=declared.tokens or tuple(f"{name} (used in its code)" for name in tokens),
    )


@functools.cache
def _keys_in_code(code: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """The secret env keys that a recipe's files name, sorted; ``code`` has their names and texts."""
    seen = (
        (_SECRET_IN_PYTHON if name.endswith(".py") else _SECRET_IN_SCRIPT).findall(text)
        for name, text in code
        if name.endswith((".py", ".sh"))
    )
    return tuple(sorted({name for names in seen for name in names if is_secret(name)}))


def _declared_downloads(block: Mapping[str, Any]) -> tuple[Download, ...]:
    rows = block.get("downloads")
    return tuple(
        Download(
            what=str(shown(row.get("what", ""))),
            size_bytes=_whole(row.get("size_bytes")) or None,
            sha256=str(row.get("sha256") or ""),
            license=str(row.get("license") or row.get("licence") or ""),
        )
        for row in (rows if isinstance(rows, list) else ())
        if isinstance(row, Mapping) and row.get("what")
    )


def _seen_downloads(env: Mapping[str, Any]) -> tuple[Download, ...]:
    found = [str(env[key]) for key in URL_KEYS if str(env.get(key) or "").startswith(("http://", "https://"))]
    checksum = next((str(env[key]) for key in SHA256_KEYS if len(str(env.get(key) or "")) == 64), "")
    return tuple(Download(str(shown(url)), sha256=checksum) for url in dict.fromkeys(found))


def _texts(value: Any) -> tuple[str, ...]:
    items = value if isinstance(value, list) else [value]
    return tuple("yes" if item is True else str(item) for item in items if item)


def _whole(value: Any) -> int:
    return whole_number(str(value or "")) or 0
