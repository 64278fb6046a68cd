"""Single changes of a tree that passes: what the official checker 1.5.3.0 says of each, and which of E1-E19 fires.

The official verdicts were recorded on 2026-11-22 on a tree of real client runs, where they came out as listed here.
"""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

Edit = Callable[[dict[str, Any]], object]
SUMMARY, CONFIG, POINT, SYSTEM = "result_summary.json", "config.yaml", "point.yaml", "system_desc.json"
SCORES = "accuracy_results.json"


@dataclass(frozen=True)
class Mutation:
    """official: rules that refuse, empty where the checker accepts; ours: E-rules with errors."""

    name: str
    apply: Callable[[Path], object]
    official: frozenset[str] = frozenset()
    ours: frozenset[str] = frozenset()


def point(submission: Path, number: int) -> Path:
    """The folder of a point."""
    return next(submission.glob(f"results/*/*/r{number}"))


def edited(path: Path, edit: Edit) -> None:
    """Change the mapping in a JSON or YAML file."""
    text = path.read_text(encoding="utf-8")
    content = json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
    edit(content)
    is_json = path.suffix == ".json"
    path.write_text(json.dumps(content) if is_json else yaml.safe_dump(content), encoding="utf-8")


def at(number: int, name: str, edit: Edit) -> Callable[[Path], object]:
    """A change of one file of one point."""
    return lambda submission: edited(point(submission, number) / name, edit)


def everywhere(name: str, edit: Edit) -> Callable[[Path], object]:
    """The same change at all points."""
    return lambda submission: [edited(path, edit) for path in sorted(submission.glob(f"results/*/*/r*/{name}"))]


def put(keys: str, value: object) -> Edit:
    """Set one value, by its path with dots."""

    def edit(content: dict[str, Any]) -> None:
        *outer, last = keys.split("/")
        for key in outer:
            content = content[key]
        content[last] = value

    return edit


def _scores(**changed: object) -> Edit:
    return lambda content: content["accuracy_scores"][0].update(changed)


def _poor_score(content: dict[str, Any]) -> None:
    _scores(score=0.5)(content)
    content["average_accuracy"] = 0.5


def _half_failed(content: dict[str, Any]) -> None:
    half = content["n_samples_issued"] // 2
    content["n_samples_completed"], content["n_samples_failed"] = half, half
    content["qps"] /= 2
    content["latency"]["total"] /= 2


def _halved_duration(content: dict[str, Any]) -> None:
    content["duration_ns"] //= 2


def _without_utilization(submission: Path) -> None:
    edited(point(submission, 64) / SUMMARY, _halved_duration)
    everywhere(SYSTEM, lambda content: content.pop("tps_utilization"))(submission)


def _not_monotone(content: dict[str, Any]) -> None:
    content["ttft"]["percentiles"]["99.0"] = content["ttft"]["min"]


def _negative_tpot(content: dict[str, Any]) -> None:
    content["tpot"]["percentiles"]["90.0"] = -5.0


def _odd_count(content: dict[str, Any]) -> None:
    for key in ("n_samples_issued", "n_samples_completed"):
        content[key] = 100
    content["qps"] = 100 / (content["duration_ns"] / 1e9)
    content["latency"]["total"] = 100 * content["latency"]["avg"]


def _accuracy_at_r40(submission: Path) -> None:
    shutil.copy(point(submission, 64) / SCORES, point(submission, 40) / SCORES)


def _other_folder(submission: Path) -> None:
    point(submission, 12).rename(point(submission, 12).with_name("r13"))


def _home_and_token(submission: Path) -> None:
    readme = submission / "src" / "stub" / "README.md"
    token = "gh" + "p_" + "a1B2" * 9
    readme.write_text(f"run from /home/somebody/server with {token}\n", encoding="utf-8")


def _stray(submission: Path) -> None:
    (point(submission, 4) / "core.bin").write_bytes(bytes(1024 * 1024 + 1))


def _no_provenance(content: dict[str, Any]) -> None:
    content["git_sha"], content["test_started_at"] = None, 0


def _steady(content: dict[str, Any]) -> None:
    window = {"super_pass_start": 0, "super_pass_end": 5, "super_pass_size": 64, "n_samples": 384, "duration_s": 1200}
    content["steady_state"] = {"status": "windowable", "verdict": "STEADY STATE", "window": window}


def _of(*rules: str) -> frozenset[str]:
    return frozenset(rules)


