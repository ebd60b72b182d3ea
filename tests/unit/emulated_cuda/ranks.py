"""Runs the ranks of one NCCL job on this machine, over NCCL's own Socket transport on the loopback interface.

A host of the job is a NCCL_HOSTID and a host file; there are no network namespaces and no root.
"""

import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from typing import Dict, List, NamedTuple, Optional


class Outcome(NamedTuple):
    exit_codes: List[int]
    results: List[Optional[dict]]  # what each rank wrote
    logs: List[str]

    def wrong(self) -> int:
        return sum(operation["wrong"] for result in self.results for operation in result["operations"])

    def problem(self) -> str:
        """What to show where a job should have been right; empty where it was."""
        for rank, (code, result, log) in enumerate(zip(self.exit_codes, self.results, self.logs)):
            if code != 0 or not result or result["error"] or any(op["wrong"] for op in result["operations"]):
                return f"rank {rank} ended with {code}: {json.dumps(result)}\n{log[-3000:]}"
        return ""


class Job:
    """A job of hosts x gpus ranks. `gpu` and `defects` go into the host files."""

    def __init__(self, build: str, nccl: str, hosts: int, gpus: int, environment: Dict[str, str] = {}, gpu={}, defects=()):
        self.build, self.nccl, self.hosts, self.gpus = pathlib.Path(build), nccl, hosts, gpus
        self.environment, self.gpu, self.defects = environment, gpu, list(defects)

    def run(self, operations: List[dict], time_limit_s: int = 40, meddle=None) -> Outcome:
        """`meddle`, if given, is called with the running processes when all ranks have a communicator."""
        folder = pathlib.Path(tempfile.mkdtemp(prefix="weft-ranks-"))
        processes = []
        try:
            (folder / "exchange").mkdir()
            for host in range(self.hosts):
                self._write_host_file(folder, host)
            ranks = range(self.hosts * self.gpus)
            for rank in ranks:
                processes.append(self._start(folder, rank, operations, time_limit_s))
            if meddle:
                self._wait_for_communicators(folder, processes, time_limit_s)
                meddle(processes)
            codes = self._supervise(folder, processes, time_limit_s + 10)
            results = [self._result(folder / f"rank{rank}.json") for rank in ranks]
            logs = [(folder / f"rank{rank}.log").read_text(errors="replace") for rank in ranks]
            return Outcome(codes, results, logs)
        finally:
            for process in processes:
                process.kill()
            shutil.rmtree(folder, ignore_errors=True)

    @staticmethod
    def _supervise(folder: pathlib.Path, processes, time_limit_s: int) -> List[int]:
        """Tells the ranks that wait for each other outside of NCCL when one has died, as `rig run` does."""
        deadline = time.monotonic() + time_limit_s
        while any(process.poll() is None for process in processes):
            if time.monotonic() > deadline:
                raise TimeoutError("the ranks did not end")
            dead = [rank for rank, process in enumerate(processes) if process.poll() not in (None, 0)]
            barrier_file = folder / "exchange" / "barrier"  # tests/rig/rank/exchange.h
            if dead and barrier_file.exists():
                with open(barrier_file, "r+b") as barrier:
                    barrier.seek(8)
                    barrier.write(struct.pack("=I", dead[0] + 1))
            time.sleep(0.02)
        return [process.returncode for process in processes]

    @staticmethod
    def _wait_for_communicators(folder: pathlib.Path, processes, time_limit_s: int) -> None:
        deadline = time.monotonic() + time_limit_s
        logs = [folder / f"rank{rank}.log" for rank in range(len(processes))]
        while time.monotonic() < deadline:
            if all("Init COMPLETE" in log.read_text(errors="replace") for log in logs):
                return
            time.sleep(0.05)
        raise TimeoutError("the ranks have no communicator yet")

    def _write_host_file(self, folder: pathlib.Path, host: int) -> None:
        gpus = [{"bus_id": f"0000:{0x10 * (i + 1):02x}:00.0", **self.gpu} for i in range(self.gpus)]
        text = json.dumps({"host": f"h{host}", "gpus": gpus, "defects": self.defects})
        (folder / f"h{host}.host.json").write_text(text)

    def _start(self, folder: pathlib.Path, rank: int, operations: List[dict], time_limit_s: int) -> subprocess.Popen:
        host, device = divmod(rank, self.gpus)
        rank_file = folder / f"rank{rank}.file.json"
        rank_file.write_text(
            json.dumps(
                {
                    "rank": rank,
                    "ranks": self.hosts * self.gpus,
                    "device": device,
                    "exchange": str(folder / "exchange"),
                    "result": str(folder / f"rank{rank}.json"),
                    "time_limit_s": time_limit_s,
                    "operations": operations,
                }
            )
        )
        rig = self.build / "rig"
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("NCCL_", "RIG_"))}
        environment.update(
            LD_LIBRARY_PATH=f"{rig / ('nccl-' + self.nccl)}:{rig / 'lib'}",
            RIG_HOST_FILE=str(folder / f"h{host}.host.json"),
            NCCL_HOSTID=f"h{host}",
            NCCL_SOCKET_IFNAME="lo",
            NCCL_DEBUG="INFO",
            NCCL_DEBUG_SUBSYS="INIT,ENV,TUNING",
            NCCL_NET_PLUGIN="none",
            NCCL_NET="Socket",
            NCCL_IB_DISABLE="1",
            NCCL_PAT_ENABLE="0",
            NCCL_RAS_ENABLE="0",
        )
        environment.update(self.environment)
        with open(folder / f"rank{rank}.log", "w") as log:
            return subprocess.Popen([rig / "bin" / "rank", rank_file], env=environment, stdout=log, stderr=log)

    @staticmethod
    def _result(path: pathlib.Path) -> Optional[dict]:
        return json.loads(path.read_text()) if path.exists() else None


def operation(op: str, elements: int, ranks: int, type: str = "f32", reduction: str = "sum", **more) -> dict:
    """`elements` is the count that NCCL's call gets; the rank file wants the bytes of the larger buffer."""
    size = {"f16": 2, "bf16": 2, "u8": 1, "i8": 1, "i64": 8, "u64": 8, "f64": 8}.get(type, 4)
    blocks = ranks if op in ("all_gather", "reduce_scatter", "all_to_all") else 1
    return {"op": op, "bytes": elements * size * blocks, "type": type, "reduction": reduction, **more}


if __name__ == "__main__":  # by hand: ranks.py BUILD NCCL HOSTSxGPUS OP ELEMENTS [ITERATIONS]
    build, nccl, shape, op, elements = sys.argv[1:6]
    hosts, gpus = map(int, shape.split("x"))
    iterations = int(sys.argv[6]) if len(sys.argv) > 6 else 1
    knobs = {key: value for key, value in os.environ.items() if key.startswith("NCCL_")}
    begin = time.time()
    outcome = Job(build, nccl, hosts, gpus, knobs).run(
        [operation(op, int(elements), hosts * gpus, iterations=iterations)]
    )
    print(outcome.problem() or json.dumps(outcome.results[0]), f"{time.time() - begin:.2f} s")
