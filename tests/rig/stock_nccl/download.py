"""Gets one Debian package file: with apt in a configuration of its own, or from the mirror's pool where there is no apt."""

import pathlib
import shutil
import subprocess
import urllib.error
import urllib.request

from problem import LACKS, Problem

APT_SOURCES = "deb [trusted=yes] {mirror} {suite} contrib\n"

# Everything apt writes goes below {root}; the machine's proxies and credentials stay in force. The hooks are cleared
# because they act on the system's own cache. `trusted` above: an older release's keyring cannot verify a newer suite, and
# the SHA-256 of the package is what we check. The sandbox user of root's apt could not reach a private folder.
APT_CONFIGURATION = """\
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
Dir::Etc::sourcelist "{root}/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::State "{root}/state";
Dir::State::status "{root}/status";
Dir::Cache "{root}/cache";
APT::Architecture "amd64";
APT::Architectures {{ "amd64"; }};
APT::Sandbox::User "root";
APT::Update::Error-Mode "any";
Acquire::Check-Valid-Until "false";
Acquire::Languages "none";
Acquire::Retries "2";
Acquire::http::Timeout "30";
Acquire::https::Timeout "30";
"""


def with_apt(mirror: str, package, folder: pathlib.Path) -> pathlib.Path:
    """Downloads into `folder`; apt's own messages and progress are shown. Raises Problem."""
    root = folder / "apt"
    for name in ("state/lists/partial", "cache/archives/partial"):
        (root / name).mkdir(parents=True, exist_ok=True)
    (root / "status").touch()
    (root / "sources.list").write_text(APT_SOURCES.format(mirror=mirror, suite=package.suite))
    (root / "apt.conf").write_text(APT_CONFIGURATION.format(root=root))
    apt = ["apt-get", "-c", str(root / "apt.conf")]
    for step in (["update"], ["download", f"libnccl-dev={package.debian_version}"]):
        if subprocess.run(apt + step, cwd=folder).returncode != 0:
            raise Problem(
                LACKS,
                f"{mirror} (suite {package.suite}, component contrib): apt-get {' '.join(step)} failed, see above",
            )
    return folder / package.file_name


def from_pool(mirror: str, package, folder: pathlib.Path) -> pathlib.Path:
    """The same for a machine without apt. Raises Problem."""
    url = f"{mirror.rstrip('/')}/pool/contrib/n/nvidia-nccl/{package.file_name}"
    target = folder / package.file_name
    print(f"      {url}", flush=True)
    try:
        with urllib.request.urlopen(url, timeout=30) as answer, open(target, "wb") as file:
            shutil.copyfileobj(answer, file, 1 << 20)
    except (urllib.error.URLError, OSError, ValueError) as error:
        raise Problem(LACKS, f"{url}: {error}") from error
    return target


def download(mirror: str, package, folder: pathlib.Path) -> pathlib.Path:
    get = with_apt if shutil.which("apt-get") else from_pool
    return get(mirror, package, folder)
