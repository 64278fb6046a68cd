"""Hooks of get-ml-model-retinanet: published, random or fitted weights."""

from crowdperf.data import model_sources

MODEL = model_sources.Model(
    architecture="retinanet",
    files={
        "onnx": model_sources.zenodo(
            6617879,
            "resnext50_32x4d_fpn.onnx",
            {"mAP": 37.57},
            query="",
            is_complete=True,
            md5="4544f4e56e0a4684215831cc937ea45c",
        ),
        "pytorch": model_sources.zenodo(
            6605272,
            "retinanet_model_10.zip",
            {"mAP": 37.55},
            member="retinanet_model_10.pth",
            md5="2037c152a6be18e371ebec654314f7e0",
        ),
    },
)
"""Addresses and MD5 from the community's get-ml-model-retinanet, scores from the README of the reference."""

plan = preprocess = MODEL.plan
postprocess = MODEL.finish
