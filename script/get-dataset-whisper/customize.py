"""Hooks of get-dataset-whisper: the user's own copy of the clips, opened once, or synthetic ones.

The clips come through the r2 downloader of MLCommons, so nothing is downloaded here. run.sh makes synthetic ones
(`crowdperf.standins`) or opens the given copy (`check_dataset` of the harness), which names what is missing.
"""

from crowdperf.data import datasets, manual_download

SOURCE = manual_download.Source(
    name="the clips of Whisper (LibriSpeech dev-clean and dev-other, joined to 1,633 of up to 30 s)",
    pages=("https://inference.mlcommons-storage.org/metadata/whisper-dataset.uri, for the MLCommons R2 downloader",),
    license="CC BY 4.0 (LibriSpeech, http://www.openslr.org/12/)",
    steps=(
        "fetch them with the MLCommons R2 downloader (mlc-r2-downloader.sh of mlcommons/r2-downloader)",
        "or make them: download_dataset.sh in speech2text of mlcommons/inference",
    ),
    layout=("dev-all-repack.json", "dev-all-repack/, with the wav files that it names"),
    command="cm run script --tags=get,dataset,whisper --path=FOLDER",
)
CLIPS = datasets.CaseSet(name="whisper", source=SOURCE)

plan = preprocess = CLIPS.plan
postprocess = CLIPS.finish
