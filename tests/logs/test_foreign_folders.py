"""Folders of results that come from other people: a file in one may be a pipe without end, a device, or too large."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from crowdperf.kit.text_documents import LARGEST_GIVEN_BYTES
from crowdperf.kit.whole_file import read_object
from crowdperf.logs.found_runs import FoundRun, files_of
from crowdperf.logs.layout import RunPaths
from crowdperf.logs.run_log import LogError, read_run_logs
from crowdperf.rules.names import Mode, Scenario


def pipe(path: Path) -> None:
    os.mkfifo(path)


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def large(path: Path) -> None:
    with path.open("wb") as file:
        file.write(b"{}")
        file.truncate(LARGEST_GIVEN_BYTES + 1)


KINDS = {pipe: "a pipe, allowed", device: "a device, allowed", large: "bytes, allowed: at most"}


@pytest.mark.parametrize("make", KINDS)
def test_no_reader_of_a_folder_waits_for_such_a_file_or_holds_it_whole(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    paths = RunPaths(tmp_path)
    for path in (paths.summary_log, paths.result_json):
        make(path)
    paths.detail_log.write_text("")
    assert read_object(paths.result_json) is None
    run = FoundRun(
        paths=paths, relative=Path("."), group="", system="box", model="m", scenario=Scenario.OFFLINE,
        mode=Mode.PERFORMANCE, number=1,
    )  # fmt: skip
    assert files_of(run, (paths.result_json.name,)).get(paths.result_json.name) is None
    paths.detail_log.unlink()
    make(paths.detail_log)
    with pytest.raises(LogError, match=KINDS[make]) as caught:
        read_run_logs(paths)
    assert "did the run start" not in str(caught.value)
