"""Hooks of get-ml-model-ssd-resnet34: published, random or fitted weights."""

from crowdperf.data import model_sources

MODEL = model_sources.Model(
    architecture="ssd_resnet34",
    files={
        "onnx": model_sources.zenodo(3228411, "resnet34-ssd1200.onnx", {"mAP": 20.0}, query="", is_complete=True),
        "pytorch": model_sources.zenodo(3236545, "resnet34-ssd1200.pytorch", {"mAP": 20.0}, query=""),
    },
)
"""Addresses and scores from the README of vision/classification_and_detection in mlcommons/inference, which gives no
checksums."""

plan = preprocess = MODEL.plan
postprocess = MODEL.finish
