"""Writes docs/reference/schemas/*.schema.json, a JSON Schema for each JSON file that crowdperf leaves, and the page
docs/reference/result-files.md, from tools/result_files.yaml, where the notation is described.

    python tools/make_result_schemas.py [--check]
"""

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from reader import exit_code

CHECKOUT = Path(__file__).resolve().parent.parent
SOURCE = CHECKOUT / "tools" / "result_files.yaml"
PAGE = CHECKOUT / "docs" / "reference" / "result-files.md"
SCHEMAS = CHECKOUT / "docs" / "reference" / "schemas"
Schema = dict[str, Any]

TYPES: dict[str, Schema] = {
    "text": {"type": "string"},
    "whole": {"type": "integer", "minimum": 0},
    "integer": {"type": "integer"},
    "number": {"type": "number"},
    "yes_no": {"type": "boolean"},
    "null": {"type": "null"},
    "any": {},
    "object": {"type": "object"},
    "utc": {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+00:00)$"},
    "sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
}
_ABOUT = """\
The JSON files that crowdperf leaves, field by field. `schemas/` has a JSON Schema (2020-12) for each. Files may have
more fields than these. `format` rises when a listed field changes its meaning or goes. Readers refuse a format that
they do not know. LoadGen's own files (`mlperf_log_*`) are not listed, and `record.json` is described in
[reproduce](../howto/reproduce.md)."""
HELP = {"utc": "time in UTC, ISO 8601", "sha256": "SHA-256, 64 hexadecimal digits"}
WORDS = {"whole": "whole number", "yes_no": "true or false", "any": "any value", "utc": "text", "sha256": "text"}


def _split(text: str) -> tuple[str, str]:
    """A field's type and its help."""
    kind, _, told = text.partition(": ")
    return kind.strip(), told.strip() or HELP.get(kind.strip(), "")


def _type(kind: str) -> Schema:
    """The schema of a type, such as `[text]|null` or `'VALID'|'INVALID'`."""
    options = kind.split("|")
    if all(one.startswith("'") for one in options):
        return {"enum": [one.strip("'") for one in options]}
    if len(options) > 1:
        return {"anyOf": [_type(one) for one in options]}
    if kind.startswith("["):
        return {"type": "array", "items": _type(kind[1:-1])}
    if kind.startswith("{"):
        return {"type": "object", "additionalProperties": _type(kind[1:-1])}
    return dict(TYPES[kind]) if kind in TYPES else {"$ref": f"#/$defs/{kind}"}


def schema_of(field: Any) -> Schema:
    """The schema of a field: a text, a mapping of fields, or a list of one kind of item (with null first: or null)."""
    if isinstance(field, list):
        if field[0] is None:
            return {"anyOf": [{"type": "null"}, schema_of(field[1])]}
        return {"type": "array", "items": schema_of(field[0])}
    if isinstance(field, Mapping):
        if "{}" in field:
            return {"type": "object", "additionalProperties": schema_of(field["{}"])}
        return {
            "type": "object",
            "properties": {name.rstrip("?"): schema_of(value) for name, value in field.items()},
            "required": [name for name in field if not name.endswith("?")],
        }
    kind, told = _split(field)
    return {**_type(kind), **({"description": told} if told else {})}


def file_schema(name: str, file: Mapping[str, Any], shapes: Mapping[str, Any]) -> Schema:
    """The JSON Schema of one kind of file, with those of the shapes that it uses."""
    fields = {**({"format": "any: version of this file's format"} if "format" in file else {}), **file["fields"]}
    body = schema_of(fields)
    if "format" in file:
        body["properties"]["format"] = {"const": file["format"], "description": "version of this file's format"}
    if file.get("closed"):
        body["additionalProperties"] = False
    used: dict[str, Schema] = {}
    waiting = [body]
    while waiting:
        text = json.dumps(waiting.pop())
        for shape in shapes:
            if f'"#/$defs/{shape}"' in text and shape not in used:
                used[shape] = schema_of(shapes[shape])
                waiting.append(used[shape])
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": name, "description": file["about"]}
    return {**head, **body, **({"$defs": {shape: used[shape] for shape in shapes if shape in used}} if used else {})}


