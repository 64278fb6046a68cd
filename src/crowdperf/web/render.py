"""Fills the templates. Every text is escaped by jinja2 and stripped of invisible characters by `shown`."""

from functools import lru_cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from crowdperf.kit.html_page import STYLE
from crowdperf.web.formats import shortened, shown
from crowdperf.web.links import Links
from crowdperf.web.wording import kind_of_label

FOLDER = Path(__file__).resolve().parent


@lru_cache(maxsize=1)
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=shown,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.globals["kind_of_label"] = kind_of_label
    made.filters["shortened"] = shortened
    return made


def page(name: str, link: Links, **values: Any) -> str:
    """The HTML of the page `name`.html. values: what its template reads."""
    template = _environment().get_template(f"{name}.html")
    return template.render(site_name=link.site_name, link=link, here=values.pop("here", ""), **values)


@lru_cache(maxsize=1)
def style() -> str:
    """The style of all pages: that of the project's static pages, and what these have beside it."""
    return STYLE + (FOLDER / "static" / "web.css").read_text(encoding="utf-8")
