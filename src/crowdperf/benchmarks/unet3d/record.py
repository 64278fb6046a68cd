"""3d-unet-99 and 3d-unet-99.9 of KiTS19 (since v2.0). Sources: see crowdperf/rules/benchmarks.py."""

from crowdperf.rules.record import EDGE2, GB, MLC_DOCS, OFF, Recipes, Record, Reference, Size, Sizes, Span

RECORD = Record(
    name="3d-unet",
    title="medical image segmentation: 3D-UNet on KiTS19",
    levels=(0.99, 0.999),
    loadgen_name="3d-unet",
    spellings=("unet", "3dunet"),
    dataset="kits19",
    dataset_count=43,
    performance_sample_count=43,
    offline_min_sample_count=43,
    batch_size=1,  # a volume is itself a batch of windows
    largest_batch_size=1,
    references=(Reference("DICE", 0.86170),),
    spans=(
        Span("v2.0", "v2.0", EDGE2, (OFF,), reference=0.86331, count=42),
        Span("v2.1", "v6.1", EDGE2, (OFF,)),
    ),
    test01_samples=64,
    serves_higher_level=True,
    is_in_nvidia_v07=True,
    recipes=Recipes(
        dataset="get,dataset,kits19,original",
        preprocessed="get,dataset,preprocessed,kits19",
        model="get,ml-model,3d-unet",
    ),
    sizes=Sizes(advised=Size(60 * GB, MLC_DOCS), note="of KiTS19 (v0.7 used BraTS 2019, whose size is unknown)"),
    published_md5=("82f0618fde78f9839e7c712274019b4a",),
    unservable="it cuts a volume into windows, so that one sample is many inferences",
)
