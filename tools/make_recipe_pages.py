"""Writes the block of each script/*/README.md that follows from the recipe's _cm.yaml: inputs, cost, hardware status.

python tools/make_recipe_pages.py [--check]
"""

import argparse
import sys
from pathlib import Path

import engine_package  # noqa: F401 - the next imports need it
import made_table
from reader import exit_code
from recipe_engine.disk.metadata import read_meta
from recipe_engine.documents.recipe_help import HelpInput, costs_of, inputs_of
from recipe_engine.rules.model import Recipe
from recipe_engine.rules.schema import parse_recipe

CHECKOUT = Path(__file__).resolve().parent.parent
NAME = Path(__file__).name


def _row(item: HelpInput) -> str:
    values = ", ".join(f"`{choice}`" for choice in item.choices) or item.allowed or item.type or "text"
    if item.choices and item.type.startswith("list of"):
        values = f"comma list of {values}"
    notes = [
        item.description.rstrip("."),
        f"Only with --{' or --'.join(item.only_with)}" if item.only_with else "",
        f"Together with --{' and --'.join(item.together_with)}" if item.together_with else "",
        "May be empty" if item.may_be_empty else "",
        f"Also {', '.join(f'`--{alias}`' for alias in item.aliases)}" if item.aliases else "",
        f"Only with _{item.variation}" if item.variation else "",
    ]
    default = f"`{item.default}`" if item.default else ""
    cells = [f"`--{item.name}`", values, default, ". ".join(filter(None, notes))]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells).replace("  ", " ") + " |"


def block_of(recipe: Recipe) -> str:
    """The Markdown between the marks: what there is of inputs, cost, and hardware status."""
    rows = [_row(item) for item in inputs_of(recipe)]
    parts = []
    if rows:
        parts.append("## Inputs\n\n| input | values | default | meaning |\n|---|---|---|---|\n" + "\n".join(rows))
    lines = [f"| {name.capitalize()} | {text} |" for name, text in costs_of(recipe).items()]
    if lines:
        parts.append("## Cost\n\n| | |\n|---|---|\n" + "\n".join(lines))
    if status := recipe.meta.get("hardware_status"):
        parts.append(f"**Hardware status:** {' '.join(str(status).split())}")
    return "\n" + "".join(f"{part}\n\n" for part in parts)


def page_of(readme: Path) -> str:
    """A README with its block as it must be. Raises ValueError when it has no place for it."""
    folder = readme.parent
    meta = read_meta(folder)
    recipe = parse_recipe(meta.values, folder, CHECKOUT, meta.name)
    try:
        return made_table.page_with_table(readme.read_text(encoding="utf-8"), NAME, block_of(recipe))
    except ValueError as error:
        raise ValueError(f"{readme}: {error}") from None


def main() -> int:
    """Writes the pages, or with ``--check`` lists those that would change and exits with 1."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write no file, exit with 1 if a page would change")
    pages = {readme: page_of(readme) for readme in sorted(CHECKOUT.glob("script/*/README.md"))}
    changed = [readme for readme, page in pages.items() if page != readme.read_text(encoding="utf-8")]
    if parser.parse_args().check:
        print(*(readme.relative_to(CHECKOUT) for readme in changed), sep="\n")
        return 1 if changed else 0
    for readme in changed:
        readme.write_text(pages[readme], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(exit_code(main))
