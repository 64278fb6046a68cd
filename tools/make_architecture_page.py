"""Draws docs/images/architecture.svg from the imports, and writes the table in docs/explanation/architecture.md.

python tools/make_architecture_page.py [--check]
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import made_table
from reader import exit_code
from rooms import FLOORS, HARNESS, ROOMS, ROOT, imports_between, imports_of_folder, outside_packages, sentence_of

PAGE = ROOT / "docs" / "explanation" / "architecture.md"
PICTURE = ROOT / "docs" / "images" / "architecture.svg"
NAME = Path(__file__).name

SIZES = ((100, 7.5, "100 imports or more"), (10, 5.0, "10 to 99 imports"), (1, 2.8, "1 to 9 imports"))
"""From how many imports on a dot has which radius. Three steps only: the picture changes when the house does."""

STEP, WIDTH = 22, 960
RECIPES = "script/"
STYLE = """
  .sheet{fill:#fff} .row{fill:#f3f5f8} .own{fill:#3b5b8c} .dot{fill:#b4530a} .roof{fill:#e3eaf4} .engine{fill:#e6f0e8}
  .line{stroke:#c9d0da;stroke-width:1}
  text{font:13px system-ui,sans-serif;fill:#1c2430} .small{font-size:12px;fill:#4d5866} .head{font-weight:600}
  @media (prefers-color-scheme:dark){
    .sheet{fill:#0f141b} .row{fill:#18202b} .own{fill:#7fa3dc} .dot{fill:#f0913f} .roof{fill:#1f2c3f}
    .engine{fill:#1b2e22} .line{stroke:#2f3a48} text{fill:#e4e9f0} .small{fill:#a9b4c2}
  }
"""


@dataclass(frozen=True, slots=True)
class Stairs:
    """Rows from the ground up with a dot for each row further down that one uses. left, ground: of the lowest row."""

    order: Sequence[str]
    roofs: Sequence[str]
    left: int
    ground: int
    margin: int

    def draw(self, uses: Mapping[tuple[str, str], int]) -> list[str]:
        """The elements of SVG; uses: how many names (row, used) imports."""
        right = self.left + self.margin + STEP * len(self.order)
        parts = []
        for level, name in enumerate([*self.order, *self.roofs]):
            y = self.ground - STEP * (level + 1)
            kind = "roof" if name in self.roofs else "row"
            parts.append(f'<rect class="{kind}" x="{self.left}" y="{y + 1}" width="{right - self.left}" height="20"/>')
            parts.append(f'<text x="{self.left + 8}" y="{y + 15}">{escape(name)}</text>')
            parts += self._dots(name, y + STEP // 2, uses)
            if name in self.order:
                x = self._column(name)
                parts.append(f'<line class="line" x1="{x}" y1="{y + 17}" x2="{x}" y2="{self.ground + 4}"/>')
                parts.append(f'<rect class="own" x="{x - 6}" y="{y + 5}" width="12" height="12"/>')
                parts.append(
                    f'<text class="small" text-anchor="end" transform="translate({x + 4} {self.ground + 10}) '
                    f'rotate(-60)">{escape(name)}</text>'
                )
        return [*sorted(parts, key=_layer)]

    def _column(self, name: str) -> int:
        return self.left + self.margin + STEP * self.order.index(name) + STEP // 2

    def _dots(self, name: str, y: int, uses: Mapping[tuple[str, str], int]) -> list[str]:
        found = []
        for used in self.order:
            if count := uses.get((name, used), 0):
                radius, words = next((radius, words) for least, radius, words in SIZES if count >= least)
                found.append(
                    f'<circle class="dot" cx="{self._column(used)}" cy="{y}" r="{radius}">'
                    f"<title>{escape(name)} uses {escape(used)}: {words}</title></circle>"
                )
        return found


def _layer(part: str) -> int:
    """Rows lie below the lines, and these below all else."""
    return 0 if part.startswith(('<rect class="row"', '<rect class="roof"')) else 1 if part.startswith("<line") else 2


def _box(kind: str, left: int, top: int, size: tuple[int, int], lines: Sequence[str]) -> list[str]:
    """A rectangle with lines of text, the first of which is its name."""
    parts = [f'<rect class="{kind}" x="{left}" y="{top}" width="{size[0]}" height="{size[1]}"/>']
    for number, line in enumerate(lines):
        weight = "head" if number == 0 else "small"
        parts.append(f'<text class="{weight}" x="{left + 10}" y="{top + 20 + 17 * number}">{escape(line)}</text>')
    return parts


def _legend(left: int, top: int) -> list[str]:
    parts = [
        f'<rect class="own" x="{left}" y="{top - 11}" width="12" height="12"/>',
        f'<text class="small" x="{left + 20}" y="{top}">the room itself, look down from it for its column</text>',
    ]
    for number, (_, radius, words) in enumerate(reversed(SIZES), start=1):
        y = top + 20 * number
        parts.append(f'<circle class="dot" cx="{left + 6}" cy="{y - 5}" r="{radius}"/>')
        parts.append(f'<text class="small" x="{left + 20}" y="{y}">the row uses the column: {words}</text>')
    return parts


def picture() -> str:
    """The house as SVG: rooms and floors as stairs, recipes as the roof, the engine beside them."""
    engine = imports_of_folder("automation")
    recipes = {(RECIPES, room): count for room, count in imports_of_folder("script").items()}
    ground, floors_ground = 90 + STEP * (len(ROOMS) + 1), 90 + STEP * len(FLOORS)
    house = Stairs(order=ROOMS, roofs=(RECIPES,), left=20, ground=ground, margin=100)
    harness = Stairs(order=FLOORS, roofs=(), left=576, ground=floors_ground, margin=100)
    beside = floors_ground + 82
    engine_says = "uses: " + ", ".join(sorted(engine)) if engine else "imports no room, and no room imports it"
    parts = [
        '<text class="head" x="20" y="34">src/crowdperf: a room uses only rooms below it</text>',
        '<text class="small" x="20" y="54">from the ground up, recipes are the roof, Python is the ground</text>',
        '<text class="head" x="576" y="34">inside harness: floors, by the same rule</text>',
        *house.draw({**imports_between(), **recipes}),
        *harness.draw(imports_between(HARNESS)),
        *_box("engine", 576, beside, (364, 66), ["automation/: the engine", "runs the recipes for cm", engine_says]),
        *_legend(576, beside + 96),
    ]  # fmt: skip
    height = ground + 96
    title = "The rooms of crowdperf and what each uses"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
            ' role="img" aria-labelledby="title">',
            f"<!-- made by tools/{NAME} -->",
            f'<title id="title">{title}</title>',
            f"<style>{STYLE}</style>",
            f'<rect class="sheet" width="{WIDTH}" height="{height}"/>',
            *parts,
            "</svg>\n",
        ]
    )


def table() -> str:
    """The rooms from the ground up, with what their docstrings say and what they import from elsewhere."""
    rows = ["| room | purpose and limits | other packages |", "|---|---|---|"]
    for room in ROOMS:
        outside = ", ".join(f"`{name}`" for name in outside_packages(room)) or "-"
        said = sentence_of(room).replace("``", "`").replace("|", "\\|")
        rows.append(f"| [{room}](../../src/crowdperf/{room}/) | {said} | {outside} |")
    return "\n".join(rows) + "\n"


def main(words: Sequence[str] | None = None) -> int:
    """Writes both files, or with ``--check`` tells by the exit status whether they are up to date."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write no file, exit with 1 if a file would change")
    page = PAGE.read_text(encoding="utf-8")
    made = {PICTURE: picture(), PAGE: made_table.page_with_table(page, NAME, table())}
    if parser.parse_args(words).check:
        return int(any(not path.is_file() or path.read_text(encoding="utf-8") != text for path, text in made.items()))
    for path, text in made.items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(exit_code(main))
