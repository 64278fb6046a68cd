"""Writes crowdperf/logs/rounddata/<round>.json: the figures that the official checkers of a checkout hold, by model.

Settings of LoadGen come from its mlperf.conf and the audit.config files of the same checkout; they were the same in all
rounds that are written here.

    PYTHONPATH=tests/support python tests/gate/record_rounds.py --inference=PATH [--check]
    PYTHONPATH=tests/support python tests/gate/record_rounds.py --inference=PATH --earlier=CHECKER [--check]

PATH is a checkout of mlcommons/inference. The second command writes earlier.json: the models of rounds v4.0 and v4.1
that this project has no rules of, from CHECKER, tools/submission/submission_checker.py of tag v4.1. A figure that the
two give differently is taken from the stricter side; a model that the older checker lacks a figure for keeps the newer
one's. From v6.1 on the newer checker alone decides. What LoadGen's mlperf.conf asks beyond it stands under "conf", what
the rules and references ask under "rules", what the compliance tests' audit.config files hold under "test_limits".
`--check` writes nothing and fails on a difference.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

from recipe_programs import loaded

LIBRARY = Path(__file__).resolve().parents[2] / "src" / "crowdperf"
ROUNDS_FOLDER = LIBRARY / "logs" / "rounddata"
EARLIER_MODELS = {"v4.0": ("llama2-70b-99", "llama2-70b-99.9"),
                  "v4.1": ("llama2-70b-99", "llama2-70b-99.9", "mixtral-8x7b")}  # fmt: skip
CATEGORIES = {"edge": "edge", "datacenter": "datacenter", "both": "datacenter-edge"}
TESTS = ("TEST01", "TEST04", "TEST06", "TEST07", "TEST08", "TEST09")
TOKEN_MODELS = (
    "llama2-70b-99", "llama2-70b-99.9", "llama2-70b-interactive-99", "llama2-70b-interactive-99.9", "mixtral-8x7b",
    "llama3.1-405b", "llama3.1-8b", "llama3.1-8b-edge", "deepseek-r1", "gpt-oss-120b",
)  # fmt: skip
EQUAL_ISSUE_MODELS = (
    "3d-unet-99", "3d-unet-99.9", "gptj-99", "gptj-99.9", "llama2-70b-99", "llama2-70b-99.9", "mixtral-8x7b",
    "llama3.1-405b", "llama3.1-8b", "llama3.1-8b-edge", "deepseek-r1", "rgat", "whisper",
)  # fmt: skip


SCENARIO_NAMES = ("SingleStream", "MultiStream", "Server")
BY_NEWER_ALONE = ("v6.1",)
NO_OLDER = SimpleNamespace(MODEL_CONFIG={}, LLM_LATENCY_LIMITS={})
MIN_DLRM_NE = 0.86687 / 0.999

_POLICY = "inference_rules.adoc of mlcommons/inference_policies ac93e89, line"
RULES = {
    "v6.1": {
        "rgat": [
            ["acc", "least", 72.1314, "percent, as tools/accuracy_igbh.py of graph/R-GAT prints it: 99 % of 72.86"]
        ],
        "dlrm-v3": [["DLRM_NE", "most", round(MIN_DLRM_NE, 8), f"less is better: 0.86687 / 99.9 % ({_POLICY} 273)"]],
        "qwen3.6-27b": [
            ["overall", "least", 83.64, f"97 % of 86.23 (language/edge-agentic/README.md, line 85; {_POLICY} 309)"],
            ["non_live", "least", 85.32, f"97 % of 87.96 (language/edge-agentic/README.md, line 86; {_POLICY} 309)"],
        ],
        "e2e-rag-db": [["E2E_ACCURACY", "least", 99.0, "min_success_rate of e2e-rag/datasetup_accuracy_eval.py"]],
    }
}
"""What the rules or a reference ask of a score where the checker asks another thing: metric, "least" or "most", value,
and whose it is."""

NOTES = {
    "v6.1": {
        "dlrm-v3": ["34,996 samples by the rules (line 273), its README and TEST08's; 349,823 by the checker"],
        "gpt-oss-120b": [
            "Interactive: 20 ms per token by the rules (line 271), 15 ms by mlperf.conf and the checker",
            "longest answer of performance runs: 10,000 tokens by the rules (line 384), 10,240 by its README",
        ],
        "deepseek-r1": ["reference score: 81.9132 by the rules (line 270), 81.3582 by the checker"],
        "llama3.1-8b": ["the rules still have GPT-J's scores (lines 266 and 305); the checker has its own"],
        "wan-2.2-t2v-a14b": ["248 samples in memory by mlperf.conf, 50 by the checker"],
        "e2e-rag-qna": ["TEST09: 246.43 to 301.19 tokens by its audit.config, 211.92 to 259.02 by its README"],
        "qwen3.6-27b": ["the reference's own config.yaml (min_duration_ms 0, seed 42) is refused by the checker"],
    }
}
"""Where texts of a round disagree and nothing follows for a tree; people should know both. Lines are those of
inference_rules.adoc of mlcommons/inference_policies ac93e89, the rest is of mlcommons/inference b66003e1."""

EXPECTED_FILES = {
    "v6.1": {
        "stable-diffusion-xl": {
            "images": ["4475", "3627", "1046", "4937", "3867", "1671", "3789", "1206", "4111", "3093"]
        }
    }
}
"""text_to_image/tools/sample_ids.txt at b66003e1; the newer checker's own list ends with v6.0."""

