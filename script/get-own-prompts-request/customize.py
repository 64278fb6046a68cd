"""Hooks of get-own-prompts-request: check the user's prompts and limits before anything is installed.

As a dynamic dependency it runs before the cache is searched, so that other prompts lead to another entry.
"""

import json

from crowdperf.data.answers import env_hook
from crowdperf.data.copy_identity import identity
from crowdperf.data.digests import short_identity
from crowdperf.data.errors import DataError
from crowdperf.data.given_prompts import (
    generated_lengths,
    parse_lengths,
    parse_slo,
    read_conversations,
    read_prompts,
    tokenizer_file,
)
from crowdperf.data.language_models import longest_text, read_language_model, require_fit
from crowdperf.data.traces import MIN_TOKENS, read_trace
from crowdperf.rules.backends import BACKENDS

USUAL_LENGTH = "512"
"""Tokens of generated prompts for a model of the user: what llama-bench measures by default, as 128 of answers."""


def request_environment(values) -> dict[str, str]:
    """The env keys that describe the prompts. Raises DataError."""
    path, lengths = values["prompts"], values["input_tokens"]
    if values["tokenizer"] is not None:
        tokenizer_file(values["tokenizer"])
    for name in ("trace", "conversations"):
        if values[name] and values["model_path"] is not None:
            raise DataError(f"--{name} is for a server, not for --model_path", f"omit --{name}, or give --endpoint")
    if values["trace"] is not None:
        return _trace_environment(values)
    model = None if values["model_path"] is None else read_language_model(values["model_path"])
    if model is not None and path is None and lengths is None:
        lengths = USUAL_LENGTH
    if path is not None and lengths is not None:
        both = f"--prompts={path.name} and --input_tokens={lengths} cannot be combined"
        raise DataError(f"{both}: the file has your prompts, the number generates others", "omit one of them")
    if path is None and lengths is None:
        raise DataError(
            "the prompts are missing", "give --prompts=FILE.jsonl or --trace=FILE, or --input_tokens=N to generate them"
        )
    answers = _answer_lengths(values, is_generated=path is None)
    most = max(answers)
    request = {
        "is_synthetic": path is None,
        "max_tokens": most,
        "has_fixed_length": path is None,
        "limits": parse_slo(values["slo"] or ""),
    }
    content = ""
    if path is not None:
        rows = read_conversations(path) if values["conversations"] else read_prompts(path)
        if values["conversations"]:
            request["conversations"] = {"requests": len(rows), "conversations": rows[-1]["conversation"] + 1}
        content = json.dumps(rows)
        if model is not None:
            if any("max_tokens" in row for row in rows):
                found = f"--prompts: {path} has max_tokens, which only a server supports"
                raise DataError(found, "remove it, or use --output_tokens")
            request["longest_prompt"] = longest_text(rows, model, values["backend"] or "", most)
    else:
        mean, deviation = parse_lengths(lengths)
        request["generated"] = {
            "mean": mean, "deviation": deviation, "count": values["count"], "seed": values["seed"]
        }  # fmt: skip
        if len(set(answers)) > 1:
            request["answer_lengths"] = answers
        if model is not None:
            longest = max(generated_lengths(**request["generated"]))
            require_fit(model, longest, most)
            request["longest_prompt"] = longest
            content = identity(model.path)
    known = {"CM_OWN_PROMPTS_MODEL": "" if model is None else str(model.path)}
    return {**_environment(request, "" if path is None else str(path), content), **known}


def _answer_lengths(values, *, is_generated: bool) -> list[int]:
    """The number of tokens of each answer. Raises DataError."""
    text = values["output_tokens"]
    mean, deviation = parse_lengths(text, "output_tokens", MIN_TOKENS)
    backend = BACKENDS.get(values["backend"] or "")
    if deviation and not is_generated:
        raise DataError(
            f"--output_tokens: found {text!r}, but lengths vary only for generated prompts",
            "give --output_tokens=N, or max_tokens on the lines of --prompts",
        )
    if deviation and values["model_path"] is not None and backend is not None and not backend.tokenizes:
        servers = ", ".join(sorted(name for name, one in BACKENDS.items() if one.tokenizes))
        raise DataError(
            f"--output_tokens: found {text!r}, but this backend gives all answers the same length",
            f"give --output_tokens=N, or a backend that is a server: {servers}",
        )
    return generated_lengths(mean, deviation, values["count"], values["seed"] + 1, MIN_TOKENS)


def _environment(request, file: str, content: str) -> dict[str, str]:
    text = json.dumps(request, sort_keys=True)
    return {
        "CM_OWN_PROMPTS_FILE": file,
        "CM_OWN_PROMPTS_REQUEST": text,
        "CM_OWN_PROMPTS_IDENTITY": short_identity(text, content),
    }


def _trace_environment(values) -> dict[str, str]:
    """The env keys of a trace. Raises DataError."""
    for name in ("prompts", "input_tokens", "output_tokens"):
        if values.is_given(name):
            raise DataError(f"--trace and --{name} cannot be combined: a trace has its own lengths", f"omit --{name}")
    trace = read_trace(values["trace"])
    request = {
        "is_synthetic": True,
        "max_tokens": max(MIN_TOKENS, *(one.tokens_out for one in trace.arrivals)),
        "has_fixed_length": True,
        "limits": parse_slo(values["slo"] or ""),
        "trace": trace.facts(),
        "seed": values["seed"],
    }
    return _environment(request, str(values["trace"]), repr(trace.arrivals))


plan = preprocess = env_hook(request_environment)
