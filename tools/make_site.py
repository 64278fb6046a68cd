"""Collects the pages of the documentation site under build/site-pages/ for Zensical, from the pages where they are
written: docs/, the README of each recipe, and those of the project. Links between them lead to the pages of the site.

    python tools/make_site.py [--repository_url=URL]

A link to another file of the repository leads below the URL, and is plain text without one. ./docs.sh then builds the
site; docs/testing.md has more.
"""

import argparse
import os
import posixpath
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import yaml
from reader import exit_code

CHECKOUT = Path(__file__).resolve().parent.parent
OUT = CHECKOUT / "build" / "site-pages"
PLACES = {
    "README.md": "index.md",
    "automation/README.md": "explanation/engine.md",
    "CHANGELOG.md": "project/changelog.md",
    "CODE_OF_CONDUCT.md": "project/code-of-conduct.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
}
"""Pages outside docs/, by their place on the site; a recipe's README becomes recipes/NAME.md."""
_FENCED = re.compile(r"(^ *```.*?^ *```[^\n]*$|`[^`\n]+`)", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^)\s]+)\)")
_SOURCE_LINK = re.compile(r"(!\[[^\]]*\])\(([^)\s]+)\)")
_TITLE = re.compile(r"^# +(.+)$", re.MULTILINE)


def site_places() -> dict[str, str]:
    """The pages of the site: the path in the repository -> the path below the site's pages."""
    places = {name: place for name, place in PLACES.items() if (CHECKOUT / name).is_file()}
    for path in sorted((CHECKOUT / "docs").rglob("*.md")):
        name = path.relative_to(CHECKOUT).as_posix()
        places[name] = name.removeprefix("docs/")
    for path in sorted((CHECKOUT / "script").glob("*/README.md")):
        places[path.relative_to(CHECKOUT).as_posix()] = f"recipes/{path.parent.name}.md"
    return places


def page_for_site(name: str, text: str, places: dict[str, str], repository_url: str = "") -> str:
    """The text of the page `name` (a path in the repository) with its links as they are on the site. Code stays."""
    folder, here = posixpath.dirname(name), posixpath.dirname(places[name])

    def target_of(link: str) -> str | None:
        """Where the link leads on the site; None for a file that is no page of it, without a repository URL."""
        path, mark, anchor = link.partition("#")
        if not path or re.match(r"[a-z]+:", link):
            return link
        target = posixpath.normpath(posixpath.join(folder, path))
        if target in places:
            return posixpath.relpath(places[target], here or ".") + mark + anchor
        if target.startswith("docs/") and (CHECKOUT / target).is_file():
            return posixpath.relpath(target.removeprefix("docs/"), here or ".")
        return f"{repository_url.rstrip('/')}/blob/main/{target}" if repository_url else None

    def linked(found: re.Match[str]) -> str:
        target = target_of(found[2])
        return found[1] if target is None else f"[{found[1]}]({target})"

    def shown(found: re.Match[str]) -> str:
        return f"{found[1]}({target_of(found[2]) or found[2]})"

    # A link's text may hold code, so code is put aside, not skipped.
    kept: list[str] = []

    def put_aside(found: re.Match[str]) -> str:
        kept.append(found[0])
        return f"\0{len(kept) - 1}\0"

    text = _SOURCE_LINK.sub(shown, _LINK.sub(linked, _FENCED.sub(put_aside, text)))
    return re.sub(r"\0(\d+)\0", lambda found: kept[int(found[1])], text)


def titles_of(folder: Path, below: str) -> list[dict[str, str]]:
    """The pages in a folder of the site for the navigation, by their first heading."""
    rows = []
    for path in sorted(folder.glob("*.md")):
        title = _TITLE.search(path.read_text(encoding="utf-8"))
        rows.append({title[1] if title else path.stem: f"{below}/{path.name}"})
    return rows


def _category_of(recipe: str) -> str:
    """The `category` of a recipe, or of the one that its `_base` names."""
    text = (CHECKOUT / "script" / recipe / "_cm.yaml").read_text(encoding="utf-8")
    meta = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # in C where there is any: ten times as quick
    found: str | None = meta.get("category")
    return found or _category_of(meta["_base"].partition("::")[2])


def recipe_groups(pages: list[dict[str, str]]) -> list[dict[str, list[dict[str, str]]]]:
    """Recipes in groups by the `category` of their `_cm.yaml`, each by its own name."""
    groups: dict[str, list[dict[str, str]]] = {}
    for page in pages:
        (place,) = page.values()
        name = Path(place).stem
        groups.setdefault(_category_of(name), []).append({name: place})
    return [{category: rows} for category, rows in sorted(groups.items())]


def write_site(out: Path, repository_url: str = "") -> None:
    """Writes the pages below `out`/pages and the configuration `out`/mkdocs.yml."""
    shutil.rmtree(out, ignore_errors=True)
    places = site_places()
    for name, place in places.items():
        target = out / "pages" / place
        target.parent.mkdir(parents=True, exist_ok=True)
        text = (CHECKOUT / name).read_text(encoding="utf-8")
        target.write_text(page_for_site(name, text, places, repository_url), encoding="utf-8")
    for path in (CHECKOUT / "docs").rglob("*"):
        if path.is_file() and path.suffix in (".png", ".svg", ".json", ".csv"):
            target = out / "pages" / path.relative_to(CHECKOUT / "docs")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
    site: dict[str, Any] = yaml.safe_load((CHECKOUT / "mkdocs.yml").read_text(encoding="utf-8"))
    for section in site["nav"]:
        if "Benchmarks" in section:
            section["Benchmarks"] = titles_of(out / "pages" / "reference" / "benchmarks", "reference/benchmarks")
        if "Recipes" in section:
            section["Recipes"] = recipe_groups(titles_of(out / "pages" / "recipes", "recipes"))
    if repository_url:
        site["repo_url"] = repository_url
    (out / "mkdocs.yml").write_text(yaml.safe_dump(site, sort_keys=False, allow_unicode=True), encoding="utf-8")


def main(words: list[str] | None = None) -> int:
    """Returns 0."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--repository_url", default=os.environ.get("CROWDPERF_URL", ""))
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args(words)
    write_site(options.out, options.repository_url)
    sys.stdout.write(f"{len(site_places())} pages in {options.out}\n")
    return 0


if __name__ == "__main__":
    sys.exit(exit_code(main))
