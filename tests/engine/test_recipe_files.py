"""The code of a recipe as text: which files are read, and how."""

from pathlib import Path

from recipe_engine.disk.metadata import TEXT_LIMIT_BYTES, recipe_texts


def test_python_files_and_shell_scripts_are_read_on_request_from_folders_below_too(tmp_path: Path) -> None:
    (tmp_path / "lib" / "more").mkdir(parents=True)
    (tmp_path / "tests").mkdir()
    (tmp_path / ".git").mkdir()
    for name in ("customize.py", "run.sh", "data.txt", "lib/more/words.py", "tests/test_x.py", ".git/hook.sh"):
        (tmp_path / name).write_text(name, encoding="utf-8")
    assert recipe_texts(tmp_path) == {"customize.py": "customize.py", "run.sh": "run.sh"}
    assert list(recipe_texts(tmp_path, is_deep=True)) == ["customize.py", "run.sh", "lib/more/words.py"]


def test_line_ends_stay_and_bytes_that_are_not_text_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_bytes(b"\xef\xbb\xbfecho \xff\r\n")
    (tmp_path / "customize.py").write_bytes(b"\xef\xbb\xbfa = 1\n")
    assert recipe_texts(tmp_path) == {"customize.py": "a = 1\n", "run.sh": "\ufeffecho \ufffd\r\n"}


def test_what_is_too_big_or_not_a_file_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "big.py").write_bytes(b"#" * (TEXT_LIMIT_BYTES + 1))
    (tmp_path / "folder.sh").mkdir()
    (tmp_path / "gone.py").symlink_to(tmp_path / "nowhere.py")
    assert recipe_texts(tmp_path) == {}
