"""The image as a list of instructions that know nothing of a file format; one layer for each step.

Two stages, as ``make build_docker`` and ``make attach_docker`` of NVIDIA's MLPerf v0.7 tree have them: ``build`` holds
tools and sources, ``user`` adds the account of the caller and runs the steps as that user.
"""

from typing import NamedTuple

from .request import CM_INSIDE, TOOLS, WORK, Request, Step

SOURCES = "/opt/crowdperf"
"""Where this repository is in the image: outside /work, where the workspace is mounted."""
CM_HOME = "/cm"
CM_CACHE = "/cm-cache"
SUBMITTER = "container"
"""Name of the submitter in the image's own workspace; SUBMITTER=NAME overrides it."""
REQUIREMENTS = "requirements.txt"
PACKAGES_SCRIPT = (  # words: ok P23
    "set -eu; if command -v apt-get >/dev/null; then "
    "python3 -c 'import venv, ensurepip' 2>/dev/null || set -- \"$@\" python3 python3-venv; apt-get update; "
    'DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"; rm -rf /var/lib/apt/lists/*; '
    'exit; fi; command -v python3 >/dev/null || set -- "$@" python3; '
    'if command -v dnf >/dev/null; then dnf install -y "$@"; elif command -v yum >/dev/null; then yum install -y "$@"; '
    'elif command -v zypper >/dev/null; then zypper --non-interactive install "$@"; '
    'elif command -v pacman >/dev/null; then pacman -Sy --noconfirm "$@"; '
    'elif command -v apk >/dev/null; then apk add --no-cache bash "$@"; '
    "else echo 'the base image has no package tool that is known' >&2; exit 1; fi"
)
"""Programs, not names of distributions: a derived distribution has the tool of its parent. ``$@``: the packages."""
FOLDERS_SCRIPT = (  # words: ok P23
    f"set -eu; mkdir -p {WORK}; [ -e /workspace ] || ln -s {WORK} /workspace; mkdir -p {CM_HOME} {CM_CACHE}; "
    f"echo '[\"{SOURCES}\"]' > {CM_HOME}/repos.json"
)
WORKSPACE_SCRIPT = (  # words: ok P23
    f"set -eu; {CM_INSIDE} run script --tags=run,mlperf,make,_init --path=/opt/workspace --submitter={SUBMITTER} "
    "--quiet; "
    f"cp /opt/workspace/closed/{SUBMITTER}/Makefile {WORK}/"
)
"""Gives /work a Makefile for containers without a mounted workspace."""
USER_SCRIPT = (  # words: ok P23
    'set -eu; for f in passwd group; do touch /etc/$f; { grep -v -e "^$1:" -e "^[^:]*:[^:]*:$2:" /etc/$f || true; } '
    '> /etc/$f.new; cat /etc/$f.new > /etc/$f; rm /etc/$f.new; done; echo "$1:x:$3:" >> /etc/group; '
    'echo "$1:x:$2:$3::/home/$1:/bin/sh" >> /etc/passwd; '
    f'mkdir -p "/home/$1"; chown -R "$2:$3" "/home/$1" {CM_HOME} {CM_CACHE} {WORK}'
)
"""``$1`` name, ``$2`` uid, ``$3`` gid; by hand, because images lack useradd or have it under another name."""
SECRET_SCRIPT = (  # words: ok P23
    'n=$1; shift; while [ "$n" != - ]; do export "$n=$(cat "/run/secrets/$n")"; n=$1; shift; done; exec "$@"'
)
"""Names of secrets up to ``-``, then the words to run with them: they are files for this one step, and in no layer."""


class Account(NamedTuple):
    """The user inside the container."""

    name: str
    uid: int
    gid: int


class Source(NamedTuple):
    """This repository: the commit that goes into the image, or empty texts; how many files differ from it."""

    folder: str
    commit: str
    changed_count: int = 0


class From(NamedTuple):
    """Begins a stage."""

    reference: str
    stage: str