TEST_LIMITS = {
    "TEST07": {
        "least_score": "test07_accuracy_threshold",
        "samples": "min_query_count",
        "is_unique": "performance_issue_unique",
    },
    "TEST08": {},
    "TEST09": {
        "least_tokens": "test09_min_output_tokens",
        "most_tokens": "test09_max_output_tokens",
        "samples": "min_query_count",
        "is_unique": "performance_issue_unique",
    },
}
"""By test: the keys of its audit.config."""

NE_TOLERANCE = 0.001
"""--tolerance of compliance/TEST08/run_verification.py."""
CONF_NAMES = {"resnet": "resnet50", "gptj": "gpt-j"}
"""What a model is called in mlperf.conf and in compliance/TEST01, where it is not its name without "-99"."""


def conf_name(model: str, separator: str = "_") -> str:
    """llama3.1-405b -> llama3_1-405b, bert-99.9 -> bert."""
    name = model.removesuffix("-99.9").removesuffix("-99").removesuffix("-95")
    return CONF_NAMES.get(name, name.replace(".", separator))


def settings_of(path: Path) -> dict[str, str]:
    """The lines `key = value` of a configuration of LoadGen."""
    lines = (line.partition("#")[0].partition("=") for line in path.read_text(encoding="utf-8").splitlines())
    return {key.strip(): value.strip() for key, separator, value in lines if separator}


def percentiles(conf: dict[str, str], model: str) -> dict[str, float]:
    """The latency percentile that counts, by scenario, where mlperf.conf has one for this model ("*": for all)."""
    keys = {scenario: f"{model}.{scenario}.target_latency_percentile" for scenario in SCENARIO_NAMES}
    return {scenario: round(float(conf[key]) / 100, 6) for scenario, key in keys.items() if key in conf}


def sampling_target(inference: Path, model: str) -> int:
    """How many responses TEST01 logs; 0 for a model without an audit.config of its own."""
    path = inference / "compliance" / "TEST01" / conf_name(model, ".") / "audit.config"
    return int(settings_of(path)["*.*.accuracy_log_sampling_target"]) if path.is_file() else 0


def pairs(row: tuple) -> list:
    """("acc", 75.7, "F1", 3) -> [["acc", 75.7], ["F1", 3]]."""
    return [[row[index], row[index + 1]] for index in range(0, len(row), 2)]


def by_scenario(value: object, as_json=lambda one: one) -> dict:
    """A value for all scenarios, or one for each, as {"*": ...} or {"Offline": ...}."""
    if isinstance(value, dict):
        return {scenario: as_json(one) for scenario, one in value.items()}
    return {"*": as_json(value)}


def scenarios(new: dict, old: dict | None, model: str) -> dict:
    """{category: {"required": [...], "optional": [...]}}: a category counts where both have the model."""
    result = {}
    for name, key in CATEGORIES.items():
        required = new[f"required-scenarios-{key}"].get(model)
        other = required if old is None else old[f"required-scenarios-{key}"].get(model)
        if required is None or (other is None and key != "datacenter-edge"):
            continue
        needed = sorted(set(required) | set(other or ()))
        optional = sorted(set(new[f"optional-scenarios-{key}"].get(model, ())) - set(needed))
        result[name] = {"required": needed, "optional": optional}
    return result


def smaller(one: dict, other: dict) -> dict:
    """The smaller of two limits by key."""
    return {key: min(one[key], other.get(key, one[key])) for key in one}


