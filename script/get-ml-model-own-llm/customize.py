"""Hooks of get-ml-model-own-llm: write model.json of the user's language model, which is not moved."""

from pathlib import Path

from crowdperf.call.answers import failure, runs_to_its_end
from crowdperf.data.answers import model_answer
from crowdperf.data.errors import DataError
from crowdperf.data.language_models import files_in, read_language_model
from crowdperf.data.model_info import RealModel, write_model_info

plan = runs_to_its_end


def postprocess(i):
    """CM hook: describes the model in the cache entry."""
    env, folder = i["env"], Path.cwd()
    path = Path(env["CM_OWN_LANGUAGE_MODEL_FILE"])
    try:
        model = read_language_model(path)
        described = RealModel(
            name="own_llm",
            framework=model.framework,
            files=files_in(model, folder),
            source=path.name,
            license="not stated",
            config=model.facts(),
            precision=model.precision,
            origin="own",
        )
        write_model_info(folder, described)
    except (DataError, OSError) as error:
        return failure(f"cannot describe {path}: {error}")
    return model_answer(env, folder)