class Run(NamedTuple):
    """Words to run, as they are; a cached folder (path in the container) and secrets are there for this step only."""

    words: tuple[str, ...]
    cached_folder: str = ""
    owner: Account | None = None
    secrets: tuple[str, ...] = ()


class Copy(NamedTuple):
    """From the build context into the image."""

    source: str
    target: str


class Setting(NamedTuple):
    """A variable of the image; ``is_path``: goes in front of what PATH holds."""

    name: str
    value: str
    is_path: bool = False


class Label(NamedTuple):
    """A fact about the image."""

    name: str
    value: str


class Switch(NamedTuple):
    """The user and folder from here on."""

    user: str
    folder: str


Instruction = From | Run | Copy | Setting | Label | Switch


def instructions(request: Request, account: Account, source: Source, *, is_baked: bool) -> tuple[Instruction, ...]:
    """The image of a request; ``is_baked``: the steps are layers of it."""
    build: list[Instruction] = [From(request.base.reference, "build")]
    commit = request.repo_commit or source.commit
    if request.has_cm or request.packages:
        names = ("ca-certificates", "git", "make") if request.has_cm else ()
        build.append(Run(("/bin/sh", "-c", PACKAGES_SCRIPT, "packages", *names, *request.packages)))
    build += _cm(request) if request.has_cm else []
    build.append(Run(("/bin/sh", "-c", FOLDERS_SCRIPT)))
    if request.has_cm:
        build.append(Run(("/bin/sh", "-c", WORKSPACE_SCRIPT)))
    build += [Setting(name, value) for name, value in request.image_env]
    if request.has_cm and commit:  # at the end: with another commit the layers before it stay as they are
        build.append(Label("org.opencontainers.image.revision", commit))
    user: list[Instruction] = [
        From("build", "user"),
        Run(("/bin/sh", "-c", USER_SCRIPT, "user", account.name, str(account.uid), str(account.gid))),
        Setting("HOME", f"/home/{account.name}"),
        Switch(f"{account.uid}:{account.gid}", WORK),
    ]
    has_cache = request.places.cache != ""
    user += [layer(step, request.secrets, CM_CACHE if has_cache else "", account) for step in request.steps if is_baked]
    return (*build, *user)


def layer(step: Step, secrets: tuple[str, ...], cached_folder: str, owner: Account) -> Run:
    """A step as a layer."""
    wrapped = ("/bin/sh", "-c", SECRET_SCRIPT, "step", *secrets, "-", *step) if secrets else step
    return Run(wrapped, cached_folder, owner, secrets)


def _cm(request: Request) -> list[Instruction]:
    """CM, its packages in their own folder, and this repository in SOURCES."""
    pip = (f"{TOOLS}/bin/python", "-m", "pip", "install", "--disable-pip-version-check", "-r")
    into_venv: list[Instruction] = [
        Run(("python3", "-m", "venv", TOOLS)),
        Setting("PATH", f"{TOOLS}/bin", is_path=True),
        Setting("CM_REPOS", CM_HOME),
        Setting("CROWDPERF_CACHE", CM_CACHE),
        Setting("CROWDPERF_MAKE_CM", "cm"),  # the Makefile of a workspace names the cm of the host
    ]
    if request.repo_url:
        return [
            *into_venv,
            Run(("git", "clone", "--no-checkout", request.repo_url, SOURCES)),
            Run(("git", "-C", SOURCES, "checkout", "--detach", request.repo_commit)),
            Run((*pip, f"{SOURCES}/{REQUIREMENTS}"), "/root/.cache/pip"),
        ]
    return [
        *into_venv,
        Copy(REQUIREMENTS, f"{TOOLS}/{REQUIREMENTS}"),  # before the sources: they change more often than this
        Run((*pip, f"{TOOLS}/{REQUIREMENTS}"), "/root/.cache/pip"),
        Copy(".", SOURCES),
    ]
