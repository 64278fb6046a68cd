"""Hooks of get-dataset-igbh: the user's own copy of the graph, opened once, or a synthetic one.

The graph has 2.2 TB, so nothing is downloaded here. run.sh makes a synthetic one (`crowdperf.standins`) or opens the
given copy (`check_dataset` of the harness), which names what is missing.
"""

from crowdperf.data import datasets, manual_download

SOURCE = manual_download.Source(
    name="IGBH, the full graph (2.2 TB, the benchmark needs about 600 GB of memory)",
    pages=(
        "https://igb-public.s3.us-east-2.amazonaws.com/IGBH/processed/",
        "https://github.com/IllinoisGraphBenchmark/IGB-Datasets",
    ),
    license="see https://github.com/IllinoisGraphBenchmark/IGB-Datasets",
    steps=(
        "in graph/R-GAT of mlcommons/inference: ./tools/download_igbh_full.sh FOLDER",
        "also there: python3 tools/split_seeds.py --path FOLDER --dataset_size full (writes val_idx.pt)",
    ),
    layout=("full/processed/paper/node_feat.npy", "full/processed/val_idx.pt", "the other files of the download"),
    command="cm run script --tags=get,dataset,igbh --path=FOLDER",
)
GRAPH = datasets.CaseSet(name="igbh", source=SOURCE)

plan = preprocess = GRAPH.plan
postprocess = GRAPH.finish
