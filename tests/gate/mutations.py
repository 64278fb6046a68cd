"""Single changes of a good tree, each with the rule of the gate that must refuse it.

data/verdicts.json has what each official checker says to every one (record_verdicts.py asks them).
"""

from collections.abc import Iterator
from pathlib import Path

from changes import (
    C_MODEL,
    C_SYSTEM,
    CLOSED,
    JSON_LOG,
    O_ACC,
    O_MODEL,
    O_RUN,
    O_SYSTEM,
    OPEN,
    Mutation,
    both,
    drop,
    edit,
    field,
    no_field,
    put,
    rename,
)  # fmt: skip
from forgeries_of_runs import forgeries
from mutations_of_logs import accuracy_runs, compliance_tests, only_ours, runs
from mutations_of_runs import compliance_runs, identities, omissions
from tree_builder import CLOSED_MODEL, OPEN_MODEL, SUBMITTER, SYSTEM

NEEDED = (
    "division", "submitter", "status", "system_name", "system_type", "number_of_nodes",
    "host_processor_model_name", "host_processors_per_node", "host_processor_core_count",
    "host_memory_capacity", "host_memory_configuration", "host_storage_capacity", "host_storage_type",
    "host_networking", "host_networking_topology", "host_network_card_count", "accelerators_per_node",
    "accelerator_model_name", "accelerator_memory_capacity", "accelerator_host_interconnect",
    "accelerator_interconnect", "accelerator_memory_configuration", "cooling", "framework", "operating_system",
    "other_software_stack",
)  # fmt: skip
MAY_BE_EMPTY = (
    "system_type_detail", "host_processor_frequency", "host_processor_caches", "host_processor_interconnect",
    "accelerator_frequency", "accelerator_interconnect_topology", "accelerator_on-chip_memories", "hw_notes",
    "sw_notes",
)  # fmt: skip
MEASURED = (
    "input_data_types", "retraining", "starting_weights_filename", "weight_data_types",
    "weight_transformations",
)  # fmt: skip


def _controls() -> Iterator[Mutation]:
    yield Mutation("open unchanged", "open", None, lambda root: None)
    yield Mutation("closed unchanged", "closed", None, lambda root: None)
    yield Mutation("README in the root", "open", None, put("README.md", "about\n"))
    yield Mutation("unknown field in the description", "open", None, field(O_SYSTEM, "colour", "red"))
    yield Mutation("status in capitals", "open", None, field(O_SYSTEM, "status", "Available"))
    yield Mutation("submitter in lower case", "open", None, field(O_SYSTEM, "submitter", SUBMITTER.lower()))
    yield Mutation("scenario folder in lower case", "open", None, rename(f"{O_MODEL}/Offline", f"{O_MODEL}/offline"))
    yield Mutation("one scenario fewer in open", "open", None, drop(f"{O_MODEL}/MultiStream"))
    yield Mutation("chatter in accuracy.txt", "open", None, edit(f"{O_ACC}/accuracy.txt", r"\A", "Loading data\n"))
    yield Mutation("accuracy JSON beside a performance log", "open", None, put(f"{O_RUN}/{JSON_LOG}", "[\n]\n"))
    other_place = both(drop(f"{CLOSED}/documentation"), put(f"{CLOSED}/calibration.md", "nothing quantised\n"))
    yield Mutation("calibration text in the submitter's folder", "closed", None, other_place)


