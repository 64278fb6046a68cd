"""Hooks of get-ml-model-rnnt: published, random or fitted weights."""

from crowdperf.data import given, published

_NAME = "DistributedDataParallel_1576581068.9962234-epoch-100.pt"
MODEL = published.Model(
    architecture="rnnt",
    files=dict.fromkeys(
        published.FRAMEWORKS,
        published.PublishedFile(
            url=f"https://zenodo.org/record/3662521/files/{_NAME}?download=1",
            file_name="rnnt.pt",
            md5="286e7813dffbc65e7d86f721b7739f1c",
            licence="see https://zenodo.org/record/3662521",
            # Word error rate in full precision: README of speech_recognition/rnnt (mlcommons/inference).
            reference={"WER": 100 - 7.452253714852645},
        ),
    ),
    find=given.only_file("*.pt"),
)

plan = preprocess = MODEL.plan
postprocess = MODEL.finish
