"""Writes the tables of docs/howto/from-nvidia.md and from-azure.md: each line of a document, and what it does here.

    .venv-test/bin/python tools/make_front_door_pages.py [--check]

The lines are those of tests/docs/document_lines.yaml; what a line of make calls is asked of run-mlperf-make itself.
"""

import sys
from pathlib import Path
from typing import Any

import yaml
from reader import exit_code

ROOT = Path(__file__).resolve().parents[1]
LINES = ROOT / "tests" / "docs" / "document_lines.yaml"
PAGES = {"nvidia": "from-nvidia", "nvidia_guides": "from-nvidia", "azure": "from-azure"}
WORKSPACE = Path("/workspace/closed/NVIDIA")
"""Stands for the folder of the workspace in plans; nothing is there, and nothing is made."""
sys.path[:0] = [str(ROOT / "tests" / "support"), str(ROOT / "src"), str(ROOT / "automation")]


def rows(document: str) -> list[dict[str, Any]]:
    """The lines of a document."""
    found: list[dict[str, Any]] = yaml.safe_load(LINES.read_text(encoding="utf-8"))[document]
    return found


def plan_of(row: dict[str, Any], folder: Path, **more: str) -> Any:
    """The plan of a line of make in a workspace, with made data on the processor. Raises MakeError."""
    from recipe_loader import input_values, load_module

    request, plans, context = (load_module("run-mlperf-make", name) for name in ("request", "plans", "context"))
    target, *pairs = row["make"]
    values = dict(pair.split("=", 1) for pair in pairs) | more
    env = {f"CM_MAKE_{name}": text for name, text in values.items()}
    if "MACHINE" not in values:
        env |= {"CM_MAKE_SOURCE": "tiny", "CM_MAKE_USE_CPU": "1"}
    inputs = input_values("run-mlperf-make", {**env, "CM_MAKE_GOAL": "plan", "CM_MAKE_TARGET": target})
    asked = request.read(inputs, {}, folder)
    return plans.plan_of(context.Around(asked, "TIME"))


def here(row: dict[str, Any]) -> str:
    """What a line calls here, in words: the tags of its recipe calls, each once."""
    if "make" not in row:
        return f"`{row['here']}`" if "here" in row else "as it is"
    if row["outcome"] == "refused":
        from recipe_loader import load_module

        try:
            plan_of(row, WORKSPACE)
        except load_module("run-mlperf-make", "request").MakeError as error:
            return str(error).replace("\n", " ").replace("|", "\\|")
        raise SystemExit(f"{row['line']} is not refused")
    if row["make"][0].startswith("run_audit"):
        return "`run,mlperf,compliance` of the newest runs"
    tags = dict.fromkeys(call.tags for call in plan_of(row, WORKSPACE, **row.get("try", {})).calls)
    return ", ".join(f"`{one}`" for one in tags) or "no recipe"


def table(document: str) -> str:
    """The table of a document."""
    lines = ["| the document's line | outcome | here |", "|---|---|---|"]
    for row in rows(document):
        text = ". ".join(part for part in (here(row), row.get("why", "")) if part)
        lines.append(f"| `{row['line']}` | {row['outcome']} | {text} |")
    return "\n".join(lines)


def page_text(page: str) -> str:
    """A page with its tables as they should be."""
    text = (ROOT / "docs" / "howto" / f"{page}.md").read_text(encoding="utf-8")
    for document in (name for name, one in PAGES.items() if one == page):
        begin, end = f"<!-- {document}: begin -->\n", f"\n<!-- {document}: end -->"
        head, _, rest = text.partition(begin)
        text = f"{head}{begin}{table(document)}{end}{rest.partition(end)[2]}"
    return text


def main(words: list[str]) -> int:
    """Writes the pages, or with --check says which are not as they should be."""
    wrong = []
    for page in dict.fromkeys(PAGES.values()):
        path, text = ROOT / "docs" / "howto" / f"{page}.md", page_text(page)
        if path.read_text(encoding="utf-8") != text:
            wrong.append(path.name)
            if "--check" not in words:
                path.write_text(text, encoding="utf-8")
    print("\n".join(wrong) or "no changes")
    return int(bool(wrong) and "--check" in words)


if __name__ == "__main__":
    sys.exit(exit_code(main, sys.argv[1:]))
