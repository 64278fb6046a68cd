"""Rules on the description of a system and on what describes a result: measurements, user.conf, README."""

import re
import unicodedata
from collections.abc import Iterator, Mapping

from crowdperf.gate.documents import JsonFile, read_text, read_yaml
from crowdperf.gate.listing import as_text, join
from crowdperf.gate.rulebook import (
    BOTH,
    CLOSED,
    NEWER,
    OLDER,
    OURS,
    RULES_TEXT,
    Scope,
    Severity,
    Violation,
    rule,
    shown,
)
from crowdperf.gate.steps import Step
from crowdperf.gate.views import ScenarioView, SubmitterView, SystemView
from crowdperf.kit.records import number_of
from crowdperf.kit.text_documents import Json
from crowdperf.logs.tree import CATEGORIES
from crowdperf.rules.names import plain_text
from crowdperf.rules.system_keys import KEYS, MEANINGFUL

NETWORK_FIELDS = (
    "is_network", "network_type", "network_media", "network_rate", "nic_loadgen", "number_nic_loadgen",
    "net_software_stack_loadgen", "network_protocol", "number_connections", "nic_sut", "number_nic_sut",
    "net_software_stack_sut", "network_topology",
)  # fmt: skip
MEASUREMENT_FIELDS = (
    "input_data_types", "retraining", "starting_weights_filename", "weight_data_types", "weight_transformations",
)  # fmt: skip
STATUS = ("available", "preview", "rdi")
_TEXTS = ("system_name", "host_processor_model_name", "accelerator_model_name", "framework", "operating_system")
_NOTES = ("hw_notes", "sw_notes")
_COUNTS = ("number_of_nodes", "accelerators_per_node")
_INTEGER = re.compile(r"\s*[+-]?[0-9]+\s*")
_NO = re.compile(r"(no|none|n|n/a|false|(we )?(do|did) ?(not|n['\u2019]t) re-?train)\b", re.IGNORECASE)
"""Also the sentence of 37 published measurements of round v4.1, "We don't retrain the model weight." """

_YES = re.compile(r"\b(?:yes|true)\b")
_WIDE = frozenset(
    ("fp16", "fp32", "fp64", "tf32", "bf16", "bfloat16", "float", "float16", "float32", "float64", "half", "single")
) | {"double", "no", "none"}
"""Types of weights that are no narrower than 16 bits, and words for none. Whatever else `weight_data_types` has is
quantised: round v5.1 has int8, fp8, fp4, uint4, int4, and a spelling of any of them needs no entry here. tf32 is a way
to multiply fp32 weights, which needs no calibration; the rules allow any numerical format (inference_rules.adoc, Weight
Definition and Quantization, mlcommons/inference_policies ac93e89c of 2026-07-23)."""
_SPLIT = re.compile(r"[\s,;:+&|/()\[\]{}'\"]+")
_NOT_TYPES = frozenset(("", "and", "or", "with", "mixed", "precision", "weights", "activations", "ieee"))
_QUANTISED = re.compile(
    r"int[1-8](?![0-9])|fp[468](?![0-9])|quanti[sz]|(?<![0-9])[1-8][ -]?bits?\b"
    r"|\b(?:w[1-8]a[0-9]|e[1-5]m[0-9]|nf4\b|[iuf][248]\b|(?:bi|te)rnary\b)"
)
"""What `weight_transformations` says of types narrower than 16 bits."""
_NOT_QUANTISED = re.compile(r"\b(?:no|not|non|without|never)[ -](?:\w+[ -]){0,2}quanti[sz]\w*")

_CHANGED = re.compile(
    r"\b(?:sparsi(?:ty|fied)|distil\w*|fine-?tun\w*|re-?train\w*|qat|lora"
    r"|quanti[sz]ation[ -]aware|(?:weights?|heads?|channels?|structured|magnitude)[ -]prun\w*"
    r"|prun\w* (?:[0-9]|weights?|heads?|channels?|layers?))"
)
"""What must not be done to closed weights. No closed result of round v5.1 has such a word. (Sparse embeddings, and
graphs without nodes that nobody reads, are something else.)"""

