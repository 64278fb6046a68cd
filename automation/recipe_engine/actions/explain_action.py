"""``cm explain script``: why a step of a run would be what it is, told without running anything."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from ..documents.explain import EnvRow, Explanation, bounds_of, env_rows, excluded_of, shown_history, variations_of
from ..documents.explain_text import explanation_json, explanation_lines
from ..documents.plan import PlannedStep
from ..planning.explained import ExplainEngine, SeenStep, SkippedStep
from ..rules.conditions import shown
from ..rules.errors import RequestError
from ..rules.model import Request
from ..rules.query import nearest, split_words
from ..rules.secrets import hidden, learn
from .adapter import Home
from .plan_action import make_plan
from .run import new_engine, parse_request


class Place(NamedTuple):
    """A step of the plan with its chain, and what was seen of it when it was thought through."""

    step: PlannedStep
    chain: tuple[str, ...]
    seen: SeenStep | None
    skipped: SkippedStep | None

    def is_called(self, name: str) -> bool:
        """Whether ``name`` is its label, or the alias or uid of its recipe."""
        recipe = self.step.recipe
        return name == self.step.label or (recipe is not None and name in (recipe.alias, recipe.uid))


def explain_action(i: Mapping[str, Any], home: Home) -> dict[str, Any]:
    """Answers ``cm explain script``; raises RequestError for a step that the plan does not have."""
    inputs, patterns = _without_own_flags(i)
    request = parse_request(inputs)
    name, number = _step_flag(str(i.get("step") or ""))
    engine = ExplainEngine(new_engine(home, None), parse_request, _wanted(request, name))
    plan = make_plan(engine, request, engine)
    places = list(_places(plan.root, engine))
    found, others = _find(places, name, number)
    explanation = _explain(found, patterns)._replace(
        command=plan.command, others=tuple(" -> ".join(place.chain) for place in others)
    )
    _learn_secrets(places)
    explanation = hidden(explanation)
    if i.get("out") == "con":
        lines = list(explanation_lines(explanation, is_asked_for_keys=bool(patterns)))
        sys.stdout.write("\n".join(lines) + "\n")
    return {"return": 0, "explanation": explanation_json(explanation)}


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


def _wanted(request: Request, name: str) -> Callable[[tuple[str, ...], str], bool]:
    top = len(request.trace) + 1

    def is_wanted(chain: tuple[str, ...], alias: str) -> bool:
        return name in (str(shown(chain[-1])), alias) if name else len(chain) == top

    return is_wanted


def _places(root: PlannedStep, engine: ExplainEngine) -> Iterator[Place]:
    """The steps of the plan, each with what was seen of it: both are in the order in which steps start."""
    seen, skipped = iter(engine.steps), iter(engine.skipped)
    chain: list[str] = []
    for depth, step in root.walk():
        del chain[depth:]
        chain.append(step.label)
        is_skipped = step.action == "skip" and step.recipe is None
        yield Place(
            step, tuple(chain), next(seen) if step.recipe else None, next(skipped, None) if is_skipped else None
        )


def _find(places: list[Place], name: str, number: int) -> tuple[Place, list[Place]]:
    """The place asked for, and the others of that name; those that are skipped come last."""
    found = [place for place in places if place.is_called(name)] if name else places[:1]
    found.sort(key=lambda place: place.step.action == "skip")
    if not found:
        raise _no_such_step(name, places)
    if number > len(found):
        raise RequestError(
            f"the plan has {len(found)} steps '{name}', not {number}", hint=f"--step={name}#{len(found)}"
        )
    chosen = found[number - 1]
    return chosen, [place for place in found if place is not chosen]


def _no_such_step(name: str, places: list[Place]) -> RequestError:
    aliases = [place.step.recipe.alias for place in places if place.step.recipe]
    labels = list(dict.fromkeys([*(place.step.label for place in places), *aliases]))
    close = nearest(name, labels, 5, 0.3) or [label for label in labels if name in label][:5]
    hint = f"the nearest are: {', '.join(close)}" if close else f"its steps are: {', '.join(labels[:20])}"
    if places[0].step.action == "reuse":
        hint += f"; {places[0].step.label} is reused, so nothing below it is planned: --new plans it"
    return RequestError(f"the plan has no step '{name}'", hint=hint)


def _learn_secrets(places: list[Place]) -> None:
    """Every secret that any step had in its env is hidden, also one that another value took the place of."""
    for place in places:
        if place.seen:
            learn(place.seen.first.request.inputs)
            for key, origins in place.seen.trace.items.items():
                learn([origin.value for origin in origins], key)


def _explain(place: Place, patterns: tuple[str, ...]) -> Explanation:
    step, seen = place.step, place.seen
    explanation = Explanation(
        command="",
        label=step.label,
        chain=place.chain,
        action=step.action,
        reason=step.reason,
        asked_by="command line" if len(place.chain) == 1 else place.chain[-2],
        waits_for=step.waits_for,
        error=step.error.describe() if step.error else "",
    )
    if place.skipped:
        rows = tuple(
            EnvRow(key, shown(value), shown_history(history), "" if history else "nobody sets it")
            for key, (value, history) in place.skipped.rows.items()
        )
        return explanation._replace(env=rows)
    if seen is None:
        return explanation
    trace = seen.trace
    rows = env_rows(trace, patterns)
    own = {row.key for row in env_rows(trace, ())}
    return explanation._replace(
        asked_by=_asker(seen),
        recipe=seen.first.recipe.id.text,
        path=str(seen.first.recipe.path),
        choice=seen.choice,
        variations=variations_of(seen.last, trace.asked),
        excluded=excluded_of(seen.last, trace.asked),
        bounds=bounds_of(seen.first, seen.last, trace),
        env=rows,
        other_count=len(set(trace.last) - own),
        cache=seen.cache_answer(step.action, step.reason),
    )


def _asker(seen: SeenStep) -> str:
    """Who asks for a step, who declared and changed that dependency, and the conditions that let it run."""
    asked = seen.trace.asked
    if asked.dependency is None:
        return asked.text
    parts = [f"declared in {asked.entry.declared_by}"]
    parts += [f"{change.key} by {change.by}" for change in asked.entry.changes]
    parts += [condition.text for condition in asked.dependency.conditions]
    return f"{asked.text} ({'; '.join(dict.fromkeys(parts))})"