def model_row(modules: tuple[ModuleType, ModuleType], round_name: str, model: str) -> dict:
    """All figures of a model in a round."""
    new_module, old_module = modules[0], NO_OLDER if round_name in BY_NEWER_ALONE else modules[1]
    new, old = new_module.MODEL_CONFIG[round_name], old_module.MODEL_CONFIG.get(round_name)
    size = new["dataset-size"][model]
    latency = new.get("latency-constraint", {}).get(model, {})
    if old:
        latency = smaller(latency, old.get("latency-constraint", {}).get(model, {}))
    tokens = {
        scenario: smaller(limits, old_module.LLM_LATENCY_LIMITS.get(model, {}).get(scenario, {}))
        for scenario, limits in new_module.LLM_LATENCY_LIMITS.get(model, {}).items()
    }
    row = {
        "scenarios": scenarios(new, old, model),
        "targets": by_scenario(new["accuracy-target"][model], pairs),
        "upper_limits": pairs(new.get("accuracy-upper-limit", {}).get(model, ())),
        "delta_percent": new["accuracy-delta-perc"].get(model, {}),
        "performance_samples": new["performance-sample-count"][model],
        "accuracy_samples": by_scenario(new["accuracy-sample-count"].get(model, size)),
        "offline_min_samples": new_module.OFFLINE_MIN_SPQ_SINCE_V4.get(model, 0),
        "min_queries": {"Offline": new["min-queries"].get(model, {}).get("Offline", 0)},
        "latency_ns": latency,
        "token_latency_ns": tokens,
        "needs_token_latencies": model in TOKEN_MODELS,
        "needs_equal_issue": old is not None and model in EQUAL_ISSUE_MODELS,
        "tests": [test for test in TESTS if model in new.get(f"models_{test}", ())],
        "metric_keys": new_module.RESULT_FIELD_BENCHMARK_OVERWRITE.get(round_name, {}).get(model, {}),
        "extra_accuracy_files": new_module.REQUIRED_ACC_BENCHMARK.get(model, {}).get(round_name, {}),
        "may_be_endpoints": round_name in BY_NEWER_ALONE and model in new_module.ENDPOINTS_ALLOWED_MODELS,
        "rules": RULES.get(round_name, {}).get(model, []),
        "notes": NOTES.get(round_name, {}).get(model, []),
        "expected_files": EXPECTED_FILES.get(round_name, {}).get(model, {}),
    }
    return {key: value for key, value in row.items() if value not in ({}, [], 0, False)}


def round_table(modules: tuple[ModuleType, ModuleType], round_name: str) -> dict:
    """The whole file of a round."""
    new = modules[0].MODEL_CONFIG[round_name]
    return {
        "aliases": dict(sorted(new["model_mapping"].items())),
        "models": {model: model_row(modules, round_name, model) for model in new["models"]},
    }


def conf_of(conf: dict[str, str], model: str, row: dict) -> dict:
    """What LoadGen's own configuration asks of a model where the newer checker asks less or nothing."""
    name = model if f"{model}.*.performance_sample_count_override" in conf else conf_name(model)
    latency_ns = float(conf.get(f"{name}.Server.target_latency", 0)) * 1e6
    samples = int(conf.get(f"{name}.*.performance_sample_count_override", 0))
    own = {
        "latency_ns": {"Server": latency_ns} if 0 < latency_ns < row.get("latency_ns", {}).get("Server", 0) else {},
        "performance_samples": samples if samples > row["performance_samples"] else 0,
        "equal_issue": conf.get(f"{name}.*.sample_concatenate_permutation") == "1",
        "token_latencies": conf.get(f"{name}.*.use_token_latencies") == "1",
    }
    return {key: value for key, value in own.items() if value}


def test_limits(inference: Path, model: str, tests: list[str]) -> dict:
    """What compliance tests compare with, by test."""
    limits = {}
    for test, keys in TEST_LIMITS.items():
        path = inference / "compliance" / test / conf_name(model, ".") / "audit.config"
        if test in tests and path.is_file():
            audit = settings_of(path)
            own = {name: float(audit[f"*.*.{key}"]) for name, key in keys.items() if f"*.*.{key}" in audit}
            limits[test] = own or {"tolerance": NE_TOLERANCE}
    return limits


def with_settings(table: dict, inference: Path, round_name: str) -> dict:
    """Add what LoadGen is asked for: for all models at the top, beside a model what is its own."""
    conf = settings_of(inference / "loadgen" / "mlperf.conf")
    multi_stream = int(conf["*.MultiStream.samples_per_query"])
    models = {}
    for model, row in table["models"].items():
        has_target = "TEST01" in row.get("tests", ())
        own = {
            "latency_percentile": percentiles(conf, conf_name(model)),
            "sampling_target": sampling_target(inference, model) if has_target else 0,
        }
        if round_name in BY_NEWER_ALONE:
            own["conf"] = conf_of(conf, model, row)
            own["test_limits"] = test_limits(inference, model, row.get("tests", []))
        models[model] = row | {key: value for key, value in own.items() if value}
    general = {
        "latency_percentile": percentiles(conf, "*"),
        "samples_per_query": {"SingleStream": 1, "MultiStream": multi_stream, "Server": 1},
    }
    return {"aliases": table["aliases"], "settings": general, "models": models}


