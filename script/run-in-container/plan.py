"""From a request and the facts of a machine to the whole plan: image, command lines, notes. Pure."""

import shlex
from collections.abc import Mapping
from typing import Any, NamedTuple

from . import image, launch
from .dockerfile import definition, dockerfile
from .facts import Facts
from .image import Account, Instruction
from .launch import Container, Gpus
from .request import CM_INSIDE, WORK, Request
from .shell_words import RequestError

FILE, CONTEXT = "Dockerfile", "context"

NEURON_SHM = "32g"
"""Shared memory that NVIDIA's v2.0 Makefile gives its container on AWS Inferentia (mlcommons/inference_results_v2.0,
425a0d30)."""


class Plan(NamedTuple):
    """What would be done. ``trouble`` is why no engine can do it here; ``tag`` that of both images."""

    request: Request
    account: Account
    container: Container
    tag: str
    instructions: tuple[Instruction, ...]
    notes: tuple[str, ...]
    trouble: str
    checkout: str
    commit: str

    @property
    def text(self) -> str:
        """The Dockerfile, or the Apptainer definition."""
        is_definition = self.container.engine == "apptainer"
        return definition(self.instructions) if is_definition else dockerfile(self.instructions)

    @property
    def is_copied(self) -> bool:
        """Whether this repository goes into the build context."""
        return self.request.has_cm and not self.request.repo_url


def make(request: Request, facts: Facts) -> Plan:
    """The plan. Raises RequestError where the request does not fit the engine or this checkout."""
    engine, trouble = _engine(request, facts)
    account, tag = _account(request, facts), request.options.tag or facts.account.name
    is_apptainer = engine["name"] == "apptainer"
    if request.has_cm and not request.repo_url and not facts.source.commit:
        needs_cm = any(step[0] == CM_INSIDE for step in request.steps)
        raise RequestError(
            f"{facts.source.folder} is not a git checkout, so there is no commit to put into the image",
            hint="--repo_url=URL --repo_commit=COMMIT of a clone (git rev-parse HEAD prints it)"
            f"{'' if needs_cm else ', or --with_cm=no'}",
        )
    gpus = _gpus(request, facts, engine["name"])
    work = facts.workspace if request.places.work == "auto" else request.places.work
    cache = request.places.cache
    if cache == "auto":
        cache = f"{facts.cm_home}/containers/{request.base.short}" if request.has_cm and facts.cm_home else ""
    places = (("MLPERF_SCRATCH_PATH", request.places.scratch), ("CROWDPERF_CACHE", cache if request.has_cm else ""))
    told = tuple((name, folder) for name, folder in places if folder)
    container = Container(
        engine=engine["name"],
        program=engine["program"],
        image=f"{facts.cm_home}/containers/{tag}.sif" if is_apptainer else launch.tags(tag)[1],
        name=request.options.container or f"{launch.IMAGE}-{tag}-{facts.token}",
        mounts=launch.mounts(request, work, cache, facts.host_cache, facts.home),
        variables=(*told, *launch.visible(gpus, engine["name"]), *request.container_env),
        passed=request.secrets,
        gpus=gpus,
        shm_size=request.options.shm_size or (NEURON_SHM if facts.neuron and not is_apptainer else ""),
        is_unconfined=request.options.is_unconfined,
        keeps_user=engine["name"] == "podman" and not facts.is_root,
        more=request.options.run_arguments,
        neuron=facts.neuron,
    )
    is_baked = request.action != "headless"
    made = image.instructions(request, account, facts.source, is_baked=is_baked)
    return Plan(request, account, container, tag, made, _notes(request, facts, container), trouble, *facts.source[:2])


def _engine(request: Request, facts: Facts) -> tuple[Mapping[str, Any], str]:
    """The engine to write the plan for, and why it cannot be run here; the first that works, else the first at all."""
    asked = request.options.engine
    known = [one for one in facts.engines if not asked or one["name"] == asked]
    best = next((one for one in known if one["is_usable"]), None)
    if best:
        return best, ""
    if known:
        return known[0], "; ".join(f"{one['name']}: {one['trouble']}" for one in known)
    name = asked or "docker"
    return {"name": name, "program": name}, f"{asked or 'docker, podman or apptainer'} is not on PATH"


