"""The commands that the doctor gives: recipes where there is one (they show or do the rest), else the exact words."""

from crowdperf.machine.findings import Command


def recipe(tags: str, *inputs: str) -> Command:
    """The command that runs a recipe."""
    return Command(("cm", "run", "script", f"--tags={tags}", *inputs))


def package(name: str, python: str) -> Command:
    """The command that installs a package into the Python that was looked at."""
    return Command((python or "python3", "-m", "pip", "install", name))


DRIVER = recipe("get,nvidia,driver")
FABRIC_MANAGER = recipe("get,nvidia,driver,_fabricmanager-match")
CUDA = recipe("get,cuda")
CUDNN = recipe("get,cudnn")
TENSORRT = recipe("get,tensorrt")
TRITON = recipe("get,triton,server")
TRITON_NEURON = recipe("get,triton,server,_neuron")
DOCKER = recipe("get,docker")
CONTAINER_TOOLKIT = recipe("get,nvidia,container-toolkit")
PERMISSIONS = recipe("check,user,docker,permissions")
SCRATCH = recipe("get,mlperf,scratch,space", "--path=FOLDER")
MIG = recipe("manage,nvidia,mig,_configure")
LOAD_MODULE = Command(("modprobe", "nvidia"), needs_root=True)
PASS_GPUS = Command(line="docker run --gpus all ...   (podman: --device nvidia.com/gpu=all, apptainer: --nv)")
NEURON_DRIVER = Command(line="{sudo}apt-get install -y aws-neuronx-dkms   (from AWS's Neuron repository)")


def cuda(major: str) -> Command:
    """The command that gets a CUDA toolkit of this major version."""
    return recipe("get,cuda", f"--version_min={major}.0", f"--version_max={major}")


def driver_at_least(version: str) -> Command:
    """The command that says how to get a driver of at least this version."""
    return recipe(f"get,nvidia,driver,_min.{version}")


def first_on_path(home: str) -> Command:
    """The line that puts a toolkit first on PATH of the shell that reads it."""
    return Command(line=f'export PATH={home}/bin:"$PATH"')