_CLAUSE = re.compile(r"^\s*(?:no|none|n/?a|false)\s*,|[.;(]|\b(?:but|except)\b")
_DENIAL = re.compile(r"\b(?:no|non|not|none|neither|nor|never|without|false|n/?a)\b|n['\u2019]t\b")

_NONE_QUANTISED = re.compile(r"\b(?:no weights were|nothing was) quanti[sz]ed\b", re.IGNORECASE)
_VARIANT, _OF_MODEL = re.compile(r"-99(?:\.9)?$"), 4
"""The end of a model's name, and the parts of DIVISION/SUBMITTER/calibration/MODEL."""

OWN_KEY = "crowdperf"
OWN_WORDS = ("With crowdperf (a CM repository)",)
"""The text of a scenario's README.md as written by generate-submission (`crowdperf/submission/readme_texts.py`)."""


def says_changed(text: str) -> bool:
    """Return whether a clause states that weights were changed, and does not deny it."""
    text = plain_text(text)
    return any(_CHANGED.search(clause) and not _DENIAL.search(clause) for clause in _CLAUSE.split(text))


def _lower(value: Json) -> str | None:
    return value.lower() if isinstance(value, str) else None


def _at(document: JsonFile, field: str, allowed: str) -> Violation:
    return Violation(
        path=document.path, found=shown(document.fields.get(field)), allowed=allowed, line=document.line_of(field)
    )


@rule("SYS-001", Scope.SYSTEM, "Each system with results is described.", source=BOTH)
def is_described(system: SystemView) -> Iterator[Violation]:
    if system.description.is_missing:
        yield Violation(path=system.description.path, found="missing", allowed="a description of the system")


@rule("SYS-002", Scope.SYSTEM, "The description is a JSON object.", source=BOTH)
def is_json(system: SystemView) -> Iterator[Violation]:
    if system.description.problem:
        yield Violation(path=system.description.path, found=system.description.problem, allowed="a JSON object")


def _required(system: SystemView) -> tuple[str, ...]:
    is_networked = bool(system.description.fields.get("is_network"))
    return (*KEYS, *(NETWORK_FIELDS if is_networked else ()))


@rule("SYS-003", Scope.SYSTEM, "The description has every field.", source=BOTH)
def has_fields(system: SystemView) -> Iterator[Violation]:
    document = system.description
    for field in _required(system) if document.is_usable else ():
        if field not in document.fields:
            yield Violation(path=document.path, found=f"no field {field}", allowed="all fields, some may be empty")


@rule("SYS-004", Scope.SYSTEM, "The fields that matter say something.", source=BOTH)
def fields_say_something(system: SystemView) -> Iterator[Violation]:
    for field in MEANINGFUL:
        value = system.description.fields.get(field, "-")
        if not value or (isinstance(value, str) and not plain_text(value)):
            hint = ' (write the text "0")' if field == "accelerators_per_node" else ""
            found = _at(system.description, field, f"{field} must not be empty or the number 0{hint}")
            yield found


@rule("SYS-005", Scope.SYSTEM, "The status is one of three.", source=BOTH)
def status_is_known(system: SystemView) -> Iterator[Violation]:
    if system.description.is_usable and _lower(system.description.fields.get("status")) not in STATUS:
        yield _at(system.description, "status", ", ".join(STATUS))


@rule("SYS-006", Scope.SYSTEM, "The category is one of the known ones.", source=BOTH)
def category_is_known(system: SystemView) -> Iterator[Violation]:
    if system.description.is_usable and system.description.fields.get("system_type") not in CATEGORIES:
        yield _at(system.description, "system_type", " | ".join(CATEGORIES))


@rule("SYS-007", Scope.SYSTEM, "The description has the submitter of its folder.", source=BOTH)
def submitter_agrees(system: SystemView) -> Iterator[Violation]:
    document, owner = system.description, system.owner.submitter
    if document.is_usable and _lower(document.fields.get("submitter")) != owner.lower():
        yield _at(document, "submitter", owner)


