"""The step function of a token curve: system throughput over throughput per user, of measured points only. Pure.

Endpoints rules, v1.0 draft: a curve says what the system gives where each user has at least so many tokens a second;
between points nothing is interpolated.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from crowdperf.kit.plot import nice_top, number

WIDTH, HEIGHT = 360, 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 14, 18, 34


@dataclass(frozen=True, slots=True)
class StepPoint:
    """A measured point of a curve: tokens per second for each user and of the whole system."""

    words: str
    tps_per_user: float
    system_tps: float


def steps_of(points: Sequence[StepPoint]) -> tuple[StepPoint, ...]:
    """Return the points that no other one beats in both figures, from the fastest for each user on."""
    found: list[StepPoint] = []
    for point in sorted(points, key=lambda one: (-one.tps_per_user, -one.system_tps)):
        if not found or point.system_tps > found[-1].system_tps:
            found.append(point)
    return tuple(found)


def falls(best: Sequence[StepPoint]) -> Iterator[tuple[StepPoint, float]]:
    """Yield each step from the slowest point for a user on, and the height that the line falls to behind it."""
    for place in range(len(best) - 1, -1, -1):
        yield best[place], best[place - 1].system_tps if place else 0.0


def step_plot(title: str, points: Sequence[StepPoint]) -> str:
    """An `<svg>` with the points, their words, and the steps through the best of them; empty without a point."""
    if not points:
        return ""
    right = nice_top(max(point.tps_per_user for point in points))
    top = nice_top(max(point.system_tps for point in points))
    bottom, width, height = HEIGHT - _BOTTOM, WIDTH - _LEFT - _RIGHT, HEIGHT - _TOP - _BOTTOM

    def x(value: float) -> float:
        return _LEFT + width * value / right

    def y(value: float) -> float:
        return _TOP + height * (1 - value / top)

    best = steps_of(points)
    path = "".join(f" H{x(point.tps_per_user):.1f} V{y(lower):.1f}" for point, lower in falls(best))
    figures = (f"{one.words} {one.tps_per_user:.4g} per user, {one.system_tps:.4g} in all" for one in points)
    said = html.escape(f"{title}, tokens per second: {'; '.join(figures)}")
    lines = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="{said}">',
        f"<title>{said}</title>",
        f'<path class="axis" d="M{_LEFT} {_TOP} V{bottom} H{WIDTH - _RIGHT}"/>',
        f'<path class="line" d="M{_LEFT} {y(best[-1].system_tps):.1f}{path}"/>',
    ]
    for value in (0.0, top / 2, top):
        lines.append(f'<text x="{_LEFT - 4}" y="{y(value) + 3.5:.1f}" text-anchor="end">{number(value)}</text>')
    for value in (0.0, right / 2, right):
        lines.append(f'<text x="{x(value):.1f}" y="{bottom + 13}" text-anchor="middle">{number(value)}</text>')
    lines.append(f'<text x="2" y="{_TOP - 7}">system tokens/s</text>')
    lines.append(f'<text x="{WIDTH - _RIGHT}" y="{HEIGHT - 6}" text-anchor="end">tokens/s for each user (p90)</text>')
    for point in points:
        at = x(point.tps_per_user), y(point.system_tps)
        offset, anchor = (-5, "end") if at[0] > WIDTH - 60 else (5, "start")
        lines.append(f'<circle class="dot" cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="3"/>')
        lines.append(f'<text x="{at[0] + offset:.1f}" y="{at[1] - 4:.1f}" text-anchor="{anchor}">'
                     f"{html.escape(point.words)}</text>")  # fmt: skip
    return "\n".join([*lines, "</svg>"])
