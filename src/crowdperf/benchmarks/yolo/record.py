"""yolo-95 and yolo-99 (since v6.0). Sources: see crowdperf/rules/benchmarks.py."""

from crowdperf.rules.record import EDGE3, INFERENCE, MB, Recipes, Record, Reference, Size, Sizes, Span

RECORD = Record(
    name="yolo",
    title="object detection: YOLO11l on COCO 2017 images of free licenses",
    levels=(0.99, 0.95),  # the first is what `yolo` alone stands for
    loadgen_name="yolo",
    spellings=("yolo11", "yolo11l", "yolov11"),
    dataset="coco",
    dataset_count=1_525,
    performance_sample_count=64,
    offline_min_sample_count=1_525,  # LoadGen's mlperf.conf has no line for it, the checker asks for it
    batch_size=2,  # our choice: a batch of 32 is 157 MB of pixels
    largest_batch_size=32,
    references=(Reference("mAP", 53.4),),
    spans=(Span("v6.0", "v6.1", EDGE3, (), both=EDGE3),),
    test01_samples=64,
    recipes=Recipes(dataset="get,dataset,coco,original,_safe", model="get,ml-model,yolo"),
    sizes=Sizes(
        model=Size(102 * MB, "our own ONNX export of the architecture: 25.4 million fp32 parameters"),
        data=Size(1_069 * MB, f"val2017.zip and annotations_trainval2017.zip ({INFERENCE} keeps 1,525 of the images)"),
    ),
)
