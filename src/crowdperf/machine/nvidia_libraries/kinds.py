"""What tells cuDNN from TensorRT: file names, headers, names of archives, and the function that says the version."""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from crowdperf.machine import toolkits
from crowdperf.machine.probe import Machine


class Kind(NamedTuple):
    """One of NVIDIA's libraries.

    ``prefix`` starts its env keys, ``tags`` ask for its recipe, ``home_variables`` may name where it lies; ``names``
    finds (version, CUDA release) in the name of an archive or of its folder, and ``function`` answers its version as a
    number without a GPU.
    """

    name: str
    prefix: str
    tags: str
    library: str
    headers: tuple[str, ...]
    home_variables: tuple[str, ...]
    names: tuple[re.Pattern[str], ...]
    function: str
    installed: Callable[[Machine, Sequence[str]], tuple[toolkits.Library, ...]]
    page: str

    @property
    def recipe(self) -> str:
        """The alias of its recipe."""
        return self.tags.replace(" ", "-")


CUDNN = Kind(
    name="cuDNN",
    prefix="CM_CUDNN",
    tags="get cudnn",
    library="libcudnn.so",
    headers=("cudnn_version.h", "cudnn.h"),
    home_variables=("CUDNN_ROOT", "CUDNN_HOME", "CUDNN_PATH"),
    names=(
        # cudnn-linux-x86_64-8.9.7.29_cuda12-archive (since 8.3.1), cudnn-11.2-linux-x64-v8.1.1.33 (before)
        re.compile(r"cudnn-(?P<machine>.+?)-(?P<version>\d+\.\d+\.\d+\.\d+)_cuda(?P<cuda>[\d.]+)"),
        re.compile(r"cudnn-(?P<cuda>\d+\.\d+)-(?P<machine>.+?)-v(?P<version>\d+\.\d+\.\d+\.\d+)"),
        re.compile(r"cudnn-(?P<machine>.+?)-(?P<version>\d+\.\d+\.\d+\.\d+)"),
    ),
    function="cudnnGetVersion",
    installed=toolkits.cudnn_versions,
    page="https://developer.nvidia.com/cudnn",
)
"""Names of archives: NVIDIA cuDNN installation guides 8.1 and 8.9 ("Tar File Installation"); the function: cuDNN API
reference, ``size_t cudnnGetVersion(void)``."""

TENSORRT = Kind(
    name="TensorRT",
    prefix="CM_TENSORRT",
    tags="get tensorrt",
    library="libnvinfer.so",
    headers=("NvInferVersion.h", "NvInfer.h"),
    home_variables=("TENSORRT_ROOT", "TENSORRT_HOME", "TRT_ROOT"),
    names=(
        # TensorRT-8.6.1.6.Linux.x86_64-gnu.cuda-12.0 as the file, TensorRT-8.6.1.6 as the folder inside
        re.compile(r"TensorRT-(?P<version>\d+\.\d+\.\d+\.\d+)\.(?P<machine>[\w.-]+?)-gnu\.cuda-(?P<cuda>[\d.]*\d)"),
        re.compile(r"TensorRT-(?P<version>\d+\.\d+\.\d+\.\d+)"),
    ),
    function="getInferLibVersion",
    installed=toolkits.tensorrt_versions,
    page="https://developer.nvidia.com/tensorrt",
)
"""Names of archives: NVIDIA TensorRT installation guide 8.6 ("Tar File Installation"); the function: NvInferRuntime.h,
``int32_t getInferLibVersion()`` with C linkage."""

FIRST_LONG_NUMBER = 10_000


def version_of_number(number: int) -> str:
    """The version that a library answers as a number: 8907 is 8.9.7, 90100 is 9.1.0.

    cuDNN up to 8 and TensorRT up to 9 count 1000 * major + 100 * minor + patch, later ones 10000 * major + ...
    (``CUDNN_VERSION`` in cudnn_version.h, ``NV_TENSORRT_VERSION`` in NvInferVersion.h).
    """
    base = 10_000 if number >= FIRST_LONG_NUMBER else 1000
    return f"{number // base}.{number % base // 100}.{number % 100}"
