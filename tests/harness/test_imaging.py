"""crowdperf.harness.media.image_files: whole and damaged files, and both resizes against formulae written down without
OpenCV."""

from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image as Pillow

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.media import image_files


def picture(height: int, width: int, seed: int = 0):
    """Smooth colours with some noise, so that a JPEG file of it is not empty."""
    generator = np.random.default_rng((seed, height, width))
    coarse = generator.integers(0, 256, (3, 4, 3), dtype=np.uint8)
    smooth = cv2.resize(coarse, (width, height), interpolation=cv2.INTER_LINEAR).astype(np.int64)
    return np.clip(smooth + generator.integers(-20, 21, smooth.shape), 0, 255).astype(np.uint8)


def jpeg(path: Path, image, *options: int) -> bytes:
    """Writes a JPEG file of an image (blue first, or grey) and gives its bytes."""
    assert cv2.imwrite(str(path), image, list(options))
    return path.read_bytes()


# --- files ---


@pytest.mark.parametrize("options", [(), (cv2.IMWRITE_JPEG_PROGRESSIVE, 1), (cv2.IMWRITE_JPEG_RST_INTERVAL, 2)])
def test_a_jpeg_is_what_opencv_reads_with_red_first(tmp_path, options):
    path = tmp_path / "a.JPEG"
    for size in ((37, 61), (1, 1), (8, 300)):
        jpeg(path, picture(*size), *options)
        assert image_files.image_problem(path) == ""
        image = image_files.read_image(path)
        assert image.dtype == np.uint8
        assert np.array_equal(image, cv2.imread(str(path), cv2.IMREAD_COLOR)[:, :, ::-1])


def test_a_grey_image_has_three_equal_channels(tmp_path):
    jpeg(tmp_path / "a.jpg", picture(20, 30)[:, :, 0])
    image = image_files.read_image(tmp_path / "a.jpg")
    assert image.shape == (20, 30, 3)
    assert (image == image[:, :, :1]).all()


def test_a_cmyk_image_and_a_turned_one_are_read_as_opencv_does(tmp_path):
    path = tmp_path / "a.JPEG"
    given = Pillow.fromarray(picture(24, 40))
    given.convert("CMYK").save(path, "JPEG")
    assert image_files.read_image(path).shape == (24, 40, 3)
    turned = Pillow.Exif()
    turned[0x112] = 6  # turn by a quarter
    given.save(path, "JPEG", exif=turned.tobytes())
    image = image_files.read_image(path)
    assert image.shape == (40, 24, 3)
    assert np.array_equal(image, cv2.imread(str(path))[:, :, ::-1])


def test_an_end_mark_in_a_thumbnail_does_not_make_a_cut_file_whole(tmp_path):
    thumbnail = jpeg(tmp_path / "small.jpg", picture(8, 8))
    body = jpeg(tmp_path / "a.JPEG", picture(30, 30))
    segment = b"Exif\0\0" + thumbnail
    header = body[:2] + b"\xff\xe1" + (len(segment) + 2).to_bytes(2, "big") + segment
    (tmp_path / "a.JPEG").write_bytes(header + body[2:])
    assert image_files.image_problem(tmp_path / "a.JPEG") == ""
    (tmp_path / "a.JPEG").write_bytes(header + body[2:-2])
    assert image_files.image_problem(tmp_path / "a.JPEG") == "ends early"


@pytest.mark.parametrize("options", [(), (cv2.IMWRITE_JPEG_PROGRESSIVE, 1), (cv2.IMWRITE_JPEG_RST_INTERVAL, 1)])
def test_a_jpeg_cut_anywhere_is_not_whole_and_bytes_behind_its_end_do_not_matter(tmp_path, options):
    path = tmp_path / "a.JPEG"
    whole = jpeg(path, picture(40, 40), *options)
    for length in (*range(0, len(whole) - 8, 5), *range(len(whole) - 8, len(whole) - 1)):
        path.write_bytes(whole[:length])
        assert image_files.image_problem(path) in ("ends early", "is empty", "is not a JPEG or PNG image"), length
    path.write_bytes(whole + b"\0more\xff\xda")
    assert image_files.image_problem(path) == ""


def test_a_png_is_read_and_a_cut_one_refused(tmp_path):
    path = tmp_path / "named.JPEG"  # as one of ImageNet's files
    image = picture(11, 13)
    data = cv2.imencode(".png", image)[1].tobytes()
    path.write_bytes(data)
    assert np.array_equal(image_files.read_image(path), image[:, :, ::-1])
    for length in range(9, len(data), 7):
        path.write_bytes(data[:length])
        assert image_files.image_problem(path) == "ends early"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is empty"),
        (b"GIF89a", "not a JPEG or PNG"),
        (b"\xff\xd8\x00\x00", "is damaged"),
        (b"\xff\xd8\xff\xe0\x00\x04ab\xff\xd9", "cannot be decoded"),
    ],
)
def test_what_is_no_image_is_refused_by_name(tmp_path, data, words):
    path = tmp_path / "a.JPEG"
    path.write_bytes(data)
    with pytest.raises(HarnessError, match=words) as caught:
        image_files.read_image(path)
    assert str(path) in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    assert image_files.image_problem(tmp_path / "a") == "cannot be read: No such file or directory"
    with pytest.raises(HarnessError, match=r"cannot read .*: No such file"):
        image_files.read_image(tmp_path / "a")


