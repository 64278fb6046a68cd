"""What a benchmark and a backend are: one record each, in its folder of the harness; everything else follows from it.

`crowdperf/benchmarks/<folder>/record.py` and `crowdperf/harness/backends/<name>/record.py` hold `RECORD`;
benchmarks.py and backends.py collect them. A record imports nothing but this module: recipes, reports and the gate
read it without numpy, torch or the harness.

Times in ms, sizes in bytes (GB and TB in powers of ten, as the sources count), accuracies in the units of the official
accuracy script's line.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from crowdperf.rules.names import Scenario

SS, MS, OFF, SRV = Scenario.SINGLE_STREAM, Scenario.MULTI_STREAM, Scenario.OFFLINE, Scenario.SERVER
INT = Scenario.INTERACTIVE
DATACENTER_TEXT = (Scenario.OFFLINE, Scenario.SERVER, INT)
EDGE2, EDGE3, DATACENTER, ALL_SCENARIOS = (SS, OFF), (SS, MS, OFF), (OFF, SRV), (SS, MS, OFF, SRV)

MB, GB, TB = 10**6, 10**9, 10**12
MLC_DOCS = "mlcommons/inference main.py, 33c8ee92 of 2026-05-13"
INFERENCE = "mlcommons/inference b66003e1 of 2026-08-20"
CM_RECIPES = "mlcommons/cm4mlops e1d5c7cf of 2025-03-13"


@dataclass(frozen=True, slots=True)
class Span:
    """Consecutive rounds with the same scenarios, of edge and of datacenter systems; empty: the category has none.

    both: of a system that is edge and datacenter, where that is not the two together. reference, count: where the
    reference score and the size of the data set were not those of the newest round.
    """

    first: str
    last: str
    edge: tuple[Scenario, ...]
    datacenter: tuple[Scenario, ...]
    both: tuple[Scenario, ...] | None = None
    reference: float | None = None
    count: int | None = None

    @property
    def scenarios(self) -> tuple[Scenario, ...]:
        """Those of any category, in the usual order."""
        own = self.both or (*self.edge, *self.datacenter)
        return tuple(scenario for scenario in Scenario if scenario in own)


@dataclass(frozen=True, slots=True)
class Reference:
    """One metric, as the official checker calls it, and the fp32 reference model's score.

    ratio: the part of the score that is asked for, whatever the accuracy level; None: the level's. most: how many
    times the score is too much; None: there is no upper limit.
    """

    metric: str
    score: float
    ratio: float | None = None
    most: float | None = None


@dataclass(frozen=True, slots=True)
class Size:
    """A size in bytes, and who said it. Nothing is a guess: a size has a source, or it is not there."""

    size_bytes: int
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """What a benchmark takes on disk; None is unknown.

    data: as it is fetched. prepared: as it is stored for runs. advised: what MLCommons asks for in all, archives,
    intermediate files and logs included. making: of disk while the recipe of the model makes the ONNX file of full
    size, at its peak; memory: of memory then.
    """

    model: Size | None = None
    data: Size | None = None
    prepared: Size | None = None
    advised: Size | None = None
    making: Size | None = None
    memory: Size | None = None
    note: str = ""

    @property
    def needed_bytes(self) -> int:
        """The largest of what is advised, what making the model takes, and the sum of the known parts."""
        parts = sum(part.size_bytes for part in (self.model, self.data, self.prepared) if part)
        return max(parts, *(part.size_bytes for part in (self.advised, self.making) if part), 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How a benchmark wants the next token chosen, and how long answers are, in tokens.

    temperature 0: the likeliest token. top_p 1 and top_k 0: no cut. seed: where the benchmark gives one. stop: token
    ids that end an answer beside the model's own end token. is_end_ignored: answers always have max_tokens.
    keeps_special: special tokens are part of the text, since the benchmark's scorer reads them; no part of repr, since
    it changes no answer as tokens (`Generation.answers_key`). reuses_prefixes: keys and values of earlier requests may
    be used again, as in conversations. The rules of MLPerf forbid it. No part of repr for the same reason.
    """

    max_tokens: int
    min_tokens: int = 1
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    seed: int | None = None
    stop: tuple[int, ...] = ()
    is_end_ignored: bool = False
    keeps_special: bool = field(default=False, repr=False)
    reuses_prefixes: bool = field(default=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLimits:
    """The most that a percentile may be, in ms: of the time to the first token (TTFT), and per output token after it
    (TPOT). percentile: 99 by MLPerf's rules; 90 needs a tenth of the queries."""

    ttft_ms: float
    tpot_ms: float
    percentile: int = 99


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """A benchmark whose answers are texts made token by token.

    longest_prompt: tokens.
    server, interactive: the limits of the scenarios; None: the benchmark does not have it. has_token_latencies:
    whether LoadGen gets first tokens (`use_token_latencies`). usual_backend: what runs it where none is named, if that
    is not the default of backends that answer prompts. accuracy_sampling: of accuracy runs, where that is
    another one. tests: its compliance tests, in all rounds. least_score: what TEST07's answers must score.
    mean_tokens: between what TEST09's answers must be long on average. has_messages: whether the data set has its
    prompts as messages too, which a server takes that has chats only.
    """

    sampling: Sampling
    longest_prompt: int
    server: TokenLimits | None = None
    interactive: TokenLimits | None = None
    has_token_latencies: bool = True
    usual_backend: str = ""
    accuracy_sampling: Sampling | None = None
    tests: tuple[str, ...] = ()
    least_score: float | None = None
    mean_tokens: tuple[float, float] | None = None
    has_messages: bool = False

    @property
    def answers_key(self) -> str:
        """A word that changes with whatever reference answers of the model depend on here: `16-tokens-1a2b3c4d5e6f`."""
        text = repr((self.sampling, self.longest_prompt))
        return f"{self.sampling.max_tokens}-tokens-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnModel:
    """A model of the user. suffix, takes_folders, chosen_by: the end of the name of a --model_path, whether that may be
    a folder, or the inputs, that choose it without a benchmark. inputs: those that not every model of the user has.
    needs: the input without which it cannot run, with an example of a value."""

    inputs: tuple[str, ...]
    needs: str
    suffix: str = ""
    takes_folders: bool = False
    chosen_by: tuple[str, ...] = ()

    def is_chosen_by(self, path: Path) -> bool:
        """Return whether a --model_path is such a model."""
        return self.takes_folders if path.is_dir() else bool(self.suffix) and path.suffix.lower() == self.suffix


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipes:
    """The tags of the recipes that provide the files, empty for none; `preprocessed`: where samples are kept
    preprocessed.

    is_detector: the preprocessed samples depend on the framework's network. is_fixed: one model and one data set, so
    that `_tiny`, `_synthetic` and `_pytorch` do not exist. own: of a model of the user. prompts: the data set
    without the reference answers that cost much to make: what a performance run needs where a server answers.
    """

    dataset: str
    model: str
    prompts: str = ""
    preprocessed: str = ""
    is_detector: bool = False
    is_fixed: bool = False
    own: OwnModel | None = None

    @property
    def is_own(self) -> bool:
        """Whether the user brings the model."""
        return self.own is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One benchmark with all its accuracy levels.

    name: the official name without its level. levels: the parts of the reference score that are asked for, each with
    the word that the name ends with ("bert-99"); empty: one level, at 0.99, whose name is `name`.
    title: what it does, in words. loadgen_name: the name in LoadGen's embedded table.
    checker_name: what the official checkers call it, where that is another name (without the level).
    checker_aliases: folder names that they take for it, each with the round since when. checker_words: a folder name
    that contains one stands for it, or for the level that the word names.
    spellings: what else documents and harnesses call it.
    dataset: the file in harness/datasets. accuracy_sample_count: samples of accuracy runs, where those are of a data
    set of another size; dataset_count is then that of performance runs. performance_sample_count: samples in memory
    during a performance run, None: the whole validation set. multi_stream_target_latency_ms: the fixed rate of
    MultiStream before v2.0.
    server_target_latency_ms: of 99 % of the queries in Server, from loadgen/mlperf.conf, or of a whole answer where
    token limits count there and the official checker has this one beside them; None: there is none, because no round
    has the scenario, or because token limits alone count.
    spans: the rounds that have it, oldest first; none for a benchmark that is not MLPerf's. spans_of_999: those of the
    level 99.9, where they differ.
    batch_size, largest_batch_size: samples of one inference in Offline and at most in Server before the search for the
    best one, and where that search ends: this project's choice. Backends that answer prompts look for none.
    offline_min_sample_count: samples that a run in Offline has at least; the default is the official checker's number
    for all benchmarks up to v3.1 (rounds.py).
    size_bounds: the smallest, the usual and the largest value of sizes of the networks' tensors that change from call
    to call, for engines that are built for them.
    input_type: what the harness hands to the network. response_type: the numbers that responses consist of; of other
    responses TEST01 compares the first byte, as the official script does. end_token: what ends an answer of tokens.
    test01_samples: responses that TEST01 logs (fewer where they are large or the performance set is small).
    has_test04: up to v4.1; False where a sample takes as long as it is large. test06_since: a language model's round.
    own_tests: by round, where the tests are not those that follow from these and from the round.
    unservable: why a server of another process cannot run it sample by sample; empty where it can.
    has_token_counts: LoadGen counts the tokens of its answers, which networks on tensors give: only Offline can be run,
    because the other scenarios want the time of the first token.
    published_md5: of the published files that are measured as they are, by which a file given by path is known
    (get-ml-model-*: the recipes have the addresses).
    has_pictures: responses are pictures, some of which rounds want to see beside a score; its model has
    `write_pictures`.
    has_rows: a sample is itself a batch of rows, of another number each; NVIDIA's harness counts those in a batch.
    neuron_batch: samples that its network is compiled for on AWS Neuron at once; None: it is not offered there.
    generation: of a benchmark that a text backend answers; None: networks run on tensors.
    serves_higher_level: one engine serves the level 99.9, too. is_in_nvidia_v07: one of the seven of NVIDIA's README
    for v0.7. is_default: what a call without a model runs.
    """

    name: str
    title: str
    loadgen_name: str
    dataset: str
    dataset_count: int
    performance_sample_count: int | None
    offline_min_sample_count: int = 24_576
    batch_size: int = 1
    largest_batch_size: int = 1
    references: tuple[Reference, ...]
    recipes: Recipes
    server_target_latency_ms: float | None = None
    spans: tuple[Span, ...] = ()
    spans_of_999: tuple[Span, ...] = ()
    levels: tuple[float, ...] = ()
    checker_name: str = ""
    checker_aliases: Mapping[str, str] = field(default_factory=dict)
    checker_words: tuple[str, ...] = ()
    spellings: tuple[str, ...] = ()
    multi_stream_target_latency_ms: float | None = None
    accuracy_sample_count: int | None = None
    size_bounds: Mapping[str, tuple[int, int, int]] = field(default_factory=dict)
    input_type: str = "fp32"
    response_type: str = ""
    end_token: int | None = None
    test01_samples: int = 4096
    has_test04: bool = False
    test06_since: str = ""
    own_tests: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    has_token_counts: bool = False
    published_md5: tuple[str, ...] = ()
    has_pictures: bool = False
    has_rows: bool = False
    unservable: str = ""
    neuron_batch: int | None = None
    generation: Generation | None = None
    serves_higher_level: bool = False
    is_in_nvidia_v07: bool = False
    is_default: bool = False
    sizes: Sizes = field(default_factory=Sizes)

    @property
    def is_official(self) -> bool:
        """Whether a round of MLPerf Inference has it."""
        return bool(self.spans)

    @property
    def names(self) -> tuple[str, ...]:
        """The official name of each level."""
        return tuple(f"{self.name}-{part * 100:.12g}" for part in self.levels) or (self.name,)

    @property
    def own_scenarios(self) -> tuple[Scenario, ...]:
        """The scenarios of a benchmark that no round has."""
        found = self.generation
        if found is None:
            return ALL_SCENARIOS
        has_server = found.server is not None or not found.has_token_latencies
        return (SS, OFF, *((SRV,) if has_server else ()), *((INT,) if found.interactive is not None else ()))

    def loadgen_name_in(self, scenario: Scenario) -> str:
        """The name in LoadGen's embedded table, which has the limits of Interactive under a name of its own."""
        return f"{self.loadgen_name}-interactive" if scenario is INT else self.loadgen_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """A Python package that a backend needs: its handle in the recipe, the tags of the recipe that installs it.

    device: the only device that needs it; empty: all. is_optional: runs go on without it. Only a wheel is installed.
    """

    name: str
    tags: str
    version_min: str = ""
    version_max: str = ""
    device: str = ""
    is_optional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendRecord:
    """A backend: what runs a network on a device.

    framework: what model.json must name ("onnx", "pytorch", "tensorrt", "openvino", "neuron", "huggingface", "gguf",
    "onnxruntime-genai"); None: no file is read. model_files: the variation of the model recipes whose files it reads
    or is built from. engine: the variation of generate-engine that builds what it reads; empty: it reads the model's
    own files. engine_suffix: what files of engines end with. has_largest_batch: whether an engine is built for batches
    up to a size. int8_files: the variations of quantize-ml-model whose files it takes, where it does not take what
    `_int8` alone makes. devices, precisions: what it can run. gpu_precisions: what it can run on device cuda besides.
    "tf32" is fp32 weights that are multiplied in TensorFloat-32 (ten bits of mantissa); "fp32" is IEEE on every
    device. MLPerf's rules do not name TF32: closed weights may be taken to any numerical format that reaches the
    quality wanted, and precisions may be chosen by operation (Weight Definition and Quantization, Model Equivalence:
    inference_rules.adoc of mlcommons/inference_policies, ac93e89c of 2026-07-23). So it may be submitted, as fp32
    weights. batch_size: the one that suits it whatever the model; None: the harness looks for the best. library: the
    handle of the package whose version stands in a system's name. short_name: in systems' names as NVIDIA gives them.
    transformation: what it does to weights, for measurements.json. stand_in: what is said of figures that are no
    machine's; empty: a real backend. simulates: the backend whose place the stand-in takes with `--simulate`.
    is_default: what runs a benchmark where none is named; one of those that run networks, and one of those that answer
    prompts. recipes: tags of further recipes that it needs. gpu_recipes: those on device cuda, in their places.
    is_served: another process answers; run.json then has `serving`. is_text: it answers prompts token by token
    (crowdperf/harness/text/engine.py); run.json then has `text`. is_remote: a server that is not this tool's answers;
    it needs no file of a model. unfit: devices that it cannot use, each with the reason. image: a container that has
    it. only_with: the field of a benchmark's record without which it does not run it; empty: it runs all. server: the
    backend whose server it runs behind, so that the variations of both may be named together. tokenizes: it has the
    model's tokenizer and chat template, so that prompts may be texts and messages. model_values: the values that it
    can run of what is known of a language model (keys of config.json, `rope_type`, and GGUF's `quantization`), the
    usual one first; other keys may have any.
    """

    framework: str | None
    devices: tuple[str, ...]
    precisions: tuple[str, ...]
    gpu_precisions: tuple[str, ...] = ()
    model_files: str = ""
    engine: str = ""
    engine_suffix: str = ""
    has_largest_batch: bool = False
    int8_files: str = ""
    batch_size: int | None = None
    packages: tuple[Package, ...] = ()
    library: str = ""
    short_name: str = ""
    transformation: str = ""
    stand_in: str = ""
    simulates: str = ""
    is_default: bool = False
    recipes: tuple[str, ...] = ()
    gpu_recipes: tuple[str, ...] = ()
    is_served: bool = False
    is_text: bool = False
    is_remote: bool = False
    unfit: Mapping[str, str] = field(default_factory=dict)
    image: str = ""
    only_with: str = ""
    server: str = ""
    tokenizes: bool = False
    model_values: Mapping[str, tuple[object, ...]] = field(default_factory=dict)

    def precisions_on(self, device: str) -> tuple[str, ...]:
        """What it can run on a device."""
        return (*self.precisions, *(self.gpu_precisions if device == "cuda" else ()))

    def file_precision(self, precision: str) -> str:
        """The precision of the files that a run in `precision` reads: engines are built for tf32, files are not."""
        return "fp32" if precision == "tf32" and not self.engine else precision
