"""3d-unet-brats-99 and 3d-unet-brats-99.9 (v0.7 to v1.1). Sources: see crowdperf/rules/benchmarks.py."""

from crowdperf.rules.record import EDGE2, OFF, Recipes, Record, Reference, Span

RECORD = Record(
    name="3d-unet-brats",
    title="medical image segmentation: 3D-UNet on BraTS 2019",
    levels=(0.99, 0.999),
    loadgen_name="3d-unet",
    checker_name="3d-unet",
    dataset="brats19",
    dataset_count=67,
    performance_sample_count=16,
    batch_size=1,  # a volume takes gigabytes
    largest_batch_size=1,
    references=(Reference("DICE", 0.85300),),
    spans=(Span("v0.7", "v1.1", EDGE2, (OFF,)),),
    test01_samples=64,
    serves_higher_level=True,
    recipes=Recipes(dataset="get,dataset,brats19,original", model="get,ml-model,3d-unet,_brats"),
)