# --- resizes ---


def area_weights(old: int, new: int):
    """For each new pixel the share of each old one in the area that it covers: float64[new, old]."""
    edges = np.arange(new + 1) * (old / new)
    low, high = edges[:-1, None], edges[1:, None]
    covered = np.minimum(high, np.arange(1, old + 1)) - np.maximum(low, np.arange(old))
    return np.clip(covered, 0, None) * (new / old)


def bilinear_weights(old: int, new: int):
    """Centre of each new pixel in the old image, between its two neighbours, the border repeated: float64[new, old]."""
    places = np.clip((np.arange(new) + 0.5) * (old / new) - 0.5, 0, old - 1)
    below = np.minimum(places.astype(int), max(0, old - 2))
    weights = np.zeros((new, old))
    weights[np.arange(new), below] = 1 - (places - below)
    weights[np.arange(new), np.minimum(below + 1, old - 1)] += places - below
    return weights


def enlarging_weights(old: int, new: int):
    """What INTER_AREA does in both directions where one grows: a blend only where a new pixel lies on two old ones.

    At the very edge between two pixels the rounding of `scale` decides, so it is written as OpenCV has it.
    """
    growth = new / old
    scale = 1.0 / growth
    weights = np.zeros((new, old))
    for place in range(new):
        first = int(np.floor(place * scale))
        share = float(np.float32((place + 1) - (first + 1) * growth))
        share = 0.0 if share <= 0 else share - np.floor(share)
        weights[place, min(first, old - 1)] += 1 - share
        weights[place, min(first + 1, old - 1)] += share
    return weights


def resized(image, rows, columns):
    """The image as float64 after the weights of both directions."""
    return np.einsum("ij,jkc,lk->ilc", rows, image.astype(np.float64), columns)


def sizes(count: int, seed: int):
    """Pairs of old and new (height, width)."""
    generator = np.random.default_rng(seed)
    for _ in range(count):
        old, new = generator.integers(1, 48, 2), generator.integers(1, 48, 2)
        yield tuple(int(v) for v in old), tuple(int(v) for v in new)


def test_area_resize_of_many_sizes_is_the_mean_of_the_covered_area():
    for number, (old, new) in enumerate(sizes(250, 1)):
        image = np.random.default_rng(number).integers(0, 256, (*old, 3), dtype=np.uint8)
        is_shrinking = new[0] <= old[0] and new[1] <= old[1]
        weights = area_weights if is_shrinking else enlarging_weights
        exact = resized(image, weights(old[0], new[0]), weights(old[1], new[1]))
        found = image_files.resize_area(image, new[1], new[0])
        assert found.shape == (*new, 3)
        error = np.abs(found - exact)
        assert error.max() <= (0.51 if is_shrinking else 1.01), (old, new)  # enlarging: fixed point of 11 bits


def test_bilinear_resize_of_many_sizes_lies_between_the_four_nearest_pixels():
    for number, (old, new) in enumerate(sizes(100, 2)):
        image = np.random.default_rng(number).integers(0, 256, (*old, 3), dtype=np.uint8)
        exact = resized(image, bilinear_weights(old[0], new[0]), bilinear_weights(old[1], new[1]))
        assert np.abs(image_files.resize_bilinear(image, new[1], new[0]) - exact).max() <= 1.0, (old, new)
        as_float = image_files.resize_bilinear(image.astype(np.float32), new[1], new[0])
        assert as_float.dtype == np.float32
        assert np.abs(as_float - exact).max() < 1e-2, (old, new)


@pytest.mark.parametrize(
    ("size", "wanted"),
    [((500, 375), (341, 256)), ((375, 500), (256, 341)), ((256, 256), (256, 256)), ((333, 500), (256, 384)),
     ((17, 16), (272, 256)), ((100, 101), (256, 258))],
)  # fmt: skip
def test_the_short_side_is_set_and_the_other_cut_to_a_whole_number(size, wanted):
    assert image_files.short_side_size(*size, 256) == wanted


def test_the_crop_is_from_the_middle_half_a_pixel_up_and_left():
    image = np.arange(7 * 6).reshape(7, 6)
    assert image_files.center_crop(image, 3).tolist() == image[2:5, 1:4].tolist()
    assert image_files.center_crop(image, 4).tolist() == image[1:5, 1:5].tolist()
