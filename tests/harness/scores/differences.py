"""Cases on which this project's scorers differ from the official scripts on purpose.

By "metric: case": our line (None: a HarnessError) and why.
"""

_NAN = "the official script ranks NaN like a number; here it is an error"
_NO_CURVE = "the official script prints AUC=nan%; no ROC curve is an error here"

DIFFERENCES: dict[str, tuple[str | None, str]] = {
    "auc: clicks only": (None, _NO_CURVE),
    "auc: no clicks": (None, _NO_CURVE),
    "coco: no detection at all": ("mAP=0.000%", "the official script ends with an IndexError"),
    "coco: NaN score": (None, _NAN),
    "kits: a case missing": (
        "Accuracy: mean = 0.77455, kidney = 0.8213, tumor = 0.7278",
        "the official script refuses a part of the cases; here the caller sees to it that all come",
    ),
    "squad: NaN": (None, _NAN),
    "wer: transcripts of nothing": (None, "the official script prints inf%; no word to count is an error here"),
}
