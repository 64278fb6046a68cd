"""``cm ... utils`` as users and recipes call it."""

import re
import zipfile

from helpers import CHECKOUT, TemporaryHome
from recipe_engine.actions import utils_actions

UTILS = "utils,dc2743f8450541e3"


def test_a_recipe_calls_helpers_by_name_and_uid(home: TemporaryHome) -> None:
    with zipfile.ZipFile(home.folder / "a.zip", "w") as archive:
        archive.writestr("top/b.txt", "text")
    home.recipe(
        "get-x",
        {"new_env_keys": ["CM_SEEN"]},
        customize=f"""
            import cmind as cm

            def preprocess(i):
                ask = i["automation"].cmind.access
                r = cm.access({{"action": "unzip_file", "automation": "{UTILS}", "filename": "{home.folder}/a.zip",
                               "strip_folders": 1}})
                if r["return"] > 0:
                    return r
                seen = [open("b.txt").read()]
                r = ask({{"action": "system", "automation": "utils", "cmd": "echo out; exit 2"}})
                seen += [r["stdout"], str(r["ret"])]
                r = ask({{"action": "compare_versions", "automation": "{UTILS}", "version1": "2", "version2": "1"}})
                seen.append(str(r["comparison"]))
                r = ask({{"action": "get_host_os_info", "automation": "{UTILS}"}})
                seen.append(r["info"]["bat_ext"])
                i["env"]["CM_SEEN"] = " ".join(seen)
                return {{"return": 0}}
        """,
    )
    answer = home.run_cm("get,x").answer
    assert answer["new_env"] == {"CM_SEEN": "text out 2 1 .sh"}


def test_the_error_of_a_helper_is_the_error_of_the_recipe(home: TemporaryHome) -> None:
    home.recipe(
        "get-x",
        customize=f"""
            def preprocess(i):
                return i["automation"].cmind.access(
                    {{"action": "unzip_file", "automation": "{UTILS}", "filename": "none.zip"}}
                )
        """,
    )
    done = home.run_cm("get,x")
    assert done.code == done.answer["return"] == 16
    assert "none.zip does not exist" in done.answer["error"]
    assert "Traceback" not in done.stderr


def test_helpers_work_on_the_command_line(home: TemporaryHome) -> None:
    assert home.cm("compare_versions", "utils", "--version1=1.9", "--version2=1.10").stdout.splitlines()[-1] == "-1"
    answer = home.cm("compare-versions", UTILS, "--version1=1.9", "--version2=1.10", "-j").answer
    assert answer == {"return": 0, "comparison": -1}
    done = home.cm("download_file", "utils")
    assert done.code == 1
    assert "--url is missing" in done.stderr
    assert "Traceback" not in done.stderr


def test_configurations_of_registered_repositories_are_found(home: TemporaryHome) -> None:
    folder = home.repo / "cfg" / "machines"
    folder.mkdir(parents=True)
    (folder / "_cm.json").write_text('{"alias": "machines", "uid": "00000000000000c1", "tags": ["machine"]}')
    (folder / "one.json").write_text('{"uid": "u1", "name": "One"}')
    answer = home.cm("load_cfg", "utils", "--tags=machine", "--out=json").answer
    assert [row["name"] for row in answer["selection"]] == ["One"]
    answer = home.cm("select_cfg", "utils", "--tags=machine", "--out=json").answer
    assert answer["selection"]["alias"] == "one"


def test_every_action_is_offered_and_every_offer_is_an_action() -> None:
    text = (CHECKOUT / "automation" / "utils" / "module.py").read_text(encoding="utf-8")
    offered = set(re.findall(r"^    def ([a-z]\w*)\(self, i\)", text, re.MULTILINE))
    own = {
        name
        for name, value in vars(utils_actions).items()
        if callable(value) and not isinstance(value, type) and value.__module__ == utils_actions.__name__
    }
    assert {name for name in own if not name.startswith("_")} == offered
