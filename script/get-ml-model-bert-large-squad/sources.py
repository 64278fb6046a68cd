"""The published files of MLPerf's BERT-large: addresses, MD5 and F1, all as in cm4mlops' recipe of the same name."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Published:
    """One file. is_checkpoint: weights by name, of which the network's files are made; else it is used as it is."""

    url: str
    mirrors: tuple[str, ...]
    md5: str
    f1: float
    is_checkpoint: bool

    @property
    def file_name(self) -> str:
        """The last part of the address."""
        return self.url.rsplit("/", 1)[1]


CHECKPOINT = Published(
    url="https://zenodo.org/record/3733896/files/model.pytorch",
    mirrors=("https://armi.in/files/fp32/model.pytorch",),
    md5="00fbcbfaebfa20d87ac9885120a6e9b4",
    f1=90.874,
    is_checkpoint=True,
)
PUBLISHED = {
    ("onnx", "fp32"): Published(
        url="https://zenodo.org/record/3733910/files/model.onnx",
        mirrors=("https://armi.in/files/model.onnx",),
        md5="819b25b19cd8e59080c10892689750ca",
        f1=90.874,
        is_checkpoint=False,
    ),
    ("onnx", "int8"): Published(
        url="https://zenodo.org/record/3750364/files/bert_large_v1_1_fake_quant.onnx",
        mirrors=("https://mlperf-public.s3.us-west-2.amazonaws.com/bert_large_v1_1_fake_quant.onnx",),
        md5="45f88ffb2915362242703c85c38ec2d4",
        f1=90.067,
        is_checkpoint=False,
    ),
    ("pytorch", "fp32"): CHECKPOINT,
}


def choose(framework: str, precision: str, *, is_free_length: bool) -> Published:
    """The file for a request; raises ValueError where none is published that this recipe can use."""
    if is_free_length and precision == "fp32":
        return CHECKPOINT
    found = None if is_free_length else PUBLISHED.get((framework, precision))
    if found is None:
        raise ValueError(
            f"there is no published file for {framework}, {precision}"
            f"{', free length' if is_free_length else ''} that this recipe can use\n"
            "hint: use _onnx,_fp32, _onnx,_int8, _pytorch,_fp32 or _free-length,_fp32"
        )
    return found