def _system() -> Iterator[Mutation]:
    for key in (*NEEDED, *MAY_BE_EMPTY):
        rule = {"division": "SYS-008", "submitter": "SYS-007", "status": "SYS-005", "system_type": "SYS-006"}
        yield Mutation(f"no {key}", "open", rule.get(key, "SYS-003"), no_field(O_SYSTEM, key))
    for key in NEEDED:
        rule = {"division": "SYS-008", "submitter": "SYS-007", "status": "SYS-005", "system_type": "SYS-006"}
        yield Mutation(f"empty {key}", "open", rule.get(key, "SYS-004"), field(O_SYSTEM, key, ""))
    rows = (
        ("accelerators as a number 0", "SYS-004", field(O_SYSTEM, "accelerators_per_node", 0)),
        ("accelerators N/A", "SYS-010", field(O_SYSTEM, "accelerators_per_node", "N/A")),
        ("nodes as a word", "SYS-010", field(O_SYSTEM, "number_of_nodes", "one")),
        ("nodes as a fraction", "SYS-010", field(O_SYSTEM, "number_of_nodes", "1.5")),
        ("unknown status", "SYS-005", field(O_SYSTEM, "status", "planned")),
        ("status as a number", "SYS-005", field(O_SYSTEM, "status", 1)),
        ("unknown category", "SYS-006", field(O_SYSTEM, "system_type", "cloud")),
        ("category in capitals", "SYS-006", field(O_SYSTEM, "system_type", "Edge")),
        ("another submitter", "SYS-007", field(O_SYSTEM, "submitter", "Someone")),
        ("another division", "SYS-008", field(O_SYSTEM, "division", "closed")),
        ("division in capitals", "SYS-008", field(O_SYSTEM, "division", "Open")),
        ("is_network as a truth value", "SYS-009", field(O_SYSTEM, "is_network", True)),
        ("is_network False as text", "SYS-003", field(O_SYSTEM, "is_network", "False")),
        ("model name as a number", "SYS-011", field(O_SYSTEM, "host_processor_model_name", 7)),
        ("notes as a number", "SYS-011", field(O_SYSTEM, "hw_notes", 7)),
        ("notes null", "SYS-011", field(O_SYSTEM, "hw_notes", None)),
        ("category for datacenters", "MODEL-002", field(O_SYSTEM, "system_type", "datacenter")),
        ("description missing", "SYS-001", drop(O_SYSTEM)),
        ("description renamed", "SYS-001", rename(O_SYSTEM, f"{OPEN}/systems/box-2.json")),
        ("description empty", "SYS-002", put(O_SYSTEM, "")),
        ("description cut", "SYS-002", edit(O_SYSTEM, r"\}\n\Z", "")),
        ("description a list", "SYS-002", put(O_SYSTEM, "[]")),
        ("description binary", "SYS-002", put(O_SYSTEM, bytes(range(128, 256)))),
        ("second description without results", "SYS-012", put(f"{OPEN}/systems/box-2.json", "{}")),
        ("systems folder missing", "SYS-001", drop(f"{OPEN}/systems")),
    )
    yield from (Mutation(name, "open", rule, change) for name, rule, change in rows)
    yield Mutation("closed system networked", "closed", "SYS-009", field(C_SYSTEM, "is_network", "True"))


def _measurements() -> Iterator[Mutation]:
    path = f"{O_MODEL}/Offline/measurements.json"
    for key in MEASURED:
        yield Mutation(f"measurements without {key}", "open", "MEAS-003", no_field(path, key))
        yield Mutation(f"measurements with empty {key}", "open", "MEAS-003", field(path, key, ""))
    rows = (
        ("retraining false", "MEAS-003", field(path, "retraining", False)),
        ("measurements missing", "MEAS-001", drop(path)),
        ("measurements renamed", "MEAS-001", rename(path, f"{O_MODEL}/Offline/box-1_Offline.json")),
        ("measurements no JSON", "MEAS-002", put(path, "fp32\n")),
        ("measurements a list", "MEAS-002", put(path, "[1]")),
        ("user.conf missing", "MEAS-004", drop(f"{O_MODEL}/Offline/user.conf")),
        ("user.conf empty", "MEAS-004", put(f"{O_MODEL}/Offline/user.conf", "")),
        ("README missing", "MEAS-005", drop(f"{O_MODEL}/Offline/README.md")),
        ("README empty", "MEAS-005", put(f"{O_MODEL}/Offline/README.md", "")),
        ("README in lower case", "MEAS-005", rename(f"{O_MODEL}/Offline/README.md", f"{O_MODEL}/Offline/readme.md")),
    )
    yield from (Mutation(name, "open", rule, change) for name, rule, change in rows)


