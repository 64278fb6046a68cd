"""Runs inside the chosen Python (3.8 or newer): says as one JSON line what this Python is and whether it has a package.

    python -I describe_package.py NAME

{"version": "1.2" or null, "metadata_path": file or null, "is_virtual": true, "is_managed": false, "has_pip": true,
 "prefix": folder, "half_made": [dist-info folders that an interrupted pip left without RECORD]}
"""

import importlib.metadata
import importlib.util
import json
import os
import sys
import sysconfig


def is_half_made(folder):
    """Whether pip was killed while it installed this: it writes RECORD last, other installers leave their name."""
    if not folder.endswith(".dist-info") or os.path.isfile(os.path.join(folder, "RECORD")):
        return False
    try:
        with open(os.path.join(folder, "INSTALLER"), encoding="utf-8") as file:
            return file.read().strip() in ("", "pip")
    except OSError:
        return True


def half_made_folders():
    """The dist-info folders of half-made packages in this Python's own site folders."""
    found = set()
    for site in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        if os.path.isdir(site):
            found.update(os.path.join(site, name) for name in os.listdir(site))
    return sorted(folder for folder in found if is_half_made(folder))


def find(name):
    """The version and metadata file of a package, (None, None) where it is missing or half made."""
    try:
        distribution = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return None, None
    folder = str(getattr(distribution, "_path", ""))
    if is_half_made(folder):
        return None, None
    for path in (os.path.join(folder, "METADATA"), os.path.join(folder, "PKG-INFO"), folder):
        if os.path.isfile(path):
            return distribution.version, path
    return None, None


def main():
    version, metadata_path = find(sys.argv[1])
    marker = os.path.join(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED")  # PEP 668
    is_virtual = sys.prefix != sys.base_prefix
    answer = {
        "version": version,
        "metadata_path": metadata_path,
        "is_virtual": is_virtual,
        "is_managed": not is_virtual and os.path.isfile(marker),
        "has_pip": importlib.util.find_spec("pip") is not None,
        "prefix": sys.prefix,
        "half_made": half_made_folders(),
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
