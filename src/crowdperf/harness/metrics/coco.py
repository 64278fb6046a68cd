"""Mean average precision of detections on COCO and OpenImages; agrees with accuracy-coco.py and accuracy-openimages.py
of mlcommons/inference.

Both print pycocotools' chatter and at last `mAP=37.550%`. The matching and the precision curves are pycocotools' here
too; what differs is the order of work. The official scripts make a dictionary of every detection of the data set at
once (OpenImages: 24,781 images with up to some hundred detections each). Here the images are matched in portions as
their responses come; what stays of a detection are its score, its image and what it matched at each threshold, some 40
bytes. Only the area range "all" and 100 detections an image and category are computed: the printed number uses no
other.
"""

import contextlib
import io
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.libraries import import_library
from crowdperf.harness.base.score import Score

_ROW_FLOATS = 7  # index, ymin, xmin, ymax, xmax, score, label
_MAX_DETECTIONS = 100  # of an image and category; pycocotools' "maxDets" for its first figure
_ALL_AREAS = [0, 1e5**2]  # pycocotools' range "all"
_PORTION_IMAGES = 512
_HINT = "score the log with the model and the data set that made it"
_LOG = logging.getLogger(__name__)

_Results = dict[int, list[Mapping[str, npt.NDArray[Any]]]]
"""By category, for each portion: "image" int[d] of the detections, and what pycocotools' accumulate() reads:
"dtScores" float[d], "dtMatches" and "dtIgnore" bool[thresholds, d], "gtIgnore" bool[boxes]."""


def _open_annotations(path: Path) -> Any:
    """Return pycocotools' COCO object of an annotation file."""
    coco = import_library("pycocotools.coco", "pycocotools")
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            truth = coco.COCO(str(path))
    except (OSError, ValueError, KeyError, AssertionError) as error:
        raise HarnessError(f"cannot read the annotations {path}: {error!r}", "rebuild the data set") from error
    if not truth.dataset.get("images") or not truth.dataset.get("categories"):
        raise HarnessError(f"{path} has no images or no categories", "rebuild the data set")
    return truth


def _rows(index: int, data: bytes) -> npt.NDArray[np.float32]:
    """Return float32[k, 7] of a response. Less than one row is no detection, as in the official scripts."""
    if len(data) < 4 * _ROW_FLOATS:
        return np.empty((0, _ROW_FLOATS), dtype=np.float32)
    if len(data) % (4 * _ROW_FLOATS):
        raise HarnessError(
            f"the response of sample {index} has {len(data)} bytes, but each detection has {4 * _ROW_FLOATS}", _HINT
        )
    rows: npt.NDArray[np.float32] = np.frombuffer(data, dtype=np.float32).reshape(-1, _ROW_FLOATS)
    if not np.isfinite(rows).all():
        raise HarnessError(f"sample {index} has a detection with NaN or infinity", "look at the model's precision")
    return rows


def _labels(index: int, rows: npt.NDArray[np.float32], label_map: Sequence[int] | None) -> list[int]:
    labels: list[int] = rows[:, 6].astype(np.int64).tolist()
    if label_map is None:
        return labels
    strange = [label for label in labels if not 0 <= label < len(label_map)]
    if strange:
        raise HarnessError(
            f"sample {index} has the label {strange[0]}; allowed: 1 to {len(label_map) - 1}, the categories of the "
            "annotations in their order",
            _HINT,
        )
    return [label_map[label] for label in labels]


def _detections(
    index: int, rows: npt.NDArray[np.float32], image: Mapping[str, Any], label_map: Sequence[int] | None
) -> list[dict[str, Any]]:
    """Return pycocotools' form of one image's detections: box as x, y, width, height in pixels.

    Computed in float32, as the official scripts do with numpy 2.
    """
    y_first, x_first, y_last, x_last = (
        rows[:, column] * np.float32(image["height" if column % 2 else "width"]) for column in (1, 2, 3, 4)
    )
    boxes = np.stack((x_first, y_first, x_last - x_first, y_last - y_first), axis=1).tolist()
    return [
        {"image_id": image["id"], "category_id": label, "bbox": box, "score": score}
        for label, box, score in zip(_labels(index, rows, label_map), boxes, rows[:, 5].tolist(), strict=True)
    ]


def _evaluator(truth: Any, detections: list[dict[str, Any]], image_ids: Sequence[int]) -> Any:
    """Return pycocotools' COCOeval for these images."""
    evaluation = import_library("pycocotools.cocoeval", "pycocotools")
    coco = import_library("pycocotools.coco", "pycocotools")
    found = truth.loadRes(detections) if detections else coco.COCO()
    evaluator = evaluation.COCOeval(truth, found, iouType="bbox")
    evaluator.params.imgIds = sorted(image_ids)
    evaluator.params.areaRng, evaluator.params.areaRngLbl = [_ALL_AREAS], ["all"]
    evaluator.params.maxDets = [_MAX_DETECTIONS]
    return evaluator