@rule("SYS-008", Scope.SYSTEM, "The description has the division of its folder.", source=BOTH)
def division_agrees(system: SystemView) -> Iterator[Violation]:
    document, division = system.description, system.owner.division
    if document.is_usable and document.fields.get("division") != division:
        yield _at(document, "division", division)


@rule("SYS-009", Scope.SYSTEM, "is_network is a text that matches the division.", source=BOTH)
def network_agrees(system: SystemView) -> Iterator[Violation]:
    document, division = system.description, system.owner.division
    value = document.fields.get("is_network")
    if not document.is_usable:
        return
    if value is not None and not isinstance(value, str):
        yield _at(document, "is_network", 'the text "True", or no such field')
        return
    is_networked = _lower(value) == "true"
    if (division == "network") != is_networked and division in ("network", "closed"):
        yield _at(document, "is_network", '"True" in the network division, absent in the closed one')


@rule("SYS-010", Scope.SYSTEM, "Counts are whole numbers.", source=NEWER, since="v5.0")
def counts_are_numbers(system: SystemView) -> Iterator[Violation]:
    for field in _COUNTS:
        value = system.description.fields.get(field)
        is_number = isinstance(value, int) and not isinstance(value, bool)
        if value and not is_number and not (isinstance(value, str) and _INTEGER.fullmatch(value)):
            yield _at(system.description, field, "a whole number, or a text of one")


_NO_ACCELERATOR = ("", "none", "n/a", "na", "-", "no", "0", "null")


@rule("SYS-014", Scope.SYSTEM, "There is a node, and as many accelerators as have a name.", source=OURS)
def counts_can_be(system: SystemView) -> Iterator[Violation]:
    fields = system.description.fields
    nodes, accelerators = _count(fields.get("number_of_nodes")), _count(fields.get("accelerators_per_node"))
    if nodes is not None and nodes < 1:
        yield _at(system.description, "number_of_nodes", "1 or more")
    if accelerators is not None and accelerators < 0:
        yield _at(system.description, "accelerators_per_node", "0 or more")
    name = fields.get("accelerator_model_name")
    if (accelerators or 0) > 0 and isinstance(name, str) and plain_text(name) in _NO_ACCELERATOR:
        yield _at(
            system.description, "accelerator_model_name", f"the name of the {accelerators} accelerators of a node"
        )


def _count(value: Json) -> int | None:
    is_number = isinstance(value, int | str) and not isinstance(value, bool) and _INTEGER.fullmatch(str(value))
    return int(str(value)) if is_number and len(str(value)) < 10 else None


_COUNTED = re.compile(r"(?<![0-9A-Za-z.-])([0-9]{1,5})x(?![0-9])|(?<=[A-Za-z])x ?([0-9]{1,5})(?![0-9A-Za-z])")
"""`8x H100`, `B200-SXM-180GBx8`: published names have such counts."""


@rule("SYS-015", Scope.SYSTEM, "The system's name and counts are of one machine.", source=OURS,
      severity=Severity.WARNING)  # fmt: skip
def counts_agree_with_name(system: SystemView) -> Iterator[Violation]:
    """A warning: round v5.1 has a CPU's built-in GPU without a count, and names that say 2x8x for 16 accelerators."""
    fields = system.description.fields
    name, accelerator = fields.get("system_name"), fields.get("accelerator_model_name")
    nodes, per_node = _count(fields.get("number_of_nodes")), _count(fields.get("accelerators_per_node"))
    if per_node == 0 and isinstance(accelerator, str) and plain_text(accelerator) not in _NO_ACCELERATOR:
        yield _at(system.description, "accelerators_per_node", f"how many {accelerator} a node has")
    counts = {int(one or other) for one, other in _COUNTED.findall(name)} if isinstance(name, str) else set()
    if nodes and per_node and counts and nodes * per_node not in counts:
        found = f"{shown(name)}: {nodes} nodes with {per_node} accelerators each"
        allowed = f"a name and counts of as many accelerators: {nodes * per_node}, or another number of nodes"
        yield Violation(path=system.description.path, found=found, allowed=allowed,
                    line=system.description.line_of("number_of_nodes"))  # fmt: skip
    is_readable = isinstance(name, str) and all(_is_plain_letter(letter) for letter in name)
    if isinstance(name, str) and not is_readable:
        yield _at(system.description, "system_name", "Latin letters: others look alike, or change the order of a line")


