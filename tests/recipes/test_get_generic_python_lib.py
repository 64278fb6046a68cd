"""get-generic-python-lib: rules for names and versions; a real environment with wheels made by hand, no network."""

import base64
import fcntl
import hashlib
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pip
import pytest
from recipe_loader import PYTHONPATH, RECIPES, exported, input_values, load_module, load_recipe, recipe_meta

from crowdperf.machine import nvidia

recipe = load_recipe("get-generic-python-lib")
requirement = load_module("get-generic-python-lib", "requirement")
pip_tool = load_module("get-generic-python-lib", "pip_tool")

VALIDATE = RECIPES / "get-generic-python-lib" / "validate_cache.sh"


def make_wheel(folder: Path, name: str, version: str, *, needs: str = "") -> Path:
    """A wheel of one module, written by hand: pip needs nothing but this file to install it."""
    folder.mkdir(parents=True, exist_ok=True)
    info = f"{name}-{version}.dist-info"
    requires = f"Requires-Dist: {needs}\n" if needs else ""
    extra = 'Provides-Extra: fast\nRequires-Dist: smallhelper; extra == "fast"\n' if name == "smallthing" else ""
    members = {
        f"{name}.py": f"VERSION = {version!r}\n",
        f"{name}_more/tests/test_it.py": "",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{extra}{requires}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = ""
    for member, text in members.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        record += f"{member},sha256={digest},{len(text.encode())}\n"
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for member, text in members.items():
            archive.writestr(member, text)
        archive.writestr(f"{info}/RECORD", record + f"{info}/RECORD,,\n")
    return path


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheels")
    for version in ("1.0", "1.5", "2.0"):
        make_wheel(folder, "smallthing", version)
    make_wheel(folder, "smallhelper", "0.1")
    make_wheel(folder, "bigthing", "1.0", needs="smallthing")
    return folder


@pytest.fixture(scope="module")
def environment_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One real virtual environment for all tests of this file, with a copy of the pip that the tests have."""
    folder = tmp_path_factory.mktemp("venv") / "env"
    subprocess.run([sys.executable, "-I", "-m", "venv", "--without-pip", str(folder)], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    for place in Path(pip.__file__).parents[1].glob("pip*"):
        shutil.copytree(place, packages / place.name)
    return folder


@pytest.fixture
def python(environment_path: Path) -> Path:
    """The environment's Python, without any of the packages of these tests."""
    path = environment_path / "bin" / "python3"
    names = ["smallthing", "smallhelper", "bigthing"]
    for name in names:
        for place in environment_path.glob(f"lib/*/site-packages/{name}*"):
            if place.is_dir():
                subprocess.run(["rm", "-r", str(place)], check=True)
            else:
                place.unlink()
    return path


def put(python: Path, wheel: Path) -> Path:
    """Unpacks a wheel of one module into an environment, as pip would, and returns the module's file."""
    (site,) = python.parent.parent.glob("lib/*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    return site / f"{wheel.name.partition('-')[0]}.py"


def run(hook_input: Any, python: Path, name: str, **env: str) -> tuple[dict[str, Any], dict[str, Any]]:
    call = hook_input({"CM_PYTHON_BIN_WITH_PATH": str(python), "CM_GENERIC_PYTHON_PACKAGE_NAME": name, **env})
    answer = recipe.preprocess(call)
    answer.pop("locked", None)
    return answer, call["env"]


def offline(wheels: Path) -> dict[str, str]:
    return {"CM_GENERIC_PYTHON_PIP_EXTRA_FIND_LINKS_URL": str(wheels), "CM_GENERIC_PYTHON_PIP_EXTRA": "--no-index"}


# --- rules ---


@pytest.mark.parametrize(
    ("text", "key"),
    [("numpy", "NUMPY"), ("scikit-learn", "SCIKIT_LEARN"), ("ray[default]", "RAY_DEFAULT_"), ("a.b_c", "A_B_C")],
)
def test_a_package_name_becomes_part_of_an_env_key(text: str, key: str) -> None:
    assert requirement.env_name(text) == key


@pytest.mark.parametrize("name", ["", "-r requirements.txt", "a b", "numpy; rm -rf", "../x", "a]b[", "http://x/y.whl"])
def test_a_name_that_pip_could_take_for_an_option_or_a_path_is_refused(name: str) -> None:
    with pytest.raises(requirement.RequirementError, match="hint:"):
        requirement.from_env({"CM_GENERIC_PYTHON_PACKAGE_NAME": name})


@pytest.mark.parametrize(
    ("env", "limits"),
    [
        ({}, ""),
        ({"CM_TMP_PIP_VERSION_STRING": ">=1,<=2"}, ">=1,<=2"),
        ({"CM_VERSION": "1.2"}, "==1.2"),
        ({"CM_VERSION_MIN": "1", "CM_VERSION_MAX": "2"}, ">=1,<=2"),
        ({"CM_VERSION_MAX": "2"}, "<=2"),
    ],
)
def test_the_limits_come_from_the_engines_pip_string_or_from_the_versions(env: dict[str, str], limits: str) -> None:
    assert requirement.from_env({"CM_GENERIC_PYTHON_PACKAGE_NAME": "x", **env}).limits == limits


@pytest.mark.parametrize("limits", ["latest", "==", "~=1.0", "==one", ">=1;<2"])
def test_an_impossible_limit_is_refused_with_the_allowed_forms(limits: str) -> None:
    with pytest.raises(requirement.RequirementError, match="allowed are =="):
        requirement.from_env({"CM_GENERIC_PYTHON_PACKAGE_NAME": "x", "CM_TMP_PIP_VERSION_STRING": limits})


def test_versions_are_ordered_as_pep_440_does() -> None:
    """The order is the example list of PEP 440, "Summary of permitted suffixes and relative ordering"."""
    in_order = ["1.dev0", "1.0.dev456", "1.0a1", "1.0a2.dev456", "1.0a12.dev456", "1.0a12", "1.0b1.dev456", "1.0b2"]
    in_order += ["1.0b2.post345.dev456", "1.0b2.post345", "1.0rc1.dev456", "1.0rc1", "1.0", "1.0.post456.dev34"]
    in_order += ["1.0.post456", "1.0.15", "1.1.dev1", "1!0.1"]
    keys = [requirement.sort_key(version) for version in in_order]
    assert keys == sorted(keys)
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize(
    ("version", "limits", "is_right"),
    [
        ("1.26.4", "", True),
        ("1.26.4", "==1.26.4", True),
        ("2.1", "==2.1.0", True),
        ("2.1.0+cpu", "==2.1.0", True),
        ("2.1.0+cpu", "==2.1.0+cu121", False),
        ("2.1.0", ">=2.0,<=2.1", True),
        ("2.1.1", "<=2.1", False),
        ("2.1.0rc1", ">=2.1.0", False),
        ("1.10", ">=1.9", True),
        ("unknown", "", True),
        ("unknown", ">=1", False),
    ],
)
def test_an_installed_version_is_compared_with_the_limits(version: str, limits: str, is_right: bool) -> None:
    assert requirement.fits(version, limits) is is_right


def test_options_are_given_to_pip_and_addresses_are_masked_in_messages() -> None:
    env = {
        "CM_GENERIC_PYTHON_PIP_INDEX_URL": "https://user:secret@index.example/simple",
        "CM_GENERIC_PYTHON_PIP_EXTRA": "--pre --find-links 'a folder'",
        "CM_PYTHON_PIP_COMMON_EXTRA": "--break-system-packages",
    }
    options = requirement.pip_options(env, input_values("get-generic-python-lib", env))
    assert options == (
        "--index-url",
        "https://user:secret@index.example/simple",
        "--break-system-packages",
        "--pre",
        "--find-links",
        "a folder",
    )
    assert "secret" not in requirement.masked(options)
    with pytest.raises(requirement.RequirementError, match=r"(?s)^--extra.*quotes"):
        requirement.pip_options({}, input_values("get-generic-python-lib", {}, extra="'open"))


# --- a real environment ---


def test_a_missing_package_is_installed_and_described(hook_input: Any, python: Path, wheels: Path) -> None:
    answer, env = run(hook_input, python, "smallthing", CM_TMP_PIP_VERSION_STRING="<=1.5", **offline(wheels))
    assert answer == {"return": 0, "version": "1.5"}
    metadata = env["CM_PYTHONLIB_SMALLTHING_METADATA_PATH"]
    assert exported("get-generic-python-lib", env) == {
        "CM_PYTHONLIB_SMALLTHING_CACHE_TAGS": "version-1.5",
        "CM_PYTHONLIB_SMALLTHING_VERSION": "1.5",
        "CM_PYTHONLIB_SMALLTHING_METADATA_PATH": metadata,
        "CM_PYTHONLIB_SMALLTHING_PYTHON": str(python),
        "CM_PYTHONLIB_SMALLTHING_MODULE_FILE": str(Path(metadata).parent.parent / "smallthing.py"),
        "CM_PYTHONLIB_SMALLTHING_RIVALS": "",
    }
    assert Path(metadata).is_file()
    assert env["CM_GET_DEPENDENT_CACHED_PATH"] == metadata
    said = subprocess.run(
        [python, "-c", "import smallthing; print(smallthing.VERSION)"], capture_output=True, text=True
    )
    assert said.stdout == "1.5\n"


def test_what_was_installed_is_compiled_but_its_tests(hook_input: Any, python: Path, wheels: Path) -> None:
    answer, env = run(hook_input, python, "smallthing", **offline(wheels))
    assert answer["return"] == 0, answer
    site = Path(env["CM_PYTHONLIB_SMALLTHING_METADATA_PATH"]).parent.parent
    assert list(site.glob("__pycache__/smallthing.*.pyc"))
    assert (site / "smallthing_more" / "tests" / "test_it.py").is_file()
    assert not list(site.glob("smallthing_more/tests/__pycache__"))


def test_a_package_that_is_there_is_found_without_pip(
    hook_input: Any, python: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(python, wheels / "smallthing-1.5-py3-none-any.whl")

    def no_pip(*args: object) -> None:
        raise AssertionError("pip was started")

    monkeypatch.setattr(pip_tool, "_install", no_pip)
    answer, _ = run(hook_input, python, "smallthing", CM_TMP_PIP_VERSION_STRING=">=1.0")
    assert answer == {"return": 0, "version": "1.5"}


@pytest.mark.full
def test_a_version_out_of_range_is_replaced(hook_input: Any, python: Path, wheels: Path) -> None:
    run(hook_input, python, "smallthing", CM_TMP_PIP_VERSION_STRING="==2.0", **offline(wheels))
    answer, env = run(hook_input, python, "smallthing", CM_TMP_PIP_VERSION_STRING="==1.0", **offline(wheels))
    assert answer == {"return": 0, "version": "1.0"}
    assert "1.0" in env["CM_PYTHONLIB_SMALLTHING_METADATA_PATH"]


@pytest.mark.full
def test_packages_of_extras_are_installed_too(hook_input: Any, python: Path, wheels: Path) -> None:
    run(hook_input, python, "smallthing", **offline(wheels))
    answer, env = run(hook_input, python, "smallthing[fast]", **offline(wheels))
    assert answer["return"] == 0, answer
    assert env["CM_PYTHONLIB_SMALLTHING_FAST__VERSION"] == "2.0"
    assert subprocess.run([python, "-c", "import smallhelper"]).returncode == 0


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("builds")
    for version in ("3.0", "3.0+cpu"):
        make_wheel(folder, "smallthing", version)
    return folder


def test_a_named_build_is_installed_and_any_build_that_is_there_will_do(
    hook_input: Any, python: Path, wheels: Path, builds: Path
) -> None:
    put(python, wheels / "smallthing-2.0-py3-none-any.whl")
    asked = {"CM_GENERIC_PYTHON_LOCAL_BUILD": "cpu", "CM_TMP_PIP_VERSION_STRING": "==2.0"}
    answer, _ = run(hook_input, python, "smallthing", **asked, **offline(wheels))
    assert answer == {"return": 0, "version": "2.0"}
    asked["CM_TMP_PIP_VERSION_STRING"] = "==3.0"
    answer, _ = run(hook_input, python, "smallthing", **asked, **offline(builds))
    assert answer["version"] == ("3.0+cpu" if sys.platform == "linux" else "3.0")


def test_a_refused_build_is_replaced_where_an_index_has_another(
    hook_input: Any, python: Path, builds: Path, tmp_path: Path
) -> None:
    put(python, builds / "smallthing-3.0+cpu-py3-none-any.whl")
    make_wheel(tmp_path, "smallthing", "3.0")
    asked = {"CM_GENERIC_PYTHON_REFUSED_BUILD": "cpu", "CM_TMP_PIP_VERSION_STRING": "==3.0"}
    answer, _ = run(hook_input, python, "smallthing", **asked, **offline(tmp_path))
    assert answer == {"return": 0, "version": "3.0"}


def test_no_other_build_is_installed_where_the_named_one_is_missing(
    hook_input: Any, python: Path, tmp_path: Path
) -> None:
    make_wheel(tmp_path, "smallthing", "3.0")
    asked = {"CM_GENERIC_PYTHON_LOCAL_BUILD": "gpu", "CM_TMP_PIP_VERSION_STRING": "==3.0"}
    answer, _ = run(hook_input, python, "smallthing", **asked, **offline(tmp_path))
    assert (answer["return"] != 0) == (sys.platform == "linux")


def test_a_package_that_writes_the_same_files_is_removed_first(hook_input: Any, python: Path, wheels: Path) -> None:
    put(python, wheels / "smallthing-2.0-py3-none-any.whl")
    replaces = {"CM_GENERIC_PYTHON_PIP_UNINSTALL_DEPS": "smallthing"}
    answer, _ = run(hook_input, python, "smallhelper", **replaces, **offline(wheels))
    assert answer == {"return": 0, "version": "0.1"}
    assert subprocess.run([python, "-c", "import smallthing"], capture_output=True).returncode != 0


def write_rival(module: Path, name: str) -> Path:
    """The dist-info folder of a package that says it wrote `module`, as another build of the module's package does."""
    info = module.parent / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "INSTALLER").write_text("pip")
    (info / "RECORD").write_text(
        f"{module.name},,\n{info.name}/METADATA,,\n{info.name}/INSTALLER,,\n{info.name}/RECORD,,\n"
    )
    module.write_text("VERSION = 'of the rival'\n")
    return info


def test_a_package_whose_files_another_build_overwrote_is_made_whole(
    hook_input: Any, python: Path, wheels: Path
) -> None:
    module = put(python, wheels / "smallthing-2.0-py3-none-any.whl")
    info = write_rival(module, "bigthing_fast")
    answer, _ = run(hook_input, python, "smallthing", **offline(wheels))
    assert answer == {"return": 0, "version": "2.0"}
    assert module.read_text() == "VERSION = '2.0'\n" and not info.exists()


def test_a_package_whose_main_file_is_gone_is_installed_again(hook_input: Any, python: Path, wheels: Path) -> None:
    module = put(python, wheels / "smallthing-2.0-py3-none-any.whl")
    module.unlink()
    run(hook_input, python, "smallthing", **offline(wheels))
    assert module.read_text() == "VERSION = '2.0'\n"


def test_every_build_of_onnxruntime_replaces_every_other(hook_input: Any) -> None:
    for name in ("onnxruntime", "onnxruntime_gpu"):
        asked = requirement.from_env({"CM_GENERIC_PYTHON_PACKAGE_NAME": name})
        others = {"onnxruntime", "onnxruntime-directml", "onnxruntime-gpu", "onnxruntime-openvino", "onnxruntime-qnn"}
        assert set(asked.replaces) == others - {name.replace("_", "-")}
    assert requirement.from_env({"CM_GENERIC_PYTHON_PACKAGE_NAME": "numpy"}).replaces == ()
    patterns = recipe.rival_patterns(asked, Path("/a b/site-packages/onnxruntime_gpu-1.0.dist-info/METADATA"))
    assert patterns[0] == "/a b/site-packages/onnxruntime-*.dist-info"


@pytest.mark.full
def test_force_installs_again(hook_input: Any, python: Path, wheels: Path) -> None:
    _, env = run(hook_input, python, "smallthing", **offline(wheels))
    module = Path(env["CM_PYTHONLIB_SMALLTHING_METADATA_PATH"]).parent.parent / "smallthing.py"
    module.write_text("VERSION = 'edited'\n")
    run(hook_input, python, "smallthing", CM_TMP_PYTHON_PACKAGE_FORCE_INSTALL="yes", **offline(wheels))
    assert module.read_text() == "VERSION = '2.0'\n"


def test_what_a_killed_pip_left_half_made_is_installed_again_also_in_dependencies(
    hook_input: Any, python: Path, wheels: Path
) -> None:
    """A pip that is killed leaves metadata without RECORD, and pip itself would call that installed."""
    module = put(python, wheels / "smallthing-2.0-py3-none-any.whl")
    (module.parent / "smallthing-2.0.dist-info" / "RECORD").unlink()
    module.unlink()
    answer, _ = run(hook_input, python, "bigthing", **offline(wheels))
    assert answer["return"] == 0, answer
    assert subprocess.run([python, "-c", "import bigthing, smallthing"]).returncode == 0


def facts(hook_input: Any, python: Path, wheels: Path, name: str, locked: dict[str, Any] | None = None) -> Any:
    call = hook_input(
        {"CM_PYTHON_BIN_WITH_PATH": str(python), "CM_GENERIC_PYTHON_PACKAGE_NAME": name, **offline(wheels)}
    )
    answer = recipe.preprocess({**call, "locked": {"python_packages": locked} if locked else {}})
    assert answer["return"] == 0, answer
    return answer["locked"]["python_packages"]


def sha256_of_wheel(wheels: Path, name: str) -> str:
    return hashlib.sha256((wheels / f"{name}-py3-none-any.whl").read_bytes()).hexdigest()


def test_a_lock_gets_the_package_and_all_it_needs_with_the_hashes_of_their_archives(
    hook_input: Any, python: Path, wheels: Path
) -> None:
    wanted = {
        "bigthing": {"version": "1.0", "sha256": sha256_of_wheel(wheels, "bigthing-1.0")},
        "smallthing": {"version": "2.0", "sha256": sha256_of_wheel(wheels, "smallthing-2.0")},
    }
    assert facts(hook_input, python, wheels, "bigthing") == wanted
    assert facts(hook_input, python, wheels, "bigthing") == wanted, "also when nothing has to be installed"


@pytest.mark.parametrize(
    ("archive", "digest"),
    [
        ({"hashes": {"sha256": "12"}, "hash": "sha256=12"}, "12"),  # pip 23.1 and newer
        ({"hash": "sha256=12"}, "12"),  # pip 22.2 to 23.0.1
        ({"hash": "md5=12"}, ""),
        ({}, ""),
    ],
)
def test_the_hash_of_an_archive_is_read_from_the_report_of_every_pip(archive: dict[str, Any], digest: str) -> None:
    assert pip_tool.sha256_of(archive) == digest


@pytest.mark.full
def test_exactly_what_is_locked_is_installed_though_newer_versions_exist(
    hook_input: Any, python: Path, wheels: Path
) -> None:
    locked = {
        "bigthing": {"version": "1.0", "sha256": sha256_of_wheel(wheels, "bigthing-1.0")},
        "smallthing": {"version": "1.5", "sha256": sha256_of_wheel(wheels, "smallthing-1.5")},
    }
    assert facts(hook_input, python, wheels, "bigthing")["smallthing"]["version"] == "2.0"
    assert facts(hook_input, python, wheels, "bigthing", locked) == locked


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("--index-url=http://localhost/", {"version": "1"}),
        ("evil @ http://localhost/evil.tar.gz #", {"version": "1"}),
        ("evil", {"version": "1\n--index-url=http://localhost/"}),
        ("evil", {"version": "1 --index-url=http://localhost/"}),
        ("evil", {"version": "1\n"}),
        ("evil", {}),
        ("evil", {"version": "1", "sha256": "0\n-r /x"}),
    ],
)
def test_a_lock_cannot_give_pip_options_or_addresses(name: str, row: dict[str, str]) -> None:
    with pytest.raises(requirement.RequirementError, match="the lockfile has the package"):
        requirement.check_locked({"smallthing": {"version": "1.5", "sha256": "0" * 64}, name: row})


