"""What is asked for, parsed once from the env keys of the recipe and checked whole."""

import os
import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, Literal, NamedTuple

from crowdperf.call.values import is_no, is_yes

from . import shell_words
from .bases import Base, base_of
from .shell_words import RequestError

Action = Literal["build", "prebuild", "attach", "headless"]
WORK = "/work"
"""Where the Makefile of NVIDIA's MLPerf v0.7 tree mounts it; its README says /workspace, which is a link here."""
TOOLS = "/opt/cm"
CM_INSIDE = f"{TOOLS}/bin/cm"
"""Whole, since what is printed names a bare ``cm`` as the host's user calls it, such as ``./cm``."""
SYSTEM_FOLDERS = ("/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/proc", "/run", "/sbin", "/sys",
                  "/usr/bin", "/usr/lib", "/usr/sbin", "/var/run", "/var/lib/docker", "/var/lib/containerd",
                  "/var/lib/containers")  # fmt: skip
"""Folders that a container gets neither itself, nor what lies in them or above them; but for FREE_FOLDERS."""
FREE_FOLDERS = ("/dev/shm",)
HOMES = ("/home", "/root")
"""Folders that are not mounted themselves; what lies in them is somebody's own, but for KEY_FOLDERS."""
KEY_FOLDERS = frozenset((".ssh", ".gnupg", ".docker", ".kube", ".aws", ".azure", ".netrc"))
DEVICES = re.compile(r"(?:all|none|void|[A-Za-z0-9][A-Za-z0-9:/-]*(?:,[A-Za-z0-9][A-Za-z0-9:/-]*)*)")
"""NVIDIA_VISIBLE_DEVICES: all, none, void, or numbers, UUIDs and MIG devices with commas (container toolkit)."""
TAGS = re.compile(r"[A-Za-z0-9_.+#~:/=@,-]+")
PACKAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+_:~-]*")
IMAGE_TAG = re.compile(r"\w[\w.-]{0,100}", re.ASCII)
CONTAINER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{1,100}")
SIZE = re.compile(r"\d+[bkmgBKMG]?")

Step = tuple[str, ...]
"""The words of one thing to run in the container."""


class HostFolders(NamedTuple):
    """Folders of the host for /work, scratch, the CM cache; empty: not mounted, ``auto``: the default."""

    work: str
    scratch: str
    cache: str
    has_home: bool


class Options(NamedTuple):
    """What goes to the engine as it is, or nearly so."""

    engine: str
    gpus: str
    shm_size: str
    is_unconfined: bool
    run_arguments: tuple[str, ...]
    build_arguments: tuple[str, ...]
    tag: str
    container: str
    user_id: str


class Request(NamedTuple):
    """All of a call. ``repo_url`` with ``repo_commit``: this repository is pulled in the image instead of copied."""

    action: Action
    is_plan: bool
    is_detached: bool
    base: Base
    steps: tuple[Step, ...]
    has_cm: bool
    packages: tuple[str, ...]
    repo_url: str
    repo_commit: str
    image_env: tuple[tuple[str, str], ...]
    container_env: tuple[tuple[str, str], ...]
    secrets: tuple[str, ...]
    places: HostFolders
    options: Options
    save: str


def request_of(env: Mapping[str, Any], values: Mapping[str, Any], outer: Mapping[str, str]) -> Request:
    """The request in a recipe's env and typed inputs. outer: the environment of the process. Raises RequestError."""
    action = env.get("CM_CONTAINER_ACTION") or "headless"
    has_cm = not is_no(_text(env, "CM_CONTAINER_WITH_CM", "with_cm"))
    steps = _steps(env, has_cm)
    if action == "headless" and not steps:
        raise RequestError(
            "there is no command to run in the container",
            hint="--recipe_tags=get,python3 or --commands='make build' (several: one on a line, or a JSON list)",
        )
    url, commit = _text(env, "CM_CONTAINER_REPO_URL", "repo_url"), _text(env, "CM_CONTAINER_REPO_COMMIT", "repo_commit")
    if url and not (re.fullmatch(r"(?:https|ssh)://[^\s-][^\s]*", url) and re.fullmatch(r"[0-9a-f]{40}", commit)):
        raise RequestError(
            f"--repo_url={url} with --repo_commit={commit!r} is not a pinned repository",
            "https://... or ssh://... with the 40 hexadecimal digits of a commit",
            "git ls-remote URL HEAD prints them",
        )
    packages = shell_words.split(env.get("CM_CONTAINER_PACKAGES"), "packages")
    for name in packages:
        _fits(PACKAGE, name, "packages", "names of packages of the image's distribution")
    image_env = shell_words.pairs(env.get("CM_CONTAINER_IMAGE_ENV"), "image_env")
    for name, value in image_env:
        if "\\" in value:
            raise RequestError(
                f"--image_env={name}: engines read a backslash in ENV differently",
                "values without backslash",
                "--container_env, which is given when the container starts",
            )
    return Request(
        action=action,
        is_plan=is_yes(env.get("CM_CONTAINER_IS_PLAN")),
        is_detached=is_yes(env.get("CM_CONTAINER_DETACH")),
        base=base_of(_text(env, "CM_CONTAINER_BASE_IMAGE_ASKED", "base_image")),
        steps=steps,
        has_cm=has_cm,
        packages=packages,
        repo_url=shell_words.without_secret(url, "repo_url"),
        repo_commit=commit,
        image_env=image_env,
        container_env=shell_words.pairs(env.get("CM_CONTAINER_ENV"), "container_env"),
        secrets=_secrets(env, outer),
        places=_places(env, outer),
        options=_options(env, values, outer),
        save=_text(env, "CM_CONTAINER_SAVE", "save"),
    )


