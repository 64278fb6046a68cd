"""Writes a synthetic validation set in the layout of ImageNet 2012: seeded JPEG files and val_map.txt.

Each of ten labels (0, 100, 200 ... 900) has a texture of its own, crossed waves in two colours, each image a phase, a
light, a size and noise of its own. The pictures mean nothing to a model trained on ImageNet; a model fitted to the
textures (get-ml-model-resnet50, variation _fitted) reads most of them. Needs numpy and opencv-python-headless.
"""

import hashlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from crowdperf.standins.dataset_program import Given, MadeSet, limited

QUALITY = 80
FILE_NAME = "ILSVRC2012_val_{number:08d}.JPEG"
SMALL_SIZES = ((160, 120), (120, 160), (200, 133), (131, 197), (128, 128), (257, 300))
SIZES = {
    # Half of ImageNet's validation images are 500 pixels wide and 375 high or the other way round (general knowledge).
    "real": ((500, 375), (375, 500), (500, 333), (333, 500), (640, 480), (500, 500), (400, 300), (259, 261)),
    "small": SMALL_SIZES,
}
TEXTURE_VERSION = 1
VALIDATION, TRAINING = 0, 1
"""Second part of an image's seed, so that no image of one part is one of the other."""
CLASSES = 10
_LABEL_STEP = 100
_NOISE = 16.0

Picture = npt.NDArray[np.uint8]
"""uint8[height, width, 3], red first, or grey uint8[height, width]."""


def label_of(index: int) -> int:
    """The label (0, 100 ... 900) of the image at `index`: all labels come equally often, in mixed order."""
    return (index * 7 % CLASSES) * _LABEL_STEP


def picture_of(label: int, width: int, height: int, generator: np.random.Generator) -> Picture:
    """A picture of the label's texture as uint8[height, width, 3]; what differs between pictures is drawn."""
    kind = np.random.default_rng((TEXTURE_VERSION, label))  # the same for every picture of the label
    colours = kind.uniform(40, 215, (2, 3))
    frequencies = kind.uniform(4, 22, 2)  # waves across the short side
    directions = kind.uniform(0, np.pi, 2)
    scale = np.float32(generator.uniform(0.85, 1.18) / min(width, height))
    turn, phases = generator.normal(0, 0.08), generator.uniform(0, 2 * np.pi, 2)
    rows, columns = np.mgrid[0:height, 0:width].astype(np.float32) * scale
    share = np.full((height, width), 0.5, dtype=np.float32)
    for frequency, angle, phase in zip(frequencies, directions + turn, phases, strict=True):
        along = 2 * np.pi * frequency * np.array((np.cos(angle), np.sin(angle)))
        share += 0.25 * np.sin(columns * np.float32(along[0]) + rows * np.float32(along[1]) + np.float32(phase))
    light, shift = generator.uniform(0.8, 1.2), generator.normal(0, 8, 3)
    base = (light * colours[1] + shift).astype(np.float32)
    picture = share[:, :, None] * (light * (colours[0] - colours[1])).astype(np.float32) + base
    picture += _NOISE * generator.standard_normal((height, width, 1), dtype=np.float32)
    return np.clip(picture, 0, 255).astype(np.uint8)


def drawn(seed: int, part: int, index: int, sizes: tuple[tuple[int, int], ...]) -> Picture:
    """Return the picture at `index` of the validation or the training part."""
    generator = np.random.default_rng((seed, part, index))
    width, height = sizes[int(generator.integers(len(sizes)))]
    return picture_of(label_of(index), width, height, generator)


def write_image(path: Path, image: Picture) -> str:
    """Write a JPEG file; return its SHA-256. Raises OSError."""
    import cv2

    stored = image if image.ndim == 2 else image[:, :, ::-1]
    is_done, data = cv2.imencode(".jpg", stored, [cv2.IMWRITE_JPEG_QUALITY, QUALITY])
    if not is_done:
        raise OSError(f"OpenCV could not encode {path}")
    path.write_bytes(data.tobytes())
    return hashlib.sha256(data.tobytes()).hexdigest()


def make(given: Given) -> Mapping[str, Any]:
    import cv2

    lines, files = [], {}
    for index in range(given.count):
        name = FILE_NAME.format(number=index + 1)
        image = drawn(given.seed, VALIDATION, index, SIZES[given.sizes])
        if index % 16 == 15:  # ImageNet has some grey images too
            image = image.mean(axis=2).astype(np.uint8)
        files[name] = write_image(given.output_dir / name, image)
        lines.append(f"{name} {label_of(index)}\n")
    (given.output_dir / "val_map.txt").write_text("".join(lines), encoding="utf-8")
    return {
        "license": "Apache-2.0 (made by this project)",
        "sizes": given.sizes,
        "texture_version": TEXTURE_VERSION,
        "versions": {"numpy": np.__version__, "opencv": cv2.__version__},
        "sha256_of_images": hashlib.sha256("".join(files[name] for name in sorted(files)).encode()).hexdigest(),
    }


MADE = MadeSet(
    name="imagenet",
    what="images",
    make=make,
    options={"--sizes": {"choices": sorted(SIZES), "default": "real"}},
    count=limited(int, 1, 50_000),
)

if __name__ == "__main__":
    sys.exit(MADE.main(__doc__))
