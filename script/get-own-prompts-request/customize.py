"""Hooks of get-own-prompts-request: check the user's prompts and limits before anything is installed.

As a dynamic dependency it runs before the cache is searched, so that other prompts lead to another entry.
"""

import json

from crowdperf.call.answers import failure
from crowdperf.data.digests import short_identity
from crowdperf.data.errors import DataError
from crowdperf.data.given_prompts import parse_lengths, parse_slo, read_prompts


def request_environment(values) -> dict[str, str]:
    """The env keys that describe the prompts. Raises DataError."""
    path, lengths = values["prompts"], values["input_tokens"]
    if path is not None and lengths is not None:
        both = f"--prompts={path.name} and --input_tokens={lengths} cannot be combined"
        raise DataError(f"{both}: the file has your prompts, the number generates others", "omit one of them")
    if path is None and lengths is None:
        raise DataError("the prompts are missing", "give --prompts=FILE.jsonl, or --input_tokens=N to generate them")
    request = {
        "is_synthetic": path is None,
        "max_tokens": values["output_tokens"],
        "has_fixed_length": path is None,
        "limits": parse_slo(values["slo"] or ""),
    }
    content = ""
    if path is not None:
        content = json.dumps(read_prompts(path))
    else:
        mean, deviation = parse_lengths(lengths)
        request["generated"] = {
            "mean": mean, "deviation": deviation, "count": values["count"], "seed": values["seed"]
        }  # fmt: skip
    text = json.dumps(request, sort_keys=True)
    return {
        "CM_OWN_PROMPTS_FILE": "" if path is None else str(path),
        "CM_OWN_PROMPTS_REQUEST": text,
        "CM_OWN_PROMPTS_IDENTITY": short_identity(text, content),
    }


def preprocess(i):
    """CM hook: describes the prompts in env."""
    try:
        i["env"].update(request_environment(i["values"]))
    except DataError as error:
        return failure(error)
    return {"return": 0}


plan = preprocess
