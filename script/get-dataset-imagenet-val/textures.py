"""Pictures of ten kinds that a network can tell apart: crossed waves in two colours, in changing light, with noise.

Pure: numbers in, arrays out. Used for the synthetic validation set and, with other seeds, to fit a model to it.
"""

import numpy as np

VERSION = 1
VALIDATION, TRAINING = 0, 1
"""Second part of an image's seed, so that no image of one part is one of the other."""
CLASSES = 10
_LABEL_STEP = 100
_NOISE = 16.0


def label_of(index: int) -> int:
    """The label (0, 100 ... 900) of the image at `index`: all labels come equally often, in mixed order."""
    return (index * 7 % CLASSES) * _LABEL_STEP


def image(label: int, width: int, height: int, generator: np.random.Generator) -> np.ndarray:
    """A picture of the label's texture as uint8[height, width, 3]; what differs between pictures is drawn."""
    kind = np.random.default_rng((VERSION, label))  # the same for every picture of the label
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
