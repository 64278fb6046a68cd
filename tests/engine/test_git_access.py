"""How git in native scripts is let at private repositories, without a token in any file."""

import pytest
from helpers import TemporaryHome
from recipe_engine.running.shell import git_access

ADDRESS = "https://git.example.org/team/tool"


@pytest.mark.parametrize(
    "env",
    [
        {"CM_GIT_URL": ADDRESS, "CM_GH_TOKEN": "t"},
        {"CM_GIT_URL": ADDRESS, "CM_GIT_AUTH": "no", "CM_GH_TOKEN": "t"},
        {"CM_GIT_URL": ADDRESS, "CM_GIT_AUTH": "yes"},
        {"CM_GIT_URL": ADDRESS, "CM_GIT_AUTH": "yes", "CM_GIT_SSH": "no"},
        {"CM_GIT_URL": "git@git.example.org:team/tool", "CM_GIT_AUTH": "yes", "CM_GH_TOKEN": "t"},
        {"CM_GIT_URL": "https://me@git.example.org/team/tool", "CM_GIT_AUTH": "yes", "CM_GH_TOKEN": "t"},
        {"CM_GIT_AUTH": "yes", "CM_GH_TOKEN": "t"},
    ],
)
def test_git_is_told_nothing_when_nothing_is_to_be_done(env: dict[str, str]) -> None:
    assert git_access(env, "") == {}


def test_the_token_is_read_by_a_helper_and_stands_nowhere() -> None:
    found = git_access({"CM_GIT_URL": ADDRESS, "CM_GIT_AUTH": "yes", "CM_GH_TOKEN": "very-secret"}, "")
    assert found["GIT_CONFIG_COUNT"] == "1"
    assert found["GIT_CONFIG_KEY_0"] == "credential.https://git.example.org.helper"
    assert "CM_GH_TOKEN" in found["GIT_CONFIG_VALUE_0"]
    assert "very-secret" not in str(found)


def test_settings_of_the_user_stay() -> None:
    found = git_access({"CM_GIT_URL": ADDRESS, "CM_GIT_AUTH": "yes", "CM_GIT_SSH": "yes"}, "2")
    assert found == {
        "GIT_CONFIG_COUNT": "3",
        "GIT_CONFIG_KEY_2": "url.ssh://git@git.example.org/.insteadOf",
        "GIT_CONFIG_VALUE_2": "https://git.example.org/",
    }


@pytest.mark.parametrize("prefix", ["CM_", "MLC_"])
def test_git_itself_gets_the_token_from_the_helper(home: TemporaryHome, prefix: str) -> None:
    env = {prefix + "GIT_URL": ADDRESS, prefix + "GIT_AUTH": "yes"}
    home.recipe(
        "get-x",
        {"env": env, "new_env_keys": ["CM_FILLED"]},
        run_sh="""
            filled=$(printf 'protocol=https\\nhost=git.example.org\\n\\n' | git credential fill)
            test "$(sed -n 's/^password=//p' <<< "$filled")" = "$EXPECTED_WORD" || exit 1
            echo CM_FILLED=yes > tmp-run-env.out
        """,
    )
    answer = home.run("get,x", dirty=True, env={prefix + "GH_TOKEN": "very-secret", "EXPECTED_WORD": "very-secret"})
    assert answer["new_env"] == {"CM_FILLED": "yes"}


def test_git_itself_takes_the_ssh_address(home: TemporaryHome) -> None:
    home.recipe(
        "get-x",
        {"env": {"CM_GIT_URL": ADDRESS, "CM_GIT_AUTH": "yes"}, "new_env_keys": ["CM_ADDRESS"]},
        run_sh="""
            git init -q tmp-clone && cd tmp-clone && git remote add origin "$CM_GIT_URL"
            echo "CM_ADDRESS=$(git remote get-url origin)" > ../tmp-run-env.out
        """,
    )
    answer = home.run("get,x", git_ssh="yes")
    assert answer["new_env"] == {"CM_ADDRESS": "ssh://git@git.example.org/team/tool"}


@pytest.mark.parametrize("login", ["me:very-secret", "abcdefgh0123456789"])
def test_git_uses_the_login_of_an_address_and_a_clone_does_not_keep_it(home: TemporaryHome, login: str) -> None:
    home.recipe(
        "get-x",
        {"env": {"CM_GIT_CLONE_CMD": "git remote add origin <<<CM_GIT_URL>>>"}, "new_env_keys": ["CM_ADDRESS"]},
        run_sh="""
            git init -q tmp-clone && cd tmp-clone && $CM_GIT_CLONE_CMD
            test "$(git remote get-url origin)" = "$EXPECTED_WORD" || exit 1
            git config remote.origin.url | sed s/^/CM_ADDRESS=/ > ../tmp-run-env.out
        """,
    )
    address = f"https://{login}@git.example.org/team/tool"
    answer = home.run("get,x", dirty=True, env={"CM_GIT_URL": address, "EXPECTED_WORD": address})
    assert answer["new_env"] == {"CM_ADDRESS": ADDRESS}
    texts = [path.read_text(errors="replace") for path in home.work.rglob("*") if path.is_file()]
    assert texts and not [text for text in texts if login in text]
