"""How ``cm`` finds the engine: one copy, found beside its adapter."""

import pytest
from helpers import CHECKOUT, TemporaryHome, copy_engine

ADAPTERS = ("script", "cache", "utils")


def test_the_loader_lines_are_the_same_in_every_adapter() -> None:
    texts = [(CHECKOUT / "automation" / name / "module.py").read_text(encoding="utf-8") for name in ADAPTERS]
    start, end = "# --- the same lines in every adapter", "# --- end of the same lines ---"
    blocks = {text[text.index(start) : text.index(end)] for text in texts}
    assert len(blocks) == 1


@pytest.mark.parametrize("words", [("run", "script", "--tags=get,x", "--quiet"), ("show", "cache")])
def test_two_registered_copies_do_not_run_mixed(home: TemporaryHome, words: tuple[str, ...]) -> None:
    home.recipe("get-x", run_sh="echo it ran")
    home.register(copy_engine(home.folder / "first"), copy_engine(home.folder / "second"), home.repo)
    done = home.cm(*words)
    # With cmind's index the first copy answers alone; without it cmind refuses. Never may one run the other's engine.
    assert "internal error" not in done.stdout + done.stderr
    assert done.code == 0 or "registered" in done.stderr + done.stdout, (done.stdout, done.stderr)


def test_an_adapter_refuses_the_engine_of_another_copy(home: TemporaryHome) -> None:
    copy = copy_engine(home.folder / "copy")
    script = f"""
import importlib.util
def load(path):
    spec = importlib.util.spec_from_file_location("module", path)
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
load({str(CHECKOUT / "automation/script/module.py")!r})
load({str(copy / "automation/cache/module.py")!r})
"""
    import subprocess
    import sys

    done = subprocess.run(
        [sys.executable, "-c", script], env=home.process_env(), capture_output=True, text=True, timeout=60
    )
    assert done.returncode != 0
    assert "two copies of crowdperf are registered" in done.stderr
    assert str(copy) in done.stderr
    assert "cm rm repo" in done.stderr