def test_an_archive_that_is_not_the_locked_one_is_refused_by_name(
    hook_input: Any, python: Path, wheels: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    call = hook_input(
        {"CM_PYTHON_BIN_WITH_PATH": str(python), "CM_GENERIC_PYTHON_PACKAGE_NAME": "smallthing", **offline(wheels)}
    )
    locked = {"smallthing": {"version": "1.5", "sha256": "0" * 64}}
    answer = recipe.preprocess({**call, "locked": {"python_packages": locked}})
    assert answer["return"] == 1
    assert "smallthing" in answer["error"]
    assert "hash" in capfd.readouterr().err.lower()


def test_a_package_nobody_has_is_an_error_with_the_command(hook_input: Any, python: Path, wheels: Path) -> None:
    answer, _ = run(hook_input, python, "nosuchthing", **offline(wheels))
    assert answer["return"] == 1
    assert "nosuchthing" in answer["error"]
    assert "pip install" in answer["error"]
    assert "hint:" in answer["error"]


@pytest.mark.parametrize(("full", "named"), [("env", "for {}/env/bin: "), ("temporary", "for temporary files in {}/t")])
def test_where_little_space_is_left_the_hint_names_the_folder_that_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full: str, named: str
) -> None:
    monkeypatch.setattr(pip_tool.tempfile, "gettempdir", lambda: str(tmp_path / "temporary"))
    free = {tmp_path / "env" / "bin": 10**9, tmp_path / "temporary": 10**9}
    free |= {place: 3_900_000 for place in free if full in place.parts}
    monkeypatch.setattr(pip_tool.shutil, "disk_usage", lambda place: SimpleNamespace(free=free[place]))
    assert named.format(tmp_path) in pip_tool._way_out(tmp_path / "env" / "bin")
    assert "only 3 MB are left" in pip_tool._way_out(tmp_path / "env" / "bin")


