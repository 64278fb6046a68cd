"""What scoring an accuracy run gives."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """The score of an accuracy run.

    values: by metric name as the official checker calls them ("acc", "F1", "mAP", "DICE", "AUC", "WER", "ROUGE1" ...),
    percent where the official script prints percent. line: the line of accuracy.txt, as the official script prints it.
    """

    values: Mapping[str, float]
    line: str
