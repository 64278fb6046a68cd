"""bert-99 and bert-99.9. Sources: see crowdperf/rules/benchmarks.py."""

from crowdperf.rules.record import DATACENTER, EDGE2, GB, MB, MLC_DOCS, Recipes, Record, Reference, Size, Sizes, Span

RECORD = Record(
    name="bert",
    title="question answering: BERT-large on SQuAD v1.1",
    levels=(0.99, 0.999),
    loadgen_name="bert",
    checker_words=("bert-99.9", "bert-99"),
    spellings=("bert-large",),
    dataset="squad",
    dataset_count=10_833,
    performance_sample_count=10_833,
    offline_min_sample_count=10_833,
    server_target_latency_ms=130.0,
    # Our choice. On a CPU nothing is won by more samples at once, which only add padding; eight cost up to a tenth more
    # than one in int8 (table in network.py). A GPU wants far more.
    batch_size=2,
    largest_batch_size=128,
    references=(Reference("F1", 90.874),),
    spans=(Span("v0.7", "v4.1", EDGE2, DATACENTER), Span("v5.0", "v6.1", EDGE2, ())),
    spans_of_999=(Span("v0.7", "v4.1", (), DATACENTER), Span("v5.0", "v6.1", EDGE2, ())),
    size_bounds={"tokens": (1, 384, 384)},  # max_seq_length of the reference: 384
    input_type="int64",
    is_in_nvidia_v07=True,
    recipes=Recipes(
        dataset="get,dataset,squad,original",
        preprocessed="get,dataset,preprocessed,squad",
        model="get,ml-model,bert-large",
    ),
    sizes=Sizes(
        model=Size(1_336 * MB, "our own ONNX export of the architecture: 334 million fp32 parameters"),
        prepared=Size(10_833 * 3 * 384 * 4, "computed: 10,833 samples of three int32[384]"),
        advised=Size(50 * GB, MLC_DOCS),
    ),
    published_md5=("819b25b19cd8e59080c10892689750ca", "45f88ffb2915362242703c85c38ec2d4"),
    neuron_batch=1,  # closed/NVIDIA of mlcommons/inference_results_v2.0 (425a0d30)
)
