"""An image's instructions as a Dockerfile or as an Apptainer definition, so that no value can change their structure.

Dockerfile: everything that is run stands in the exec form, a JSON list on one line. No variable is replaced there and
no shell reads it. ``<`` is written as ``\\u003c``, because BuildKit looks for here-documents before it reads the list.
ENV and LABEL know variables: their values are quoted, ``\\``, ``"`` and ``$`` escaped. Sources: Docker's Dockerfile
reference and moby/buildkit's frontend/dockerfile/parser and shell (2025). Apptainer: words quoted for the shell that
reads ``%post``, and ``{{`` parted, which stands for a variable of its templates (Apptainer 1.2 and newer).
"""

import json
import re
import shlex
from collections.abc import Iterable

from .bases import Base
from .image import CM_CACHE, CM_HOME, USER_SCRIPT, Copy, From, Instruction, Label, Run, Setting
from .request import TOOLS, WORK
from .shell_words import RequestError

HEADER = "# Made by crowdperf's recipe run-in-container. Values are JSON strings, without expansion."
CACHE_ID = "crowdperf"


def dockerfile(instructions: Iterable[Instruction]) -> str:
    """The text of a Dockerfile."""
    return "\n".join([HEADER, *(_line(one) for one in instructions), 'CMD ["/bin/sh"]']) + "\n"


def json_words(words: Iterable[str]) -> str:
    """Words as a JSON list in ASCII, without a sign that a parser of Dockerfiles looks for."""
    return json.dumps(list(words)).replace("<", "\\u003c")


def quoted(value: str) -> str:
    """A value for ENV or LABEL."""
    return '"' + re.sub(r'([\\"$])', r"\\\1", value) + '"'


def _line(one: Instruction) -> str:
    if isinstance(one, From):
        return f"\nFROM {one.reference} AS {one.stage}"
    if isinstance(one, Run):
        return f"RUN {_mounts(one)}{json_words(one.words)}"
    if isinstance(one, Copy):
        return f"COPY {json_words((one.source, one.target))}"
    if isinstance(one, Setting):
        return f'ENV {one.name}="{one.value}:$PATH"' if one.is_path else f"ENV {one.name}={quoted(one.value)}"
    if isinstance(one, Label):
        return f"LABEL {one.name}={quoted(one.value)}"
    return f"USER {one.user}\nWORKDIR {one.folder}"


def _mounts(run: Run) -> str:
    owner = f",uid={run.owner.uid},gid={run.owner.gid}" if run.owner else ""
    who = f"-{run.owner.uid}" if run.owner else ""
    name = run.cached_folder.strip("/").replace("/", "-").replace(".", "")
    cache = (
        f"--mount=type=cache,id={CACHE_ID}-{name}{who},target={run.cached_folder}{owner} " if run.cached_folder else ""
    )
    secrets = (
        f"--mount=type=secret,id={name},target=/run/secrets/{name},required=true{owner} " for name in run.secrets
    )
    return cache + "".join(secrets)


def definition(instructions: Iterable[Instruction]) -> str:
    """The text of an Apptainer definition: one stage, because the caller is the user inside. Raises RequestError."""
    files, post, environment, labels, base = [], [], [], [], ""
    for one in instructions:
        if isinstance(one, From):
            base = base or Base(one.reference).without_tag
            if one.stage == "user":
                post.append(f"chmod -R a+rwX {CM_HOME} {CM_CACHE} {WORK}")
        elif isinstance(one, Copy):
            files.append(f"    {one.source} {one.target}")
        elif isinstance(one, Setting) and one.name != "HOME":
            value = f'{one.value}:"$PATH"' if one.is_path else shell_word(one.value)
            environment.append(f"export {one.name}={value}")
            post.append(environment[-1])
        elif isinstance(one, Label):
            labels.append(f"    {one.name} {one.value}")
        elif isinstance(one, Run) and one.secrets:
            raise RequestError(
                "Apptainer has no secrets while it builds an image",
                hint="leave the step out of the image: _headless gives secrets when it runs the step",
            )
        elif isinstance(one, Run) and one.words[2:3] != (USER_SCRIPT,):
            post.append(" ".join(shell_word(word) for word in one.words))
    parts = [f"Bootstrap: docker\nFrom: {base}\n"]
    parts += [f"%files\n{_lines(files)}"] if files else []
    parts += [f"%post\n    set -eu\n    mkdir -p {TOOLS}\n{_lines(post, 4)}"]
    parts += [f"%environment\n{_lines(environment, 4)}"] if environment else []
    parts += [f"%labels\n{_lines(labels)}"] if labels else []
    return "\n".join(parts)


def shell_word(word: str) -> str:
    """A word for a POSIX shell inside a definition."""
    return re.sub(r"\{(?=\{)", "{''", shlex.quote(word)) if "{{" in word else shlex.quote(word)


def _lines(lines: list[str], indent: int = 0) -> str:
    return "".join(" " * indent + line + "\n" for line in lines)