def _is_plain_letter(letter: str) -> bool:
    if letter.isascii() or not letter.isalpha():
        return unicodedata.category(letter) not in ("Cf", "Cc")
    return "LATIN" in unicodedata.name(letter, "")


@rule("SYS-011", Scope.SYSTEM, "Names and notes are texts.", source=OLDER)
def texts_are_texts(system: SystemView) -> Iterator[Violation]:
    fields = system.description.fields
    for field in (*_TEXTS, *_NOTES):
        if field in fields and not isinstance(fields[field], str) and (fields[field] or field in _NOTES):
            yield _at(system.description, field, "a text")


@rule("SYS-012", Scope.SUBMITTER, "Each described system has results.", source=OLDER, since="v5.1")
def descriptions_have_results(owner: SubmitterView) -> Iterator[Violation]:
    folder = as_text(owner.paths.systems_folder)
    for name in owner.tree.listing.files_in(folder):
        if name.endswith(".json") and name.replace(".json", "") not in owner.systems:
            yield Violation(path=join(folder, name), found="no results of this system", allowed="a folder in results/")


@rule("SYS-013", Scope.SYSTEM, "The capacity of the power supplies is a number of watts.", source=NEWER, since="v6.1")
def power_capacity_is_number(system: SystemView) -> Iterator[Violation]:
    """Optional: system_power_capacity, or SYSTEM_power.yaml, on which the checker fails if it is not YAML."""
    value = system.description.fields.get("system_power_capacity")
    if value is not None and not ((number_of(value) or 0) > 0):
        yield _at(system.description, "system_power_capacity", "a number of watts above 0")
    folder = as_text(system.owner.paths.systems_folder)
    supplies = read_yaml(system.owner.tree.listing, join(folder, f"{system.system}_power.yaml"))
    if supplies.problem or (supplies.fields and not power_watts(dict(supplies.fields)) > 0):
        allowed = "parts with PSUs (each with PowerCapacityWatts) and Min PSUs Needed"
        yield Violation(path=supplies.path, found=supplies.problem or "0 W in all", allowed=allowed)


def power_watts(node: Json) -> float:
    """Return the watts of the power supplies that a system needs: of each part the largest of the minimum number."""
    if isinstance(node, list):
        return sum(map(power_watts, node))
    if not isinstance(node, dict):
        return 0.0
    by_name = {str(name).lower(): value for name, value in node.items()}
    supplies, needed = by_name.get("psus"), by_name.get("min psus needed")
    if isinstance(supplies, list) and isinstance(needed, int):
        watts = [number_of(one.get("PowerCapacityWatts", 0)) or 0.0 for one in supplies if isinstance(one, dict)]
        return sum(sorted(watts, reverse=True)[:needed])
    return sum(map(power_watts, node.values()))


@rule("MEAS-001", Scope.SCENARIO, "Each result describes its measurement.", source=BOTH, step=Step.TREE)
def has_measurements(scenario: ScenarioView) -> Iterator[Violation]:
    if scenario.measurements.is_missing:
        yield Violation(path=scenario.measurements.path, found="missing", allowed="a JSON object with five fields")


@rule("MEAS-002", Scope.SCENARIO, "The measurements are a JSON object.", source=BOTH, step=Step.TREE)
def measurements_are_json(scenario: ScenarioView) -> Iterator[Violation]:
    if scenario.measurements.problem:
        yield Violation(path=scenario.measurements.path, found=scenario.measurements.problem, allowed="a JSON object")


@rule("MEAS-003", Scope.SCENARIO, "The measurements have their fields, none empty.", source=BOTH, step=Step.TREE)
def measurements_say_something(scenario: ScenarioView) -> Iterator[Violation]:
    document = scenario.measurements
    for field in MEASUREMENT_FIELDS if document.is_usable else ():
        if not document.fields.get(field):
            yield _at(document, field, f"{field}: a text that says something")


