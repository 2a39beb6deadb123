"""Dependencies point one way: recipes -> toolkit -> scratch_models -> transformers and torch."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FORBIDDEN = {"scratch_models": {"toolkit", "recipes"}, "toolkit": {"recipes"}}


def imported_packages(file: Path) -> set[str]:
    packages = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            packages |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            packages.add(node.module.split(".")[0])
    return packages


@pytest.mark.parametrize("package", FORBIDDEN)
def test_no_package_imports_from_above(package: str) -> None:
    files = sorted((ROOT / package).rglob("*.py"))
    assert files
    for file in files:
        assert not imported_packages(file) & FORBIDDEN[package], file


def test_the_scan_sees_every_form_of_import(tmp_path) -> None:
    file = tmp_path / "x.py"
    file.write_text("import toolkit.data as d\ndef f():\n    from recipes.bert import main\n")
    assert imported_packages(file) == {"toolkit", "recipes"}


def test_importing_the_package_costs_nothing() -> None:
    code = "import sys, scratch_models; sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
