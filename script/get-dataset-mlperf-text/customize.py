"""Hooks of get-dataset-mlperf-text: choose between made, given and fetched files of a benchmark, and hand on what
convert.py made of them."""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

from pathlib import Path

from crowdperf.data import answers, copy_identity, datasets, manual_download

from .sources import SETS, STORAGE, PublishedSet

SAMPLES = "samples"


def how_to_get(benchmark: str, data: PublishedSet) -> manual_download.Source:
    """Where a user gets the files that this recipe may not fetch."""
    script = "https://raw.githubusercontent.com/mlcommons/r2-downloader/refs/heads/main/mlc-r2-downloader.sh"
    return manual_download.Source(
        name=f"the data set of {benchmark}",
        pages=(f"https://github.com/mlcommons/inference, {data.readme}", "https://llama2.mlcommons.org"),
        license=data.license,
        steps=(
            "accept the confidentiality notice with the address of a member organization",
            f"bash <(curl -s {script}) -d FOLDER {STORAGE}{data.metadata}.uri",
        ),
        layout=tuple(part.file for part in data.parts),
        command=f"cm run script --tags=get,dataset,mlperf-text,_{benchmark} --path=FOLDER",
    )


def plan_work(env, path: Path | None, entry: Path) -> dict[str, str]:
    """The env for run.sh. Raises ValueError or DataError for what cannot be."""
    benchmark, source = env["CM_DATASET_TEXT_BENCHMARK"], env["CM_DATASET_TEXT_SOURCE"]
    data = SETS[benchmark]
    count = str(env.get("CM_DATASET_TEXT_SIZE") or "")
    work = {"CM_DATASET_TEXT_FOLDER": str(entry / SAMPLES), "CM_DATASET_TEXT_METADATA": f"{STORAGE}{data.metadata}.uri"}
    if source == "synthetic":
        copy_identity.refuse_beside(path, "a synthetic data set")
        datasets.require_made(benchmark)
        datasets.asked_count(count, 99_999)
        return {**work, "CM_DATASET_TEXT_WORK": "make", "CM_DATASET_TEXT_FILES": str(entry / "files")}
    if count:
        raise ValueError("a published data set is used as a whole\nhint: remove _size, or add _synthetic or _tiny")
    if path is not None:
        folder = path if path.is_dir() else path.parent
        missing = [part.file for part in data.parts if next(folder.rglob(part.file), None) is None]
        if missing:
            raise ValueError(
                f"{path} has no {', '.join(missing)}\nhint: {data.readme} of mlcommons/inference shows the source"
            )
        return {**work, "CM_DATASET_TEXT_WORK": "convert", "CM_DATASET_TEXT_FILES": str(folder)}
    if data.is_for_members:
        raise ValueError(manual_download.refusal(how_to_get(benchmark, data)))
    return {**work, "CM_DATASET_TEXT_WORK": "fetch", "CM_DATASET_TEXT_FILES": str(entry / "files")}


def preprocess(i):
    """CM hook: decides what run.sh does."""
    env = i["env"]
    return answers.work_answer(env, lambda path: plan_work(env, path, Path.cwd()))


plan = preprocess


def postprocess(i):
    """CM hook: exports the folder of the samples."""
    env = i["env"]
    return answers.dataset_answer(env, Path(env["CM_DATASET_TEXT_FOLDER"]), ("CM_DATASET_TEXT_PATH",))
