"""install-cuda-prebuilt: which run file is taken, and what a stand-in for NVIDIA's is called with.

NVIDIA's own run files (4 to 5 GB) were never run here; the stand-in is a shell script with their options.
"""

import hashlib
import os
import re
from pathlib import Path
from typing import Any

import pytest
from machine_builder import bare
from recipe_loader import load_module, load_recipe

recipe = load_recipe("install-cuda-prebuilt")
order = load_module("install-cuda-prebuilt", "order")

FILES = order.known_files()
STAND_IN = r"""#!/bin/sh
for word; do case "$word" in --installpath=*) to="${word#--installpath=}";; esac; done
echo "called with: $*"
mkdir -p "$to/bin" "$to/include" "$to/lib64"
echo '{"cuda": {"version": "12.4.1"}}' > "$to/version.json"
touch "$to/include/cuda.h" "$to/lib64/libcudart.so.12"
cat > "$to/bin/nvcc" <<'END'
#!/bin/sh
if [ "$1" = --version ]; then echo "Cuda compilation tools, release 12.4, V12.4.131"; else echo made > "$2"; fi
END
chmod +x "$to/bin/nvcc"
"""


def wish(**fields: Any) -> Any:
    return order.Wish(**fields)


@pytest.mark.parametrize(
    ("asked", "driver", "version"),
    [
        ({"exact": "12.4.1"}, "", "12.4.1"),
        ({"exact": "12.4.0"}, "", "12.4.0"),
        ({"exact": "12.4"}, "", "12.4.1"),
        ({"exact": "11.8"}, "", "11.8.0"),
        ({"maximum": "12.3"}, "", "12.3.2"),
        ({"minimum": "12.0"}, "12.2", "12.2.2"),
        ({}, "12.4", "12.4.1"),
        ({}, "12.7", "12.6.3"),
    ],
)
def test_the_newest_known_file_within_what_is_asked_and_what_the_driver_runs(
    asked: dict[str, str], driver: str, version: str
) -> None:
    chosen = order.order(wish(**asked), FILES, "x86_64", driver)
    assert chosen.version == version
    assert f"/{version}/local_installers/cuda_{version}_" in chosen.url
    assert re.fullmatch("[0-9a-f]{64}", chosen.sha256)


def test_arm_servers_have_files_of_their_own() -> None:
    assert order.order(wish(exact="12.4"), FILES, "aarch64", "").url.endswith("_linux_sbsa.run")


@pytest.mark.parametrize(
    ("asked", "machine", "driver"), [({"exact": "9.9"}, "x86_64", ""), ({}, "ppc64le", ""), ({}, "x86_64", "10.2")]
)
def test_what_is_not_known_is_told_with_what_is(asked: dict[str, str], machine: str, driver: str) -> None:
    with pytest.raises(order.OrderError, match=r"(?s)known are: .*--run_file=FILE.*--url=ADDRESS --sha256sum"):
        order.order(wish(**asked), FILES, machine, driver)


def test_an_own_file_with_a_known_name_must_have_its_checksum(tmp_path: Path) -> None:
    name = next(file.name for file in FILES if file.version == "12.4.1")
    (tmp_path / name).touch()
    chosen = order.order(wish(run_file=tmp_path / name), FILES, "x86_64", "")
    assert (chosen.local, chosen.version) == (str(tmp_path / name), "12.4.1")
    assert chosen.sha256 == next(file.sha256 for file in FILES if file.name == name)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"run_file": "nowhere.run"}, "nowhere.run is not a file"),
        ({"run_file": "cuda_12.4.1_550.54.15_linux.run", "exact": "12.2"}, "is CUDA 12.4.1, required: version 12.2"),
        ({"run_file": "cuda_10.0.130_410.48_linux.run"}, "older than CUDA 10.1"),
        ({"url": "https://x/cuda_99.0.0_1.1_linux.run"}, "SHA-256 of cuda_99.0.0_1.1_linux.run is not known"),
    ],
)
def test_what_cannot_be_taken(tmp_path: Path, fields: dict[str, Any], says: str) -> None:
    for name in ("cuda_12.4.1_550.54.15_linux.run", "cuda_10.0.130_410.48_linux.run"):
        (tmp_path / name).touch()
    if "run_file" in fields:
        fields = {**fields, "run_file": tmp_path / fields["run_file"]}
    with pytest.raises(order.OrderError, match=re.escape(says)) as caught:
        order.order(wish(**fields), FILES, "x86_64", "")
    assert "hint:" in str(caught.value)


def run(hook_input: Any, folder: Path, uid: int, **env: str) -> dict[str, Any]:
    """preprocess' answer on a machine whose user has this number."""
    facts = {"user": {"name": "u", "uid": uid, "groups": []}, "commands": {"uname -m": {"stdout": "x86_64\n"}}}
    answer = recipe.preprocess(hook_input(dict(env), machine=bare(folder, **facts)))
    assert isinstance(answer, dict)
    return answer


