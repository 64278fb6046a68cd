"""llama3.1-8b on fewer samples."""

from crowdperf.benchmarks.llama3_1_8b.text import open_text

__all__ = ["open_text"]
