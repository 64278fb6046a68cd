"""whisper (since v5.1). Sources: see crowdperf/rules/benchmarks.py."""

from crowdperf.rules.record import INFERENCE, MB, OFF, Recipes, Record, Reference, Size, Sizes, Span

_OFFLINE = (OFF,)

RECORD = Record(
    name="whisper",
    title="speech recognition: Whisper large-v3 on LibriSpeech",
    loadgen_name="whisper",
    spellings=("whisper-large-v3",),
    dataset="whisper",
    dataset_count=1_633,
    performance_sample_count=1_633,
    offline_min_sample_count=1_633,
    batch_size=1,  # our choice: keys and values of a clip take 0.5 GB
    largest_batch_size=16,
    references=(Reference("ACCURACY", 100.0 - 2.0671),),
    spans=(Span("v5.1", "v6.1", _OFFLINE, _OFFLINE, both=_OFFLINE),),
    response_type="int64",
    has_token_counts=True,
    recipes=Recipes(dataset="get,dataset,whisper", model="get,ml-model,whisper"),
    sizes=Sizes(
        model=Size(6_175 * MB, "our own export of the architecture: 1.54 billion fp32 parameters"),
        note=f"the data is 1,633 wav files, some 10 hours of sound ({INFERENCE}, speech2text/README.md)",
    ),
    unservable="its network is called for each token, with states that a server does not keep",
)
