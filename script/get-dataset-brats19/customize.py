"""Hooks of get-dataset-brats19: the user's own copy of the cases, checked, or synthetic ones.

The scans may be used after their license is accepted, so nothing is downloaded. run.sh makes synthetic cases
(`crowdperf.standins`) or checks the given copy (`check_dataset` of the harness), which names what is missing.
"""

from crowdperf.data import datasets, manual_download

SOURCE = manual_download.Source(
    name="BraTS 2019 (brain tumour segmentation challenge, training data, 67 of its cases are measured)",
    pages=("https://www.med.upenn.edu/cbica/brats2019/data.html",),
    license="the challenge's terms, which you accept when you register",
    steps=("register on the page and request the training data", "unpack MICCAI_BraTS_2019_Data_Training.zip"),
    layout=(
        "HGG/BraTS19_2013_13_1/BraTS19_2013_13_1_t1.nii.gz, _t1ce, _t2, _flair, _seg",
        "the same for 66 more cases",
    ),
    command="cm run script --tags=get,dataset,original,brats19 --path=FOLDER",
)
CASES = datasets.CaseSet(name="brats19", source=SOURCE)

plan = preprocess = CASES.plan
postprocess = CASES.finish
