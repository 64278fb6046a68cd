"""Hooks of get-ml-model-retinanet: published, random or fitted weights."""

from crowdperf.data import published

MODEL = published.Model(
    architecture="retinanet",
    files={
        "onnx": published.PublishedFile(
            url="https://zenodo.org/record/6617879/files/resnext50_32x4d_fpn.onnx",
            file_name="resnext50_32x4d_fpn.onnx",
            md5="4544f4e56e0a4684215831cc937ea45c",
            licence="see https://zenodo.org/record/6617879",
            reference={"mAP": 37.57},
            is_complete=True,
        ),
        "pytorch": published.PublishedFile(
            url="https://zenodo.org/record/6605272/files/retinanet_model_10.zip?download=1",
            file_name="retinanet_model_10.zip",
            member="retinanet_model_10.pth",
            md5="2037c152a6be18e371ebec654314f7e0",
            licence="see https://zenodo.org/record/6605272",
            reference={"mAP": 37.55},
        ),
    },
)
"""Addresses and MD5 from the community's get-ml-model-retinanet, scores from the README of the reference."""

plan = preprocess = MODEL.plan
postprocess = MODEL.finish