@rule("MEAS-004", Scope.SCENARIO, "LoadGen's settings are next to the result.", source=BOTH, step=Step.TREE)
def has_user_conf(scenario: ScenarioView) -> Iterator[Violation]:
    yield from _not_empty(scenario, "user.conf")


@rule("MEAS-005", Scope.SCENARIO, "A README explains how to reproduce the result.", source=BOTH, step=Step.TREE)
def has_readme(scenario: ScenarioView) -> Iterator[Violation]:
    yield from _not_empty(scenario, "README.md")


@rule("MEAS-006", Scope.SCENARIO, "LoadGen's own settings are next to the result.",
      source="tools/submission/submission_checker.py of mlcommons/inference, tag v4.0", step=Step.TREE,
      until="v4.0")  # fmt: skip
def has_mlperf_conf(scenario: ScenarioView) -> Iterator[Violation]:
    yield from _not_empty(scenario, "mlperf.conf")


@rule("MEAS-007", Scope.SCENARIO, "Weights are not retrained in the closed division.", source=RULES_TEXT,
      step=Step.TREE, divisions=CLOSED)  # fmt: skip
def is_not_retrained(scenario: ScenarioView) -> Iterator[Violation]:
    value = scenario.measurements.fields.get("retraining")
    text = plain_text(value) if isinstance(value, str) else ""
    if text and (not _NO.match(text) or _YES.search(text) or says_changed(text)):
        yield _at(scenario.measurements, "retraining", '"no"')


@rule("MEAS-010", Scope.SCENARIO, "Closed weights are the reference's: not pruned, distilled or trained further.",
      source=RULES_TEXT, step=Step.TREE, divisions=CLOSED)  # fmt: skip
def weights_are_those_of_reference(scenario: ScenarioView) -> Iterator[Violation]:
    for name in ("weight_data_types", "weight_transformations"):
        value = scenario.measurements.fields.get(name)
        if isinstance(value, str) and says_changed(value):
            yield _at(scenario.measurements, name, "the reference's weights, at most quantized")


@rule("MEAS-008", Scope.SCENARIO, "If weights are quantized, the submitter describes their calibration.",
      source=RULES_TEXT, step=Step.TREE, divisions=CLOSED)  # fmt: skip
def quantised_weights_are_calibrated(scenario: ScenarioView) -> Iterator[Violation]:
    """The closed division requires a text on the calibration, and a list of samples that MLCommons made.

    Submitters of round v4.1 (198fc467) also have texts of each model below calibration/.
    """
    fields = scenario.measurements.fields
    quantised = _quantised(fields.get("weight_data_types"), fields.get("weight_transformations"))
    if quantised is None:
        return
    owner = scenario.model.system.owner
    places = as_text(owner.paths.calibration_text), join(owner.folder, "calibration.md")
    texts = [read_text(owner.tree.listing, path) for path in (*places, *_texts_of_model(scenario))]
    if not any(one.text.strip() or one.problem for one in texts):
        allowed = f"how the weights were calibrated, because they are {shown(quantised)}"
        yield Violation(path=places[0], found="no text", allowed=allowed)
    for one in texts:
        denied = _NONE_QUANTISED.search(one.text)
        if denied:
            found, allowed = shown(denied[0]), f"how, as measurements.json has {shown(quantised)}"
            yield Violation(path=one.path, found=found, allowed=allowed, line=one.line_of(denied[0]))
    own = fields.get(OWN_KEY)
    if isinstance(own, dict):
        yield from _own_calibration(scenario, own, "\n".join(one.text for one in texts))


def _texts_of_model(scenario: ScenarioView) -> Iterator[str]:
    """Yield calibration/MODEL/**/*.md. The variants of a model (-99, -99.9) have one calibration."""
    owner = scenario.model.system.owner
    name = _VARIANT.sub("", scenario.model.model)
    for path in sorted(owner.tree.listing.below(join(owner.folder, "calibration"))):
        parts = path.split("/")
        if path.endswith(".md") and len(parts) > _OF_MODEL and _VARIANT.sub("", parts[_OF_MODEL - 1]) == name:
            yield path


