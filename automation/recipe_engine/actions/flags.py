"""The flags of the actions that take no inputs of a recipe; those of run, plan, explain and lock: rules/inputs.py."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ..rules.errors import RequestError
from ..rules.inputs import EVERYWHERE, renamed_line
from ..rules.query import nearest

_TABLE = """
adapter.use_action:
audit.audit_action: level tags
cache_actions.gc_action: dry_run f force max_size older_than
cache_actions.pin_action: tags
cache_actions.remove_action: f force in_use tags
cache_actions.search_entries: tags
cache_check.verify_action: skip tags
cache_listing.show_action: env tags
explain_cache.explain_cache_action: tags
find.search_action: tags
provenance.diff.diff_action: exit_code tolerance
provenance.reproduce.reproduce_action: check_only output_dir plan result tolerance yes
resume.resume_action: f force
runs.runs_action: last
scaffold.add_action: program tags template template_tags yaml
script_actions.check_removal: f force tags
script_actions.doc_action: output_dir tags
script_actions.native_run_action: command env script script_name
script_actions.version_action:
utils_actions.compare_versions: version1 version2
utils_actions.download_file: filename max_size_bytes md5sum path sha256sum url verify
utils_actions.get_host_os_info: bits
utils_actions.load_cfg: key key_end prune skip_files tags
utils_actions.select_cfg: alias key key_end prune skip_files tags title uid
utils_actions.system: cmd path stderr stdout
utils_actions.unzip_file: filename max_size_bytes path strip_folders
"""
FLAGS: Mapping[str, frozenset[str]] = {
    function: frozenset(words.split())
    for function, _, words in (line.partition(":") for line in _TABLE.strip().splitlines())
}
"""The function that answers an action to the flags that it has."""


def check_flags(function: str, i: Mapping[str, Any]) -> None:
    """Raises RequestError for flags on the console that the action does not have, with the nearest that it has.

    Secrets are let through: resume and reproduce take those that their run had. A program may hand in anything.
    """
    own = FLAGS.get(function)
    if own is None or not i.get("out"):
        return
    unknown = [name for name in i if name not in own | EVERYWHERE]
    if unknown:
        from ..rules.rerun import secret_flags  # here, because few calls have one

        unknown = [name for name in unknown if not secret_flags({name: i[name]})]
    if not unknown:
        return
    action, automation = str(i.get("action")), str(i.get("automation")).partition(",")[0]
    meant = {name: _meant(name, own) for name in unknown}
    lines = [
        f"unknown flag --{name} for cm {action} {automation}" + (f"; did you mean --{near}?" if near else "")
        for name, near in meant.items()
    ]
    hint = f"it has {', '.join('--' + name for name in sorted(own))}" if own else "it has no flags of its own"
    if all(meant.values()):
        hint = renamed_line(i, meant, action)
    raise RequestError("\n".join(lines), hint=hint)


def _meant(name: str, own: Collection[str]) -> str:
    begun = [flag for flag in own if flag.startswith(name)]
    close = begun if len(begun) == 1 else nearest(name, own, 1)
    return close[0] if close else ""