def earlier_row(checker: ModuleType, round_name: str, model: str) -> dict:
    """All figures of a model by the checker of tag v4.1; check_compliance_dir leaves TEST06 of its tests."""
    config = checker.MODEL_CONFIG[round_name]
    required = {name: config[f"required-scenarios-{key}"].get(model) for name, key in CATEGORIES.items()}
    row = {
        "scenarios": {name: {"required": sorted(of), "optional": []} for name, of in required.items() if of},
        "targets": by_scenario(config["accuracy-target"][model], pairs),
        "upper_limits": pairs(config["accuracy-upper-limit"].get(model, ())),
        "performance_samples": config["performance-sample-count"][model],
        "accuracy_samples": by_scenario(config["performance-sample-count"][model]),
        "offline_min_samples": checker.OFFLINE_MIN_SPQ_SINCE_V4[model],
        "min_queries": {"Offline": config["min-queries"][model]["Offline"]},
        "latency_ns": config["latency-constraint"].get(model, {}),
        "token_latency_ns": {"Server": checker.LLM_LATENCY_LIMITS[model]["conversational"]},
        "needs_token_latencies": True,
        "tests": ["TEST06"],
        "metric_keys": checker.RESULT_FIELD_BENCHMARK_OVERWRITE[round_name][model],
    }
    return {key: value for key, value in row.items() if value}


def earlier_text(checker: ModuleType, settings: dict) -> str:
    """What earlier.json says."""
    rounds = [
        f"    {json.dumps(name)}: {{\n"
        + ",\n".join(f"      {json.dumps(one)}: {json.dumps(earlier_row(checker, name, one))}" for one in models)
        + "\n    }"
        for name, models in EARLIER_MODELS.items()
    ]
    source = "submission_checker.py of mlcommons/inference, tag v4.1"
    head = f'{{\n  "source": {json.dumps(source)},\n  "settings": {json.dumps(settings)},\n  "rounds": {{\n'
    return head + ",\n".join(rounds) + "\n  }\n}\n"


def write_earlier(path: Path, inference: Path, *, is_check: bool) -> int:
    """Write or compare earlier.json."""
    settings = with_settings({"aliases": {}, "models": {}}, inference, "v5.0")["settings"]
    text, written = earlier_text(loaded(path), settings), ROUNDS_FOLDER / "earlier.json"
    if not is_check:
        written.write_text(text, encoding="utf-8")
        return 0
    is_same = written.read_text(encoding="utf-8") == text
    print("as recorded" if is_same else "earlier.json differs")
    return 0 if is_same else 1


def main() -> int:
    """Write or compare the files."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--inference", type=Path, required=True)
    parser.add_argument("--earlier", type=Path)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    if arguments.earlier is not None:
        return write_earlier(arguments.earlier, arguments.inference, is_check=arguments.check)
    folder = arguments.inference / "tools" / "submission"
    modules = (
        loaded(folder / "submission_checker" / "constants.py"),
        loaded(folder / "submission_checker_old.py"),
    )
    git = ["git", "-C", str(arguments.inference), "rev-parse", "--short=8", "HEAD"]
    commit = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip() or "unknown commit"
    differing = []
    for round_name in sorted(modules[0].MODEL_CONFIG):
        whose = "the newer submission checker" if round_name in BY_NEWER_ALONE else "both submission checkers"
        table = {"source": f"{whose} of mlcommons/inference, {commit}"}
        table |= with_settings(round_table(modules, round_name), arguments.inference, round_name)
        path = ROUNDS_FOLDER / f"{round_name}.json"
        text = "{\n" + ",\n".join(lines_of(table)) + "\n}\n"
        json.loads(text)
        if not arguments.check:
            path.write_text(text, encoding="utf-8")
        elif json.loads(path.read_text(encoding="utf-8"))["models"] != json.loads(text)["models"]:
            differing.append(round_name)
    print(f"differing rounds: {differing}" if differing else "all rounds agree")
    return 1 if differing else 0


def lines_of(table: dict) -> list[str]:
    """One line for each model, so that a change of a round reads well in a diff."""
    lines = [f"  {json.dumps(key)}: {json.dumps(table[key])}" for key in ("source", "aliases", "settings")]
    rows = ",\n".join(f"    {json.dumps(model)}: {json.dumps(row)}" for model, row in table["models"].items())
    return [*lines, '  "models": {\n' + rows + "\n  }"]


if __name__ == "__main__":
    sys.exit(main())
