"""Hooks of the recipe get-mlperf-scratch-space: models, data and preprocessed_data in the folder that the user names.

`benchmarks.py` holds the sizes, `requirements.py` the verdict, `folders.py` makes folders and links.
detect-mlperf-scratch-path tells which folder is asked for; `_default-folder` makes the default one. The commands that
carry a scratch space to another machine are printed, never run: low-power targets (Azure's README
requires it, v4.1) get their data from a machine that prepared it.
"""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

import shlex
from pathlib import Path
from typing import Any, NamedTuple

from crowdperf.call.values import is_yes
from crowdperf.machine.probe import Disk, Machine

from . import benchmarks, folders, requirements
from .folders import NAMES


def export_text(scratch: Path, archive: str) -> str:
    """What to type on the machine that has the data: an archive with its checksum, or a copy without an archive."""
    place, file = shlex.quote(str(scratch)), shlex.quote(archive)
    return "\n".join(
        (
            f"To move {scratch} to another machine (no command was run):",
            f"  du -sh {place}/*",
            f"  tar -C {place} -cf {file} {' '.join(NAMES)}",
            f"  sha256sum {file} > {shlex.quote(archive + '.sha256')}",
            "or, with ssh and without an archive in between:",
            f"  rsync -a --partial --info=progress2 {place}/ USER@TARGET:FOLDER/",
            "then on the target: cm run script --tags=get,mlperf,scratch,space,_import --path=FOLDER",
        )
    )


def import_text(scratch: Path, archive: str) -> str:
    """What to type on the target: check the archive, look into it, unpack it beside what is there."""
    place, file = shlex.quote(str(scratch)), shlex.quote(archive)
    return "\n".join(
        (
            f"To fill {scratch} from an archive of another machine (no command was run):",
            f"  sha256sum -c {shlex.quote(archive + '.sha256')}",
            f"  tar -tf {file} | head     # only {', '.join(NAMES)} should be in it",
            f"  tar -C {place} --keep-old-files -xf {file} {' '.join(NAMES)}",
            f"  cm run script --tags=get,mlperf,scratch,space,_verify --path={place}",
        )
    )


DEFAULT_NOTE = (
    "           (in CM's cache, because MLPERF_SCRATCH_PATH is not set. Azure's README has\n"
    "           /home/mlperf_inference_data: export MLPERF_SCRATCH_PATH=/home/mlperf_inference_data)"
)
"""Source of the path: closed/Azure/README.md of mlcommons/inference_results_v3.1 (eaf622a2), read 2026-11-23."""


class Request(NamedTuple):
    """What is to be done: the scratch space, the benchmarks, and the ``build`` folder (None: none was named)."""

    scratch: Path | None
    chosen: tuple[benchmarks.Benchmark, ...]
    build: Path | None
    is_inferentia: bool


def plan(i: dict[str, Any]) -> dict[str, Any]:
    """What preprocess will set and say of the space; called when a run is planned, makes nothing."""
    try:
        asked = asked_in(i)
    except benchmarks.BenchmarkError as error:
        return {"return": 1, "error": str(error)}
    if asked.scratch is not None:
        _tell(i, asked, asked.scratch)
    return {"return": 0}


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """Makes the folders (and links), prints the space against the need, and sets the keys."""
    env = i["env"]
    if is_yes(env.get("CM_MLPERF_SCRATCH_MAKES_DEFAULT")):
        return _make_default(env)
    try:
        asked = asked_in(i)
        if asked.scratch is None:
            return {"return": 1, "error": "no folder is known\n  hint: --path=FOLDER, or export MLPERF_SCRATCH_PATH"}
        if is_yes(env.get("CM_MLPERF_SCRATCH_LINK")) and asked.build is None:
            return {"return": 1, "error": "_link-dirs needs the folder that gets build/\n  hint: --build_dir=FOLDER"}
        made = folders.make(asked.scratch, is_inferentia=asked.is_inferentia)
        _tell(i, asked, asked.scratch)
        for path in made:
            print(f"  made:    {path}")
        return _work(i, asked, asked.scratch)
    except (benchmarks.BenchmarkError, folders.FolderError) as error:
        return {"return": 1, "error": str(error)}


def asked_in(i: dict[str, Any]) -> Request:
    """What the inputs and CM's env ask for. Raises BenchmarkError."""
    env, values = i["env"], i["values"]
    text = env.get("CM_MLPERF_SCRATCH_ASKED_PATH") or env.get("CM_MLPERF_SCRATCH_DEFAULT_PATH") or ""
    is_known = isinstance(text, str) and text.startswith("/")  # a planned value is none
    return Request(
        scratch=Path(text) if is_known else None,
        chosen=benchmarks.named(",".join(values["benchmarks"] or ())),
        build=values["build_dir"] and values["build_dir"] / "build",
        is_inferentia=env.get("CM_MLPERF_SCRATCH_LAYOUT") == "inferentia",
    )


