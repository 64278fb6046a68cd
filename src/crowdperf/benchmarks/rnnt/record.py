"""rnnt (v0.7 to v4.0). Sources: see crowdperf/rules/benchmarks.py."""

from crowdperf.rules.record import DATACENTER, EDGE2, GB, INFERENCE, Recipes, Record, Reference, Size, Sizes, Span

RECORD = Record(
    name="rnnt",
    title="speech recognition: RNN-T on LibriSpeech dev-clean",
    loadgen_name="rnnt",
    spellings=("rnn-t",),
    dataset="librispeech",
    dataset_count=2_513,
    performance_sample_count=2_513,
    offline_min_sample_count=2_513,
    server_target_latency_ms=1000.0,
    batch_size=32,  # our choice: an LSTM step costs about the same for 1 and 32
    largest_batch_size=256,
    references=(Reference("WER", 100.0 - 7.452),),
    spans=(Span("v0.7", "v4.0", EDGE2, DATACENTER),),
    response_type="int64",
    is_in_nvidia_v07=True,
    recipes=Recipes(
        dataset="get,dataset,librispeech,original",
        preprocessed="get,dataset,preprocessed,librispeech",
        model="get,ml-model,rnnt",
    ),
    sizes=Sizes(advised=Size(30 * GB, f"{INFERENCE}, retired_benchmarks/speech_recognition/rnnt/README.md")),
    unservable="it has two networks and passes states between calls, which a server would copy each time",
)
