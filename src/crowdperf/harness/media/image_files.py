"""Images from files, and the two resizes of the reference: what image models need before their own arithmetic.

OpenCV (opencv-python-headless) decodes and resizes, because the reference implementation of MLPerf Inference does so:
the pixels are the same by construction. It is imported where it is used. OpenCV takes a JPEG that ends early and fills
the rest with grey, so `read_image` looks first whether the file is whole.

An image here is uint8[height, width, 3], red first; resizing takes float32 as well.
"""

import os
import re
import struct
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.tensors import Array

Image = npt.NDArray[np.uint8]
_SHOWN = 5

CHANNEL_MEANS_RGB = (123.68, 116.78, 103.94)
"""Subtracted by pre_process_vgg and the TensorFlow models (vision/classification_and_detection/python/dataset.py)."""

_JPEG_START = b"\xff\xd8"
_PNG_START = b"\x89PNG\r\n\x1a\n"
_END_OF_IMAGE, _START_OF_SCAN = 0xD9, 0xDA
_STANDALONE = {0x01, *range(0xD0, 0xD9)}
"""JPEG markers without a length: TEM, the restarts, start of image (ITU T.81, table B.1)."""
_NEXT_MARKER = re.compile(rb"\xff+[^\x00\xff\xd0-\xd7]", re.DOTALL)
"""Ends the data of a scan: neither a stuffed 0xff nor a restart (ITU T.81, B.1.1.5 and F.1.2.3)."""
_HINT = "get the file again"


@cache
def _opencv() -> Any:
    """OpenCV, with one thread: images are prepared side by side in processes of their own."""
    try:
        import cv2
    except ImportError as error:
        raise HarnessError(
            f"images need the Python package opencv-python-headless: {error}", "pip install opencv-python-headless"
        ) from error
    cv2.setNumThreads(1)
    return cv2


def _jpeg_problem(data: bytes) -> str:
    """Walk the segments and scans from start to end mark."""
    place = len(_JPEG_START)
    while True:
        if data[place : place + 1] != b"\xff":
            return "ends early" if place >= len(data) else "is damaged (a marker is missing)"
        while data[place : place + 1] == b"\xff":
            place += 1
        if place >= len(data):
            return "ends early"
        marker = data[place]
        place += 1
        if marker == _END_OF_IMAGE:
            return ""
        if marker in _STANDALONE:
            continue
        if place + 2 > len(data):
            return "ends early"
        place += int.from_bytes(data[place : place + 2], "big")
        if marker == _START_OF_SCAN:
            found = _NEXT_MARKER.search(data, place)
            if found is None:
                return "ends early"
            place = found.start()


def _png_problem(data: bytes) -> str:
    """Walk the chunks to the one called IEND."""
    place = len(_PNG_START)
    while place + 12 <= len(data):
        length, kind = struct.unpack_from(">I4s", data, place)
        place += 12 + length
        if kind == b"IEND":
            return "" if place <= len(data) else "ends early"
    return "ends early"


def _problem(data: bytes) -> str:
    if not data:
        return "is empty"
    if data.startswith(_JPEG_START):
        return _jpeg_problem(data)
    if data.startswith(_PNG_START):
        return _png_problem(data)
    return "is not a JPEG or PNG image"


def image_problem(path: Path) -> str:
    """Return why the file at `path` is no whole image, or an empty text. Nothing is decoded."""
    try:
        return _problem(path.read_bytes())
    except OSError as error:
        return f"cannot be read: {error.strerror}"


def damaged_images(paths: Sequence[Path]) -> list[str]:
    """Return one line that names the first of the images that are damaged; none where all are whole."""
    with ThreadPoolExecutor(min(8, 2 * (os.cpu_count() or 1))) as pool:
        problems = list(pool.map(image_problem, paths))
    found = [f"{path.name} {problem}" for path, problem in zip(paths, problems, strict=True) if problem]
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return [f"{len(found)} of {len(paths)} images damaged: {', '.join(found[:_SHOWN])}{more}"] if found else []


def read_image(path: Path) -> Image:
    """Return the image, three channels whatever the file has, turned as its EXIF data says (as cv2.imread does).

    Raises HarnessError for a file that is missing, no image, or not whole.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise HarnessError(f"cannot read {path}: {error.strerror}", _HINT) from error
    problem = _problem(data)
    if problem:
        raise HarnessError(f"{path} {problem}", _HINT)
    cv2 = _opencv()
    try:
        decoded = cv2.imdecode(np.frombuffer(data, dtype=np.uint8), cv2.IMREAD_COLOR)
    except cv2.error as error:
        raise HarnessError(f"{path} cannot be decoded: {error}", _HINT) from error
    if decoded is None:
        raise HarnessError(f"{path} cannot be decoded", _HINT)
    image: Image = cv2.cvtColor(decoded, cv2.COLOR_BGR2RGB)
    return image


def resize_area(image: Array, width: int, height: int) -> Array:
    """Return the image in another size, each new pixel the mean of the area it covers (cv2.INTER_AREA)."""
    cv2 = _opencv()
    resized: Array = cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA)
    return resized


def resize_bilinear(image: Array, width: int, height: int) -> Array:
    """Return the image in another size, between the four nearest pixels, without smoothing (cv2.INTER_LINEAR)."""
    cv2 = _opencv()
    resized: Array = cv2.resize(image, (width, height), interpolation=cv2.INTER_LINEAR)
    return resized


def short_side_size(width: int, height: int, side: int) -> tuple[int, int]:
    """Return (width, height) of the image scaled so that its short side is `side`; the other is cut to a whole number.

    As resize_with_aspectratio of the reference.
    """
    if height > width:
        return side, int(side * height / width)
    return int(side * width / height), side


def center_crop(image: Array, side: int) -> Array:
    """Return the square of `side` pixels in the middle, half a pixel to the upper left where there is no middle.

    As center_crop of the reference.
    """
    height, width = image.shape[:2]
    top, left = int((height - side) / 2), int((width - side) / 2)
    return image[top : top + side, left : left + side]
