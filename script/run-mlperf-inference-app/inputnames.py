"""Inputs of the CM community's recipe of this name that mean something else here, or nothing. Pure.

Everything else that it has is taken over (`_cm.yaml`).
"""

from __future__ import annotations

from collections.abc import Mapping

IMPLEMENTATIONS = (
    "reference",
    "mlcommons-python",
    "mlcommons-cpp",
    "nvidia",
    "nvidia-original",
    "intel",
    "intel-original",
    "qualcomm",
    "ctuning-cpp-tflite",
    "crowdperf",
)

_CONTAINER = "this recipe runs on the machine itself; for a container see run-in-container"
_NVIDIA = "NVIDIA's own harness is not run here; leave it out, crowdperf's harness has --backend=tensorrt"
_DATA = "name the folder to the recipe of the data set, as in --adr.dataset.path=FOLDER"
_NETWORK = "runs over a network are not supported"
_OTHER_MODEL = "its benchmark is not among those that run here"
_VLLM = "there is no LLM server here"

REFUSED: Mapping[str, str] = {
    "all_models": "give one benchmark with --model, call by call",
    "api_server": _VLLM,
    "beam_size": "the rules fix the beams of GPT-J at 4",
    "criteo_day23_raw_data_path": _DATA,
    "custom_system_nvidia": _NVIDIA,
    "dashboard_wb_project": "results are sent nowhere; results.html shows them",
    "dashboard_wb_user": "results are sent nowhere; results.html shows them",
    "dlrm_data_path": _DATA,
    "docker": _CONTAINER,
    "imagenet_path": _DATA,
    "max_query_count": "a cap ends a run before the rules allow it; --execution_mode decides how long runs are",
    "max_test_duration": "a cap ends a run before the rules allow it; --execution_mode decides how long runs are",
    "network": _NETWORK,
    "num_workers": "say --instances",
    "nvidia_llama2_dataset_file_path": _OTHER_MODEL,
    "nvidia_system_name": _NVIDIA,
    "power": "power is not measured here; leave it out",
    "push_to_github": "push the tree afterwards: cm run script --tags=push,github,mlperf,inference,submission",
    "results_git_url": "push the tree afterwards: cm run script --tags=push,github,mlperf,inference,submission",
    "rgat_checkpoint_path": _OTHER_MODEL,
    "sut": "say --run_config for a way to run that differs from the usual one",
    "sut_servers": _NETWORK,
    "test_query_count": "a test run lasts 2 s; say --min_query_count for more queries",
    "tp_size": _VLLM,
    "vllm_model_name": _VLLM,
}
"""Refused, with what to do instead."""

NO_EFFECT: Mapping[str, str] = {
    "docker_keep_alive": "there is no container",
    "get_platform_details": "environment.json has what was found of the machine",
    "gpu_name": "the driver says the names of the GPUs",
    "output_summary": "the submission checker says where its summary is",
    "output_tar": "say --tar to generate,inference,submission",
    "pip_loadgen": "LoadGen is always the package mlcommons-loadgen",
    "preprocess_submission": "give it to generate,inference,submission",
    "pull_changes": "there is no checkout of mlcommons/inference",
    "pull_inference_changes": "there is no checkout of mlcommons/inference",
    "regenerate_accuracy_file": "accuracy.txt is made with the run",
    "regenerate_files": "a README that does not say what its run says is made again by itself",
    "save_console_log": "console.txt lies beside each run",
    "skip_truncation": "give it to generate,inference,submission",
    "use_dataset_from_host": "there is no container",
    "use_model_from_host": "there is no container",
}
"""Accepted and without effect, with the reason."""


def given(inputs: Mapping[str, object]) -> dict[str, object]:
    """The inputs that say something, hyphens made underscores."""
    return {
        name.replace("-", "_"): value
        for name, value in inputs.items()
        if value not in (None, "", False) and str(value).strip().lower() not in ("no", "false", "off")
    }


def refusals(inputs: Mapping[str, object]) -> list[str]:
    """A problem for each given input that cannot be followed."""
    names = given(inputs)
    problems = [f"--{name}: {REFUSED[name]}" for name in sorted(names.keys() & REFUSED.keys())]
    return problems + [
        f"--{name}: {_CONTAINER}"
        for name in sorted(names)
        if name.startswith("docker_") and name not in NO_EFFECT and name not in REFUSED
    ]


def remarks(inputs: Mapping[str, object]) -> list[str]:
    """A line for each given input that has no effect."""
    return [f"--{name} has no effect: {NO_EFFECT[name]}" for name in sorted(given(inputs).keys() & NO_EFFECT.keys())]
