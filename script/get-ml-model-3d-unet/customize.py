"""Hooks of get-ml-model-3d-unet: published, random or fitted weights of the two models."""

from crowdperf.call.answers import failure
from crowdperf.data import model_sources

# MD5 of the KiTS files: get-ml-model-3d-unet-kits19 of the community's CM repository. Reference scores: README.md of
# vision/medical_imaging/3d-unet-kits19 (mlcommons/inference) and of 3d-unet-brats19 at tag v2.0, where the BraTS
# addresses are from too (Makefile).
KITS19 = model_sources.Model(
    architecture="unet3d",
    files={
        "onnx": model_sources.zenodo(
            5597155,
            "3dunet_kits19_128x128x128_dynbatch.onnx",
            {"DICE": 0.86170},
            is_complete=True,
            md5="82f0618fde78f9839e7c712274019b4a",
        ),
        "pytorch": model_sources.zenodo(
            5597155, "3dunet_kits19_pytorch_checkpoint.pth", {"DICE": 0.86170}, md5="09c696e3ec13d83c628498bcd831eb5b"
        ),
    },
)
BRATS = model_sources.Model(
    architecture="unet3d_brats",
    files={
        "onnx": model_sources.zenodo(3928973, "224_224_160_dyanmic_bs.onnx", {"DICE": 0.85300}, is_complete=True),
        "pytorch": model_sources.zenodo(3904106, "fold_1.zip", {"DICE": 0.85300}),
    },
)
BRATS_MEMBER = "model_final_checkpoint.model"
"""The file in BraTS's archive, which users unpack themselves."""


def _model(env):
    return BRATS if env["CM_3D_UNET_DATA"] == "brats" else KITS19


def preprocess(i):
    """CM hook: decides what run.sh does and what must be fetched."""
    env = i["env"]
    answer = _model(env).plan(i)
    if answer["return"] == 0 and env.get("CM_PUBLISHED_MODEL_FILE_NAME") == "fold_1.zip":
        what = f"the published file for brats and pytorch is an archive: {env['CM_PUBLISHED_MODEL_URL']}"
        return failure(what, f"hint: unpack it and give {BRATS_MEMBER} with --path, or use _onnx")
    return answer


plan = preprocess


def postprocess(i):
    """CM hook: exports the model after a look at its checksum."""
    return _model(i["env"]).finish(i)
