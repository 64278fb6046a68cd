"""Hooks of get-dataset-coco2014: the user's own copy of the captions, opened once, or synthetic ones.

The captions are a file of mlcommons/inference, but what scores pictures is fetched by hand, so nothing is downloaded
here. run.sh makes synthetic files (`crowdperf.standins`) or opens the given copy (`check_dataset` of the harness),
which names what is missing.
"""

from crowdperf.data import datasets, manual_download

SOURCE = manual_download.Source(
    name="the captions of Stable Diffusion XL (5,000 of COCO 2014), the noise, and what scores pictures",
    pages=(
        "https://github.com/mlcommons/inference, folder text_to_image at b66003e1: captions, noise and statistics",
        "https://github.com/mseitzer/pytorch-fid, release fid_weights: pt_inception-2015-12-05-6726825d.pth",
        "open_clip's ViT-B-32 with the weights openai, saved as safetensors with open_clip's names",
    ),
    license="of the captions as COCO's pages say (https://cocodataset.org)",
    steps=(
        "copy coco2014/captions/captions_source.tsv, tools/latents.npy and tools/val2014.npz of text_to_image",
        "fetch the weights of Inception and of CLIP, which the official script downloads when it scores",
    ),
    layout=(
        "captions/captions_source.tsv (or captions.tsv)",
        "latents/latents.npy (or latents.pt)",
        "scoring/val2014.npz, scoring/inception.pth, scoring/clip.safetensors",
    ),
    command="cm run script --tags=get,dataset,coco2014 --path=FOLDER",
)
CAPTIONS = datasets.CaseSet(name="coco2014", source=SOURCE)

plan = preprocess = CAPTIONS.plan
postprocess = CAPTIONS.finish
