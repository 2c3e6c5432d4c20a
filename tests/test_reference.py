"""The reference is current, and the check notices when it is not."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from millstream.reference import PAGES, main

if TYPE_CHECKING:
    import pytest

REFERENCE = Path(__file__).resolve().parents[1] / "docs" / "reference"


def test_every_page_is_current() -> None:
    assert main(["--check", "--directory", str(REFERENCE)]) == 0


def test_a_page_that_drifted_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--directory", str(tmp_path)]) == 0
    assert main(["--check", "--directory", str(tmp_path)]) == 0
    (tmp_path / "errors.md").write_text("nothing")
    assert main(["--check", "--directory", str(tmp_path)]) == 1
    assert "errors.md" in capsys.readouterr().err


def test_every_page_has_rows() -> None:
    assert all(page().count("\n| ") > 10 for page in PAGES.values())
