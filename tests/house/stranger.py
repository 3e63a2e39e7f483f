"""A stranger's machine: the dependencies are there, groupjobs is not, and `pip install groupjobs` finds our wheel."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.house.tables import ROOT

COMMANDS: Final = {"pip": "pip", "celery": "celery", "django-admin": "django"}
OURS: Final = ("DJANGO_", "GROUPJOBS", "PYTEST", "PYTHONPATH", "DATABASE_URL", "CELERY", "BROKER_URL")
WAITS: Final = 500.0  # seconds; a hang is a failure


def build(folder: Path) -> Path:
    """Build wheel and sdist into this folder; the wheel's path."""
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


class Stranger:
    """An empty virtual environment and an empty folder.

    The dependencies are those of this test's environment, found through its path; its editable groupjobs
    is not, since only a wheel that is installed here stands in `site-packages`.
    """

    def __init__(self, folder: Path, wheels: Path, env: Mapping[str, str]) -> None:
        self.folder = folder / "project"
        self.folder.mkdir()
        self.bin = folder / "venv" / "bin"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True)
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        self.packages = folder / "venv" / "lib" / version / "site-packages"
        (self.packages / "others.pth").write_text(sysconfig.get_paths()["purelib"])
        for name, module in COMMANDS.items():
            script = self.bin / name
            script.write_text(f'#!/bin/sh\nexec "{self.bin}/python" -m {module} "$@"\n')
            script.chmod(0o755)
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("DJANGO_", "GROUPJOBS", "PYTEST"))
        }
        self.env = {
            **{name: value for name, value in kept.items() if name not in ("PYTHONPATH", "DATABASE_URL", "CELERY")},
            "PATH": f"{self.bin}:{os.environ['PATH']}",
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_NO_INDEX": "1",
            "PIP_NO_DEPS": "1",
            "PIP_IGNORE_INSTALLED": "1",
            "PIP_FIND_LINKS": str(wheels),
            "PYTHONUNBUFFERED": "1",
            **env,
        }

    def bash(self, script: str) -> str:
        """Run these lines in the folder; their output, which an AssertionError shows when one fails."""
        shown = subprocess.run(
            ["bash", "-meuo", "pipefail", "-c", script],
            cwd=self.folder,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=WAITS,
            check=False,
        )
        assert shown.returncode == 0, f"status {shown.returncode}:\n{shown.stdout[-6000:]}"
        return shown.stdout

    def python(self, program: str) -> str:
        """Run a program in the folder; its output."""
        return self.bash(f"python - <<'PROGRAM'\n{textwrap.dedent(program)}\nPROGRAM")