def _make_default(env: dict[str, Any]) -> dict[str, Any]:
    """The folder in this cache entry that is the scratch space of whoever names none."""
    scratch = Path.cwd() / "scratch"
    scratch.mkdir(exist_ok=True)
    env["CM_MLPERF_SCRATCH_DEFAULT_PATH"] = env["CM_MLPERF_SCRATCH_PATH"] = env["MLPERF_SCRATCH_PATH"] = str(scratch)
    return {"return": 0}


def _tell(i: dict[str, Any], asked: Request, scratch: Path) -> None:
    """Prints the space against the need; sets the keys."""
    env, reckoned = i["env"], requirements.reckon(asked.chosen)
    disk = _disk(i.get("machine") or Machine(), scratch)
    print(f"  scratch: {scratch}")
    if not env.get("CM_MLPERF_SCRATCH_ASKED_PATH"):
        print(DEFAULT_NOTE)
    print(requirements.text(reckoned, disk, has_hint=not is_yes(env.get("CM_MLPERF_SCRATCH_LINK"))))
    if warning := requirements.warning(reckoned, disk):
        print(warning)
    env["MLPERF_SCRATCH_PATH"] = env["CM_MLPERF_SCRATCH_PATH"] = str(scratch)
    models, data, prepared = (str(scratch / name) for name in folders.NAMES)
    env["CM_MLPERF_SCRATCH_MODELS_PATH"] = models
    env["CM_MLPERF_SCRATCH_DATA_PATH"] = data
    env["CM_MLPERF_SCRATCH_PREPROCESSED_DATA_PATH"] = prepared
    env["CM_MLPERF_SCRATCH_FREE_BYTES"] = str(disk.free_bytes) if disk else ""
    env["CM_MLPERF_SCRATCH_NEEDED_BYTES"] = str(reckoned.needed_bytes) if asked.chosen else ""
    env["CM_MLPERF_SCRATCH_VERDICT"] = requirements.verdict(reckoned, disk)
    env["CM_GET_DEPENDENT_CACHED_PATH"] = str(scratch)
    i["state"]["mlperf_scratch_space"] = {"path": str(scratch), **requirements.state(reckoned, disk)}


def _disk(machine: Machine, scratch: Path) -> Disk | None:
    """The file system that holds the scratch space, or would."""
    for folder in (scratch, *scratch.parents):
        if disk := machine.disk(str(folder)):
            return disk
    return None


def _work(i: dict[str, Any], asked: Request, scratch: Path) -> dict[str, Any]:
    """What the variations ask for beyond the folders: links, a look at them, commands."""
    env = i["env"]
    if is_yes(env.get("CM_MLPERF_SCRATCH_LINK")) and asked.build is not None:
        for path in folders.link(scratch, asked.build, may_replace=i["values"]["relink"] is True):
            print(f"  linked:  {path}")
    archive = i["values"]["archive"]
    if env.get("CM_MLPERF_SCRATCH_TRANSFER") == "export":
        print(export_text(scratch, archive))
    if env.get("CM_MLPERF_SCRATCH_TRANSFER") == "import":
        print(import_text(scratch, archive))
    if not is_yes(env.get("CM_MLPERF_SCRATCH_VERIFY")):
        return {"return": 0}
    return _verify(i, asked, scratch)


def _verify(i: dict[str, Any], asked: Request, scratch: Path) -> dict[str, Any]:
    """Prints the scratch space and the three links; an error when one does not lead there."""
    print(f"MLPERF_SCRATCH_PATH={scratch}")
    for name in folders.NAMES:
        entries = sum(1 for _ in (scratch / name).iterdir())
        print(f"  {scratch / name}: {entries} {'entry' if entries == 1 else 'entries'}")
    if asked.build is None:
        print("  links are looked at with --build_dir=FOLDER")
        return {"return": 0}
    links = folders.look(scratch, asked.build)
    print(folders.told(links))
    i["state"]["mlperf_scratch_space"]["links"] = [{**one._asdict(), "is_right": one.is_right} for one in links]
    if all(one.is_right for one in links):
        return {"return": 0}
    wrong = sum(not one.is_right for one in links)
    fix = ("--tags=get,mlperf,scratch,space,_link-dirs", f"--path={scratch}", f"--build_dir={asked.build.parent}")
    return {
        "return": 1,
        "error": f"{wrong} of {len(links)} links do not lead to {scratch}:\n{folders.told(links)}\n"
        f"  hint: cm run script {shlex.join(fix)}",
    }
