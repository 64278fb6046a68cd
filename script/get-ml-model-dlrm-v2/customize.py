"""Hooks of get-ml-model-dlrm-v2: your own copy of the published weights, random or fitted ones, where there is room."""

from crowdperf.data import manual_download, model_sources

SOURCE = manual_download.Source(
    name="the weights of dlrm-v2 (97 GB, a snapshot of many files)",
    pages=("https://inference.mlcommons-storage.org (dlrm-v2-model-weights)",),
    license="not stated",
    steps=(
        "fetch the snapshot with the MLCommons R2 downloader, as README.md of recommendation/dlrm_v2/pytorch says",
        "write its state dict as one file with the packages torchsnapshot and safetensors (README.md of this recipe)",
    ),
    layout=("a *.safetensors or torch file with the tensors of torchrec's DLRM_DCN by name",),
    command="cm run script --tags=get,ml-model,dlrm-v2 --path=FILE",
)
MODEL = model_sources.Model(
    architecture="dlrm_v2",
    source=SOURCE,
    reference={"AUC": 80.31},  # README.md of recommendation/dlrm_v2/pytorch, mlcommons/inference
    full_size=model_sources.FullSize(
        title="dlrm-v2 at full size",
        weights_bytes=104_606_687_236,  # of float32 parameters; the embedding tables are all but 60 MB of them
    ),
)

plan = preprocess = MODEL.plan
postprocess = MODEL.finish