def test_root_has_to_say_so_and_an_ordinary_user_has_not(hook_input: Any, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    answer = run(hook_input, tmp_path / "a", 0, CM_VERSION="12.4")
    assert answer["return"] == 1
    assert "--as_root=yes" in answer["error"]
    assert run(hook_input, tmp_path / "b", 1000, CM_VERSION="12.4") == {"return": 0}


def test_a_driver_is_never_installed(hook_input: Any, tmp_path: Path) -> None:
    answer = run(hook_input, tmp_path, 1000, CM_CUDA_INSTALL_DRIVER="yes")
    assert answer["return"] == 1
    assert "never installs a driver" in answer["error"]


def stand_in(folder: Path, name: str = "stand-in.run", text: str = STAND_IN) -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return name


def test_a_local_run_file_fills_the_entry_and_nothing_else(home: Any) -> None:
    name = stand_in(home.work)
    done = home.run_cm("get,cuda,_prebuilt", f"--run_file={name}", "--as_root=yes")
    assert done.code == 0, done.stderr
    env = done.answer["new_env"]
    entry = Path(env["CUDA_HOME"]).parent
    assert entry.parent == home.store
    assert env["CM_CUDA_VERSION"] == "12.4"
    assert (
        "called with: --silent --toolkit --override --no-drm --no-man-page --no-opengl-libs "
        f"--installpath={entry}/install --tmpdir={entry}/tmp\n" in done.stderr
    )
    assert "accepts NVIDIA's CUDA EULA" in done.stderr
    assert not (entry / "tmp").exists()
    assert sorted(os.listdir(home.work)) == [name]
    again = home.run_cm("get,cuda,_prebuilt", f"--run_file={name}", "--as_root=yes")
    assert "get-cuda,_prebuilt 12.4: reused from the cache" in again.stderr


def test_another_run_file_is_another_toolkit(home: Any) -> None:
    first = home.run_cm("get,cuda,_prebuilt", f"--run_file={stand_in(home.work)}", "--as_root=yes")
    other = stand_in(home.work, "other.run", STAND_IN.replace("12.4", "12.6"))
    second = home.run_cm("get,cuda,_prebuilt", f"--run_file={other}", "--as_root=yes")
    versions = [done.answer["new_env"]["CM_CUDA_VERSION"] for done in (first, second)]
    assert versions == ["12.4", "12.6"]


def test_a_run_file_from_an_address_is_checked_and_kept(home: Any, server: Any) -> None:
    data = STAND_IN.encode()
    server.put("/cuda_99.0.0_1.1_linux.run", data.replace(b"12.4", b"99.0"))
    digest = hashlib.sha256(data.replace(b"12.4", b"99.0")).hexdigest()
    words = (f"--url={server.url('/cuda_99.0.0_1.1_linux.run')}", f"--sha256sum={digest}", "--as_root=yes")
    done = home.run_cm("get,cuda,_prebuilt", *words)
    assert done.code == 0, done.stderr
    assert done.answer["new_env"]["CM_CUDA_VERSION"] == "99.0"


def test_an_address_that_cannot_be_reached_is_told_with_the_way_round(home: Any, server: Any) -> None:
    name = next(file.name for file in FILES if file.version == "12.4.1")
    done = home.run_cm("get,cuda,_prebuilt", f"--url={server.url('/' + name)}", "--as_root=yes")
    assert done.code != 0
    error = done.answer["error"]
    assert f"{server.url('/' + name)} could not be downloaded" in error
    assert next(file.sha256 for file in FILES if file.name == name) in error
    assert f'cm run script "get cuda _prebuilt" --run_file=/path/of/{name}' in error


def test_a_file_with_the_wrong_checksum_is_not_started(home: Any) -> None:
    name = stand_in(home.work)
    done = home.run_cm("install,cuda,prebuilt", f"--run_file={name}", f"--sha256sum={'0' * 64}", "--as_root=yes")
    assert done.code == 1
    assert "expected is 000" in done.answer["error"]
    assert "called with" not in done.stderr


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("#!/bin/sh\nexit 0\n", "contains no working nvcc"),
        ("#!/bin/sh\necho disk full >&2; exit 3\n", "exit code 3"),
    ],
)
def test_a_run_file_that_fails_is_told(home: Any, text: str, says: str) -> None:
    name = stand_in(home.work, text=text)
    done = home.run_cm("install,cuda,prebuilt", f"--run_file={name}", "--as_root=yes")
    assert done.code != 0
    assert says in done.answer["error"]


def test_installed_alone_it_is_registered_as_a_toolkit(home: Any) -> None:
    done = home.run_cm("install,cuda,prebuilt", f"--run_file={stand_in(home.work)}", "--as_root=yes")
    assert done.code == 0, done.stderr
    assert done.answer["new_env"]["CM_CUDA_INSTALLED_VERSION"] == "12.4.1"
    reused = home.run_cm("get,cuda", "--version_max=12.4")
    assert reused.answer["new_env"]["CUDA_HOME"] == done.answer["new_env"]["CM_CUDA_INSTALLED_PATH"]
