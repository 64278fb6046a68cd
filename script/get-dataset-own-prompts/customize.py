"""Hooks of get-dataset-own-prompts: write the prompts that get-own-prompts-request checked or described."""

import json
from pathlib import Path

from crowdperf.call.answers import failure, runs_to_its_end
from crowdperf.data.errors import DataError
from crowdperf.data.given_prompts import generated_rows, read_conversations, read_prompts
from crowdperf.data.language_models import read_language_model
from crowdperf.data.traces import read_trace, trace_rows

FILES = ("samples.jsonl", "dataset.json")


plan = runs_to_its_end


def postprocess(i):
    """CM hook: writes the prompts and what is decided of their answers."""
    env, folder = i["env"], Path.cwd()
    request = json.loads(env["CM_OWN_PROMPTS_REQUEST"])
    try:
        path = env.get("CM_OWN_PROMPTS_FILE")
        if "trace" in request:
            rows = trace_rows(read_trace(Path(path)), request["seed"])
        elif "conversations" in request:
            rows = read_conversations(Path(path))
        else:
            model = env.get("CM_OWN_PROMPTS_MODEL")
            tokens = read_language_model(Path(model)).ordinary_tokens if model and not path else ()
            rows = read_prompts(Path(path)) if path else generated_rows(**request["generated"], tokens=tokens)
        if lengths := request.get("answer_lengths"):
            rows = [{**row, "max_tokens": length} for row, length in zip(rows, lengths, strict=True)]
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (folder / FILES[0]).write_text(lines, encoding="utf-8")
        (folder / FILES[1]).write_text(json.dumps(request) + "\n", encoding="utf-8")
    except (DataError, OSError) as error:
        return failure(error)
    env["CM_DATASET_PATH"] = str(folder)
    return {"return": 0, "files": list(FILES)}