def _kind_words(kind: str) -> str:
    options = kind.split("|")
    if len(options) > 1:
        return " or ".join(_kind_words(one) for one in options)
    if kind.startswith("["):
        return f"list of {_kind_words(kind[1:-1])}"
    if kind.startswith("{"):
        return f"names to {_kind_words(kind[1:-1])}"
    if kind.startswith("'"):
        return f"`{kind.strip(chr(39))}`"
    return WORDS.get(kind, kind if kind in TYPES else f"[{kind}](#{kind})")


def _rows(fields: Mapping[str, Any], shapes: Mapping[str, Any], path: str = "") -> list[str]:
    """A row of the table for each field; fields of a mapping follow with its name in front."""
    rows = []
    for key, value in fields.items():
        name = "*" if key == "{}" else key.rstrip("?")
        mark = " (may be missing)" if key.endswith("?") else ""
        field, kind = value, ""
        if isinstance(field, list):
            is_null = field[0] is None
            field = field[-1]
            kind = "object or null" if is_null else "list of object"
            below = f"{path}{name}{'' if is_null else '[]'}."
        else:
            below, kind = f"{path}{name}.", "object"
        if isinstance(field, Mapping):
            rows.append(f"| `{path}{name}` | {kind}{mark} | |")
            rows += _rows(field, shapes, below)
            continue
        kind, told = _split(field)
        if kind in shapes and not isinstance(shapes[kind], Mapping):
            kind, told = _split(shapes[kind])
        rows.append(f"| `{path}{name}` | {_kind_words(kind)}{mark} | {told} |")
    return rows


def page(source: Mapping[str, Any]) -> str:
    """The page: a section for each kind of file, and one for each shape that has fields."""
    shapes = source["shapes"]
    head = ["| field | type | meaning |", "|---|---|---|"]
    parts = [
        "# Result files",
        f"Made by tools/{Path(__file__).name} from `tools/{SOURCE.name}`.",
        _ABOUT,
    ]
    for name, file in source["files"].items():
        version = f" Format {file['format']}." if "format" in file else ""
        link = f"[schema](schemas/{_schema_name(name)})"
        parts.append(f"## {name}\n\n{file['about']} Place: {file['place']}.{version} {link}.")
        parts.append("\n".join([*head, *_rows(file["fields"], shapes)]))
    parts.append("## Shapes that several files share")
    for name, shape in shapes.items():
        if isinstance(shape, Mapping):
            parts.append(f"### {name}\n\n" + "\n".join([*head, *_rows(shape, shapes)]))
    return "\n\n".join(parts) + "\n"


def _schema_name(file: str) -> str:
    return file.removesuffix(".json") + ".schema.json"


def made_files() -> dict[Path, str]:
    """What this tool writes: path -> text."""
    source = yaml.safe_load(SOURCE.read_text(encoding="utf-8"))
    made = {PAGE: page(source)}
    for name, file in source["files"].items():
        made[SCHEMAS / _schema_name(name)] = json.dumps(file_schema(name, file, source["shapes"]), indent=1) + "\n"
    return made


def main() -> int:
    """Returns 1 where --check finds a file that differs, else 0."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--check", action="store_true", help="write no file, exit with 1 if a file would change")
    is_check = parser.parse_args().check
    stale = {path: text for path, text in made_files().items() if not path.is_file() or path.read_text("utf-8") != text}
    for path, text in stale.items():
        if not is_check:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        sys.stdout.write(f"{path.relative_to(CHECKOUT)} {'is not up to date' if is_check else 'written'}\n")
    return 1 if is_check and stale else 0


if __name__ == "__main__":
    sys.exit(exit_code(main))
