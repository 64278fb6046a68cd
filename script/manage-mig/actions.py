"""Rules of the recipe manage-mig: which commands an action needs on the GPU that is seen, or why it cannot be done.

Commands after the v0.7 README of NVIDIA's submission (steps 1, 2, 6, 7) and the MIG user guide. Not run on hardware.
"""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from crowdperf.machine.findings import Command, as_root
from crowdperf.rules.names import counted

from .slices import Gpu, Slice

DEFAULT_PROFILE = "19"
"""The profile that NVIDIA's mig_configure.sh makes seven of: 1g.5gb on an A100 40GB, the smallest on every GPU."""
DEFAULT_COUNT = 7
RECIPE = "cm run script --tags=manage,nvidia,mig"


class MigError(Exception):
    """The action cannot be done; the text says what was found, what is allowed and what to try."""


class Plan(NamedTuple):
    """Commands in their order (empty: nothing to do, ``why`` says so), and what the user should know."""

    commands: tuple[Command, ...]
    why: str
    notes: tuple[str, ...] = ()


def plan(action: str, gpu: Gpu, profile: Sequence[str] = ()) -> Plan:
    """The plan for ``enable``, ``configure``, ``teardown`` or ``disable``. Raises MigError."""
    if gpu.mode == "unsupported":
        raise MigError(
            f"GPU {gpu.index} ({gpu.name}) has no MIG: nvidia-smi reports no mode for it.\n"
            "  allowed: GPUs that the MIG user guide lists (A30, A100, H100, H200 and newer for data centres)"
        )
    makers = {"enable": _enable, "configure": lambda gpu: _configure(gpu, profile), "teardown": _teardown}
    return {**makers, "disable": _disable}[action](gpu)


def _enable(gpu: Gpu) -> Plan:
    if gpu.mode == "Enabled":
        return Plan((), f"MIG is on already on GPU {gpu.index}")
    if gpu.pending == "Enabled":
        return Plan((_reset(gpu.index),), "MIG waits for a reset of the GPU")
    note = "if it stays pending (a process uses the GPU): stop the process, then " + _reset(gpu.index).shown("maybe")
    return Plan((_mode_command(gpu.index, "1"),), f"switches MIG on for GPU {gpu.index}", (note,))


def _disable(gpu: Gpu) -> Plan:
    if gpu.mode == "Disabled":
        return Plan((), f"MIG is off already on GPU {gpu.index}")
    before = _teardown(gpu)
    return Plan((*before.commands, _mode_command(gpu.index, "0")), f"switches MIG off for GPU {gpu.index}")


def _teardown(gpu: Gpu) -> Plan:
    _must_be_enabled(gpu)
    busy = [one for one in gpu.slices if one.processes]
    if busy:
        users = "; ".join(f"slice {one.number} by process {', '.join(map(str, one.processes))}" for one in busy)
        raise MigError(f"slices of GPU {gpu.index} are in use: {users}\n  hint: wait for these processes, or end them")
    if not gpu.instances and not gpu.slices:
        return Plan((), f"GPU {gpu.index} has no slices")
    words = (("-dci",), ("-dgi",))  # compute instances first: a GPU instance that has some cannot be removed
    commands = tuple(as_root("nvidia-smi", "mig", *word, "-i", str(gpu.index)) for word in words)
    return Plan(commands, f"removes all slices of GPU {gpu.index}")


def _configure(gpu: Gpu, asked: Sequence[str]) -> Plan:
    _must_be_enabled(gpu)
    numbers, notes = profile_numbers(gpu, asked)
    listed = ",".join(map(str, numbers))
    command = as_root("nvidia-smi", "mig", "-cgi", listed, "-C", "-i", str(gpu.index))
    return Plan((command,), f"makes {counted(len(numbers), 'slice')} on GPU {gpu.index}", notes)


def profile_numbers(gpu: Gpu, asked: Sequence[str]) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The profiles to make, one number for each slice, and notes. One profile alone means as many as fit now.

    Raises MigError for profiles that the GPU does not have or has no room for.
    """
    names = [part.removeprefix("MIG ") for part in asked or (DEFAULT_PROFILE,)]
    if not gpu.profiles:
        return _unchecked(gpu, names, bool(asked))
    known = {text: one for one in gpu.profiles for text in (one.name, str(one.number))}
    unknown = [name for name in names if name not in known]
    if unknown:
        offered = ", ".join(f"{one.name} ({one.number}) {one.free}/{one.total} free" for one in gpu.profiles)
        raise MigError(f"GPU {gpu.index} ({gpu.name}) has no profile {', '.join(unknown)}\n  allowed: {offered}")
    wanted = [known[name] for name in names]
    counts = {wanted[0]: max(wanted[0].free, 1)} if len(wanted) == 1 else dict(Counter(wanted))
    full = [f"{one.name}: {count} wanted, {one.free} free" for one, count in counts.items() if count > one.free]
    if full:
        made = len(gpu.instances) or len(gpu.slices)
        raise MigError(
            f"GPU {gpu.index} has no room for these slices ({'; '.join(full)}). It has {made} already.\n"
            f"  hint: {RECIPE},_teardown --gpu={gpu.index} plans how to remove them"
        )
    notes = ("only the driver knows whether different profiles are compatible",) if len(counts) > 1 else ()
    return tuple(one.number for one, count in counts.items() for _ in range(count)), notes


def _unchecked(gpu: Gpu, names: Sequence[str], is_asked: bool) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The profiles by number where the driver did not list any (some let only root do so)."""
    if gpu.slices:
        raise MigError(
            f"GPU {gpu.index} has {counted(len(gpu.slices), 'slice')}, and the remaining profiles could not be listed: "
            f"{gpu.trouble}\n"
            f"  hint: {RECIPE},_teardown --gpu={gpu.index} plans how to remove them"
        )
    if not all(name.isdecimal() for name in names):
        raise MigError(
            f"the profiles of GPU {gpu.index} could not be listed, so names cannot be looked up: {gpu.trouble}\n"
            f"  hint: sudo nvidia-smi mig -lgip -i {gpu.index} lists their numbers, then --profile=19"
        )
    numbers = tuple(int(name) for name in names)
    if len(numbers) == 1 and not is_asked:
        numbers *= DEFAULT_COUNT
    return numbers, (f"not checked, because the profiles could not be listed: {gpu.trouble}",)


