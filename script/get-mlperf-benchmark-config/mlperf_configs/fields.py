"""The one table of settings: what each is called, where it applies, and what becomes of it in crowdperf's harness.

Names are those of NVIDIA's submissions. Sources: mlcommons/inference_results_v0.7 at 31060d57
(closed/NVIDIA/code/common/arguments.py), mlcommons/inference_results_v3.1 at eaf622a2 (closed/Azure/configs/gptj); read
2026-11-23.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from mlperf_results.names import Scenario, unknown_text
from mlperf_results.record import ALL_SCENARIOS, MS, OFF, SRV, SS

Scalar = int | float | str | bool
Kind = Literal["whole number", "number", "yes or no", "text"]


class Fate(enum.Enum):
    """What becomes of a setting: an input of run-mlperf-inference; reported and without effect; refused."""

    MAPPED = "mapped"
    REPORTED = "has no effect here"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One setting. unit: of its values, "" for a count or a name. scenarios: those that may have it.

    input: the input of run-mlperf-inference that it becomes (Fate.MAPPED), in the scenarios `input_scenarios` only.
    why: what is said of one that has no effect or is refused. spellings: what other rounds called it. choices: the
    values of a text. is_rate: grows with the number of accelerators. kinds: of accelerator of the systems that may have
    it, "cpu" for none.
    """

    name: str
    kind: Kind
    fate: Fate
    unit: str = ""
    scenarios: tuple[Scenario, ...] = ALL_SCENARIOS
    input: str = ""
    input_scenarios: tuple[Scenario, ...] = ALL_SCENARIOS
    why: str = ""
    spellings: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    is_rate: bool = False
    kinds: tuple[str, ...] = ("nvidia", "jetson")

    @property
    def is_target(self) -> bool:
        """Whether it says how fast a system is, and so holds for its accelerators only."""
        return self.is_rate or self.unit == "ns"

    def parse(self, text: str) -> Scalar:
        """Return the value that a text stands for. Raises BadSetting with what is allowed."""
        word = text.strip()
        if self.kind == "yes or no" and word.lower() in _TRUTHS:
            return _TRUTHS[word.lower()]
        if self.kind == "whole number" and re.fullmatch(r"[0-9]{1,18}", word):
            return self.checked(int(word))
        if self.kind == "number" and re.fullmatch(r"[0-9.]+(e[+-]?[0-9]{1,2})?", word, re.IGNORECASE):
            try:
                return self.checked(int(word) if word.isdigit() else float(word))
            except ValueError:
                pass
        if self.kind == "text":
            return self.checked(word)
        raise BadSetting(f"{self.name}: found {text!r}; allowed: {self.allowed}")

    def checked(self, value: object) -> Scalar:
        """Return the value of a file, when it is of the right type and in range. Raises BadSetting."""
        if self.kind == "yes or no" and isinstance(value, bool):
            return value
        if self.kind == "text" and isinstance(value, str) and self._has_text(value):
            return value
        if isinstance(value, int | float) and not isinstance(value, bool) and self._has_number(value):
            return value
        raise BadSetting(f"{self.name}: found {value!r}; allowed: {self.allowed}")

    def _has_text(self, text: str) -> bool:
        return text in self.choices if self.choices else re.fullmatch(r"[A-Za-z0-9,._+() -]+", text) is not None

    def _has_number(self, value: int | float) -> bool:
        if self.kind == "whole number":
            return isinstance(value, int) and (1 if self.fate is Fate.MAPPED else 0) <= value < _TOO_MUCH
        return self.kind == "number" and 0 < value < _TOO_MUCH  # nan is not between

    @property
    def allowed(self) -> str:
        """What a value may be, in words."""
        if self.choices:
            return ", ".join(self.choices)
        least = " above 0" if self.kind == "number" else " from 1" if self.fate is Fate.MAPPED else " from 0"
        words = {"yes or no": "yes, no", "text": "letters, digits and , . _ + - ( ) without line ends"}
        return words.get(self.kind, f"a {self.kind}{least}{f' ({self.unit})' if self.unit else ''}")


class BadSetting(ValueError):
    """A value that a field cannot have, or a field that is not there; the text says what is allowed."""