def _quantised(types: Json, transformations: Json) -> str | None:
    """What says that weights are quantised: a type that is not known to be wide, or the word for it; None for nothing.

    Types are a text, or of a model of several parts an object of texts (31 results of round v5.1).
    """
    for part in types.values() if isinstance(types, dict) else [types]:
        if isinstance(part, str) and not all(map(_is_wide, plain_text(part).replace("n/a", "none").split(","))):
            return str(part)
    text = plain_text(transformations) if isinstance(transformations, str) else ""
    return text if _QUANTISED.search(_NOT_QUANTISED.sub("", text)) else None


def _is_wide(text: str) -> bool:
    """Whether one type of a list is wide: `fp16`, `clip1:fp32`, `bf16 (not quantised)`."""
    words = _SPLIT.split(_NOT_QUANTISED.sub("", text.rpartition(":")[2]).replace("float ", "float"))
    return all(word in _WIDE or word in _NOT_TYPES for word in words)


@rule("MEAS-012", Scope.SCENARIO, "The measurements have each key once.", source=OURS, step=Step.TREE,
      severity=Severity.WARNING)  # fmt: skip
def measurements_are_unique(scenario: ScenarioView) -> Iterator[Violation]:
    """A warning: eight results of round v5.1 have `weight_transformations` twice."""
    yield from _doubled(scenario.measurements)


@rule("SYS-016", Scope.SYSTEM, "The description has each key once.", source=OURS)
def description_is_unique(system: SystemView) -> Iterator[Violation]:
    yield from _doubled(system.description)


def _doubled(document: JsonFile) -> Iterator[Violation]:
    if document.doubled:
        found = f"two values of {shown(document.doubled)}, of which readers use the first or the last"
        yield Violation(path=document.path, found=found, allowed="one", line=document.line_of(document.doubled))


@rule("MEAS-011", Scope.SCENARIO, "Changes of the weights are described in texts.", source=OURS, step=Step.TREE)
def measurements_are_texts(scenario: ScenarioView) -> Iterator[Violation]:
    document = scenario.measurements
    for field in MEASUREMENT_FIELDS if document.is_usable else ():
        value = document.fields.get(field)
        parts = list(value.values()) if isinstance(value, dict) and field == "weight_data_types" else [value]
        if value and not all(isinstance(part, str) and plain_text(part) for part in parts):
            yield _at(document, field, f"{field}: a text (weight_data_types: also an object of texts)")


def _own_calibration(scenario: ScenarioView, own: Mapping[str, Json], text: str) -> Iterator[Violation]:
    """Yield results of this project without the list of samples with which their weights were calibrated."""
    made, flags = own.get("calibration"), own.get("is_synthetic")
    is_made_up = isinstance(flags, dict) and any(flag is True for flag in flags.values())
    record = made if isinstance(made, dict) else {}
    digest, path = record.get("sha256"), scenario.measurements.path
    if not isinstance(digest, str) or not (is_made_up or record.get("is_official") is True):
        allowed = "an official list of mlcommons/inference: quantize with the list of the data set"
        yield Violation(path=path, found=f"{OWN_KEY}.calibration = {shown(made)}", allowed=allowed)
    elif digest not in text:
        allowed = f"the digest of the list, {digest}"
        yield Violation(path=path, found="calibration.md without this model's list", allowed=allowed)


@rule("MEAS-009", Scope.SCENARIO, "A result that this project made has its record in the measurements.", source=OURS,
      step=Step.TREE)  # fmt: skip
def has_own_record(scenario: ScenarioView) -> Iterator[Violation]:
    words = next((words for words in OWN_WORDS if words in scenario.readme.text), None)
    if words and scenario.measurements.is_usable and not isinstance(scenario.measurements.fields.get(OWN_KEY), dict):
        found = f"no object {OWN_KEY}, though README.md says {shown(words)}"
        yield Violation(path=scenario.measurements.path, found=found, allowed="the record that the tree's step writes")


def _not_empty(scenario: ScenarioView, name: str) -> Iterator[Violation]:
    path = join(scenario.measurements_folder, name)
    size = scenario.tree.listing.sizes.get(path)
    if not size:
        yield Violation(path=path, found="missing" if size is None else "empty", allowed="a file that says something")