def _structure() -> Iterator[Mutation]:
    rows = (
        ("src missing", "CODE-001", drop(f"{OPEN}/src")),
        ("code instead of src", "CODE-001", rename(f"{OPEN}/src", f"{OPEN}/code")),
        ("results missing", "TREE-006", drop(f"{OPEN}/results")),
        ("file in the root", "TREE-003", put("notes.txt", "x")),
        ("file in the division", "TREE-005", put("open/notes.md", "x")),
        ("name with a space", "NAME-001", put(f"{OPEN}/src/my code.py", "x")),
        ("folder with a space", "NAME-001", put(f"{OPEN}/src/my code/a.py", "x")),
        ("hidden file", "NAME-002", put(f"{OPEN}/src/.gitignore", "x")),
        ("hidden folder", "NAME-002", put(f"{OPEN}/.cache/a", "x")),
        ("__pycache__", "NAME-004", put(f"{OPEN}/src/__pycache__/a.pyc", "x")),
        ("empty folder", "FILE-001", lambda root: (root / OPEN / "documentation").mkdir()),
        ("broken link", "FILE-003", lambda root: (root / OPEN / "src/link").symlink_to("nowhere")),
        ("relative link", "FILE-003", lambda root: (root / OPEN / "src/link").symlink_to(f"{OPEN_MODEL}/README.md")),
        ("file of 51 MB", "FILE-002", _large_file),
        ("mapping missing", "MODEL-001", drop(f"{OPEN}/model_mapping.json")),
        ("mapping to resnet50", "MAP-002", put(f"{OPEN}/model_mapping.json", '{"tiny-net": "resnet50"}')),
        ("mapping no JSON", "MAP-001", put(f"{OPEN}/model_mapping.json", "tiny-net: resnet")),
        ("mapping a list", "MAP-001", put(f"{OPEN}/model_mapping.json", "[]")),
        ("mapping of another model", "MODEL-001", put(f"{OPEN}/model_mapping.json", '{"other": "resnet"}')),
        ("a folder that is no scenario", "SCEN-001", put(f"{O_MODEL}/notes/a.md", "x")),
        ("scenario misspelt", "SCEN-001", rename(f"{O_MODEL}/Offline", f"{O_MODEL}/Ofline")),
        ("a second submitter without results", "TREE-006", put("open/Other/README.md", "x")),
        ("system renamed in results", "SYS-001", rename(f"{OPEN}/results/{SYSTEM}", f"{OPEN}/results/box-9")),
    )
    yield from (Mutation(name, "open", rule, change) for name, rule, change in rows)
    retired = C_MODEL.replace(CLOSED_MODEL, "retinanet")
    rows = (
        ("calibration text missing", "DOC-001", drop(f"{CLOSED}/documentation")),
        ("required scenario missing", "SCEN-002", drop(f"{C_MODEL}/MultiStream")),
        ("Server missing on a system of both", "SCEN-002", drop(f"{C_MODEL}/Server")),
        ("scenario that the model does not have", "SCEN-003", rename(f"{C_MODEL}/Server", f"{C_MODEL}/Interactive")),
        ("Server on an edge system", "SCEN-003", field(C_SYSTEM, "system_type", "edge")),
        ("closed unknown model", "MODEL-001", rename(C_MODEL, C_MODEL.replace(CLOSED_MODEL, "mynet"))),
        ("closed retired model", "MODEL-001", rename(C_MODEL, retired)),
        ("closed resnet for datacenters", "MODEL-002", field(C_SYSTEM, "system_type", "datacenter")),
    )
    yield from (Mutation(name, "closed", rule, change) for name, rule, change in rows)


def _large_file(root: Path) -> None:
    path = root / OPEN / "src/large.bin"
    with path.open("wb") as stream:
        stream.truncate(51 * 1024 * 1024)


def _all() -> Iterator[Mutation]:
    own = (forgeries, compliance_runs, identities, omissions)
    for part in (_controls, _system, _measurements, runs, only_ours, accuracy_runs, _structure, compliance_tests, *own):
        yield from part()


MUTATIONS = tuple(_all())
