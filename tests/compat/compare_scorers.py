"""Compares the harness's accuracy scorers with the official accuracy scripts, on the cases in tests/harness/scores.

    PYTHONPATH=src:tests/support:tests/harness
        python tests/compat/compare_scorers.py --inference=FOLDER --python=PYTHON [--old-python=PYTHON] [--bert=FOLDER]
        [--rouge=FOLDER] [--nltk-data=FOLDER] [--whisper=FOLDER] [--only=METRIC,...] [--record]

``--inference`` is a checkout of github.com/mlcommons/inference. The scripts run unchanged, as processes of
``--python``, which needs numpy, scikit-learn, pycocotools, torch, transformers, setuptools < 81, six, evaluate,
rouge_score, nltk, nnunet 1.7.1, SimpleITK, medpy, batchgenerators, scikit-image, inflect, unidecode. accuracy_kits.py
uses a function that pandas 2 has no more: ``--old-python`` needs nibabel, numpy < 2 and pandas < 2. What the scripts
fetch themselves is given as folders: ``--bert`` holds tokenization.py of github.com/NVIDIA/DeepLearningExamples
(TensorFlow/LanguageModeling/BERT), ``--rouge`` metrics/rouge of github.com/huggingface/evaluate, ``--nltk-data`` has
tokenizers/punkt_tab; without it both sides read the small made parameters of rouge_cases.py, which is how the recorded
lines came about; ``--whisper`` is the unpacked source of openai-whisper (20250625 was taken), whose normaliser needs
more-itertools and regex. Replaced are only imports that need a network: see ``scorer_runs.SHIMS``.

Prints both lines of each case: the same, refused by both, different for a known reason, or not; exit status 1 when a
pair differs and ``scores/differences.py`` does not say why. With ``--record`` the official lines are written to
tests/harness/scores/recorded.json, which the tests hold ours against.
This program itself runs in the harness environment (.venv-harness).
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import nltk
from scorer_runs import RUNS, Place, Run
from scores import (
    auc_cases,
    coco_cases,
    dice_cases,
    rouge_cases,
    squad_cases,
    top1_cases,
    wer_cases,
    whisper_cases,
)
from scores.case import Case, digest, log_text
from scores.differences import DIFFERENCES

from crowdperf.harness.base.errors import HarnessError

CHECKOUT = Path(__file__).resolve().parents[2]
RECORDED = CHECKOUT / "tests" / "harness" / "scores" / "recorded.json"
CASES = {
    "top1": top1_cases.CASES,
    "squad": squad_cases.CASES,
    "coco": coco_cases.CASES,
    "kits": dice_cases.KITS_CASES,
    "brats": dice_cases.BRATS_CASES,
    "wer": wer_cases.CASES,
    "whisper": whisper_cases.CASES,
    "auc": auc_cases.CASES,
    "rouge": rouge_cases.CASES,
}


def our_line(metric: str, case: Case, place: Place) -> str:
    """Return the line of this project's scorer, or the error it ends with."""
    scorers = {
        "top1": top1_cases.ours,
        "squad": squad_cases.ours,
        "coco": lambda c: coco_cases.ours(c, place.folder),
        "kits": dice_cases.kits_ours,
        "brats": dice_cases.brats_ours,
        "wer": wer_cases.ours,
        "whisper": whisper_cases.ours,
        "auc": auc_cases.ours,
        "rouge": rouge_cases.ours,
    }
    nltk.data.path[:] = [place.environment["NLTK_DATA"]]
    try:
        return scorers[metric](case).line
    except HarnessError as error:
        return f"HarnessError: {error}"


def official_line(run: Run, name: str, case: Case, place: Place) -> str:
    """Return the line that the official script prints on the case, or "crash: " and the last line of its traceback."""
    place.folder.mkdir(parents=True, exist_ok=True)
    (place.folder / "mlperf_log_accuracy.json").write_text(log_text(case.responses), encoding="utf-8")
    run.write(name, case, place)
    done = subprocess.run(
        run.command(name, place),
        cwd=place.folder,
        env=place.environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    lines = [line.strip() for line in done.stdout.splitlines() if line.startswith(run.prefix)]
    if done.returncode or not lines:
        errors = [line for line in done.stderr.splitlines() if line[:1].isalpha() and ":" in line]
        error = errors[-1] if errors else done.stderr.strip()[-160:]
        return f"crash: {error.replace(str(place.inference), 'INFERENCE')[:160]}"
    run.check(case, place)
    return lines[-1].replace("np.int64(", "").replace(")", "") if run.is_numpy_printed else lines[-1]


def _verdict(metric: str, name: str, official: str, own: str) -> str:
    if official == own:
        return "same"
    if official.startswith("crash") and own.startswith("HarnessError"):
        return "refused"
    return "known" if f"{metric}: {name}" in DIFFERENCES else "DIFFERS"


def compare(metric: str, arguments: argparse.Namespace, folder: Path) -> dict[str, dict[str, str]]:
    """Print the pairs of a metric; return what is to be recorded of them."""
    pairs = {}
    for number, (name, make) in enumerate(CASES[metric].items()):
        case, place = make(), Place.of(arguments, folder / f"{metric}{number}")
        official, own = official_line(RUNS[metric], name, case, place), our_line(metric, case, place)
        verdict = _verdict(metric, name, official, own)
        print(f"{verdict:8}{metric}: {name}\n        official  {official}\n        ours      {own}", flush=True)
        pairs[name] = {"log": digest(case.responses), "official": official, "verdict": verdict}
    return pairs


def _git(folder: Path, *words: str) -> str:
    command = ["git", "-C", str(folder), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.strip()


def _record(arguments: argparse.Namespace, pairs: dict[str, dict[str, dict[str, str]]]) -> None:
    held = json.loads(RECORDED.read_text(encoding="utf-8")) if RECORDED.exists() else {"pairs": {}}
    for metric, found in pairs.items():
        held["pairs"][metric] = {name: {key: pair[key] for key in ("log", "official")} for name, pair in found.items()}
    commit = arguments.commit or _git(arguments.inference, "log", "-1", "--format=%H %cI")
    held["source"] = {"repository": "github.com/mlcommons/inference", "commit": commit}
    RECORDED.write_text(json.dumps(held, indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")


def main() -> int:
    """Compare what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inference", type=Path, required=True)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--old-python")
    for folder in ("--bert", "--rouge", "--nltk-data", "--whisper"):
        parser.add_argument(folder, type=Path)
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(CASES))
    parser.add_argument("--commit", help="commit and date of --inference, where that folder is no git checkout")
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args()
    pairs = {}
    with tempfile.TemporaryDirectory() as folder:
        for metric in arguments.only:
            if reason := RUNS[metric].missing(arguments):
                print(f"skipped {metric}: needs {reason}")
                continue
            pairs[metric] = compare(metric, arguments, Path(folder))
            if arguments.record:
                _record(arguments, {metric: pairs[metric]})
    verdicts = [pair["verdict"] for found in pairs.values() for pair in found.values()]
    print(", ".join(f"{verdicts.count(word)} {word}" for word in ("same", "refused", "known", "DIFFERS")))
    return int("DIFFERS" in verdicts)


if __name__ == "__main__":
    sys.exit(main())
