"""Scripts print what they print in the shells of this machine, and exit with the same code."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.shell.processes import output_of, run

HERE = Path(__file__).parent
SEPARATOR = "\n%%\n"
PORTABLE = (HERE / "cases.txt").read_text().removesuffix("\n").split(SEPARATOR)
BASH = (HERE / "bash_cases.txt").read_text().removesuffix("\n").split(SEPARATOR)
CASES = [("sh", each) for each in PORTABLE] + [("bash", each) for each in PORTABLE + BASH]


@pytest.mark.parametrize(("shell", "script"), CASES, ids=range(len(CASES)))
def test_a_script_does_what_it_does_in_a_real_shell(
    shell: str, script: str, tmp_path: Path
) -> None:
    """Output and exit code are those of the real shell."""
    path = shutil.which(shell)
    if path is None:
        pytest.skip(f"{shell} is not installed")
    if shell == "sh" and "dash" not in Path(path).resolve().name:
        pytest.skip("sh is not dash on this machine")
    real = subprocess.run(
        [shell, "-c", script],
        cwd=tmp_path,
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/root"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    expected = real.stdout.replace(str(tmp_path), "/")

    process = run(script, shell=shell)

    assert (output_of(process, 1), process.exit_code) == (expected, real.returncode)
