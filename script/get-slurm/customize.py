"""Hooks of the recipe get-slurm: whether jobs can be submitted from here, and to what. Installs and changes nothing."""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

from typing import Any

from crowdperf.machine import selection, versions

from . import facts

NOT_FOUND_CODE = 16  # CM's code for "not found"


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """Sets the keys of the Slurm that the commands on PATH belong to."""
    env = i["env"]
    try:
        machine = selection.of_call(i)
    except selection.MachineError as error:
        return {"return": 1, "error": str(error)}
    only_looks = str(env.get("CM_SLURM_ACTION", "") or "") == "look"
    if missing := facts.missing_clients(machine):
        if only_looks:
            print(f"  no Slurm: {', '.join(missing)} not on PATH")
            env.update(CM_SLURM_IS_REACHABLE="no", CM_SLURM_VERSION="")
            return {"return": 0}
        return {"return": NOT_FOUND_CODE, "error": _none(missing)}
    slurm = facts.look(machine)
    if misfit := versions.misfit(slurm.version, env):
        return {"return": NOT_FOUND_CODE, "error": f"this is Slurm {misfit}"}
    env.update(_env_of(slurm))
    i["state"]["slurm"] = {**slurm._asdict(), "partitions": [one._asdict() for one in slurm.partitions]}
    if slurm.trouble and not only_looks:
        return {"return": 1, "error": _silent(slurm)}
    print(table(slurm))
    return {"return": 0, "version": slurm.version}


plan = preprocess


def _none(missing: tuple[str, ...]) -> str:
    return (
        f"Slurm's commands are not on PATH: {', '.join(missing)}\n"
        "  hint: log in to a machine of the cluster that submits jobs, or load its module (module avail slurm). "
        "Without a cluster, sweeps run on this machine: --executor=local"
    )


def _silent(slurm: facts.Slurm) -> str:
    return (
        f"{f'Slurm {slurm.version}'.rstrip()} does not answer: {slurm.trouble}\n"
        "  hint: try `scontrol ping`. SLURM_CONF must name the cluster's slurm.conf unless it is /etc/slurm/slurm.conf"
    )


def table(slurm: facts.Slurm) -> str:
    """The partitions and limits for people."""
    if slurm.trouble:
        return f"  Slurm {slurm.version}: {slurm.trouble}"
    lines = [f"  Slurm {slurm.version} ({slurm.path})"]
    for one in slurm.partitions:
        more = [f"features {','.join(one.features)}"] if one.features else []
        more += [f"gres {','.join(one.gres)}"] if one.gres else []
        name = f"{one.name} (default)" if one.is_default else one.name
        up = "" if one.is_up else ", not up"
        size = f"{one.nodes} nodes {one.state}{up}, {one.cpus} cpus, {one.memory_mb} MB, limit {one.time_limit}"
        lines.append(f"  {name}: {', '.join([size, *more])}")
    lines.append(f"  largest array {slurm.largest_array}, at most {slurm.most_jobs} jobs")
    lines.append("  accounting: yes" if slurm.has_accounting else "  accounting: none (sacct knows no ended job)")
    return "\n".join(lines)


def _env_of(slurm: facts.Slurm) -> dict[str, str]:
    default = next((one.name for one in slurm.partitions if one.is_default), "")
    features = sorted({feature for one in slurm.partitions for feature in one.features})
    return {
        "CM_SLURM_DEFAULT_PARTITION": default,
        "CM_SLURM_FEATURES": ",".join(features),
        "CM_SLURM_HAS_ACCOUNTING": "yes" if slurm.has_accounting else "no",
        "CM_SLURM_IS_REACHABLE": "no" if slurm.trouble else "yes",
        "CM_SLURM_MAX_ARRAY_SIZE": "" if slurm.largest_array is None else str(slurm.largest_array),
        "CM_SLURM_MAX_JOB_COUNT": "" if slurm.most_jobs is None else str(slurm.most_jobs),
        "CM_SLURM_PARTITIONS": ",".join(sorted({one.name for one in slurm.partitions})),
        "CM_SLURM_TROUBLE": slurm.trouble,
        "CM_SLURM_VERSION": slurm.version,
    }
