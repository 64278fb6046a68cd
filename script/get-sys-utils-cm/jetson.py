"""The plan for a Jetson Xavier: what NVIDIA's install_xavier_dependencies.sh does (MLPerf Inference v0.7). Only shown.

Facts from mlcommons/inference_results_v0.7, closed/NVIDIA/scripts/install_xavier_dependencies.sh (1321d137); it was
written for the 20.09 preview of CUDA-X on JetPack 4.4 and takes hours on the device. Never run by us, nor on hardware.
"""

from crowdperf.machine.findings import Command

SCRIPT = "closed/NVIDIA/scripts/install_xavier_dependencies.sh of mlcommons/inference_results_v0.7"
CUDA = "/usr/local/cuda-10.2"
APT = (
    "cuda-toolkit-10.2 python-dev python3-dev python-pip python3-pip virtualenv cmake pkg-config zip unzip g++ clang "
    "zlib1g-dev libglib2.0-dev libhdf5-serial-dev libhdf5-dev hdf5-tools libjpeg8-dev libssl-dev libfreetype6-dev "
    "libpng-dev libatlas3-base libopenblas-base git git-lfs"
)
FROM_SOURCE = (
    ("cub 1.8.0", "headers, into /usr/include/aarch64-linux-gnu/"),
    ("gflags v2.2.1", "cmake, shared and static"),
    ("glog v0.3.5", "cmake, shared"),
    ("onnx-graphsurgeon of TensorRT release/7.1", "3D-UNet needs it to prepare its ONNX file"),
    ("protobuf 3.11.1", "configure with -fPIC, static"),
    ("CMake 3.17.3", "in place of the distribution's, for DALI"),
    ("DALI 0.25.0", "for CUDA architecture 72, RNN-T needs it, the longest of all"),
)
PIP = (
    "setuptools==41.0.1 Cython==0.29.10 numpy==1.16.4 matplotlib==3.0.2 grpcio==1.16.1 absl-py==0.7.1 "
    "py-cpuinfo==5.0.0 portpicker==1.3.1 six==1.12.0 mock==3.0.5 requests==2.22.0 gast==0.2.2 h5py==2.10.0 "
    "astor==0.8.0 termcolor==1.1.0 pytest==5.1.2 pillow==6.0.0 scikit-learn==0.23.0 protobuf==3.11.1 "
    "keras-preprocessing==1.0.5 tensorflow-estimator==1.13.0 tensorboard==1.13.0 keras-applications==1.0.6 "
    "torchvision==0.2.2.post3 pycuda==2019.1.2 pycocotools==2.0.0 tqdm==4.46.0"
)


def plan() -> tuple[Command, ...]:
    """The steps in their order. Those without words are for a person, and none is run."""
    steps = [
        Command(("apt-get", "install", "-y", *APT.split()), needs_root=True),
        Command(("git-lfs", "install")),
        Command(
            line="{sudo}mv /usr/local/cuda /usr/local/cuda_packages   # only if /usr/local/cuda/packages is there",
            needs_root=True,
        ),
        Command(("ln", "-s", CUDA, "/usr/local/cuda"), needs_root=True),
    ]
    steps += [Command(line=f"# from source: {name} ({why})") for name, why in FROM_SOURCE]
    steps += [
        Command(("python3", "-m", "venv", "xavier")),
        Command(("xavier/bin/python3", "-m", "pip", "install", *PIP.split())),
        Command(line="# TensorFlow below 2 from NVIDIA's index for JetPack 4.4 (.../compute/redist/jp/v44)"),
        Command(line="# PyTorch 1.4.0: NVIDIA's wheel torch-1.4.0-cp36-cp36m-linux_aarch64.whl"),
    ]
    return tuple(steps)
