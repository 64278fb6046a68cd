"""rgat (since v5.0). Sources: see crowdperf/rules/benchmarks.py."""

from crowdperf.rules.record import GB, INFERENCE, MB, MLC_DOCS, OFF, Recipes, Record, Reference, Size, Sizes, Span

_ROUNDS = Span("v5.0", "v6.1", (), (OFF,), both=(OFF,))

RECORD = Record(
    name="rgat",
    title="node classification: R-GAT on the graph of papers IGBH",
    loadgen_name="rgat",
    spellings=("r-gat",),
    dataset="igbh",
    dataset_count=788_379,
    performance_sample_count=788_379,
    offline_min_sample_count=788_379,
    batch_size=8,  # our choice
    largest_batch_size=128,  # max_batchsize of the reference (graph/R-GAT/main.py)
    # The checker compares a fraction, .7286 x .99, with a line in percent; this is the percent that it means.
    references=(Reference("acc", 72.86),),
    spans=(_ROUNDS,),
    response_type="int64",
    recipes=Recipes(dataset="get,dataset,igbh", model="get,ml-model,rgat"),
    sizes=Sizes(
        model=Size(84 * MB, "our own ONNX export of the architecture: 13.1 million fp32 parameters, some in two forms"),
        data=Size(2_200 * GB, f"{INFERENCE}, graph/R-GAT/README.md"),
        advised=Size(2_300 * GB, MLC_DOCS),
        note="about 600 GB of memory",
    ),
    unservable="its samples are nodes of a graph in memory, whose neighbors are drawn in the timed part",
)
