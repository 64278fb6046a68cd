"""Why a bundle is not accepted."""

from crowdperf.store.model import Problem


class BundleRefused(Exception):
    """What was sent is not accepted; `problems` say why, each with rule, file, what was found and what is expected."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__("; ".join(f"{one.file or 'bundle'}: {one.found}" for one in problems))
        self.problems = problems


def refused(rule: str, file: str, found: str, expected: str) -> BundleRefused:
    """Return the refusal for one problem; `file` is empty where the bundle itself is meant."""
    return BundleRefused(Problem(rule=rule, file=file, found=found, expected=expected))
