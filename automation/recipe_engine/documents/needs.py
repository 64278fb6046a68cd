"""What a step needs besides processor time: what its recipe declares under ``needs``, and what its code shows.

``needs`` may be wherever ``env`` may be (recipe, variation, version)::

    needs:
      downloads:
      - what: <<<CM_DOWNLOAD_URL>>>     # an address, or a name such as "PyPI: onnxruntime"
        size_bytes: 97800000
        sha256: 64 hex digits
        licence: CC-BY-4.0
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

import re
from collections.abc import Mapping
from typing import Any

from ..rules.conditions import shown
from ..rules.env import expand_value
from ..rules.model import Configured
from ..rules.secrets import is_secret
from .plan import Download, Needs

URL_KEYS = ("CM_DOWNLOAD_URL", "CM_URL", "CM_GIT_URL", "CM_DAE_URL", "CM_PACKAGE_URL")
"""Env keys in which recipes of the community put what they fetch (cm4mlops e1d5c7cf0)."""
SHA256_KEYS = ("CM_DOWNLOAD_CHECKSUM_SHA256", "CM_DOWNLOAD_SHA256", "CM_DOWNLOAD_CHECKSUM")
_SECRET = r"[A-Z][A-Z0-9_]*(?:TOKEN|API_KEY|PASSWORD)\b"
_SECRET_IN_PYTHON = re.compile(f"""(?<=["'${{]){_SECRET}""")
"""An env key is a text there; a name without quotes is one of the program, such as the token that ends a sentence."""
_SECRET_IN_SCRIPT = re.compile(rf"\b{_SECRET}")
_WORDS = {
    "sudo": (re.compile(r"(?m)^[^#\n]*(?:\bsudo\b|\$\{?CM_SUDO\b)"), "its code calls sudo"),
    "container": (re.compile(r"(?m)^[^#\n]*\b(?:docker|podman|apptainer) run\b"), "its code starts a container"),
}
GPU_TAGS = frozenset({"cuda-devices", "nvidia-driver", "rocm-devices"})


def needs_of(configured: Configured, code: Mapping[str, str]) -> Needs:
    """The needs of a configured recipe; ``code`` is the text of its Python files and native scripts by name."""
    declared = expand_value(configured.layer.needs, configured.env)
    script, python = ("\n".join(code[name] for name in code if name.endswith(kind)) for kind in (".sh", ".py"))
    by_code = {name: (reason,) if pattern.search(script) else () for name, (pattern, reason) in _WORDS.items()}
    seen = _SECRET_IN_PYTHON.findall(python) + _SECRET_IN_SCRIPT.findall(script)
    tokens = {name for name in seen if is_secret(name) and not configured.env.get(name)}
    is_gpu = bool(GPU_TAGS & set(configured.recipe.tags))
    return Needs(
        downloads=_declared_downloads(declared) or _seen_downloads(configured.env),
        disk_mb=_whole(declared.get("disk_mb")) + configured.layer.required_disk_space_mb,
        memory_mb=_whole(declared.get("memory_mb")),
        sudo=_texts(declared.get("sudo")) or by_code["sudo"],
        container=_texts(declared.get("container")) or by_code["container"],
        gpu=_texts(declared.get("gpu")) or (("it asks the devices",) if is_gpu else ()),
        tokens=_texts(declared.get("tokens")) or tuple(f"{name} (named in its code)" for name in sorted(tokens)),
    )


def _declared_downloads(declared: Mapping[str, Any]) -> tuple[Download, ...]:
    rows = declared.get("downloads") or ()
    return tuple(
        Download(
            what=str(shown(row.get("what", ""))),
            size_bytes=_whole(row.get("size_bytes")) or None,
            sha256=str(row.get("sha256") or ""),
            licence=str(row.get("licence") or ""),
        )
        for row in rows
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
    return int(value) if str(value or "").isdigit() else 0
