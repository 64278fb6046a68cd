"""Hooks of get-ml-model-dlrm: published, random or fitted weights, where there is room."""

from crowdperf.data import copy_identity, model_sources

WEIGHTS_BYTES = 96_146_383_876  # of float32 parameters at full size; the embedding tables are all but 10 MB of them
MODEL = model_sources.Model(
    architecture="dlrm",
    files=dict.fromkeys(
        model_sources.FRAMEWORKS,
        model_sources.PublishedFile(
            url="https://dlrm.s3-us-west-1.amazonaws.com/models/tb00_40M.pt",
            file_name="tb00_40M.pt",
            md5="2d49a5288cddb37c3c64860a06d79bb9",
            license="not stated",
            reference={"AUC": 80.25},  # README.md of recommendation/dlrm/pytorch, mlcommons/inference at tag v3.0
        ),
    ),
    find=copy_identity.only_file("*.pt"),
    full_size=model_sources.FullSize(
        title="dlrm at full size", weights_bytes=WEIGHTS_BYTES, download_bytes=WEIGHTS_BYTES
    ),
)

plan = preprocess = MODEL.plan
postprocess = MODEL.finish
