"""Downloads images by name, and those of an official calibration list.

    python3 -m crowdperf.harness.commands.listed_images --help

An image that is there whole is not fetched again, so that an interrupted run is resumed. No checksums of single images
are published: a list in sha256sum's form is written, and its digest into downloads.json, as download-file writes it.
"""

import argparse
import hashlib
import importlib
import json
import os
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from crowdperf.harness.base.calibration_lists import official_list
from crowdperf.harness.base.errors import HarnessError, program
from crowdperf.harness.media import image_files
from crowdperf.kit.whole_file import file_sha256, write_json

TRIES = 4
TIMEOUT_S = 60
FIRST_PAUSE_S = 2.0
HINT = "rerun the recipe: existing files are not downloaded again"


def read_classes(path: Path) -> tuple[tuple[int, str], ...]:
    """Return id and name of each line "id name"; lines that start with # are comments. Raises HarnessError."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        words = [line.split(maxsplit=1) for line in lines if line.strip() and not line.startswith("#")]
        classes = tuple((int(number), name) for number, name in words)
    except (OSError, ValueError) as error:
        raise HarnessError(f"{path} is not a list of classes: {error}", "lines are: id name") from error
    return classes


def fetch_image(url: str, path: Path) -> str:
    """Fetch one image unless it is there whole; return an empty text, or what went wrong after all tries."""
    if path.is_file() and not image_files.image_problem(path):
        return ""
    unfinished = path.with_name(f"{path.name}.part")
    problem = ""
    for attempt in range(TRIES):
        if attempt:
            time.sleep(FIRST_PAUSE_S * 2 ** (attempt - 1))
        try:
            with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:
                unfinished.write_bytes(answer.read())
        except urllib.error.HTTPError as error:
            problem = f"{url}: HTTP {error.code}"
            if error.code in (403, 404):
                return problem
            continue
        except (OSError, ValueError) as error:
            problem = f"{url}: {error}"
            continue
        problem = image_files.image_problem(unfinished)
        if not problem:
            os.replace(unfinished, path)
            return ""
        problem = f"{url}: {problem}"
    return problem


def fetch_all(names: Sequence[str], url: str, folder: Path, threads: int) -> None:
    """Fetch every image into `folder`; raises HarnessError that names the first that could not be fetched."""
    folder.mkdir(parents=True, exist_ok=True)
    base = url.rstrip("/")
    with ThreadPoolExecutor(max_workers=threads) as pool:
        results = pool.map(lambda name: fetch_image(f"{base}/{name}", folder / name), names)
        problems = []
        for done, problem in enumerate(results, start=1):
            problems += [problem] if problem else []
            if done % 500 == 0 or done == len(names):
                print(f"{folder.name}: {done} of {len(names)} images", file=sys.stderr, flush=True)
    if problems:
        raise HarnessError(
            f"{len(problems)} of {len(names)} images could not be downloaded (first error: {problems[0]})", HINT
        )


def record_images(url: str, names: Sequence[str], folder: Path, list_path: Path) -> None:
    """Write `list_path` (lines of sha256sum, by name) and its digest into downloads.json, beside what is there."""
    lines = "".join(f"{file_sha256(folder / name)}  {name}\n" for name in names)
    list_path.write_text(lines, encoding="utf-8")
    target = list_path.with_name("downloads.json")
    files: dict[str, Any] = json.loads(target.read_text(encoding="utf-8"))["files"] if target.is_file() else {}
    files[list_path.name] = {
        "url": url, "size_bytes": len(lines), "sha256": hashlib.sha256(lines.encode()).hexdigest(), "checked": "",
    }  # fmt: skip
    content = {"format": 1, "files": files}
    write_json(target, content, indent=1, sort_keys=True)


@program("listed_images")
def main(words: Sequence[str] | None) -> None:
    parser = argparse.ArgumentParser(
        prog="python3 -m crowdperf.harness.commands.listed_images",
        description="Fetch the images of the official calibration list of a data set.",
    )
    parser.add_argument("--dataset", required=True, choices=("coco", "openimages"))
    parser.add_argument("--url", required=True, help="address of the folder that has them")
    parser.add_argument("--output_dir", required=True, type=Path, help="folder of the data set")
    parser.add_argument("--threads", type=int, default=10)
    given = parser.parse_args(words)
    folder = (
        given.output_dir / importlib.import_module(f"crowdperf.harness.datasets.{given.dataset}").CALIBRATION_IMAGES
    )
    try:
        names = official_list(given.dataset)[1]
        fetch_all(names, given.url, folder, given.threads)
        record_images(given.url, names, folder, Path("calibration_images.sha256"))
    except OSError as error:
        raise HarnessError(str(error)) from error
    print(f"{given.dataset}: {len(names)} images of the official calibration list in {folder}")


if __name__ == "__main__":
    sys.exit(main())
