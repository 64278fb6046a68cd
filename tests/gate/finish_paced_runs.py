"""Makes data/paced_logs.tar.xz of the runs of record_paced_runs.py: scored, verified, and cut as for a submission.

    PYTHONPATH=src python tests/gate/finish_paced_runs.py RECORDED FOLDER --inference=PATH

FOLDER becomes MODEL/SCENARIO/..., as in a submission. PATH is a checkout of mlcommons/inference, whose
run_verification.py gives the verdicts of the compliance tests; the Python that runs this needs NumPy.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from record_paced_runs import MODELS, RIGHT, Model

from crowdperf.logs.truncation import LOG_NAME, SCORE_NAME, truncate_log

ARCHIVE = Path(__file__).resolve().parent / "data" / "paced_logs.tar.xz"
WRITTEN: Mapping[str, str] = {
    "llama3.1-8b": "{{'rouge1': 38.78, 'rouge2': 15.91, 'rougeL': 24.5, 'rougeLsum': 35.8, 'gen_len': 8167644, "
    "'gen_num': {gen_num}}}",
    "llama3.1-8b-edge": "{{'rouge1': 39.06, 'rouge2': 16.12, 'rougeL': 24.64, 'rougeLsum': 36.13, 'gen_len': 3051113, "
    "'gen_num': {gen_num}}}",
    "llama2-70b-99.9": "{{'rouge1': 44.44, 'rouge2': 22.04, 'rougeL': 28.62, 'gen_num': {gen_num}, "
    "'tokens_per_sample': {tokens_per_sample}}}",
    "deepseek-r1": "{{'exact_match': {exact_match}, 'tokens_per_sample': {tokens_per_sample}, "
    "'num-samples': {gen_num}}}",
    "gpt-oss-120b": "{{'exact_match': {exact_match}, 'tokens_per_sample': {tokens_per_sample}, "
    "'num-samples': {gen_num}}}",
    "stable-diffusion-xl": "Accuracy Results: {{'FID_SCORE': '23.48', 'CLIP_SCORE': '31.75'}}",
    "whisper": "Word Error Rate: 2.0671%, accuracy=97.9329%",
    "yolo-99": "mAP=53.400%",
    "wan-2.2-t2v-a14b": "{{'vbench_score': 70.48}}",
    "qwen3.6-27b": "mAP=86.23\n{{'overall': 86.23, 'non_live': 87.96}}",
    "e2e-rag-qna": "Accuracy: 35.1234",
    "e2e-rag-db": "Accuracy: 99.8",
}
"""Lines of accuracy.txt. What is in braces is counted in the log; the other figures are written down, within the rules,
because known tokens are no text and 48 bytes no picture."""

LOGS = ("mlperf_log_detail.txt", "mlperf_log_summary.txt")
_DATA = re.compile(r'"data" : "([0-9A-F]*)"')
_TOKEN_DIGITS = 8


def score(model: Model, log: Path) -> str:
    """The line of accuracy.txt, with what the answers of a log say."""
    lengths, right = [], 0
    if model.tokens:
        with log.open(encoding="ascii") as lines:
            for line in lines:
                if found := _DATA.search(line):
                    lengths.append(len(found[1]) // _TOKEN_DIGITS)
                    right += bytes.fromhex(found[1][-2 * _TOKEN_DIGITS : -_TOKEN_DIGITS])[0] == RIGHT
    answers = max(1, len(lengths))
    return WRITTEN[model.name].format(
        gen_num=len(lengths),
        tokens_per_sample=round(sum(lengths) / answers, 4),
        exact_match=round(100 * right / answers, 4),
    )


def verify(checkout: Path, test: str, model: Model, run: Path, folder: Path) -> None:
    """Let run_verification.py of a test judge a run, and write what it says into the folder of the result."""
    script = checkout / "compliance" / test / "run_verification.py"
    config = checkout / "compliance" / test / model.name / "audit.config"
    options = {
        "TEST01": ["-r", str(folder)],
        "TEST04": ["-r", str(folder)],
        "TEST06": ["-d", "int32", "-s", folder.name],
        "TEST07": ["--audit-config", str(config), "--accuracy-script",
                   f"{sys.executable} {Path(__file__).resolve()} score {model.name} {{accuracy_log}}"],
        "TEST09": ["--audit-config", str(config)],
    }  # fmt: skip
    target = folder / test
    with tempfile.TemporaryDirectory() as scratch:
        call = [sys.executable, str(script), "-c", str(run), "-o", str(folder), *options[test]]
        subprocess.run(call, cwd=scratch, check=True, stdout=subprocess.DEVNULL)
    for name in LOGS:
        copy(run / name, target / "performance/run_1" / name)
    for text in target.glob("verify_*.txt"):
        said = text.read_text()
        assert "TEST PASS" in said or "TEST06 verification complete" in said, said
        text.write_text(said.replace(f"{run}/", "").replace(f"{folder}/", "").replace(f"{checkout}/", ""))


def copy(source: Path, target: Path) -> None:
    """Copy a file into a folder that need not be there."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def finish(recorded: Path, target: Path, model: Model, scenario: str, checkout: Path) -> None:
    """One result of a model: its runs as a submission holds them."""
    run, folder = recorded / model.name / scenario, target / model.name / scenario
    copy(run / "user.conf", folder / "user.conf")
    for name in LOGS:
        copy(run / name, folder / "performance/run_1" / name)
        copy(run.with_name(f"{scenario}-accuracy") / name, folder / "accuracy" / name)
    copy(run.with_name(f"{scenario}-accuracy") / LOG_NAME, folder / "accuracy" / LOG_NAME)
    (folder / "accuracy" / SCORE_NAME).write_text(score(model, folder / "accuracy" / LOG_NAME) + "\n")
    for test in model.tests:
        verify(checkout, test, model, run.with_name(f"{scenario}-{test}"), folder)
    if "TEST01" in model.tests:
        copy(folder / "accuracy" / SCORE_NAME, folder / "TEST01/accuracy" / SCORE_NAME)
    for log in sorted(folder.rglob(LOG_NAME)):
        if "TEST06" not in log.parts:
            with tempfile.TemporaryDirectory() as scratch:
                is_verdict_only = not log.with_name(SCORE_NAME).exists()
                truncate_log(log, Path(scratch) / "log", log.relative_to(target), is_verdict_only)


def main() -> int:
    """Make the folders of all models; or score one log, for TEST07's script."""
    if sys.argv[1:2] == ["score"]:
        print(score(MODELS[sys.argv[2]], Path(sys.argv[3])))
        return 0
    parser = argparse.ArgumentParser()
    parser.add_argument("recorded", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--inference", type=Path, required=True)
    arguments = parser.parse_args()
    for model in MODELS.values():
        for scenario in model.scenarios:
            finish(arguments.recorded.resolve(), arguments.folder.resolve(), model, scenario, arguments.inference)
    subprocess.run(
        ["tar", "--sort=name", "--owner=0", "--group=0", "--numeric-owner", "-cJf", str(ARCHIVE), "-C",
         str(arguments.folder), "."], check=True)  # fmt: skip
    print(f"{ARCHIVE}: {ARCHIVE.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
