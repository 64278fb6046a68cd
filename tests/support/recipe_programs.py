"""For tests of programs that recipes run in environments of their own."""

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

SCRIPTS = Path(__file__).resolve().parents[2] / "script"


def run_python(*words: object, before: Path | None = None) -> subprocess.CompletedProcess[str]:
    """This Python with these words and the packages that run.sh has; what lies in `before` is found first."""
    folders = [*([before] if before else []), SCRIPTS.parent / "src"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}
    command = [sys.executable, "-B", *map(str, words)]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=False)


class _In:
    """Finds modules in these folders."""

    def __init__(self, folders: tuple[Path, ...]) -> None:
        self.folders = [str(folder) for folder in folders]

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """What Python would find with the folders in front of its path."""
        return PathFinder.find_spec(name, self.folders) if path is None else None


@contextmanager
def importable(*folders: Path) -> Iterator[None]:
    """What stands in these folders can be imported meanwhile, as by a program that lies there."""
    finder = _In(folders)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


def program(alias: str, name: str) -> ModuleType:
    """A recipe's own file."""
    return loaded(SCRIPTS / alias / f"{name}.py")


def loaded(path: Path) -> ModuleType:
    """A file, loaded as Python loads what it runs: what stands beside it can be imported while it is loaded, and is
    loaded again for a file of another folder."""
    folder = path.parent
    spec = importlib.util.spec_from_file_location(f"{folder.name}_{path.stem}".replace("-", "_"), path)
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    before = set(sys.modules)
    with importable(folder):
        try:
            spec.loader.exec_module(module)
        finally:
            for other in set(sys.modules) - before:
                if str(getattr(sys.modules[other], "__file__", "")).startswith(f"{folder}/"):
                    del sys.modules[other]
    return module
