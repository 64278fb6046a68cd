"""The gate's verdicts on the changed trees of a checkout's tests, and what is in its wheel. Part of ``snapshot.py``."""

import importlib
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Items = Iterator[tuple[str, Callable[[], Any]]]
FORGED = ("forgeries_of_results.results", "forgeries_of_models.of_models", "forgeries_of_chance.of_chance",
          "forgeries_of_vendors.of_vendors")  # fmt: skip
GOOD = ("open", "closed")


def package_roots(checkout: Path) -> list[Path]:
    """The folders whose packages a checkout's programs import: src/, and recipes that hold a package."""
    own = [checkout / "src"] if (checkout / "src").is_dir() else []
    return own + sorted({path.parents[1] for path in checkout.glob("script/*/*/__init__.py")})


def gate_items(checkout: Path, scratch: Path) -> Items:
    """What the gate finds in each changed and each forged tree of the tests, with the tests' own builders."""
    folders = {path.parent for name in ("tree_builder", "gate_support") for path in checkout.glob(f"tests/*/{name}.py")}
    if not folders:
        return
    sys.path[:0] = [*map(str, folders), str(checkout / "tests")]
    sys.path += map(str, package_roots(checkout))
    builder, support = importlib.import_module("tree_builder"), importlib.import_module("gate_support")
    for division in GOOD:
        builder.build(scratch / division, division)
    for one in importlib.import_module("mutations").MUTATIONS:
        yield one.name, lambda one=one: _verdict(builder, support, scratch, one.tree, one.change)
    for path in FORGED:
        module, _, name = path.rpartition(".")
        for one in getattr(importlib.import_module(module), name)():
            for tree in (tree for tree in one.trees if tree in GOOD):
                yield (
                    f"{one.name} in {tree}",
                    lambda one=one, tree=tree: _verdict(
                        builder, support, scratch, tree, lambda root: _forge(one, root)
                    ),
                )


def _forge(forgery: Any, root: Path) -> None:
    """Makes a forgery in every scenario that it is meant for."""
    for path in sorted(root.glob("*/*/results/*/*/*")):
        if not forgery.only or path.name in forgery.only:
            forgery.change(str(path.relative_to(root)))(root)


def _verdict(builder: Any, support: Any, scratch: Path, tree: str, change: Callable[[Path], object]) -> dict[str, Any]:
    root = builder.copy_of(scratch / tree, scratch / "copy")
    try:
        change(root)
        found = support.verdict(root)
    finally:
        shutil.rmtree(root)
    return {
        "verdict": found.text,
        "results": [f"{one.path}: {'accepted' if one.is_accepted else 'refused'}" for one in found.results],
        "findings": [
            f"{one.rule} {one.severity.value} {one.path}:{one.line}: {one.text} found {one.found} | "
            f"allowed {one.allowed} | {one.source} | {one.step} | {one.fix}"
            for one in found.findings
        ],
    }


NOT_IN_A_WHEEL = ("tests", "docs", "benchmarks", "tools", "build", "cache", "results", "rehearsal")


def wheel_items(checkout: Path, scratch: Path) -> Items:
    """The files of the wheel and what its metadata say; built from a copy, with the setuptools of this Python."""
    yield "wheel", lambda: _wheel(checkout, scratch)


def _wheel(checkout: Path, scratch: Path) -> dict[str, Any]:
    def left_out(folder: str, names: list[str]) -> set[str]:
        is_top = Path(folder) == checkout
        return {name for name in names if name.startswith(".") or name.endswith((".egg-info", "__pycache__"))
                or (is_top and name in NOT_IN_A_WHEEL)}  # fmt: skip

    copy = scratch / "copy"
    shutil.copytree(checkout, copy, ignore=left_out)
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-deps",
        "--no-build-isolation",
        "--quiet",
        "-w",
        "wheels",
        ".",
    ]
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"no wheel could be built: {done.stderr[-2000:]}")
    (file,) = (copy / "wheels").glob("*.whl")
    with zipfile.ZipFile(file) as archive:
        names = [name for name in archive.namelist() if ".dist-info/" not in name]
        texts = {
            name.rpartition("/")[2]: archive.read(name).decode()
            for name in archive.namelist()
            if name.endswith((".dist-info/entry_points.txt", ".dist-info/METADATA", ".dist-info/top_level.txt"))
        }
    told = texts["METADATA"].partition("\n\n")[0].splitlines()
    wanted = ("Name:", "Requires-Dist:", "Requires-Python:", "Provides-Extra:")
    return {
        "files": sorted(names),
        "entry points": texts.get("entry_points.txt", "").splitlines(),
        "packages": texts.get("top_level.txt", "").split(),
        "metadata": sorted(line for line in told if line.startswith(wanted)),
    }
