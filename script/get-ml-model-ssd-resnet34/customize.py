"""Hooks of get-ml-model-ssd-resnet34: published, random or fitted weights."""

from crowdperf.data import published

MODEL = published.Model(
    architecture="ssd_resnet34",
    files={
        "onnx": published.PublishedFile(
            url="https://zenodo.org/record/3228411/files/resnet34-ssd1200.onnx",
            file_name="resnet34-ssd1200.onnx",
            licence="see https://zenodo.org/record/3228411",
            reference={"mAP": 20.0},
            is_complete=True,
        ),
        "pytorch": published.PublishedFile(
            url="https://zenodo.org/record/3236545/files/resnet34-ssd1200.pytorch",
            file_name="resnet34-ssd1200.pytorch",
            licence="see https://zenodo.org/record/3236545",
            reference={"mAP": 20.0},
        ),
    },
)
"""Addresses and scores from the README of vision/classification_and_detection in mlcommons/inference, which gives no
checksums."""

plan = preprocess = MODEL.plan
postprocess = MODEL.finish
