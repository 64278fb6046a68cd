"""The pictures that a round names come into a tree with an accuracy run, and no others."""

from pathlib import Path

from generate_support import SUT  # noqa: F401 - puts the package on the path

from crowdperf.submission.assembly import _pictures


def test_a_tree_gets_the_pictures_of_its_round(tmp_path: Path) -> None:
    images = tmp_path / "images"
    images.mkdir()
    for name in ("4475.png", "1046.png", "52.png", "captions.txt", "notes.txt"):
        (images / name).write_bytes(name.encode())

    def found(round_name: str, model: str = "stable-diffusion-xl") -> set[str]:
        pieces = list(_pictures(tmp_path, Path("accuracy"), round_name, model))
        assert all(piece.path.parent == Path("accuracy/images") for piece in pieces)
        assert all(piece.read() == piece.path.name.encode() for piece in pieces)
        return {piece.path.name for piece in pieces}

    assert found("v6.1") == {"4475.png", "1046.png", "captions.txt"}
    assert found("v6.0") == {"52.png", "captions.txt"}
    assert found("v6.1", "resnet50") == found("v4.0") == set()
