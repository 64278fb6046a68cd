"""Hooks of get-ml-model-rgat: your own copy of the published weights, random ones, or fitted ones."""

from crowdperf.data import copy_identity, manual_download, model_sources

SOURCE = manual_download.Source(
    name="the checkpoint of R-GAT",
    pages=("https://inference.mlcommons-storage.org/metadata/rgat-model.uri, for the MLCommons R2 downloader",),
    license="see there",
    steps=("fetch it with the MLCommons R2 downloader (mlc-r2-downloader.sh of mlcommons/r2-downloader)",),
    layout=("RGAT.pt, with its weights below model_state_dict",),
    command="cm run script --tags=get,ml-model,rgat --path=FILE",
)
MODEL = model_sources.Model(
    architecture="rgat",
    source=SOURCE,
    reference={"acc": 72.86},  # README.md of graph/R-GAT, mlcommons/inference b66003e1
    find=copy_identity.only_file("*.pt"),
)

plan = preprocess = MODEL.plan
postprocess = MODEL.finish
