"""What ``cm ACTION AUTOMATION --help`` prints: how to call each action, its flags, examples.

The texts are in action_help.txt: a block begins with the call; what follows is printed as it is. The adapters'
docstrings are the list of all actions.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_TEXTS = Path(__file__).with_name("action_help.txt")
ACTION_HELP: dict[tuple[str, str], str] = {
    (block.split()[2].rpartition(":")[2], block.split()[1]): block.rstrip()
    for block in re.split(r"\n(?=cm [a-z-]+ [a-z:]+\b)", _TEXTS.read_text(encoding="utf-8"))
}
"""The help of each action by its automation and its name."""
COMMON_NAMES = {"describe": "help", "search": "find", "delete": "rm", "native_run": "native-run"}
"""What users type for the actions that cmind calls otherwise."""
ALSO_CALLED = {"list": "find", "ls": "find"}
"""Other words of cmind for actions."""


def name_of(i: Mapping[str, Any]) -> str:
    """What users call the action."""
    name = str(i.get("action"))
    return ALSO_CALLED.get(name, COMMON_NAMES.get(name, name))


def automation_of(i: Mapping[str, Any]) -> str:
    """The automation that was called, by its alias: ``script`` or ``cache``."""
    return str(i.get("automation") or "script").partition(",")[0].rpartition(":")[2]


_FURTHER = {
    ("script", "add"): "template_tags yaml",
    ("script", "native-run"): "script script_name",
    ("script", "reproduce"): "result",
    ("utils", "compare_versions"): "version1 version2",
    ("utils", "download_file"): "filename max_size_bytes md5sum path sha256sum url verify",
    ("utils", "get_host_os_info"): "bits",
    ("utils", "load_cfg"): "key key_end prune skip_files tags",
    ("utils", "select_cfg"): "alias key key_end prune skip_files tags title uid",
    ("utils", "system"): "cmd path stderr stdout",
    ("utils", "unzip_file"): "filename max_size_bytes path strip_folders",
}
"""Flags that no help names: of actions that recipes call, and what CM's users may give."""


def flags_of(automation: str, action: str) -> list[str]:
    """The flags that the help of an action names, without values."""
    return _named(ACTION_HELP.get((automation, action), ""), "--[a-z][a-z_-]*")


def _named(text: str, flag: str) -> list[str]:
    return list(dict.fromkeys(re.findall(rf"(?<![\w-]){flag}", text)))


def known_flags(automation: str, action: str) -> frozenset[str] | None:
    """The input keys of an action; None for one without help, and for one that takes inputs of recipes (``...``)."""
    text, further = ACTION_HELP.get((automation, action), ""), _FURTHER.get((automation, action), "").split()
    if "..." in text.partition("\n")[0] or not (text or further):
        return None
    found = {flag.lstrip("-").replace("-", "_") for flag in _named(text, "--?[a-z][a-z_-]*")}
    return frozenset([*found, *further, *(("f", "force") if found & {"f", "force"} else ())])
