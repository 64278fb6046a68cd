"""What the files of a run say beside its figures: model, precision, software, settings, machine, labels. Pure.

A run of this project has result.json, record.json, environment.json and results.json; one of a submission tree has the
system's JSON and measurements.json. The same facts come from a results folder, from a tree and from a bundle, so that
their results have the same key. Nothing that names a host, a user or a folder is taken.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from crowdperf.kit.server_address import server_parts
from crowdperf.kit.text_documents import mapping, part
from crowdperf.rules.backends import is_of_client
from crowdperf.rules.names import DEPARTURE_LABEL, REHEARSAL_LABEL, STAND_IN_LABEL, SYNTHETIC_LABEL, TEST_RUN_LABEL
from crowdperf.rules.provenance import OWN, OWN_DATA_LABEL, OWN_MODEL_LABEL, SERVER_LABEL, UNCHECKED_LABEL, parse
from crowdperf.rules.run_settings import NUMBERS
from crowdperf.store import published_rows
from crowdperf.store.keys import digest_of
from crowdperf.store.model import Configuration, System

UNOFFICIAL = "unofficial"
OWN_MODEL = "own model"
OWN_DATA = "own data"
ACCURACY_MISSED = "accuracy below target"
ORIGIN_UNKNOWN = "origin not recorded"
"""Of a run of an older crowdperf, which did not say where its weights and samples came from."""

LABELS = (
    (SYNTHETIC_LABEL, "synthetic"),
    (STAND_IN_LABEL, "stand-in"),
    (TEST_RUN_LABEL, "test run"),
    (REHEARSAL_LABEL, "rehearsal"),
    (DEPARTURE_LABEL, "not by the rules"),
    (OWN_MODEL_LABEL, OWN_MODEL),
    (OWN_DATA_LABEL, OWN_DATA),
    (UNCHECKED_LABEL.partition(",")[0], "weights not checked"),  # older runs end in ", not checked"
    (SERVER_LABEL, "weights of a server"),
)
"""The labels of a result by how the harness's own words begin."""

NOT_EXCLUSIVE = "not exclusive"
"""Of a run during which other programs used the machine."""

UNSEEN_SERVER = "server behind an endpoint"
"""In the place of the processor's name where only the URL of the measured server is known."""

UNSEEN = "server not seen"
"""The label of such a result."""

DATA_KINDS = ("real", "synthetic", "tiny")

_CHOSEN = (*(setting.place for setting in NUMBERS), "target_qps", "target_latency_ms")
_HOST_FACTS = (
    ("architecture", "CM_HOST_CPU_ARCHITECTURE"),
    ("threads_per_core", "CM_HOST_CPU_THREADS_PER_CORE"),
    ("numa_nodes", "CM_HOST_CPU_NUMA_NODES"),
    ("l3_cache", "CM_HOST_CPU_L3_CACHE_SIZE"),
    ("container", "CM_HOST_OS_CONTAINER_KIND"),
)
_SYSTEM_FACTS = ("operating_system", "framework", "other_software_stack", "host_memory_configuration",
                 "host_storage_type", "host_networking", "accelerator_memory_capacity", "accelerator_interconnect",
                 "cooling", "system_type", "status")  # fmt: skip
_KERNEL = re.compile(r"^\d+\.\d+(?:\.\d+)?")
_MEMORY = re.compile(r"(?:\b(\d{1,4})\s*[x×*]\s*)?([\d.,]+)\s*([GT])i?B?\b", re.IGNORECASE)
_PART_OF_DATA = re.compile(r"[\d,]+ of [\d,]+ samples")
_GIB = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Documents:
    """The JSON files of a run, each as it is there, empty where it is not.

    host: `host` of environment.json. results: results.json. system, measurements: of a submission tree.
    """

    result: Mapping[str, Any] = field(default_factory=dict)
    record: Mapping[str, Any] = field(default_factory=dict)
    host: Mapping[str, Any] = field(default_factory=dict)
    results: Mapping[str, Any] = field(default_factory=dict)
    system: Mapping[str, Any] = field(default_factory=dict)
    measurements: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlace:
    """Where a run stands. benchmark: with its tier. division, category, submitter: of a submission tree, else ""."""

    benchmark: str
    scenario: str
    run_class: str
    division: str = ""
    submitter: str = ""
    system: str = ""


