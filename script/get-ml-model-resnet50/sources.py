"""The published files of ResNet-50 v1.5: where they are, their MD5, and what the harness must know of each.

Addresses, MD5 and tensor names: recipe get-ml-model-resnet50 of mlcommons/cm4mlops. Accuracies and license of the
collection: vision/classification_and_detection/README.md of mlcommons/inference. Both read in November 2026.
"""

from dataclasses import dataclass, field

ONNX_CONFIG = {"classes": 1001, "input_name": "input_tensor:0"}
ZENODO = "https://zenodo.org/record"


@dataclass(frozen=True)
class Published:
    """One file. config: of model.json. accuracy: top-1 in percent on the 50,000 validation images, fp32."""

    url: str
    md5: str
    framework: str
    accuracy: float
    mirrors: tuple[str, ...] = ()
    config: dict = field(default_factory=dict)

    @property
    def file_name(self):
        """The last part of the address."""
        return self.url.rpartition("/")[2]


OPSET_11 = Published(
    url=f"{ZENODO}/4735647/files/resnet50_v1.onnx",
    md5="f6a4da60cd5f084d97efc2c1ddb10beb",
    framework="onnx",
    accuracy=76.456,
    mirrors=(
        "https://huggingface.co/ctuning/mlperf-inference-resnet50-onnx-fp32-imagenet2012-v1.0/resolve/main/resnet50_v1.onnx",
    ),
    config=ONNX_CONFIG,
)
OPSET_8 = Published(
    url=f"{ZENODO}/2592612/files/resnet50_v1.onnx",
    md5="a638cf028b5870da29e09ccc2f7182e7",
    framework="onnx",
    accuracy=76.456,
    config=ONNX_CONFIG,
)
TORCHVISION = Published(
    url=f"{ZENODO}/4588417/files/resnet50-19c8e357.pth",
    md5="9e9c86b324d80e65229fab49b8d9a8e8",
    framework="pytorch",
    accuracy=76.014,
    config={"preprocessing": "pytorch"},
)
FILES = (OPSET_11, OPSET_8, TORCHVISION)


def choose(framework, opset):
    """The file for `_onnx` or `_pytorch`. Raises ValueError with what there is."""
    chosen = {("onnx", "11"): OPSET_11, ("onnx", "8"): OPSET_8}.get((framework, opset))
    if framework == "pytorch":
        chosen = TORCHVISION
    if chosen is None:
        raise ValueError(f"there is no published {framework} file of operator set {opset}\nhint: _opset-11 or _opset-8")
    return chosen


def known_by(md5, framework):
    """The published file of a framework with this MD5, or None."""
    return next((file for file in FILES if file.md5 == md5 and file.framework == framework), None)


def config_of(file, output):
    """The config in model.json; of an ONNX file its "label" (it has an ArgMax of its own) or its "scores" are used."""
    if file.framework != "onnx":
        return dict(file.config)
    names = {"label": "ArgMax:0", "scores": "softmax_tensor:0"}
    return {**file.config, "output": output, "output_name": names[output]}