def test_a_silent_call_shows_what_pip_writes_only_when_it_fails(
    hook_input: Any, python: Path, wheels: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    silent = {**offline(wheels), "CM_TMP_SILENT": "yes"}
    answer, _ = run(hook_input, python, "smallthing", **silent)
    assert answer["return"] == 0, answer
    assert "".join(capfd.readouterr()) == ""
    answer, _ = run(hook_input, python, "nosuchthing", **silent)
    assert answer["return"] == 1
    assert "No matching distribution found for nosuchthing" in capfd.readouterr().err


def test_the_callers_pythonpath_does_not_count_as_installed(
    hook_input: Any, python: Path, wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "smallthing-9.9.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: smallthing\nVersion: 9.9\n")
    (info / "RECORD").write_text("")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    answer, _ = run(hook_input, python, "smallthing", **offline(wheels))
    assert answer == {"return": 0, "version": "2.0"}


def test_two_installs_into_one_environment_wait_for_each_other(python: Path, wheels: Path) -> None:
    """A process holds the lock and installs the package itself; the recipe waits, looks again and finds it."""
    lock = python.parent.parent / ".pip-install.lock"
    held = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(held, fcntl.LOCK_EX)
    code = (
        "import sys\n"
        "from recipe_loader import load_module\n"
        "pip_tool = load_module('get-generic-python-lib', 'pip_tool')\n"
        "rules = load_module('get-generic-python-lib', 'requirement')\n"
        "asked = rules.from_env({'CM_GENERIC_PYTHON_PACKAGE_NAME': 'smallthing'})\n"
        "from pathlib import Path\n"
        "print(pip_tool.provide(Path(sys.argv[1]), asked, pip_tool.Way(options=('--no-index',))).version)\n"
    )
    waiting = subprocess.Popen(
        [sys.executable, "-c", code, str(python)],
        env={**os.environ, "PYTHONPATH": PYTHONPATH},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert waiting.stderr is not None
    assert "waiting for another pip" in waiting.stderr.readline()
    time.sleep(0.1)
    assert waiting.poll() is None
    put(python, wheels / "smallthing-1.5-py3-none-any.whl")
    os.close(held)
    output, _ = waiting.communicate(timeout=60)
    assert output == "1.5\n"


def test_a_python_of_the_systems_package_manager_is_not_touched(
    hook_input: Any, fake_tool: Any, tmp_path: Path
) -> None:
    marker = tmp_path / "pip-was-run"
    answer_line = (
        '{"version": null, "metadata_path": null, "is_virtual": false, "is_managed": true, "has_pip": true, '
        '"prefix": "PREFIX", "half_made": [], "rivals": []}'.replace("PREFIX", str(tmp_path))
    )
    python = fake_tool("python3", f"case \"$*\" in *pip*) touch '{marker}';; *) echo '{answer_line}';; esac")
    answer, _ = run(hook_input, python, "smallthing")
    assert answer["return"] == 1
    assert 'cm run script "install python-venv"' in answer["error"]
    assert not marker.exists()
    run(hook_input, python, "smallthing", CM_PYTHON_PIP_COMMON_EXTRA="--break-system-packages")
    assert marker.exists()


def test_a_python_that_does_not_answer_is_an_error(hook_input: Any, fake_tool: Any) -> None:
    python = fake_tool("python3", "echo no such library >&2; exit 127")
    answer, _ = run(hook_input, python, "smallthing")
    assert answer["return"] == 1
    assert "no such library" in answer["error"]


# --- validate_cache.sh ---


@pytest.mark.parametrize(
    ("change", "is_valid"),
    [
        ({}, True),
        ({"CM_PYTHONLIB_SCIKIT_LEARN_METADATA_PATH": "/gone/METADATA"}, False),
        ({"CM_PYTHONLIB_SCIKIT_LEARN_METADATA_PATH": ""}, False),
        ({"CM_PYTHON_BIN_WITH_PATH": "/other/python3"}, False),
        ({"CM_PYTHONLIB_SCIKIT_LEARN_MODULE_FILE": "/gone/__init__.py"}, False),
        ({"CM_PYTHONLIB_SCIKIT_LEARN_RIVALS": "/gone/other-*.dist-info:{here}/META*"}, False),
        ({"CM_PYTHONLIB_SCIKIT_LEARN_RIVALS": "/gone/other-*.dist-info:{here}/other-*"}, True),
    ],
    ids=["unchanged", "package gone", "nothing recorded", "another python", "broken", "overwritten", "alone"],
)
def test_an_entry_is_valid_while_its_package_is_in_its_python(
    change: dict[str, str], is_valid: bool, tmp_path: Path
) -> None:
    metadata = tmp_path / "METADATA"
    metadata.write_text("")
    env = {
        "CM_GENERIC_PYTHON_PACKAGE_NAME": "scikit-learn",
        "CM_PYTHONLIB_SCIKIT_LEARN_METADATA_PATH": str(metadata),
        "CM_PYTHONLIB_SCIKIT_LEARN_PYTHON": "/x/python3",
        "CM_PYTHON_BIN_WITH_PATH": "/x/python3",
        **{key: value.replace("{here}", str(tmp_path)) for key, value in change.items()},
    }
    assert (recipe.plan_reuse({"env": env})["return"] == 0) is is_valid
    # An empty PATH: the script may use nothing but builtins.
    done = subprocess.run(["/bin/bash", "-euo", "pipefail", "-c", f'. "{VALIDATE}"'], env={**env, "PATH": "/nowhere"})
    assert (done.returncode == 0) is is_valid


def test_entries_differ_by_the_chosen_python() -> None:
    meta = recipe_meta("get-generic-python-lib")
    assert meta["extra_cache_tags_from_env"] == [{"env": "CM_PYTHON_CACHE_TAGS", "prefix": "python-"}]
    [python_dependency] = meta["deps"]
    assert python_dependency["dynamic"] is True
    assert python_dependency["names"] == ["python", "python3"]
    assert set(meta["input_description"]) == set(meta["input_mapping"])


# --- indexes that cannot be reached ---

index_access = load_module("get-generic-python-lib", "index_access")
CLOSED = "http://127.0.0.1:9/simple/"
"""Port 9 of this machine: the connection is refused at once."""


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """pip's settings, made up."""
    found: dict[str, str] = {}
    monkeypatch.setattr(index_access, "pip_config", lambda python: found)
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    return found


def adapted(*options: str) -> Any:
    return index_access.adapted(Path("python3"), options, {})


def test_an_extra_index_that_cannot_be_reached_is_left_out_and_named(settings: dict[str, str], server: Any) -> None:
    settings["index-url"] = server.url("")
    access = adapted("--extra-index-url", CLOSED, "--retries=2")
    assert access.options == ("--retries=2",)
    assert access.notes[0].startswith(f"cannot reach {CLOSED} (") and "default index" in access.notes[0]
    there = ("--extra-index-url", server.url(""), "--retries=2")
    assert adapted(*there) == index_access.Access(there)


def test_without_options_only_the_main_index_is_looked_at(settings: dict[str, str], server: Any) -> None:
    settings["index-url"] = server.url("")
    assert adapted() == index_access.Access(())
    settings["index-url"] = CLOSED
    assert adapted().options == index_access.NO_RETRIES


def test_without_the_main_index_pip_does_not_try_again_and_one_line_says_why(settings: dict[str, str]) -> None:
    access = adapted("--index-url", "http://me:secret@127.0.0.1:9/simple/")
    assert access.options[-2:] == index_access.NO_RETRIES
    [note] = access.notes
    assert note.startswith("cannot reach http://***@127.0.0.1:9/simple/ (") and note.endswith("work offline")


def test_what_speaks_no_http_is_no_index(settings: dict[str, str], recwarn: pytest.WarningsRecorder) -> None:
    def answer(listening: socket.socket) -> None:
        with listening.accept()[0] as connection:
            connection.sendall(b"SSH-2.0 \x1b[2J\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = Thread(target=answer, args=(listening,))
        server.start()
        [note] = adapted("--index-url", f"http://127.0.0.1:{listening.getsockname()[1]}/simple/").notes
        server.join()
    assert "(SSH-2.0 " in note and note.isprintable() and not recwarn.list  # pytest warns of an exception in a thread


def test_where_no_index_is_configured_pips_own_is_looked_at(
    settings: dict[str, str], python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PIP_INDEX_URL", raising=False)
    assert re.fullmatch(r"\w+://\S+/simple/?", index_access.default_index(python))
    monkeypatch.setattr(index_access, "default_index", lambda python: CLOSED)
    [note] = adapted().notes
    assert note.startswith("cannot reach PyPI (")


@pytest.mark.parametrize("setting", [{"proxy": "http://x"}, {"no-index": "true"}])
def test_where_pip_has_its_own_way_nothing_is_probed(settings: dict[str, str], setting: dict[str, str]) -> None:
    settings.update(setting)
    assert adapted("--index-url", CLOSED) == index_access.Access(("--index-url", CLOSED))


def test_a_failed_install_ends_with_the_index_that_could_not_be_reached(hook_input: Any, python: Path) -> None:
    answer, _ = run(hook_input, python, "smallthing", CM_GENERIC_PYTHON_PIP_INDEX_URL=CLOSED)
    assert answer["return"] == 1
    assert answer["error"].startswith(f"cannot reach {CLOSED} (")


def test_pips_settings_are_read_from_its_files_and_the_environment(
    python: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pip.conf").write_text("[global]\nindex-url = https://example.org/simple\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    monkeypatch.setenv("PIP_PROXY", "http://proxy")
    index_access.pip_config.cache_clear()
    found = index_access.pip_config(python)
    index_access.pip_config.cache_clear()
    assert (found["index-url"], found["proxy"]) == ("https://example.org/simple", "http://proxy")


@pytest.mark.parametrize(
    ("variation", "cuda", "extra", "wanted"),
    [
        ("onnxruntime_gpu", "12.4", {}, "onnxruntime-gpu[cuda,cudnn]<=1.26.0"),
        ("onnxruntime_gpu", "12.4", {"CM_VERSION_MIN": "1.21.0"}, "onnxruntime-gpu[cuda,cudnn]>=1.21.0,<=1.26.0"),
        ("onnxruntime_gpu", "13.0", {"CM_VERSION_MIN": "1.21.0"}, "onnxruntime-gpu[cuda,cudnn]>=1.21.0"),
        ("onnxruntime_gpu", "", {}, "onnxruntime-gpu[cuda,cudnn]"),  # no driver: nothing is known
        ("onnxruntime_gpu", "12.4", {"CM_VERSION": "1.30.0"}, "onnxruntime-gpu[cuda,cudnn]==1.30.0"),
        ("torch_cuda", "11.8", {}, "torch<=2.10.0"),
        ("torch_cuda", "13.1", {}, "torch"),
    ],
)
def test_the_release_is_one_that_the_machines_driver_runs(monkeypatch, variation, cuda, extra, wanted) -> None:
    env = {**recipe_meta("get-generic-python-lib")["variations"][variation]["env"], **extra}
    monkeypatch.setattr(nvidia, "look", lambda machine: nvidia.Driver(cuda_version=cuda))
    assert requirement.from_env(env, recipe.last_for_driver(env)).for_pip == wanted


def test_a_torch_that_is_there_is_taken_and_not_replaced_by_a_pinned_one() -> None:
    variation = recipe_meta("get-generic-python-lib")["variations"]["torch_cuda"]
    asked = requirement.from_env({**variation["env"], "CM_VERSION_MIN": "2.4.0"})
    assert "default_version" not in variation
    assert [asked.takes(one) for one in ("2.11.0+cu130", "2.15.0", "2.13.0+cpu", "2.3.1")] == [True, True, False, False]