def choose_slice(gpu: Gpu, profile: str, seed: int | None) -> Slice:
    """A free slice, by lot (the same for the same seed). Raises MigError where there is none."""
    free = free_slices(gpu, profile)
    return free[random.Random(seed).randrange(len(free))]


def free_slices(gpu: Gpu, profile: str = "") -> tuple[Slice, ...]:
    """The slices that no process uses, of the profile where one is asked for. Raises MigError where there is none."""
    _must_be_enabled(gpu)
    if not gpu.slices:
        raise MigError(f"GPU {gpu.index} has no slices\n  hint: {RECIPE},_configure --gpu={gpu.index}")
    numbers = {one.name for one in gpu.profiles if str(one.number) == profile}
    fitting = [one for one in gpu.slices if not profile or one.profile in (profile, *numbers)]
    if not fitting:
        there = ", ".join(f"{count} x {name}" for name, count in Counter(one.profile for one in gpu.slices).items())
        raise MigError(f"GPU {gpu.index} has no slice of profile {profile}\n  slices that are there: {there}")
    free = tuple(one for one in fitting if not one.processes)
    if not free:
        users = ", ".join(str(number) for one in fitting for number in one.processes)
        raise MigError(f"all {len(fitting)} slices of GPU {gpu.index} are in use, by processes {users}\n  hint: wait")
    return free


def hetero(gpu: Gpu, profile: str, seed: int | None) -> tuple[Slice, tuple[Slice, ...]]:
    """A slice to measure on, and the others, on which something else runs meanwhile. Raises MigError below two."""
    main = choose_slice(gpu, profile, seed)
    others = tuple(one for one in free_slices(gpu) if one != main)
    if not others:
        raise MigError(
            f"GPU {gpu.index} has one free slice only, but a measurement with background work requires two\n"
            f"  hint: {RECIPE},_teardown and _configure with --profile=1g.5gb create as many as possible"
        )
    return main, others


def record_of(gpu: Gpu) -> dict[str, Any]:
    """What a record keeps of a GPU. Raises MigError where its instances could not be listed."""
    if gpu.slices and not gpu.instances:
        raise MigError(
            f"no command was run: nvidia-smi mig -lgi -i {gpu.index} lists no instances, so it could not be restored\n"
            "  hint: run the plan by hand"
        )
    return {"gpu": gpu.index, "mode": gpu.mode, "instances": list(gpu.instances)}


def undo(gpu: Gpu, before: Mapping[str, Any]) -> Plan:
    """The way back to what a record tells. Raises MigError for a record that makes no sense."""
    mode, instances = before.get("mode"), before.get("instances")
    is_list = isinstance(instances, list) and all(type(one) is int and 0 <= one < 1000 for one in instances)
    if mode not in ("Enabled", "Disabled") or not isinstance(instances, list) or not is_list:
        raise MigError(
            "the record does not contain a MIG mode and profile numbers\n  hint: --undo=FILE with a file of --record"
        )
    if gpu.mode == mode and sorted(instances) == sorted(gpu.instances):
        return Plan((), f"GPU {gpu.index} is as it was")
    commands: tuple[Command, ...] = _teardown(gpu).commands if gpu.mode == "Enabled" else ()
    if gpu.mode != mode:
        commands += (_mode_command(gpu.index, "1" if mode == "Enabled" else "0"),)
    notes: tuple[str, ...] = ()
    if instances:
        listed = ",".join(map(str, instances))
        commands += (as_root("nvidia-smi", "mig", "-cgi", listed, "-C", "-i", str(gpu.index)),)
        notes = ("slices get new UUIDs, and perhaps other places on the GPU",)
    return Plan(commands, f"puts GPU {gpu.index} back as it was", notes)


def _must_be_enabled(gpu: Gpu) -> None:
    if gpu.mode != "Enabled":
        state = "waits for a reset" if gpu.pending == "Enabled" else f"is {gpu.mode}"
        raise MigError(
            f"MIG {state} on GPU {gpu.index} ({gpu.name}), but it has to be Enabled\n"
            f"  hint: {RECIPE},_enable --gpu={gpu.index}"
        )


def _mode_command(index: int, value: str) -> Command:
    return as_root("nvidia-smi", "-mig", value, "-i", str(index))


def _reset(index: int) -> Command:
    return as_root("nvidia-smi", "--gpu-reset", "-i", str(index))
