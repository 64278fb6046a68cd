"""Runs inside the chosen Python (3.8 or newer): says as one JSON line what this Python is and whether it has a package.

    python -I describe_package.py NAME [EXTRA,EXTRA [OTHER_BUILD,OTHER_BUILD]]

{"version": "1.2" or null, "metadata_path": file or null, "is_virtual": true, "is_managed": false, "has_pip": true,
 "packages": {name: version of it and of all it needs}, "pip_version": "24.0" or "", "prefix": folder,
 "half_made": [dist-info folders that an interrupted pip left without RECORD],
 "module_file": the package's main file by its RECORD, or "" (not known),
 "rivals": [packages that are there and write the same main file, by the names of other builds or by their RECORD]}

A package whose main file is gone counts as missing, and is one of its own rivals: it has to go first.
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


def main_file(distribution):
    """The RECORD line's path of the file that importing the package reads first, an empty text where none is listed."""
    names = [line.split(",")[0] for line in (distribution.read_text("RECORD") or "").splitlines()]
    modules = [name for name in names if name.count("/") == 1 and name.endswith("/__init__.py")]
    files = [name for name in names if "/" not in name and name.endswith(".py")]
    return (modules or files or [""])[0]


def owns(distribution, path):
    """Whether a package's RECORD lists a file."""
    return ("\n" + path + ",") in "\n" + (distribution.read_text("RECORD") or "")


def builds_of(name, main, others):
    """The installed packages that are other builds of one: those named, and those whose RECORD has its main file."""
    found = [other for other in others if find(other)[0] is not None]
    for distribution in importlib.metadata.distributions() if main else ():
        other = (distribution.metadata["Name"] or "").lower().replace("_", "-")
        if other not in ("", name.lower().replace("_", "-"), *found) and owns(distribution, main):
            found.append(other)
    return sorted(found)


def needed(name, extras):
    """Name to version of a package and of all that it needs here; only itself where pip brings no `packaging`."""
    try:
        from pip._vendor.packaging.requirements import InvalidRequirement, Requirement
        from pip._vendor.packaging.utils import canonicalize_name
    except ImportError:
        version, _ = find(name)
        return {name.lower(): version} if version else {}
    found, seen, waiting = {}, set(), [(name, extras)]
    while waiting:
        name, extras = waiting.pop()
        key = canonicalize_name(name)
        if (key, extras) in seen:
            continue
        seen.add((key, extras))
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        found[key] = distribution.version
        for text in distribution.requires or ():
            try:
                requirement = Requirement(text)
            except InvalidRequirement:
                continue
            if requirement.marker is None or any(
                requirement.marker.evaluate({"extra": extra}) for extra in (extras or ("",))
            ):
                waiting.append((requirement.name, tuple(sorted(requirement.extras))))
    return found


def pip_version():
    """The version of this Python's pip, an empty text where there is none."""
    try:
        return importlib.metadata.version("pip")
    except importlib.metadata.PackageNotFoundError:
        return ""


def main():
    version, metadata_path = find(sys.argv[1])
    module_file, rivals = "", []
    main = main_file(importlib.metadata.distribution(sys.argv[1])) if version else ""
    if main:
        module_file = os.path.join(os.path.dirname(os.path.dirname(metadata_path)), main)
        if not os.path.isfile(module_file):
            version, metadata_path, rivals = None, None, [sys.argv[1]]
    rivals += builds_of(sys.argv[1], main, [other for other in "".join(sys.argv[3:4]).split(",") if other])
    extras = tuple(sorted(filter(None, "".join(sys.argv[2:3]).split(","))))
    marker = os.path.join(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED")  # PEP 668
    is_virtual = sys.prefix != sys.base_prefix
    answer = {
        "version": version,
        "metadata_path": metadata_path,
        "is_virtual": is_virtual,
        "is_managed": not is_virtual and os.path.isfile(marker),
        "has_pip": importlib.util.find_spec("pip") is not None,
        "packages": needed(sys.argv[1], extras) if version else {},
        "pip_version": pip_version(),
        "prefix": sys.prefix,
        "half_made": half_made_folders(),
        "module_file": module_file,
        "rivals": rivals,
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