_REGION = put("region", "high_concurrency")
MUTATIONS = (
    Mutation("unchanged", lambda submission: None),
    Mutation("r4 removed", lambda submission: shutil.rmtree(point(submission, 4)),
             _of("accuracy-coverage", "low-concurrency-coverage", "point-count")),
    Mutation("model name with a dot", everywhere(POINT, put("model_name", "gpt.oss-120b")),
             _of("model-name-consistency", "model-name-valid")),
    Mutation("another seed set at one point", at(4, POINT, put("seed_set", "B")),
             _of("seed-set-consistency", "seed-set-membership")),
    Mutation("seed wrong in point.yaml", at(4, POINT, put("runtime_settings/runtime/scheduler_rng_seed", 42)),
             _of("seed-runtime-match"), _of("E1")),
    Mutation("seed wrong in config.yaml", at(4, CONFIG, put("settings/runtime/scheduler_random_seed", 42)),
             ours=_of("E1")),
    Mutation("concurrency 1 in config.yaml of r64", at(64, CONFIG, put("settings/load_pattern/target_concurrency", 1)),
             ours=_of("E2")),
    Mutation("another model in config.yaml", at(4, CONFIG, put("model_params/name", "llama3_1-8b")), ours=_of("E3")),
    Mutation("another data set in config.yaml", everywhere(CONFIG, lambda one: one["datasets"][0].update(name="other")),
             ours=_of("E3")),
    Mutation("completed and failed are not issued", at(4, SUMMARY, put("n_samples_failed", 3)),
             _of("metric-consistency-accounting"), _of("E5")),
    Mutation("half failed", at(4, SUMMARY, _half_failed), ours=_of("E5")),
    Mutation("interrupted", at(4, SUMMARY, put("state", "interrupted")), ours=_of("E4")),
    Mutation("duration halved, tps_utilization absent", _without_utilization, ours=_of("E8")),
    Mutation("duration halved", at(64, SUMMARY, _halved_duration), _of("tps-utilization"), _of("E8")),
    Mutation("percentiles not monotone", at(4, SUMMARY, _not_monotone), ours=_of("E7")),
    Mutation("negative TPOT p90", at(4, SUMMARY, _negative_tpot), _of("metric-consistency-tpot-p90"), _of("E7")),
    Mutation("issued no multiple of the data set", at(4, SUMMARY, _odd_count), ours=_of("E6")),
    Mutation("qps disagrees", at(4, SUMMARY, put("qps", 12345.0)), ours=_of("E8")),
    Mutation("no accuracy at r12", lambda submission: (point(submission, 12) / SCORES).unlink(),
             _of("accuracy-coverage")),
    Mutation("accuracy not complete", at(4, SCORES, _scores(complete=False)), ours=_of("E9")),
    Mutation("accuracy samples missing",
             at(4, SCORES, _scores(response_counts={"issued": 4395, "scored": 4000, "empty": 0, "missing": 395})),
             ours=_of("E9")),
    Mutation("accuracy 0.5", at(4, SCORES, _poor_score), _of("accuracy-gate")),
    Mutation("an average that is not that of the scores", at(4, SCORES, put("average_accuracy", 0.9)), ours=_of("E8")),
    Mutation("a median that is not the 50th percentile", at(4, SUMMARY, put("ttft/median", 1.0)), ours=_of("E7")),
    Mutation("accuracy at r40, too, with r64 as Offline", _accuracy_at_r40),
    Mutation("cohort after the window", everywhere(POINT, put("target_cohort", "2027-01-C0")),
             _of("seed-set-adoption")),
    Mutation("cohort C2", everywhere(POINT, put("target_cohort", "2026-11-C2")),
             _of("seed-set-adoption", "target-cohort")),
    Mutation("no warm-up declared", at(4, POINT, lambda content: content.pop("warmup")), _of("warmup-present")),
    Mutation("word of v0.7 for a region", at(12, POINT, put("region", "med_throughput")), _of("region-declared"),
             _of("E10")),
    Mutation("wrong region", at(12, POINT, _REGION), ours=_of("E10")),
    Mutation("shared_src leaves the tree", at(4, POINT, put("shared_src", "../..")), _of("shared-path-resolution")),
    Mutation("folder r13 for concurrency 12", _other_folder, ours=_of("E2", "E11")),
    Mutation("C_max 100000", everywhere(SYSTEM, put("max_supported_concurrency", 100_000)),
             _of("accuracy-coverage", "high-concurrency-coverage", "offline-point-present"), _of("E10")),
    Mutation("poisson", at(4, POINT, put("runtime_settings/load_pattern", "poisson")),
             _of("benchmark-type-consistency", "load-pattern"), _of("E2")),
    Mutation("no Offline point", at(64, POINT, put("offline", "none")), _of("offline-point-present")),
    Mutation("another system name at r4", at(4, SYSTEM, put("system_name", "another")),
             _of("system-description-consistency")),
    Mutation("home path and token in README", _home_and_token, ours=_of("E15")),
    Mutation("stray binary", _stray, ours=_of("E16")),
    Mutation("no commit and no start", at(4, SUMMARY, _no_provenance), ours=_of("E13")),
    Mutation("steady state of 1,200 s claimed", at(4, POINT, _steady), ours=_of("E14")),
    Mutation("empty accuracy file", lambda submission: (point(submission, 12) / SCORES).write_text("{}"),
             _of("accuracy-coverage", "accuracy-valid"), _of("E0")),
    Mutation("no README in src", lambda submission: (submission / "src" / "stub" / "README.md").unlink(),
             _of("src-readme")),
)  # fmt: skip
