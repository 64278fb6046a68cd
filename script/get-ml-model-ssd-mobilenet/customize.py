"""Hooks of get-ml-model-ssd-mobilenet: published, random or fitted weights."""

from crowdperf.data import published

MODEL = published.Model(
    architecture="ssd_mobilenet",
    files={
        "onnx": published.PublishedFile(
            url="https://zenodo.org/record/4735652/files/ssd_mobilenet_v1_coco_2018_01_28.onnx",
            file_name="ssd_mobilenet_v1_coco_2018_01_28.onnx",
            licence="see https://zenodo.org/record/4735652",
            reference={"mAP": 23.0},
            is_complete=True,
        ),
        "pytorch": published.PublishedFile(
            url="https://zenodo.org/record/3239977/files/ssd_mobilenet_v1.pytorch",
            file_name="ssd_mobilenet_v1.pytorch",
            licence="see https://zenodo.org/record/3239977",
            reference={"mAP": 23.0},
        ),
    },
)
"""Addresses and scores from the README of vision/classification_and_detection in mlcommons/inference, which gives no
checksums."""

plan = preprocess = MODEL.plan
postprocess = MODEL.finish
