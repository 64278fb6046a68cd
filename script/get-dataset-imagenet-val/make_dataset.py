"""Writes a synthetic validation set in the layout of ImageNet 2012: seeded JPEG files and val_map.txt.

Run by run.sh in the benchmark's virtual environment; needs numpy and opencv-python-headless:

    python3 make_dataset.py --output_dir FOLDER --count 1024 --seed 0

Each of ten labels (0, 100, 200 ... 900) has a texture of its own (`textures.py`), each image a phase, a light, a size
and noise of its own. The pictures mean nothing to a model trained on ImageNet; a model fitted to the textures
(get-ml-model-resnet50, variation _fitted) reads most of them.
"""

import argparse
import hashlib
import json
import sys
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import textures

QUALITY = 80
FILE_NAME = "ILSVRC2012_val_{number:08d}.JPEG"
SIZES = {
    # Half of ImageNet's validation images are 500 pixels wide and 375 high or the other way round (general knowledge).
    "real": ((500, 375), (375, 500), (500, 333), (333, 500), (640, 480), (500, 500), (400, 300), (259, 261)),
    "small": ((160, 120), (120, 160), (200, 133), (131, 197), (128, 128), (257, 300)),
}


@dataclass(frozen=True)
class DatasetRequest:
    """What to make: `count` images with sizes of the set `sizes`, all following from `seed`."""

    output_dir: Path
    count: int
    seed: int
    sizes: str


def write_image(path: Path, image: np.ndarray) -> str:
    """Writes uint8[height, width, 3] (red first) or grey uint8[height, width] as a JPEG file; gives its SHA-256.

    Raises OSError.
    """
    stored = image if image.ndim == 2 else image[:, :, ::-1]
    is_done, data = cv2.imencode(".jpg", stored, [cv2.IMWRITE_JPEG_QUALITY, QUALITY])
    if not is_done:
        raise OSError(f"OpenCV could not encode {path}")
    path.write_bytes(data.tobytes())
    return hashlib.sha256(data.tobytes()).hexdigest()


def make_dataset(request: DatasetRequest) -> dict:
    """Writes the images, val_map.txt and, last, dataset.json; gives what dataset.json holds."""
    request.output_dir.mkdir(parents=True, exist_ok=True)
    sizes, lines, files = SIZES[request.sizes], [], {}
    for index in range(request.count):
        generator = np.random.default_rng((request.seed, textures.VALIDATION, index))
        width, height = sizes[int(generator.integers(len(sizes)))]
        label = textures.label_of(index)
        name = FILE_NAME.format(number=index + 1)
        image = textures.image(label, width, height, generator)
        if index % 16 == 15:  # ImageNet has some grey images too
            image = image.mean(axis=2).astype(np.uint8)
        files[name] = write_image(request.output_dir / name, image)
        lines.append(f"{name} {label}\n")
    (request.output_dir / "val_map.txt").write_text("".join(lines), encoding="utf-8")
    description = {
        "format": 1,
        "name": "imagenet",
        "is_synthetic": True,
        "seed": request.seed,
        "count": request.count,
        "licence": "Apache-2.0 (made by this project)",
        "sizes": request.sizes,
        "texture_version": textures.VERSION,
        "versions": {"numpy": np.__version__, "opencv": cv2.__version__},
        "sha256_of_images": hashlib.sha256("".join(files[name] for name in sorted(files)).encode()).hexdigest(),
    }
    (request.output_dir / "dataset.json").write_text(json.dumps(description, indent=2) + "\n", encoding="utf-8")
    return description


def main() -> int:
    """Command line entry; gives the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output_dir", type=Path, required=True)
    parser.add_argument("--count", type=int, required=True, help="how many images, 1 to 50000")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sizes", choices=sorted(SIZES), default="real")
    given = parser.parse_args()
    if not 1 <= given.count <= 50_000:
        print(f"make_dataset.py: --count={given.count}; allowed: 1 to 50000", file=sys.stderr)
        return 2
    try:
        description = make_dataset(DatasetRequest(given.output_dir, given.count, given.seed, given.sizes))
    except OSError as error:
        print(f"make_dataset.py: cannot write the images: {error}", file=sys.stderr)
        return 1
    print(f"imagenet: {description['count']} synthetic images in {given.output_dir}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