def _account(request: Request, facts: Facts) -> Account:
    wanted = request.options.user_id
    return Account(facts.account.name, int(wanted), int(wanted)) if wanted else facts.account


def _gpus(request: Request, facts: Facts, engine: str) -> Gpus:
    asked = request.options.gpus
    if asked in ("none", "void") or (asked == "auto" and not facts.has_gpu):
        return Gpus(())
    devices = ("all",) if asked == "auto" else tuple(asked.split(","))
    return Gpus(devices, engine == "docker" and facts.has_nvidia_docker)


def _notes(request: Request, facts: Facts, container: Container) -> tuple[str, ...]:
    notes = []
    if not request.base.is_pinned:
        how = (
            "Apptainer does not report it"
            if container.engine == "apptainer"
            else "resolved and recorded before building"
        )
        notes.append(f"the digest of {request.base.reference} is not known here: {how}")
    elif request.base.source:
        notes.append(f"digest of the base image: {request.base.source} (seen {request.base.seen}, not compared here)")
    if request.has_cm and not request.repo_url and facts.source.changed_count:
        notes.append(f"the image has the commit of the checkout. Changed files: {facts.source.changed_count}")
    if request.action != "build" and request.has_cm and not any(one.target == WORK for one in container.mounts):
        notes.append(
            f"no workspace is mounted at {WORK}: files written there are lost with the container, "
            "--work=FOLDER keeps them"
        )
    if facts.is_root and container.engine != "apptainer":
        who = request.options.user_id or str(facts.account.uid)
        notes.append(f"you are root: the user in the container is {who}, and mounted folders have to let it write")
    if container.neuron and container.engine == "apptainer":
        notes.append("Neuron devices with Apptainer: not known, but it shows the whole /dev of the host by default")
    if container.gpus.devices and container.engine == "podman" and not facts.has_cdi:
        notes.append("podman finds GPUs by CDI: sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml")
    if container.engine == "apptainer" and (container.shm_size or container.is_unconfined):
        notes.append("Apptainer has neither --shm-size nor its own profiles: it uses those of the host")
    return tuple(notes)


def lines(plan: Plan, file: str = FILE, context: str = CONTEXT) -> tuple[tuple[str, ...], ...]:
    """All command lines in their order, as they would be run."""
    request, container = plan.request, plan.container
    found: list[tuple[str, ...]] = []
    if not request.base.is_pinned and container.engine != "apptainer":
        found += [pull(container, request.base.reference), inspect(container, request.base.reference)]
    found += launch.build(container, request, plan.tag, file, context)
    if request.action == "headless":
        found.append(launch.start(container))
        found += [launch.execute(container, step) for step in request.steps]
        found += launch.end(container)
    elif request.action != "build":
        found.append(launch.start(container) if request.is_detached else launch.attach(container))
    return tuple(found)


def pull(container: Container, reference: str) -> tuple[str, ...]:
    """The line that gets a base image."""
    return (container.program, "pull", reference)


def inspect(container: Container, reference: str) -> tuple[str, ...]:
    """The line that tells an image's digests."""
    return (container.program, "image", "inspect", "--format", "{{json .RepoDigests}}", reference)


def told(plan: Plan) -> str:
    """The plan as text: notes, file, command lines with their words quoted as a shell needs them."""
    given = launch.environment(plan.container, dict.fromkeys(plan.request.secrets, "***"))
    front = "".join(f"{name}={shlex.quote(value)} " for name, value in given.items())
    parts = [f"note: {note}" for note in plan.notes]
    parts += [f"--- {'definition' if plan.container.engine == 'apptainer' else FILE} ---", plan.text.rstrip()]
    parts += ["--- commands ---", *(front + shlex.join(line) for line in lines(plan))]
    if plan.is_copied:
        parts.append(f"({CONTEXT} is a folder with the files of commit {plan.commit}, made for the build)")
    return "\n".join(parts)
