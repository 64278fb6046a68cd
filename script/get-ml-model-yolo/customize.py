"""Hooks of get-ml-model-yolo: your own copy of the published weights, random ones, or fitted ones."""

from crowdperf.data import copy_identity, manual_download, model_sources

SOURCE = manual_download.Source(
    name="the checkpoint of YOLO11l",
    pages=("https://yolo.mlcommons-storage.org/metadata/YOLO-model.uri, for the MLCommons R2 downloader",),
    license="AGPL-3.0 (ultralytics/ultralytics)",
    steps=("fetch it with the MLCommons R2 downloader (mlc-r2-downloader.sh of mlcommons/r2-downloader)",),
    layout=("the checkpoint, one *.pt",),
    command="cm run script --tags=get,ml-model,yolo --path=FOLDER",
)
"""Address: get-ml-model-yolov11 of mlcommons/mlperf-automations, 20d3d94c of 2026-07-22. No checksum is published with
it."""
MODEL = model_sources.Model(
    architecture="yolo",
    source=SOURCE,
    reference={"mAP": 53.4},  # what the official checker compares with (mlcommons/inference b66003e1)
    find=copy_identity.only_file("*.pt"),
)

plan = preprocess = MODEL.plan
postprocess = MODEL.finish
