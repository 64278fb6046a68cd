"""stable-diffusion-xl (since v4.0). Sources: see crowdperf/rules/benchmarks.py."""

from crowdperf.rules.record import (  # isort: skip
    CM_RECIPES, DATACENTER, EDGE2, GB, INFERENCE, MB, MLC_DOCS, OFF, SRV, SS, Recipes, Record, Reference, Size, Sizes,
    Span,
)  # fmt: skip

_CLIP, _FID = 31.74981837, 23.48046692  # docs/index.md of mlcommons/inference, b66003e1; the windows are the checker's

RECORD = Record(
    name="stable-diffusion-xl",
    title="text to image: Stable Diffusion XL base 1.0 on captions of COCO 2014",
    loadgen_name="stable-diffusion-xl",
    spellings=("sdxl",),
    dataset="coco2014",
    dataset_count=5_000,
    performance_sample_count=5_000,
    offline_min_sample_count=5_000,
    server_target_latency_ms=20_000.0,
    batch_size=1,  # our choice
    largest_batch_size=8,  # our choice
    references=(
        Reference("CLIP_SCORE", _CLIP, ratio=31.68631873 / _CLIP, most=31.81331801 / _CLIP),
        Reference("FID_SCORE", _FID, ratio=23.01085758 / _FID, most=23.95007626 / _FID),
    ),
    spans=(
        Span("v4.0", "v5.1", EDGE2, DATACENTER),
        Span("v6.0", "v6.1", EDGE2, (), both=(SS, OFF, SRV)),
    ),
    test01_samples=128,
    has_test04=True,
    own_tests={"v4.0": (), "v4.1": ("TEST01", "TEST04")},  # submission_checker.py of the tags v4.0 and v4.1
    has_pictures=True,
    recipes=Recipes(dataset="get,dataset,coco2014", model="get,ml-model,stable-diffusion-xl"),
    sizes=Sizes(
        model=Size(13_700 * MB, "our own export of the architecture: 3.43 billion fp32 parameters"),
        data=Size(2 * MB, f"{INFERENCE}, text_to_image: captions and noise, without the scoring files"),
        advised=Size(50 * GB, MLC_DOCS),
        note=f"{CM_RECIPES}, get-ml-model-stable-diffusion, has 13 GB for fp32 (plus 0.7 GB for scoring)",
    ),
    unservable="its network is called for each step, with states that a server does not keep",
)
