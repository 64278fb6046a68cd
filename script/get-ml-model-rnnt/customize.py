"""Hooks of get-ml-model-rnnt: published, random or fitted weights."""

from crowdperf.data import copy_identity, model_sources

MODEL = model_sources.Model(
    architecture="rnnt",
    files=dict.fromkeys(
        model_sources.FRAMEWORKS,
        model_sources.zenodo(
            3662521,
            "DistributedDataParallel_1576581068.9962234-epoch-100.pt",
            # Word error rate in full precision: README of speech_recognition/rnnt (mlcommons/inference).
            {"WER": 100 - 7.452253714852645},
            file_name="rnnt.pt",
            md5="286e7813dffbc65e7d86f721b7739f1c",
        ),
    ),
    find=copy_identity.only_file("*.pt"),
)

plan = preprocess = MODEL.plan
postprocess = MODEL.finish
