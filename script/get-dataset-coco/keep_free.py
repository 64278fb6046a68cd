"""Takes the images of free licenses out of COCO's validation images: `python3 keep_free.py --help`.

    python3 keep_free.py --from FOLDER --output_dir FOLDER/coco_safe

FOLDER has `annotations/instances_val2017.json` and `val2017/`. The images become links to the same files (copies on
another file system) in `val2017_safe/`, in the annotations' order, with annotations that list no others.
Source of the rule: filter_coco_safe_images.py and create_safe_annotations.py in yolo/ of mlcommons/inference,
vision/classification_and_detection, b66003e1 of 2026-08-20.
"""

import argparse
import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

FREE_LICENSES = (
    "creativecommons.org/licenses/by/",
    "creativecommons.org/licenses/by-sa/",
    "creativecommons.org/licenses/by-nd",
    "flickr.com/commons/usage",
    "www.usa.gov",
)
"""Parts of the addresses of licenses, in small letters."""
ANNOTATIONS = "annotations/instances_val2017.json"


def free_part(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return annotations in COCO's format with the images of free licenses and their objects only."""
    addresses = {license["id"]: str(license.get("url", "")).lower() for license in content["licenses"]}
    free = {number for number, address in addresses.items() if any(word in address for word in FREE_LICENSES)}
    images = [image for image in content["images"] if image.get("license") in free]
    kept = {image["id"] for image in images}
    objects = [row for row in content["annotations"] if row["image_id"] in kept]
    return {**content, "images": images, "annotations": objects}


def keep_free(source: Path, output_dir: Path) -> int:
    """Write images and, last, annotations; return the number of images. Raises OSError, ValueError, KeyError."""
    content = free_part(json.loads((source / ANNOTATIONS).read_text(encoding="utf-8")))
    images = output_dir / "val2017_safe"
    images.mkdir(parents=True, exist_ok=True)
    for image in content["images"]:
        name = Path(str(image["file_name"])).name
        target = images / name
        target.unlink(missing_ok=True)
        try:
            os.link(source / "val2017" / name, target)
        except FileNotFoundError:
            raise
        except OSError:
            shutil.copyfile(source / "val2017" / name, target)
    path = output_dir / ANNOTATIONS
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")
    return len(content["images"])


def main(words: Sequence[str] | None = None) -> int:
    """Command line entry; return the exit code."""
    parser = argparse.ArgumentParser(prog="keep_free.py", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--from", required=True, type=Path, dest="source")
    parser.add_argument("--output_dir", required=True, type=Path)
    given = parser.parse_args(words)
    try:
        count = keep_free(given.source, given.output_dir)
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"keep_free.py: {given.source} does not contain COCO's validation images: {error!r}", file=sys.stderr)
        return 1
    print(f"coco: {count:,} images of free licenses in {given.output_dir}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
