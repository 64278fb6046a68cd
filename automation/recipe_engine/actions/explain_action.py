"""``cm explain script``: why a step of a run would be what it is, without running anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..documents.console_text import plain
from ..explaining.explanation import explanation_of
from ..explaining.explanation_text import explanation_lines
from ..explaining.tracing import ExplainEngine, trace_of
from ..planning.plan import PlannedStep
from ..rules.errors import RequestError
from ..rules.query import nearest, split_words
from ..rules.secrets import hidden, learn
from .adapter import Home, show
from .plan_action import make_plan, name_command_in_errors
from .run import new_engine, parse_request


def explain_action(i: Mapping[str, Any], home: Home) -> dict[str, Any]:
    """Answers ``cm explain script``; raises RequestError for a step that the plan does not have."""
    inputs, patterns = _without_own_flags(i)
    request = parse_request(inputs)
    name, number = _step_flag(str(i.get("step") or ""))
    engine = ExplainEngine(new_engine(home, None), parse_request)
    plan = make_plan(engine, request, engine)
    name_command_in_errors(plan, i)
    steps = [step for _, step in plan.root.walk()]
    step, others = _find(steps, name, number)
    found = explanation_of(step, engine, patterns, plan.command, others)
    for configured in (step.configured for step in steps if step.configured):
        learn(configured.request.inputs)
        for key, origins in trace_of(configured).items.items():  # also a secret that another value replaced
            learn([origin.value for origin in origins], key)
    found = hidden(found)
    show(i, *explanation_lines(found, is_asked_for_keys=bool(patterns)))
    return {"return": 0, "explanation": plain(found)}


def _without_own_flags(i: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The input of the run that is explained, and the env keys that are asked for.

    ``--env=KEY,KEY`` is a text; ``--env.KEY=VALUE`` gives the run a value and makes ``env`` a mapping.
    """
    inputs = {key: value for key, value in i.items() if key not in ("step", "keys")}
    asked = [i.get("keys") or ""]
    if isinstance(i.get("env"), str | list):
        asked.append(inputs.pop("env"))
    return inputs, tuple(dict.fromkeys(word for text in asked for word in split_words(text)))


def _step_flag(text: str) -> tuple[str, int]:
    """The name and the number (from 1) of ``NAME`` or ``NAME#NUMBER``."""
    name, mark, digits = text.rpartition("#")
    if not mark or not digits.isdigit():
        return text, 1
    if int(digits) < 1:
        raise RequestError(f"--step={text}: places are counted from 1")
    return name, int(digits)


def _find(steps: list[PlannedStep], name: str, number: int) -> tuple[PlannedStep, list[PlannedStep]]:
    """The step asked for, and the others of that name (a label, or a recipe's alias or uid); skipped ones come last."""
    found = [step for step in steps if name in step.names] if name else steps[:1]
    found.sort(key=lambda step: step.action == "skip")
    if not found:
        raise _no_such_step(name, steps)
    if number > len(found):
        message = f"the plan has {len(found)} steps '{name}', not {number}"
        raise RequestError(message, hint=f"--step={name}#{len(found)}")
    return found.pop(number - 1), found


def _no_such_step(name: str, steps: list[PlannedStep]) -> RequestError:
    aliases = [step.recipe.alias for step in steps if step.recipe]
    labels = list(dict.fromkeys([*(step.label for step in steps), *aliases]))
    close = nearest(name, labels, 5, 0.3) or [label for label in labels if name in label][:5]
    hint = f"the nearest are: {', '.join(close)}" if close else f"its steps are: {', '.join(labels[:20])}"
    if steps[0].action == "reuse":
        hint += f"; {steps[0].label} is reused, so nothing below it is planned: --new plans it"
    return RequestError(f"the plan has no step '{name}'", hint=hint)
