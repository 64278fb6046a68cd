"""For tests that need what only the benchmark's environment has: numpy, sklearn, onnx, onnxruntime, LoadGen or torch.

Without them such a test is skipped, saying so; where CROWDPERF_REQUIRE_HARNESS is set, their absence is a failure. The
one exception is torch where CROWDPERF_WITHOUT_TORCH holds the reason why this environment cannot have it.
"""

import importlib
import os
from types import ModuleType

import pytest

REQUIRE_VARIABLE = "CROWDPERF_REQUIRE_HARNESS"
WITHOUT_TORCH_VARIABLE = "CROWDPERF_WITHOUT_TORCH"
LIBRARIES = (
    "PIL", "cv2", "gguf", "mlperf_loadgen", "nibabel", "nltk", "numpy", "onnx", "onnxruntime", "openvino",
    "openvino_genai", "pycocotools", "rouge_score", "safetensors", "scipy", "sklearn", "tokenizers", "torch",
    "whisper_normalizer",
)  # fmt: skip
"""What tests of the harness may import at their top: tests/conftest.py skips the file where one is absent. `need` is
for what is imported later."""


def need(*names: str) -> tuple[ModuleType, ...]:
    """The modules of these names; skips the calling test or module when one is absent, or fails it (see above)."""
    without_torch = os.environ.get(WITHOUT_TORCH_VARIABLE, "")
    if without_torch and any(name.split(".")[-1] == "torch" for name in names):
        pytest.skip(f"needs torch; {without_torch}", allow_module_level=True)
    modules = []
    for name in names:
        try:
            modules.append(importlib.import_module(name))
        except ImportError as error:
            if os.environ.get(REQUIRE_VARIABLE):
                pytest.fail(f"{REQUIRE_VARIABLE} is set, but {name} cannot be imported: {error}")
            reason = f"{error}; run it with the harness environment (./test.sh makes one)"
            pytest.skip(reason, allow_module_level=True)
    return tuple(modules)