def _joined(results: Sequence[Mapping[str, Any]]) -> Mapping[str, npt.NDArray[Any]]:
    """Return pycocotools' results of some images, of one category, as one."""
    counts = [len(result["dtScores"]) for result in results]
    return {
        "image": np.repeat([result["image_id"] for result in results], counts),
        "dtScores": np.concatenate([np.asarray(result["dtScores"], dtype=np.float64) for result in results]),
        "dtMatches": np.concatenate([result["dtMatches"] for result in results], axis=1) != 0,
        "dtIgnore": np.concatenate([result["dtIgnore"] for result in results], axis=1),
        "gtIgnore": np.concatenate([np.asarray(result["gtIgnore"], dtype=bool) for result in results]),
    }


def _match(truth: Any, detections: list[dict[str, Any]], image_ids: Sequence[int]) -> Mapping[int, Any]:
    """Return the joined results of a portion's images by category; a category without box and detection has none."""
    with contextlib.redirect_stdout(io.StringIO()):
        evaluator = _evaluator(truth, detections, image_ids)
        evaluator.evaluate()
    by_category: dict[int, list[Mapping[str, Any]]] = {}
    for result in evaluator.evalImgs:
        if result is not None:
            by_category.setdefault(int(result["category_id"]), []).append(result)
    return {category: _joined(results) for category, results in by_category.items()}


def _in_image_order(portions: Sequence[Mapping[str, npt.NDArray[Any]]]) -> Mapping[str, npt.NDArray[Any]]:
    """Return one category's results as of one image, its detections in the order of the image ids.

    pycocotools ranks equal scores in that order, so that the order of the log must not show.
    """
    joined = {name: np.concatenate([portion[name] for portion in portions], axis=-1) for name in portions[0]}
    order = np.argsort(joined.pop("image"), kind="stable")
    return {name: values if name == "gtIgnore" else values[..., order] for name, values in joined.items()}


def _mean_precision(truth: Any, results: _Results) -> float:
    """Return pycocotools' first figure, -1 when no image has a box: the mean precision over thresholds, recalls and
    the categories that occur."""
    with contextlib.redirect_stdout(io.StringIO()):
        evaluator = _evaluator(truth, [], [0])
        parameters = evaluator.params
        merged = {category: _in_image_order(portions) for category, portions in results.items()}
        # One image stands for all: the cut to 100 detections an image was made when they were matched.
        parameters.maxDets = [max((len(result["dtScores"]) for result in merged.values()), default=1)]
        evaluator.evaluate()  # of the stand-in without boxes: takes the parameters over
        evaluator.evalImgs = [merged.get(category) for category in parameters.catIds]
        evaluator.accumulate()
    precision: npt.NDArray[np.float64] = evaluator.eval["precision"]
    known = precision[precision > -1]
    return float(np.mean(known)) if known.size else -1.0


def _portions(responses: Iterable[tuple[int, bytes]], image_count: int) -> Iterator[dict[int, bytes]]:
    """Yield some images' responses at a time; of a sample that comes twice the first counts."""
    seen: set[int] = set()
    portion: dict[int, bytes] = {}
    for index, data in responses:
        if not 0 <= index < image_count:
            raise HarnessError(f"sample {index} is unknown, the data set has 0 to {image_count - 1}", _HINT)
        if index in seen:
            continue
        seen.add(index)
        portion[index] = data
        if len(portion) == _PORTION_IMAGES:
            yield portion
            portion = {}
    if portion:
        yield portion


def score(
    responses: Iterable[tuple[int, bytes]],
    annotations_path: Path,
    *,
    is_label_mapped: bool = False,
) -> Score:
    """Return "mAP" in percent, as printed, over the images that have a response.

    Sample index i is the i-th of "images" in the annotation file. A response is float32[k][7]: index, ymin, xmin, ymax,
    xmax (parts of the image, 0..1), score, label; k may be 0.
    Labels are category ids or, with `is_label_mapped`, numbers from 1 of the file's categories in their order (the
    official --use-inv-map). No detection at all is 0 %, where the official scripts end with an IndexError. Raises
    HarnessError for another size, for NaN and for a number without a category.
    """
    truth = _open_annotations(annotations_path)
    images = truth.dataset["images"]
    label_map = [0, *truth.getCatIds()] if is_label_mapped else None
    results: _Results = {}
    stray_count, is_empty = 0, True
    for portion in _portions(responses, len(images)):
        found: list[dict[str, Any]] = []
        for index, data in portion.items():
            rows = _rows(index, data)
            stray_count += bool((rows[:, 0] != index).any())
            found.extend(_detections(index, rows, images[index], label_map))
        for category, matched in _match(truth, found, [images[index]["id"] for index in portion]).items():
            results.setdefault(category, []).append(matched)
        is_empty = False
    if stray_count:
        _LOG.warning("%d samples have detections that name another sample, the index in the log counted", stray_count)
    if is_empty:
        raise HarnessError("no responses to score", "score the log of an accuracy run")
    percent = 100.0 * _mean_precision(truth, results)
    return Score(values={"mAP": round(percent, 3)}, line=f"mAP={percent:.3f}%")
