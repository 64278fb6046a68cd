"""What a submission says about a system and no program can find out: the question for each official key.

Also the file with these questions that a user fills in, and the dialogue on a terminal. Rules of the values: the
checkers of mlcommons/inference at b66003e1 (August 2026; SYSTEM_DESC_* in constants.py, system_check.py).
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from crowdperf.kit.privacy import find_leaks
from crowdperf.rules.names import unknown_text

ALLOWED: Mapping[str, tuple[str, ...]] = {
    "status": ("available", "preview", "rdi"),
    "system_type": ("datacenter", "edge", "datacenter,edge", "edge,datacenter"),
    "division": ("open", "closed", "network"),
}
COUNTS = ("number_of_nodes", "accelerators_per_node")
"""Keys whose value the checkers turn into a number."""
QUESTIONS: Mapping[str, str] = {
    "division": "division of the submission (open, closed)",
    "submitter": "who submits (also the name of a folder: no spaces)",
    "status": "can it be bought: available, preview (soon), or rdi (research, development, internal)",
    "system_name": "name of the system as readers know it, such as the vendor's product name (not the host's name)",
    "system_type": "edge, datacenter, or datacenter,edge",
    "number_of_nodes": "number of machines that worked together",
    "host_processor_model_name": "model of the CPU",
    "host_processors_per_node": "number of CPUs in a machine",
    "host_processor_core_count": "number of cores per CPU",
    "host_memory_capacity": "memory of a machine, such as 512 GB",
    "host_memory_configuration": "memory modules, such as 16 x 32 GB DDR5-4800, or the reason why it is unknown",
    "host_storage_capacity": "storage of a machine, such as 1 TB",
    "host_storage_type": "kind of storage, such as NVMe SSD",
    "host_networking": "network of a machine, such as 10 Gb Ethernet",
    "host_networking_topology": "how machines are connected, N/A for a single one",
    "host_network_card_count": "network cards, such as 1x 10Gb Ethernet",
    "accelerators_per_node": "accelerators in a machine, 0 for none",
    "accelerator_model_name": "model of the accelerators, N/A without",
    "accelerator_memory_capacity": "memory of one accelerator, N/A without",
    "accelerator_host_interconnect": "how accelerators are attached, such as PCIe Gen5 x16, N/A without",
    "accelerator_interconnect": "how accelerators are connected with each other, N/A for one or none",
    "accelerator_memory_configuration": "kind of the accelerators' memory, such as HBM3, N/A without",
    "cooling": "how it is cooled: air, liquid, passive ...",
    "framework": "what ran the models, with its version",
    "operating_system": "operating system with its version",
    "other_software_stack": "other software that matters, with versions",
    "system_type_detail": "more about the kind of system (may be empty)",
    "host_processor_frequency": "clock of the CPU (may be empty)",
    "host_processor_caches": "caches of the CPU (may be empty)",
    "host_processor_interconnect": "interconnect of the CPUs (may be empty)",
    "accelerator_frequency": "clock of the accelerators (may be empty)",
    "accelerator_interconnect_topology": "topology of the accelerators (may be empty)",
    "accelerator_on-chip_memories": "memories on the accelerator's chip (may be empty)",
    "hw_notes": "remarks on the hardware (may be empty)",
    "sw_notes": "remarks on the software (may be empty)",
}
"""Every official key, in the order of a description."""
FILLERS = frozenset({"tbd", "todo", "unknown", "none", "?", "-", "xxx", "dummy", "default"})
"""Words that people and programs write to please a checker, and that say nothing."""
MAY_BE_NONE = frozenset(
    key for key in QUESTIONS if key.startswith(("host_net", "accelerator_")) or key in ("hw_notes", "sw_notes")
)
"""What a machine may be without, so that "none" is an answer."""


@dataclass(frozen=True)
class BadAnswer(Exception):
    """An answer that a description may not hold; the text says what is allowed."""

    text: str

    def __str__(self) -> str:
        return self.text


def checked(key: str, value: object) -> str:
    """The answer as a description holds it. Raises BadAnswer for an unknown key, a filler, a secret, or a value not
    allowed."""
    if key not in QUESTIONS:
        raise BadAnswer(unknown_text("key of a system description", key, tuple(QUESTIONS)))
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise BadAnswer(f"{key}: must be one text or number, got {value!r}. Put a text in quotes")
    text = " ".join(str(value).split())
    leaks = find_leaks(text)
    if leaks:  # said without the value: answers are remembered, and end up in a submission
        raise BadAnswer(f"{key}: this gives away something private: {'; '.join(map(str, leaks))}")
    if text.lower() in FILLERS and not (text.lower() == "none" and key in MAY_BE_NONE):
        raise BadAnswer(f"{key}: {text!r} is not an answer; asked: {QUESTIONS[key]}")
    allowed = ALLOWED.get(key)
    if allowed and text.lower() not in allowed:
        raise BadAnswer(f"{key}: {text!r} is not allowed; allowed: {'; '.join(allowed)}")
    if key in COUNTS and not text.isdecimal():
        raise BadAnswer(f"{key}: {text!r} is not a whole number; asked: {QUESTIONS[key]}")
    return text.lower() if allowed else text


def template(name: str, missing: Iterable[str]) -> str:
    """The text of a YAML file with one question a line, for the user to fill in."""
    lines = [
        f"# Facts about the system {name} that cannot be detected. Fill in the lines, then rerun the command with",
        "# --system_facts=FILE. An empty line is an open question.",
        "",
    ]
    for key in missing:
        lines += [f"# {QUESTIONS[key]}", f"{key}:", ""]
    return "\n".join(lines)


def ask(missing: Iterable[str], read: Callable[[str], str], tell: Callable[[str], None]) -> dict[str, str]:
    """The answers of a person, each asked until it is allowed; an empty answer leaves the question open."""
    answers = {}
    for key in missing:
        while True:
            text = read(f"{key} - {QUESTIONS[key]}: ").strip()
            if not text:
                break
            try:
                answers[key] = checked(key, text)
            except BadAnswer as error:
                tell(str(error))
                continue
            break
    return answers