_TOO_MUCH = 10**15
"""Above every rate, size in bytes and latency in ns that a system can have."""
_TRUTHS = {"yes": True, "true": True, "on": True, "no": False, "false": False, "off": False}


_ALL_KINDS = ("cpu", "nvidia", "jetson")


def _mapped(name: str, kind: Kind, to: str, unit: str = "") -> Field:
    return Field(name=name, kind=kind, fate=Fate.MAPPED, input=to, unit=unit, kinds=_ALL_KINDS)


def _of_jetson(kind: Kind, names: str) -> tuple[Field, ...]:
    return tuple(replace(one, kinds=("jetson",)) for one in _fields(Fate.REFUSED, kind, _DLA, names))


def _fields(fate: Fate, kind: Kind, why: str, names: str) -> tuple[Field, ...]:
    return tuple(Field(name=name, kind=kind, fate=fate, why=why) for name in names.split())


_QUEUES = "the harness has one queue, and one thread for each instance"
_COPIES = "the harness copies each batch to the GPU before it runs"
_GRAPHS = "the GPU backends of the harness record no CUDA graphs"
_SORTING = "the harness sorts by length where that is faster"
_AUDIO = "RNN-T's audio is preprocessed before the run here, not by DALI during it"
_TRITON = "a setting of the Triton server"
_DLA = "the DLA of a Jetson is not used here; take the settings of its GPU"

_ROWS: tuple[Field, ...] = (
    _mapped("backend", "text", "backend"),
    replace(_mapped("precision", "text", "precision"), choices=("fp32", "fp16", "bf16", "int8")),
    replace(_mapped("gpu_batch_size", "whole number", "batch_size", "samples"), input_scenarios=(OFF, SRV)),
    _mapped("gpu_inference_streams", "whole number", "instances", "per accelerator"),
    _mapped("performance_sample_count", "whole number", "performance_sample_count", "samples"),
    replace(_mapped("deque_timeout_us", "whole number", "batch_timeout", "us"), scenarios=(OFF, SRV),
            input_scenarios=(SRV,), spellings=("deque_timeout_usec",)),
    replace(_mapped("offline_expected_qps", "number", "offline_target_qps", "samples/s"), scenarios=(OFF,),
            is_rate=True, spellings=("gpu_offline_expected_qps",)),
    replace(_mapped("server_target_qps", "number", "server_target_qps", "queries/s"), scenarios=(SRV,), is_rate=True),
    replace(_mapped("single_stream_expected_latency_ns", "whole number", "singlestream_target_latency", "ns"),
            scenarios=(SS,), spellings=("gpu_single_stream_expected_latency_ns",)),
    replace(_mapped("multi_stream_expected_latency_ns", "whole number", "multistream_target_latency", "ns"),
            scenarios=(MS,)),
    Field(name="multi_stream_samples_per_query", kind="number", fate=Fate.REPORTED, unit="samples", scenarios=(MS,),
          why="since v2.0 a MultiStream query has 8 samples; v0.7 looked for their largest number", is_rate=True,
          spellings=("gpu_multi_stream_samples_per_query",)),
    Field(name="min_query_count", kind="whole number", fate=Fate.REPORTED, unit="queries", kinds=_ALL_KINDS,
          why="the rules of the round say the fewest queries"),
    *_fields(Fate.REPORTED, "yes or no", _GRAPHS, "use_graphs"),
    *_fields(Fate.REPORTED, "whole number", _GRAPHS, "graphs_max_seqlen"),
    *_fields(Fate.REPORTED, "text", _GRAPHS, "graph_specs"),
    *_fields(Fate.REPORTED, "whole number", "engines are built with all of the GPU, without MPS", "active_sms"),
    *_fields(Fate.REPORTED, "whole number", "give --workspace_mb to generate-engine", "workspace_size"),
    *_fields(Fate.REPORTED, "number", "the harness answers queries in the order in which they came", "soft_drop"),
    *_fields(Fate.REPORTED, "yes or no", _SORTING, "enable_sort"),
    *_fields(Fate.REPORTED, "whole number", _SORTING, "num_sort_segments"),
    *_fields(Fate.REPORTED, "whole number", "LoadGen issues queries from one thread here",
             "server_num_issue_query_threads"),
    *_fields(Fate.REPORTED, "whole number", _COPIES, "gpu_copy_streams"),
    *_fields(Fate.REPORTED, "yes or no", _COPIES, "start_from_device end_on_device use_direct_host_access "
             "run_infer_on_copy_streams assume_contiguous check_contiguity coalesced_tensor"),
    *_fields(Fate.REPORTED, "text", "model.json says the type and layout of the inputs", "input_dtype input_format"),
    *_fields(Fate.REPORTED, "yes or no", _QUEUES, "use_deque_limit use_cuda_thread_per_device "
             "use_batcher_thread_per_device use_same_context"),
    *_fields(Fate.REPORTED, "whole number", _QUEUES, "complete_threads"),
    *_fields(Fate.REPORTED, "text", _QUEUES, "numa_config"),
    *_fields(Fate.REPORTED, "yes or no", "a setting of NVIDIA's own kernels", "enable_interleaved"),
    *_fields(Fate.REPORTED, "yes or no", "no backend of the harness has fp8", "use_fp8"),
    *_fields(Fate.REPORTED, "whole number", "a model runs on one GPU here", "tensor_parallelism"),
    *_fields(Fate.REPORTED, "whole number", "the harness hands over DLRM's samples without staging threads",
             "num_staging_threads num_staging_batches max_pairs_per_staging_thread gpu_num_bundles"),
    *_fields(Fate.REPORTED, "number", "DLRM's tables are where the backend puts them", "embedding_weights_on_gpu_part"),
    *_fields(Fate.REPORTED, "yes or no", "the allocator of Python and the backend is used", "use_jemalloc"),
    *_fields(Fate.REPORTED, "whole number", _AUDIO, "audio_batch_size audio_buffer_num_lines dali_batches_issue_ahead "
             "dali_pipeline_depth max_seq_length num_warmups"),
    *_fields(Fate.REPORTED, "yes or no", _AUDIO, "audio_fp16_input nobatch_sorting nopipelined_execution "
             "pipelined_execution nouse_copy_kernel"),
    *_fields(Fate.REPORTED, "whole number", _TRITON, "instance_group_count max_queue_delay_usec request_timeout_usec"),
    *_fields(Fate.REPORTED, "text", _TRITON, "preferred_batch_size"),
    *_of_jetson("whole number", "dla_batch_size dla_core dla_copy_streams dla_inference_streams"),
    *_of_jetson("number", "dla_offline_expected_qps concurrent_offline_expected_qps "
             "dla_multi_stream_samples_per_query concurrent_multi_stream_samples_per_query "
             "dla_single_stream_expected_latency_ns"),
    Field(name="power_limit", kind="number", fate=Fate.REFUSED, kinds=(), why="power is not measured here"),
    Field(name="cpu_freq", kind="number", fate=Fate.REFUSED, kinds=(), why="power is not measured here"),
)  # fmt: skip

