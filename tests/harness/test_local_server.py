"""A server on this machine is part of the system under test: its processes are found by its URL."""

import dataclasses
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import harness_support
import pytest

from crowdperf.harness.watch import localserver, pressure
from crowdperf.harness.watch.localserver import ServerPlace
from crowdperf.harness.watch.processes import process_rows

harness_support.need("numpy")

V4, V6 = frozenset({"127.0.0.1"}), frozenset({"::1"})
HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
REST = "00000000:00000000 00:00000000 00000000  1000        0"


def row(local: str, inode: int, state: str = "0A", remote: str = "00000000:0000") -> str:
    return f"   0: {local} {remote} {state} {REST} {inode} 1 0000000000000000 100 0 0 10 0\n"


@pytest.mark.parametrize(
    ("local", "state", "addresses", "is_found"),
    [
        ("0100007F:1F90", "0A", V4, True),  # 127.0.0.1:8080
        ("00000000:1F90", "0A", V4, True),  # every address
        ("0100007F:1F91", "0A", V4, False),  # another port
        ("0100007F:1F90", "01", V4, False),  # a connection of it, not the listener
        ("0501A8C0:1F90", "0A", V4, False),  # 192.168.1.5: another server on the same port
        ("0501A8C0:1F90", "0A", frozenset({"192.168.1.5"}), True),
        ("00000000:1F90", "0A", V6, False),
        ("00000000000000000000000001000000:1F90", "0A", V6, True),  # ::1
        ("00000000000000000000000000000000:1F90", "0A", V4, True),  # :: takes IPv4 as well
        ("00000000000000000000000000000000:1F90", "0A", V6, True),
        ("0000000000000000FFFF00000100007F:1F90", "0A", V4, True),  # ::ffff:127.0.0.1
    ],
)
def test_the_socket_that_takes_connections_to_an_address_is_found(local, state, addresses, is_found):
    place = ServerPlace(addresses=addresses, port=8080)
    tables = (HEAD + row("0100007F:0016", 7), HEAD + row(local, 4711, state))
    assert localserver.listening_inodes(tables, place) == (frozenset({"4711"}) if is_found else frozenset())


@pytest.mark.parametrize(
    ("url", "port"),
    [
        ("http://127.0.0.1:8000/v1", 8000), ("http://localhost:81/v1", 81), ("https://127.0.0.5/v1", 443),
        ("http://127.0.0.1/v1", 80), ("http://192.0.2.1:8000/v1", None),  # TEST-NET-1: nobody's (RFC 5737)
    ],
)  # fmt: skip
def test_a_url_of_this_machine_has_a_place(url, port):
    place = localserver.place_of(url)
    assert (place.port if place else None) == port


SERVER = """
import os, signal, socket, sys, time
signal.alarm(60)
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
def burn():
    end = time.process_time() + 0.2
    while time.process_time() < end: pass
while True:
    connection, _ = listener.accept()
    if os.fork() == 0:  # a worker of the server; it stays, as those of servers do
        listener.close()
        burn()
        connection.sendall(b"x")
        signal.pause()
    connection.close()
"""


@contextmanager
def server_of_somebody(folder: Path) -> Iterator[int]:
    """A server that no process of this test has started, like one that was started by hand; gives its port."""
    (folder / "server.py").write_text(SERVER)
    call = f"setsid {sys.executable} {folder}/server.py > {folder}/port 2> {folder}/errors & echo $!"
    started = subprocess.run(["sh", "-c", call], check=True, capture_output=True, text=True, timeout=10)
    try:
        for _ in range(3000):
            if (folder / "port").read_text().endswith("\n"):
                break
            time.sleep(0.01)
        yield int((folder / "port").read_text())
    finally:
        os.killpg(int(started.stdout), signal.SIGKILL)


def ask(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        assert connection.recv(1) == b"x"


def test_the_work_of_a_local_server_is_its_own_and_not_other_programs(tmp_path: Path) -> None:
    with server_of_somebody(tmp_path) as port:
        place = localserver.place_of(f"http://127.0.0.1:{port}/v1")
        before = pressure.read_counters(server=place)
        ask(port)
        after = pressure.read_counters(server=place)
    assert after.server_s is not None
    assert before.server_s is not None
    assert after.server_s - before.server_s >= 0.15
    load = pressure.pressure(before, after, seconds=1.0)
    nobody = (dataclasses.replace(one, server_s=0.0) for one in (before, after))
    alone = pressure.pressure(*nobody, seconds=1.0)
    assert load["server_percent"] > 0  # type: ignore[operator]
    assert load["others_percent"] < alone["others_percent"]  # type: ignore[operator]
    assert "server_percent" not in alone


def test_a_server_is_known_by_its_socket_its_children_its_process_group_and_its_service(tmp_path: Path) -> None:
    rows = {  # parent, process group, control group, socket
        1: (0, 1, "/init.scope", None),
        10: (1, 10, "/system.slice/llm.service", "4711"),
        11: (10, 10, "/system.slice/llm.service", None),  # its worker
        12: (1, 10, "/user.slice/session-1.scope", None),  # of its process group: `server | tee log`
        13: (1, 13, "/system.slice/llm.service", None),  # of its service
        14: (1, 14, "/user.slice/session-1.scope", None),  # somebody else
        15: (14, 14, "/user.slice/session-1.scope", "4712"),
        20: (1, 20, "/user.slice/session-1.scope", None),  # this run
    }
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "tcp").write_text(HEAD + row("0100007F:1F90", 4711))
    for pid, (parent, group, control, inode) in rows.items():
        (tmp_path / str(pid) / "fd").mkdir(parents=True)
        (tmp_path / str(pid) / "stat").write_text(f"{pid} (x) S {parent} {group} {' 0' * 20}\n")
        (tmp_path / str(pid) / "cgroup").write_text(f"0::{control}\n")
        if inode:
            (tmp_path / str(pid) / "fd" / "3").symlink_to(f"socket:[{inode}]")
    place, processes = ServerPlace(addresses=V4, port=8080), process_rows(tmp_path)
    find = localserver.server_processes
    assert find(tmp_path, place, processes, frozenset({20})) == {10, 11, 12, 13}
    assert find(tmp_path, place, processes, frozenset({20, 11})) == {10, 12}  # all run in one service
    (tmp_path / "10" / "fd" / "3").unlink()
    assert find(tmp_path, place, processes, frozenset({20})) is None  # of another user
    assert find(tmp_path, ServerPlace(addresses=V4, port=9), processes, frozenset({20})) == frozenset()


def test_a_server_that_cannot_be_read_makes_the_others_unknown() -> None:
    ticks = os.sysconf("SC_CLK_TCK")
    before = pressure.Counters(server_s=None, busy_ticks=0, all_ticks=0)
    after = pressure.Counters(server_s=None, busy_ticks=9 * ticks, all_ticks=10 * ticks)
    load = pressure.pressure(before, after, seconds=5.0)
    assert load["server_percent"] is None
    assert load["others_percent"] == 90.0
