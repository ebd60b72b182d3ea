"""Rewrites a static library of NCCL without its device code: same objects, same host code, a fifteenth of the size."""

import pathlib
import re
import subprocess
from typing import BinaryIO, Iterator, List, Tuple

from problem import LACKS, Problem

# Where the CUDA compiler keeps code for GPUs. Nothing here can run it and nothing reads it; host code refers to the start
# of the section only, so sixteen bytes have to stay.
DEVICE_CODE_SECTIONS = ("__nv_relfatbin", ".nv_fatbin")
PLACEHOLDER = b"no device code.\n"

AR_MAGIC = b"!<arch>\n"
AR_HEADER_BYTES = 60


def members(archive: BinaryIO) -> Iterator[Tuple[str, bytes]]:
    """Name and content of each member of an ar file, in order. Names of libraries repeat and may be cut: tell by order."""
    if archive.read(len(AR_MAGIC)) != AR_MAGIC:
        raise ValueError("not an ar archive")
    while True:
        header = archive.read(AR_HEADER_BYTES)
        if not header:
            return
        if len(header) < AR_HEADER_BYTES or header[58:60] != b"`\n":
            raise ValueError("damaged ar archive")
        size = int(header[48:58])
        content = archive.read(size)
        if len(content) < size:
            raise ValueError("ar archive is cut short")
        archive.read(size % 2)
        yield header[:16].decode("ascii").rstrip(), content


def objects(archive: BinaryIO) -> Iterator[bytes]:
    """The object files of a static library, without its symbol and name tables."""
    for name, content in members(archive):
        if name not in ("/", "//", "/SYM64/"):
            yield content


def _run(command: List[str], folder: pathlib.Path) -> str:
    try:
        done = subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    except FileNotFoundError as error:
        raise Problem(LACKS, f"{command[0]} is not installed; on Debian and Ubuntu it is in package binutils") from error
    except subprocess.CalledProcessError as error:
        raise Problem(LACKS, f"{' '.join(command[:4])} … failed: {error.stderr.strip()}") from error
    return done.stdout


def _device_sections(names: List[str], folder: pathlib.Path) -> Iterator[Tuple[str, List[str]]]:
    """Each object file with the device code sections it has."""
    # With several files readelf begins each with a line "File: NAME".
    listing = _run(["readelf", "--sections", "--wide", *names], folder)
    for part in re.split(r"^File: ", listing, flags=re.MULTILINE)[1:]:
        name, sections = part.split("\n", 1)
        present = [section for section in DEVICE_CODE_SECTIONS if re.search(rf"\] {re.escape(section)}\s", sections)]
        if present:
            yield name.strip(), present


def slim(source: pathlib.Path, target: pathlib.Path, folder: pathlib.Path) -> None:
    """Writes `target`, using `folder` (created, left behind) for the single objects. Raises Problem or ValueError."""
    folder.mkdir()
    names = []
    with open(source, "rb") as archive:
        for content in objects(archive):
            names.append(f"{len(names):04d}.o")
            (folder / names[-1]).write_bytes(content)
    (folder / "placeholder").write_bytes(PLACEHOLDER)
    for name, sections in _device_sections(names, folder):
        updates = [f"--update-section={section}=placeholder" for section in sections]
        _run(["objcopy", *updates, name], folder)
    _run(["ar", "rcsD", str(target), *names], folder)
