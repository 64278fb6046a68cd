"""The published files of the 3D-UNet, by data set and framework, and the harness's names of the two models."""

from __future__ import annotations

from dataclasses import dataclass

ARCHITECTURES = {"kits19": "unet3d", "brats": "unet3d_brats"}
FIT_PROGRAMS = {"kits19": "fit_model.py", "brats": "fit_brats.py"}


@dataclass(frozen=True, kw_only=True)
class PublishedFile:
    """One file on zenodo.org. md5: as the record publishes it, None where it was not known when this was written.

    member: the file in an archive, which the user has to unpack; None for a file that is used as it is.
    """

    url: str
    name: str
    md5: str | None
    reference: float
    licence: str
    member: str | None = None


_KITS = "https://zenodo.org/record/5597155/files/"
_KITS_LICENCE = "see https://zenodo.org/record/5597155"

# MD5 of the KiTS files: get-ml-model-3d-unet-kits19 of the community's CM repository. Reference scores: README.md of
# vision/medical_imaging/3d-unet-kits19 (mlcommons/inference) and of 3d-unet-brats19 at tag v2.0, where the BraTS
# addresses are from too (Makefile).
FILES = {
    ("kits19", "onnx"): PublishedFile(
        url=f"{_KITS}3dunet_kits19_128x128x128_dynbatch.onnx?download=1",
        name="3dunet_kits19_128x128x128_dynbatch.onnx",
        md5="82f0618fde78f9839e7c712274019b4a",
        reference=0.86170,
        licence=_KITS_LICENCE,
    ),
    ("kits19", "pytorch"): PublishedFile(
        url=f"{_KITS}3dunet_kits19_pytorch_checkpoint.pth?download=1",
        name="3dunet_kits19_pytorch_checkpoint.pth",
        md5="09c696e3ec13d83c628498bcd831eb5b",
        reference=0.86170,
        licence=_KITS_LICENCE,
    ),
    ("brats", "onnx"): PublishedFile(
        url="https://zenodo.org/record/3928973/files/224_224_160_dyanmic_bs.onnx?download=1",
        name="224_224_160_dyanmic_bs.onnx",
        md5=None,
        reference=0.85300,
        licence="see https://zenodo.org/record/3928973",
    ),
    ("brats", "pytorch"): PublishedFile(
        url="https://zenodo.org/record/3904106/files/fold_1.zip?download=1",
        name="fold_1.zip",
        md5=None,
        reference=0.85300,
        licence="see https://zenodo.org/record/3904106",
        member="model_final_checkpoint.model",
    ),
}
