"""Hooks of get-dataset-kits19: the user's own copy of the cases, checked, or synthetic ones.

The volumes may be used after their license is accepted, so nothing is downloaded. run.sh makes synthetic cases
(`crowdperf.standins`) or checks the given copy (`check_dataset` of the harness), which names what is missing.
"""

from crowdperf.data import datasets, manual_download

SOURCE = manual_download.Source(
    name="KiTS19 (2019 kidney tumour segmentation challenge, the 43 cases that are measured)",
    pages=("https://github.com/neheller/kits19", "https://kits19.grand-challenge.org"),
    license="CC BY-NC-SA 4.0: not for commercial use",
    steps=(
        "git clone https://github.com/neheller/kits19 (the segmentations are in it)",
        "in the clone: pip3 install -r requirements.txt, then python3 -m starter_code.get_imaging (fetches the scans)",
    ),
    layout=("data/case_00000/imaging.nii.gz", "data/case_00000/segmentation.nii.gz", "the same for 42 more cases"),
    command="cm run script --tags=get,dataset,original,kits19 --path=FOLDER",
)
CASES = datasets.CaseSet(name="kits19", source=SOURCE)

plan = preprocess = CASES.plan
postprocess = CASES.finish
