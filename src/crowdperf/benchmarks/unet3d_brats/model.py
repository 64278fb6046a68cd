"""3D-UNet on BraTS 2019: finds parts of brain tumours in MRI volumes (3d-unet in rounds v0.7 to v1.1).

Untimed, as nnU-Net version 1 does it for the reference (mlcommons/inference at tag v2.0, vision/medical_imaging/
3d-unet-brats19/preprocess.py): crop to the brain, bring each modality to mean 0 and deviation 1 within it, pad around
to the network's volume. Timed: the network. The response is float16[4][224][224][160], the scores of the classes;
classes are decided when scoring, as there.

The formulas are those of crop_to_nonzero and GenericPreprocessor in nnU-Net. The voxels of BraTS are 1 mm cubes
already, so that nothing is resampled; but nnU-Net's resampling still hands on float64, in which mean and deviation are
computed.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.model_facts import ModelFacts
from crowdperf.harness.base.score import Score
from crowdperf.harness.base.tensors import Array, Infer, NetworkSpec, Tensors, TensorSpec
from crowdperf.harness.datasets.brats19 import Brats19Dataset, Scans
from crowdperf.harness.metrics import dice

VOLUME = (224, 224, 160)
CLASSES = 4
_MIN_DEVIATION = 1e-8  # added by GenericPreprocessor

FloatVolumes = npt.NDArray[np.float32]


def brain_mask(voxels: FloatVolumes) -> npt.NDArray[np.bool_]:
    """Return bool[z, y, x]: where any modality is not zero, and the holes inside."""
    from scipy.ndimage import binary_fill_holes  # type: ignore[import-untyped]

    return binary_fill_holes((voxels != 0).any(axis=0))


def bounding_box(mask: npt.NDArray[np.bool_]) -> tuple[slice, slice, slice]:
    """Return the smallest box around the mask; raises HarnessError for an empty one."""
    if not mask.any():
        raise HarnessError("a case has only voxels of 0", "get the data set again")
    first, second, third = (
        np.flatnonzero(mask.any(axis=tuple(other for other in range(3) if other != axis))) for axis in range(3)
    )
    return tuple(slice(int(line[0]), int(line[-1]) + 1) for line in (first, second, third))  # type: ignore[return-value]


def prepare(scans: Scans, volume: tuple[int, int, int] = VOLUME) -> FloatVolumes:
    """Return the network's input float32[4, *volume] of one case; raises HarnessError when the brain is larger."""
    mask = brain_mask(scans.voxels)
    box = bounding_box(mask)
    whole = (slice(None), *box)
    inside, cropped = mask[box], scans.voxels[whole].astype(np.float64)  # nnU-Net leaves float64 behind, see above
    for modality in cropped:
        brain = modality[inside]
        modality[inside] = (brain - brain.mean()) / (brain.std() + _MIN_DEVIATION)
        modality[~inside] = 0
    missing = [side - found for side, found in zip(volume, cropped.shape[1:], strict=True)]
    if min(missing) < 0:
        raise HarnessError(
            f"the brain of {scans.case} has {cropped.shape[1:]} voxels, but the network expects {volume}",
            "use a data set and a model of the same size",
        )
    return np.pad(cropped.astype(np.float32), [(0, 0), *((side // 2, side - side // 2) for side in missing)])


def truth_of(dataset: Brats19Dataset, index: int) -> dice.BratsCase:
    """Return the segmentation of one case and where the crop of its scans lies in it."""
    (scans,) = dataset.load([index])
    box = bounding_box(brain_mask(scans.voxels))
    (z_size, y_size, x_size), (z_start, y_start, x_start) = (
        [side.stop - side.start for side in box],
        [side.start for side in box],
    )
    return dice.BratsCase(
        segmentation=dataset.labels(index),
        cropped_size=(z_size, y_size, x_size),
        crop_start=(z_start, y_start, x_start),
    )


class UnetBrats:
    """One network, fixed shapes; the response of a sample are its scores as float16."""

    is_ragged = False

    def __init__(self, volume: tuple[int, int, int]) -> None:
        self._volume = volume
        self.response = TensorSpec(name="scores", dtype="float16", shape=(CLASSES, *volume))
        self.networks = (
            NetworkSpec(
                name="model",
                inputs=(TensorSpec(name="input", dtype="float32", shape=(CLASSES, *volume)),),
                outputs=(TensorSpec(name="output", dtype="float32", shape=(CLASSES, *volume)),),
            ),
        )

    def preprocess(self, raw: Sequence[Scans]) -> Tensors:
        """Return `input` float32[batch, 4, *volume]."""
        return {"input": np.stack([prepare(scans, self._volume) for scans in raw])}

    def predict(self, networks: Mapping[str, Infer], inputs: Tensors) -> Array:
        """Return the scores, float16[batch, 4, *volume]."""
        return networks["model"](inputs)["output"].astype(np.float16)

    def device_post(self, networks: Mapping[str, Infer], inputs: Tensors, to_device: Callable[[str, Any], Any]) -> Any:
        """Return the same as a torch tensor."""
        return networks["model"](inputs)["output"].half()

    def score(self, responses: Iterable[tuple[int, bytes]], dataset: Brats19Dataset) -> Score:
        """Return "DICE", the mean of whole tumour, tumour core and enhancing tumour, 0 to 1."""
        return dice.score_brats(responses, lambda index: truth_of(dataset, index), padded_size=self._volume)


def open_model(facts: ModelFacts) -> UnetBrats:
    """Return the model with the volume of model.json, or the benchmark's; raises HarnessError for another one."""
    volume = facts.config.get("volume", VOLUME)
    if len(volume) != 3 or not all(isinstance(side, int) and side > 0 for side in volume):
        raise HarnessError(
            f"3d-unet-brats: model.json has a volume of {volume!r}; allowed: three positive numbers",
            "rebuild the model",
        )
    depth, height, width = volume
    return UnetBrats((depth, height, width))
