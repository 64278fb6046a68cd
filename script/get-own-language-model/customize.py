"""Hooks of get-own-language-model: describe the user's language model, or refuse it before anything is installed.

As a dynamic dependency it runs before the cache is searched, so that another model leads to another entry.
"""

from crowdperf.data.answers import env_hook
from crowdperf.data.copy_identity import identity
from crowdperf.data.digests import short_identity
from crowdperf.data.errors import DataError
from crowdperf.data.language_models import chosen_precision, misfits, read_language_model
from crowdperf.rules.app_names import PRECISION_ALIASES

EXAMPLE = "cm run script --tags=run,mlperf,inference --model_path=FILE.gguf"


def model_environment(values) -> dict[str, str]:
    """The env keys that describe the model. Raises DataError."""
    path, backend = values["model_path"], values["backend"]
    if path is None:
        raise DataError("no model is given", EXAMPLE)
    model = read_language_model(path)
    precision = values["precision"]
    precision = PRECISION_ALIASES.get(precision, precision) or chosen_precision(model, backend or "")
    if backend and (problems := misfits(model, backend, precision)):
        raise DataError("; ".join(problems), EXAMPLE)
    return {
        "CM_OWN_LANGUAGE_MODEL_FILE": str(path),
        "CM_OWN_LANGUAGE_MODEL_PRECISION": model.precision,
        "CM_OWN_LANGUAGE_MODEL_IDENTITY": short_identity(identity(path)),
    }


plan = preprocess = env_hook(model_environment)