def stripped_text(value: object) -> str:
    """A text without the blanks around it; "" of what is none."""
    return value.strip() if isinstance(value, str) else ""


def _whole(value: object) -> int:
    """A count that is written as a number or as a text; 0 where it is neither."""
    if isinstance(value, bool):
        return 0
    if isinstance(value, int | float):
        return int(value) if 0 <= value < 2**53 else 0
    return published_rows.count_of(value) or 0 if isinstance(value, str) else 0


def setting(result: Mapping[str, Any], name: str) -> Any:
    """The value of a setting of result.json; None where it has none."""
    return part(result, "run", name, "value")


def chosen_settings(result: Mapping[str, Any]) -> dict[str, str]:
    """What the user chose: the settings whose origin is the user, and the lines of a user.conf of the user's own."""
    run = mapping(result.get("run"))
    found = {
        name: f"{mapping(run[name])['value']}"
        for name in _CHOSEN
        if mapping(run.get(name)).get("origin") == "user" and "value" in mapping(run[name])
    }
    lines = mapping(result.get("user_conf_lines"))
    return {**found, **{f"user.conf {name}": f"{value}" for name, value in lines.items()}}


def data_kind(documents: Documents) -> str:
    """`synthetic` where a model, a data set or a backend was made up, `tiny` of the small real ones, else `real`."""
    said = documents.result.get("is_synthetic")
    if said is True or any(value is True for value in mapping(said).values()):
        return "synthetic"
    source = stripped_text(documents.results.get("source"))
    return source if source in DATA_KINDS else "real"


def model_digest(documents: Documents, place: RunPlace) -> str:
    """What tells models apart: the SHA-256 of the file, of the list of several; published ids where there is none."""
    digests = mapping(documents.result.get("model_sha256"))
    if len(digests) == 1:
        return str(next(iter(digests.values())))
    if digests:
        return digest_of(dict(digests))
    benchmark = published_rows.split_tier(place.benchmark)[0]
    if place.division == "closed":
        return f"mlperf:{benchmark}"
    return f"open:{place.submitter}/{place.system}/{place.benchmark}" if place.division else ""


def precision(documents: Documents) -> str:
    """The numeric type of the weights."""
    own = stripped_text(setting(documents.result, "precision"))
    return own or published_rows.precision_of(stripped_text(documents.measurements.get("weight_data_types")))[0]


def software(documents: Documents) -> tuple[str, str]:
    """The stack's family and the versions in it, its own first: `onnxruntime`, `onnxruntime 1.23.0, loadgen 6.0.17`.

    What every run has and no figure depends on, and remarks that stand among the versions, are left out.
    """
    framework = stripped_text(documents.system.get("framework"))
    backend = stripped_text(setting(documents.result, "backend"))
    said = {str(name): str(value) for name, value in mapping(documents.result.get("versions")).items()}
    versions = {name: value for name, value in said.items() if value[:1].isdigit() and name not in ("numpy", "python")}
    if not backend:
        return published_rows.stack_of(framework), framework
    names = sorted(versions, key=lambda name: (name != backend, name))
    return backend, ", ".join(f"{name} {versions[name]}" for name in names)