def _steps(env: Mapping[str, Any], has_cm: bool) -> tuple[Step, ...]:
    tags = _text(env, "CM_CONTAINER_RECIPE_TAGS", "recipe_tags")
    arguments = shell_words.split(env.get("CM_CONTAINER_RECIPE_ARGS"), "recipe_args")
    steps: list[Step] = []
    if tags:
        _fits(TAGS, tags, "recipe_tags", "tags and variations with commas, in the format of cm run script --tags")
        if not has_cm:
            raise RequestError("--recipe_tags needs CM in the image", hint="leave --with_cm=no out")
        steps.append((CM_INSIDE, "run", "script", f"--tags={tags}", *arguments, "--quiet"))
    elif arguments:
        raise RequestError("--recipe_args is given without --recipe_tags", hint="--recipe_tags=get,python3")
    steps += [("/bin/sh", "-c", one) for one in shell_words.commands(env.get("CM_CONTAINER_COMMANDS"), "commands")]
    return tuple(steps)


def _secrets(env: Mapping[str, Any], outer: Mapping[str, str]) -> tuple[str, ...]:
    names = tuple(part for part in re.split(r"[\s,]+", _text(env, "CM_CONTAINER_PASSED_NAMES", "secrets")) if part)
    for name in names:
        if not shell_words.NAME.fullmatch(name):
            raise RequestError(
                "--secrets accepts names, never values", "names of environment variables", "--secrets=NAME"
            )
        if not outer.get(name):
            raise RequestError(
                f"--secrets={name}: there is no such variable in the environment", hint=f"export {name}=..."
            )
    return names


def _places(env: Mapping[str, Any], outer: Mapping[str, str]) -> HostFolders:
    scratch = _text(env, "CM_CONTAINER_SCRATCH", "scratch") or outer.get("MLPERF_SCRATCH_PATH", "")
    return HostFolders(
        work=_folder(_text(env, "CM_CONTAINER_WORK", "work") or "auto", "work"),
        scratch=_folder(scratch, "scratch"),
        cache=_folder(_text(env, "CM_CONTAINER_CACHE", "cache_path") or "auto", "cache_path"),
        has_home=is_yes(env.get("CM_CONTAINER_HOME")),
    )


def _options(env: Mapping[str, Any], values: Mapping[str, Any], outer: Mapping[str, str]) -> Options:
    gpus = _text(env, "CM_CONTAINER_GPUS", "gpus") or outer.get("NVIDIA_VISIBLE_DEVICES", "") or "auto"
    _fits(DEVICES, gpus, "gpus", "auto, all, none, or devices with commas: 0,2 or GPU-... or MIG-...")
    shm_size = _text(env, "CM_CONTAINER_SHM_SIZE", "shm_size")
    tag, name = _text(env, "CM_CONTAINER_TAG", "docker_tag"), _text(env, "CM_CONTAINER_NAME", "container_name")
    user_id = _text(env, "CM_CONTAINER_USER_ID", "user_id")
    if shm_size:
        _fits(SIZE, shm_size, "shm_size", "a number with b, k, m or g: 32g")
    if tag:
        _fits(IMAGE_TAG, tag, "docker_tag", "letters, digits, dot, dash and _")
    if name:
        _fits(CONTAINER_NAME, name, "container_name", "letters, digits, dot, dash and _")
    if user_id:
        _fits(re.compile(r"[1-9]\d{0,8}"), user_id, "user_id", "the number of a user, not 0")
    return Options(
        engine=values["engine"] or "",
        gpus=gpus,
        shm_size=shm_size,
        is_unconfined=values["security"] == "unconfined",
        run_arguments=shell_words.split(env.get("CM_CONTAINER_RUN_ARGS"), "docker_args"),
        build_arguments=shell_words.split(env.get("CM_CONTAINER_BUILD_ARGS"), "build_args"),
        tag=tag,
        container=name,
        user_id=user_id,
    )


def _folder(path: str, flag: str) -> str:
    """A folder of the host for a mount; ``no`` and nothing give an empty text. Raises RequestError."""
    if path.lower() in ("", "no", "false", "auto"):
        return path if path == "auto" else ""
    if any(sign in path for sign in ':,"'):
        raise RequestError(f"--{flag}={path!r} cannot be mounted", "a path without colon, comma and quote")
    shown = f"/{path.lstrip('/')}" if path.startswith("/") else path
    for one in (shown, os.path.realpath(shown)):
        if not path.startswith("/") or ".." in PurePosixPath(path).parts or _is_system(PurePosixPath(one)):
            raise RequestError(
                f"--{flag}={path!r} cannot be mounted", "an absolute path, neither in nor above a folder of the system"
            )
    if os.path.exists(shown) and not os.path.isdir(shown):
        raise RequestError(f"--{flag}={path!r} cannot be mounted: not a folder", "a folder")
    return str(PurePosixPath(shown))


def _is_system(path: PurePosixPath) -> bool:
    """Whether a folder is the system's, holds a part of it, or keys of a user."""
    if str(path) in HOMES or KEY_FOLDERS & set(path.parts):
        return True
    if any(path.is_relative_to(free) for free in FREE_FOLDERS):
        return False
    return any(path.is_relative_to(one) or PurePosixPath(one).is_relative_to(path) for one in SYSTEM_FOLDERS)


def _fits(pattern: re.Pattern[str], value: str, flag: str, allowed: str) -> None:
    if not pattern.fullmatch(value):
        raise RequestError(f"--{flag}={value!r} cannot be used", allowed)


def _text(env: Mapping[str, Any], key: str, flag: str) -> str:
    value = env.get(key)
    text = "" if value is None else ",".join(map(str, value)) if isinstance(value, list) else str(value)
    return shell_words.clean(text.strip(), flag)
