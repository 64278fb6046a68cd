"""Flags of the actions that take no inputs of a recipe; those of run, plan, explain and lock: rules/inputs.py."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from ..documents.action_help import automation_of, known_flags, name_of
from ..rules.errors import RequestError
from ..rules.inputs import EVERYWHERE, renamed_line
from ..rules.query import nearest
from ..rules.rerun import secret_flags
from ..rules.schema import is_yes

Action = Callable[[Mapping[str, Any]], dict[str, Any]]


def checked(action: Action) -> Action:
    """The action on the console: with ``--help`` it says how to call it, and it refuses flags that it does not have."""

    def act(i: Mapping[str, Any]) -> dict[str, Any]:
        check_comment(i)
        if is_yes(i.get("help")) or is_yes(i.get("h")):
            from .help import action_help_action

            return action_help_action(i)
        check_flags(i)
        return action(i)

    return act


def check_comment(i: Mapping[str, Any]) -> None:
    """Raises RequestError for a comment behind the command, as documents have it: zsh hands it over as words."""
    if "#" in (i.get("artifact"), *(i.get("artifacts") or ())):
        raise RequestError(
            "the words from # on came as arguments: this shell takes no comments on its command line",
            hint="leave them out; in zsh, setopt interactive_comments lets whole lines be pasted",
        )


def check_flags(i: Mapping[str, Any]) -> None:
    """Raises RequestError for flags that the action does not have, with the nearest that it has.

    Secrets are let through: resume and reproduce take those that their run had.
    """
    action, automation = name_of(i), automation_of(i)
    own = known_flags(automation, action)
    if own is None:
        return
    own -= EVERYWHERE
    unknown = [name for name in i if name not in own | EVERYWHERE and not secret_flags({name: i[name]})]
    if not unknown:
        return
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
