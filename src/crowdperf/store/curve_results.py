"""Makes a result of a curve of MLPerf Endpoints, wherever its points were read. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crowdperf.endpoints.edition import read_edition
from crowdperf.store import published_rows
from crowdperf.store.facts import UNOFFICIAL, memory_gib, stripped_text
from crowdperf.store.model import Accuracy, Configuration, CurvePoint, File, NewResult, System

METRIC = "greatest system tokens per second"
SCENARIO = "Curve"
_FAST_S = 60.0
_NODE_FACTS = ("inference_backend", "driver", "operating_system", "cooling", "host_networking", "other_software_stack")
_SYSTEM_FACTS = ("system_name", "shortened_system_name", "system_availability_status", "system_size")
_LABELS = ("synthetic", "test run")


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveFacts:
    """What is said of a curve. name: the model's. identity: what tells it from another curve of the model.

    system: system_desc.json. label: why it is no result of the model, "" for a real one. is_echo: answers are their
    prompts. durations_s: of the points of
    a fixed concurrency, by concurrency.
    """

    name: str
    identity: str
    organization: str
    submission: str
    division: str
    precision: str
    system: Mapping[str, Any]
    label: str
    is_echo: bool = False
    durations_s: Mapping[int, float]
    points: tuple[CurvePoint, ...]
    accuracy: tuple[Accuracy, ...]
    files: tuple[File, ...]
    notes: tuple[str, ...]
    made_utc: str


def nodes_of(system: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The kinds of nodes that a system_desc.json describes."""
    found = system.get("node_types")
    return [node for node in found if isinstance(node, dict)] if isinstance(found, list) else []


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else 0


def _accelerators(nodes: Sequence[Mapping[str, Any]]) -> tuple[str, int]:
    names, count = [], 0
    for node in nodes:
        found = node.get("accelerator_info") or [node]  # the visualizer has the accelerator's fields in the node itself
        for one in found if isinstance(found, list) else []:
            if isinstance(one, dict) and stripped_text(one.get("accelerator_model_name")):
                names.append(stripped_text(one["accelerator_model_name"]))
                count += _whole(one.get("accelerators_per_node")) * max(_whole(node.get("number_of_nodes")), 1)
    return " + ".join(dict.fromkeys(names)), count


def _facts(system: Mapping[str, Any], nodes: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    for name in _SYSTEM_FACTS:
        yield name, stripped_text(system.get(name))
    for name in _NODE_FACTS:
        yield name, " + ".join(dict.fromkeys(filter(None, (stripped_text(node.get(name)) for node in nodes))))


def system_of(system: Mapping[str, Any]) -> System:
    """The machine of a system_desc.json: nodes are added up, and the first kind of node says what its host is."""
    nodes = nodes_of(system)
    accelerator, count = _accelerators(nodes)
    first = nodes[0] if nodes else {}
    memory = stripped_text(first.get("host_memory_capacity")) or stripped_text(first.get("host_memory_configuration"))
    return System(
        accelerator=accelerator,
        accelerator_count=count,
        nodes=sum(max(_whole(node.get("number_of_nodes")), 1) for node in nodes),
        cpu=stripped_text(first.get("host_processor_model_name")),
        sockets=_whole(first.get("host_processors_per_node")),
        cores=_whole(first.get("host_processor_core_count")) or _whole(first.get("host_processor_vcpu_count")),
        memory_gib=memory_gib(memory),
        facts={name: value for name, value in _facts(system, nodes) if value},
    )


def run_class(durations_s: Mapping[int, float], model_name: str) -> str:
    """`valid` where each point of a fixed concurrency lasts as long as the rules want, else `fast` (60 s) or `test`."""
    edition = read_edition()
    known = edition.models.get(model_name)
    is_agentic = known.is_agentic if known is not None else False
    floors = {number: edition.floor_s(number, is_agentic=is_agentic) for number in durations_s}
    if durations_s and all(duration >= floors[number] for number, duration in durations_s.items()):
        return "valid"
    return "fast" if durations_s and min(durations_s.values()) >= _FAST_S else "test"


def _configuration(curve: CurveFacts, labels: Sequence[str]) -> Configuration:
    system = system_of(curve.system)
    own = f"{curve.organization}/{curve.submission}/{curve.name}"
    return Configuration(
        suite="endpoints",
        benchmark=curve.name,
        round="",
        division=curve.division.casefold(),
        category="",
        scenario=SCENARIO,
        precision=published_rows.precision_of(curve.precision)[0],
        tier="",
        stack=published_rows.stack_of(str(system.facts.get("inference_backend", ""))),
        device=published_rows.device_of(system.accelerator),
        data_kind="synthetic" if "synthetic" in labels else "real",
        run_class="test" if "test run" in labels else run_class(curve.durations_s, curve.name),
        model_digest=f"endpoints:{curve.name}" if curve.division == "Standardized" else f"endpoints:{own}",
        settings={},
        system=system,
    )


def result_of_curve(curve: CurveFacts) -> NewResult:
    """The result of a curve that has a point."""
    labels = [label for label in _LABELS if label in curve.label or (curve.is_echo and label == "synthetic")]
    configuration = _configuration(curve, labels)
    if configuration.run_class == "test":
        labels.append("test run")
    return NewResult(
        run_id=f"{curve.name} {curve.identity}",
        kind="own",
        configuration=configuration,
        labels=tuple(dict.fromkeys((UNOFFICIAL, *labels))),
        made_utc=curve.made_utc,
        stack_version=str(configuration.system.facts.get("inference_backend", "")),
        metric=METRIC,
        value=max(point.system_tps for point in curve.points),
        unit="tokens/s",
        higher_is_better=True,
        valid=None,
        verification="summary",
        command="",
        figures=(),
        accuracy=curve.accuracy,
        files=curve.files,
        curve=curve.points,
        notes=curve.notes,
        raw={"system": dict(curve.system), "label": curve.label},
        submitter=curve.organization,
        system_name=stripped_text(curve.system.get("system_name")),
    )
