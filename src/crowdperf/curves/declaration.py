"""What the submitter declares of a curve: read from a YAML file, or a form of it that says what is not declared."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import yaml

from crowdperf.endpoints.fields import checked, read_fields
from crowdperf.endpoints.tree import CurveFacts, Declaration
from crowdperf.kit.records import Record, found_text
from crowdperf.kit.text_documents import Json, given_text, json_object

FORM = "submission.yaml"
UNDECLARED = "not declared"
UNDECLARED_LABEL = "the system and the model are not declared"

_NODE: Mapping[str, Json] = {
    "system_node_ensemble_id": 0,
    "number_of_nodes": 1,
    "host_processor_model_name": UNDECLARED,
    "host_processor_core_count": 0,
    "host_memory_configuration": UNDECLARED,
    "host_network_card_count": UNDECLARED,
    "driver": UNDECLARED,
    "filesystem": UNDECLARED,
    "operating_system": UNDECLARED,
    "cooling": UNDECLARED,
    "accelerator_info": [],
}
_EMPTY: Mapping[str, Json] = {
    "organization": "unnamed",
    "submission": "unnamed-0001",
    "implementation": "default",
    "readme": "How the server was built and started is not declared.\n",
    "system_id": "undeclared",
    "system": {
        "system_name": UNDECLARED,
        "shortened_system_name": UNDECLARED,
        "system_availability_status": "RDI",
        "system_size": UNDECLARED,
        "system_node_ensemble_count": 1,
        "system_node_ensemble_total": 1,
        "node_types": [dict(_NODE)],
    },
    "disclosure": {
        "model_precision": UNDECLARED,
        "link_to_model": UNDECLARED,
        "dataset_name": UNDECLARED,
        "dataset_type": "Accuracy + Performance",
        "dataset_link": UNDECLARED,
    },
}


def form() -> str:
    """Return the text of an empty declaration, for the submitter to fill in."""
    head = "# Of the system that served the model, and of the submission. Fill it in, give it as --submission=FILE.\n"
    return head + yaml.safe_dump(dict(_EMPTY), sort_keys=False)


def _inner(fields: Record, key: str) -> Mapping[str, Json]:
    return fields.within(key).values


def _power(fields: Record, folder: Path) -> Mapping[str, Json] | None:
    """system_power.json: a mapping of its own in the file, or the name of a JSON file beside it."""
    value = fields.values.get("power")
    if isinstance(value, str):
        try:
            return json_object(given_text(folder / value))
        except (OSError, ValueError) as error:
            fields.note("power", found_text(value), f"the name of a JSON file that can be read ({error})")
    return _inner(fields, "power") or None if not isinstance(value, str) else None


def read_declaration(path: Path | None, facts: CurveFacts) -> Declaration:
    """Return the declaration of a curve; without a file one whose label says so. Raises ClientFileError."""
    fields = read_fields(path) if path else Record(_EMPTY)
    label = facts.label if path else "; ".join(filter(None, (facts.label, UNDECLARED_LABEL)))
    declared = Declaration(
        organization=fields.needed("organization"),
        submission=fields.needed("submission"),
        implementation=fields.needed("implementation"),
        readme=fields.needed("readme"),
        system_id=fields.needed("system_id"),
        system=_inner(fields, "system"),
        power=_power(fields, path.parent) if path else None,
        disclosure=_inner(fields, "disclosure"),
        **{each.name: getattr(facts, each.name) for each in dataclasses.fields(facts) if each.name != "label"},
        label=label,
    )
    for name in ("organization", "submission", "implementation", "system_id"):
        value = str(getattr(declared, name))
        if value in (".", "..") or "/" in value or "\\" in value or value.startswith("."):
            fields.note(name, found_text(value), "the name of a folder")
    return checked(fields, path or Path(FORM), declared)
