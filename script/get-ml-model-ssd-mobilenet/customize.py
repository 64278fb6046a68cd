"""Hooks of get-ml-model-ssd-mobilenet: published, random or fitted weights."""

from crowdperf.data import model_sources

MODEL = model_sources.Model(
    architecture="ssd_mobilenet",
    files={
        "onnx": model_sources.zenodo(
            4735652, "ssd_mobilenet_v1_coco_2018_01_28.onnx", {"mAP": 23.0}, query="", is_complete=True
        ),
        "pytorch": model_sources.zenodo(3239977, "ssd_mobilenet_v1.pytorch", {"mAP": 23.0}, query=""),
    },
)
"""Addresses and scores from the README of vision/classification_and_detection in mlcommons/inference, which gives no
checksums."""

plan = preprocess = MODEL.plan
postprocess = MODEL.finish
