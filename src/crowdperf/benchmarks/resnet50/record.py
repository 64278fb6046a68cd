"""resnet50. Sources: see crowdperf/rules/benchmarks.py."""

from crowdperf.rules.record import (  # isort: skip
    ALL_SCENARIOS, DATACENTER, EDGE2, EDGE3, GB, MB, MLC_DOCS, Recipes, Record, Reference, Size, Sizes, Span,
)  # fmt: skip

RECORD = Record(
    name="resnet50",
    title="image classification: ResNet-50 v1.5 on ImageNet",
    loadgen_name="resnet50",
    checker_name="resnet",
    checker_aliases={"resnet50": "v0.7", "mobilenet": "v0.7"},
    checker_words=("mobilenet", "efficientnet", "resnet50"),
    spellings=("resnet",),
    dataset="imagenet",
    dataset_count=50_000,
    performance_sample_count=1024,
    server_target_latency_ms=15.0,
    multi_stream_target_latency_ms=50.0,
    batch_size=4,
    largest_batch_size=128,
    references=(Reference("acc", 76.46),),
    spans=(
        Span("v0.7", "v1.0", EDGE3, DATACENTER),
        Span("v1.1", "v1.1", EDGE2, DATACENTER),
        Span("v2.0", "v5.0", EDGE3, DATACENTER),
        Span("v5.1", "v6.1", EDGE3, (), both=ALL_SCENARIOS),
    ),
    response_type="float32",
    has_test04=True,
    is_in_nvidia_v07=True,
    recipes=Recipes(
        dataset="get,dataset,imagenet,original",
        preprocessed="get,dataset,preprocessed,imagenet",
        model="get,ml-model,resnet50",
    ),
    sizes=Sizes(
        model=Size(102 * MB, "our own ONNX export of the architecture: 25.6 million fp32 parameters"),
        prepared=Size(50_000 * 3 * 224 * 224 * 4, "computed: ImageNet's 50,000 images as float32[3, 224, 224]"),
        advised=Size(50 * GB, MLC_DOCS),
    ),
    published_md5=("f6a4da60cd5f084d97efc2c1ddb10beb", "a638cf028b5870da29e09ccc2f7182e7"),
    neuron_batch=5,  # closed/NVIDIA of mlcommons/inference_results_v2.0 (425a0d30), Offline
)
