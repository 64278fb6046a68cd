"""The harness's packages import only what stands before them in LAYERS, and the runner nothing that makes models."""

from __future__ import annotations

import ast
from pathlib import Path

HARNESS = Path(__file__).resolve().parents[2] / "script" / "app-mlperf-inference" / "harness"
LAYERS = (
    "errors", "checkpoints", "tensors", "libraries", "keeper", "keptserver", "serving", "modelfacts", "metrics",
    "cores", "watch", "text.base", "media", "calibrationlists", "datasets", "decoding", "text.tokens",
    "benchmarks.base", "benchmarks", "network", "backends.base", "torch_cuda", "backends", "registry", "jsonvalues",
    "config", "userconf", "audit", "mishaps", "failures", "identity", "store", "queueing", "qsl", "settings",
    "querymemory", "effective", "accuracy", "result", "metadata_json", "responses", "sut", "warmup", "tuning",
    "served", "shapes", "loadgen", "opening", "testrun", "text", "run", "scoring", "preprocess", "find", "making",
)  # fmt: skip
"""Lowest first. `network` stands for what builds networks with torch: architecture, initial weights, network.py of each
benchmark; `benchmarks` for model.py, record.py and what a benchmark has beside; `backends` for their backend.py;
`text.base` for what engines and benchmarks of texts import of text/, `text` for what runs them."""

_OF_RUNS = ("run", "settings", "sut", "tally", "warmup")
_OF_NETWORKS = ("architecture", "initialweights", "network")


def layer_of(module: str) -> str:
    """Return the layer of a module of the harness, named without the first `harness.`."""
    parts = module.split(".")
    if parts[0] == "benchmarks" and len(parts) > 1:
        return "network" if parts[-1] in _OF_NETWORKS else "benchmarks.base" if parts[1] == "base" else "benchmarks"
    if module == "text.tokens":
        return module
    if parts[0] == "text" and len(parts) > 1 and parts[1] not in _OF_RUNS:
        return "text.base"
    if parts[0] == "backends" and len(parts) > 1:
        return "backends.base" if parts[1] == "base" else "backends"
    return parts[0]


def imported(tree: ast.Module) -> list[str]:
    """Return the modules of the harness that a file imports, inside functions too."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "harness":
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("harness."):
            found.append(node.module.removeprefix("harness."))
    return found


def test_packages_import_only_what_stands_before_them() -> None:
    wrong = []
    for path in sorted(HARNESS.rglob("*.py")):
        module = ".".join(path.relative_to(HARNESS).with_suffix("").parts)
        if module in ("__init__", "__main__") or module.endswith(".__init__"):
            continue
        own = layer_of(module)
        for name in imported(ast.parse(path.read_text(encoding="utf-8"))):
            other = layer_of(name)
            if own != other and LAYERS.index(other) > LAYERS.index(own):
                wrong.append(f"{module} imports {name}")
    assert wrong == []


def test_every_module_has_a_layer() -> None:
    modules = [".".join(path.relative_to(HARNESS).with_suffix("").parts) for path in HARNESS.rglob("*.py")]
    layers = {layer_of(name) for name in modules if not name.endswith("__init__") and name != "__main__"}
    assert layers == set(LAYERS)


def has_name(module: str, name: str) -> bool:
    """Return whether `from <module> import <name>` finds something, read from the files alone."""
    place = HARNESS.parent.joinpath(*module.split("."))
    if place.is_dir():
        return (place / f"{name}.py").is_file() or (place / name).is_dir()
    file = place.with_suffix(".py")
    tree = ast.parse(file.read_text(encoding="utf-8")) if file.is_file() else ast.Module([], [])
    names = {
        alias.asname or alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    names |= {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    for node in tree.body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        names |= {one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)}
    return name in names


def test_what_other_programs_import_from_the_harness_is_there() -> None:
    root = HARNESS.parents[2]
    folders = ("benchmarks", "script", "tests/compat", "tests/fuzz", "tools")
    missing = []
    for path in (path for folder in folders for path in (root / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "harness":
                names = [alias.name for alias in node.names if not has_name(str(node.module), alias.name)]
                missing += [f"{path.relative_to(root)}: {node.module}.{name}" for name in names]
    assert missing == []
