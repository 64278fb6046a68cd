"""Files that are put in place whole, or once."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mlperf_results.wholefile import write_once


def test_a_file_is_written_once_by_whoever_is_first(tmp_path: Path) -> None:
    path = tmp_path / "key"
    with ThreadPoolExecutor(8) as pool:
        put = list(pool.map(lambda number: write_once(path, b"%d" % number * 1000, 0o600), range(8)))
    assert put.count(True) == 1
    assert path.read_bytes() == b"%d" % put.index(True) * 1000
    assert (stat.S_IMODE(path.stat().st_mode), os.listdir(tmp_path)) == (0o600, ["key"])
    assert not write_once(path, b"")