def _asked_server(documents: Documents) -> dict[str, str]:
    """What a run knows of the server that it asked: how, and the model that it has. Of the URL only the scheme: a
    bundle has no host: its results have the same key."""
    engine = mapping(mapping(documents.result.get("text")).get("engine"))
    url = server_parts(stripped_text(mapping(engine.get("endpoint")).get("value")))
    found = {
        "endpoint": url.scheme if url else "",
        "endpoint API": stripped_text(mapping(engine.get("api")).get("value")),
        "served model": stripped_text(mapping(engine.get("model")).get("value")),
    }
    return {name: value for name, value in found.items() if value}


def _accelerators(documents: Documents) -> tuple[str, int]:
    machine = mapping(documents.result.get("machine"))
    if setting(documents.result, "device") != "cuda":
        return "", 0
    found = machine.get("gpus")
    gpus = [mapping(gpu) for gpu in (found if isinstance(found, list) else ())]
    names = sorted({stripped_text(gpu.get("name")) for gpu in gpus} - {""})
    used = setting(documents.result, "gpus")
    return " + ".join(names), len(used) if isinstance(used, list) and used else len(gpus)


def _own_facts(documents: Documents) -> Iterator[tuple[str, str]]:
    host = documents.host
    name = " ".join(
        filter(None, (stripped_text(host.get("CM_HOST_OS_FLAVOR")), stripped_text(host.get("CM_HOST_OS_VERSION"))))
    )
    kernel = _KERNEL.match(stripped_text(host.get("CM_HOST_OS_KERNEL_VERSION")))
    yield "operating_system", f"{name}, kernel {kernel.group()}" if name and kernel else name
    for fact, key in _HOST_FACTS:
        yield fact, stripped_text(host.get(key))


def _unseen_system(documents: Documents) -> System:
    """A server that only its URL names: what it runs on is not known, and the machine of the run is the client's."""
    machine = mapping(documents.result.get("machine"))
    memory_gib = round(_whole(machine.get("memory_bytes")) / _GIB)
    client = {
        "processor": stripped_text(machine.get("processor")),
        "cores": str(_whole(machine.get("usable_core_count")) or ""),
        "memory": f"{memory_gib} GiB" if memory_gib else "",
        **dict(_own_facts(documents)),
    }
    facts = {f"client {name}": value for name, value in client.items() if value}
    return System(
        accelerator="", accelerator_count=0, nodes=0, cpu=UNSEEN_SERVER, sockets=0, cores=0, memory_gib=0,
        facts={**_asked_server(documents), **facts},
    )  # fmt: skip


def _own_system(documents: Documents) -> System:
    if is_of_client(documents.result):
        return _unseen_system(documents)
    machine = mapping(documents.result.get("machine"))
    accelerator, count = _accelerators(documents)
    return System(
        accelerator=accelerator,
        accelerator_count=count,
        nodes=1,
        cpu=stripped_text(machine.get("processor")) or stripped_text(documents.host.get("CM_HOST_CPU_MODEL_NAME")),
        sockets=_whole(documents.host.get("CM_HOST_CPU_SOCKETS")),
        cores=_whole(machine.get("usable_core_count")),
        memory_gib=round(_whole(machine.get("memory_bytes")) / _GIB),
        facts={name: value for name, value in _own_facts(documents) if value},
    )


def memory_gib(text: str) -> int:
    """The memory of a text such as `512 GB`, `1.5 TB` or `24 x 64GB`; 0 where it says none. Both units are taken as
    binary ones."""
    found = _MEMORY.search(text)
    number = published_rows.figure_of(found[2].replace(",", "")) if found else None
    if found is None or number is None:
        return 0
    return round(int(found[1] or 1) * number * (1024 if found[3].upper() == "T" else 1))


def _described_system(documents: Documents) -> System:
    described = documents.system
    nodes = max(_whole(described.get("number_of_nodes")), 1)
    accelerator = stripped_text(described.get("accelerator_model_name"))
    accelerator = "" if published_rows.is_nothing(accelerator) else accelerator
    return System(
        accelerator=accelerator,
        accelerator_count=nodes * _whole(described.get("accelerators_per_node")) if accelerator else 0,
        nodes=nodes,
        cpu=stripped_text(described.get("host_processor_model_name")),
        sockets=_whole(described.get("host_processors_per_node")),
        cores=_whole(described.get("host_processor_core_count")),
        memory_gib=memory_gib(stripped_text(described.get("host_memory_capacity"))),
        facts={name: value for name in _SYSTEM_FACTS if (value := stripped_text(described.get(name)))},
    )