FIELDS: Mapping[str, Field] = MappingProxyType({row.name: row for row in _ROWS})
"""Every setting by its current name."""
_BY_SPELLING: Mapping[str, Field] = {spelling: row for row in _ROWS for spelling in (row.name, *row.spellings)}

REQUIRED: Mapping[Scenario, tuple[str, ...]] = MappingProxyType(
    {
        OFF: ("precision", "gpu_batch_size", "offline_expected_qps"),
        SRV: ("precision", "gpu_batch_size", "server_target_qps"),
        SS: ("precision", "single_stream_expected_latency_ns"),
        MS: ("precision",),
    }
)
"""What an entry of a system with an accelerator must have; without one the harness finds everything but `precision`.
SingleStream and MultiStream have batches of one query."""


def field_named(name: str) -> Field:
    """Return the setting of a name in any spelling. Raises BadSetting with the nearest name."""
    if name not in _BY_SPELLING:
        raise BadSetting(unknown_text("field", name, tuple(FIELDS)).partition("; known:")[0])
    return _BY_SPELLING[name]


def fields_of(scenario: Scenario, kind: str) -> tuple[Field, ...]:
    """Return the settings that an entry of a scenario and kind of accelerator may have, the mapped ones first."""
    return tuple(row for row in FIELDS.values() if scenario in row.scenarios and kind in row.kinds)