def system_of(documents: Documents) -> System:
    """The machine of a run: as it was found, else as a submission describes it; of a server that a client asked, none
    of the client's."""
    return _own_system(documents) if documents.result.get("machine") else _described_system(documents)


def shown_benchmark(benchmark: str, documents: Documents) -> str:
    """The name that a run is listed under: the benchmark's for its own weights and all its samples only.

    A network or data of the user's own, or a part of the data, is measured with the benchmark's harness: no more.
    """
    known = parse(documents.result.get("provenance"))
    if known is None:
        return benchmark
    if known.model == OWN:
        return f"{OWN_MODEL} ({benchmark} harness)"
    if known.dataset == OWN:
        return f"{OWN_DATA} ({benchmark} harness)"
    part_of_data = next((label for label in known.labels if label.endswith(" samples")), "")
    return f"{part_of_data} ({benchmark} harness)" if part_of_data else benchmark


def configuration_of(place: RunPlace, documents: Documents, round_name: str = "") -> Configuration:
    """The configuration of a run. round_name: of a submission, else ""."""
    benchmark, tier = published_rows.split_tier(place.benchmark)
    system, is_unseen = system_of(documents), is_of_client(documents.result)
    return Configuration(
        suite="inference",
        benchmark=shown_benchmark(benchmark, documents),
        round=round_name,
        division=place.division,
        category=stripped_text(documents.system.get("system_type")),
        scenario=place.scenario,
        precision=precision(documents),
        tier=tier,
        stack=software(documents)[0],
        device=""
        if is_unseen
        else stripped_text(setting(documents.result, "device")) or published_rows.device_of(system.accelerator),
        data_kind=data_kind(documents),
        run_class=place.run_class,
        model_digest=model_digest(documents, place),
        settings={**chosen_settings(documents.result), **(_asked_server(documents) if is_unseen else {})},
        system=system,
    )


def labels_of(label: str, configuration: Configuration, documents: Documents) -> tuple[tuple[str, ...], str]:
    """The labels of a result, and what of the harness's own label is none of them.

    label: as resultrows.label_of gives it. What the logs and facts say is a label whatever the label says.
    """
    found: list[str] = [UNOFFICIAL]
    rest: list[str] = []
    known = parse(documents.result.get("provenance"))
    for own in dict.fromkeys([*filter(None, label.split("; ")), *(known.labels if known is not None else ())]):
        short = next((short for words, short in LABELS if own.startswith(words)), "")
        short = short or (own if _PART_OF_DATA.fullmatch(own) else "")
        (found if short else rest).append(short or own)
    if configuration.data_kind != "real":
        found.append("synthetic" if configuration.data_kind == "synthetic" else "tiny")
    if configuration.run_class == "test":
        found.append("test run")
    if documents.result and known is None:
        found.append(ORIGIN_UNKNOWN)
    if is_of_client(documents.result):
        found.append(UNSEEN)
    if documents.result.get("disturbances"):
        found.append(NOT_EXCLUSIVE)
    return tuple(dict.fromkeys(found)), "; ".join(rest)


def made_utc(documents: Documents, started: str) -> str:
    """When a run began, `2026-11-23T10:20:30Z`; where only the log says, in the machine's own time, without the Z."""
    text = stripped_text(documents.result.get("started_utc")) or stripped_text(documents.record.get("made_utc"))
    found = re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?", text)
    if found is None:
        return started
    return f"{found.group()}{'' if found.group(1) else ':00'}Z"
