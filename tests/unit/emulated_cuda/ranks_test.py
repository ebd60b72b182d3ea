"""Stock NCCL on the emulated runtime: jobs of a few ranks over NCCL's Socket and SHM transports, every element checked.

Usage: ranks_test.py BUILD_FOLDER NCCL_VERSION [unittest's options]
"""

import re
import sys
import time
import unittest

from ranks import Job, operation

OPERATIONS = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "send_recv_ring", "all_to_all")
TYPES = ("f32", "f16", "bf16", "i32", "u8", "i8", "u32", "i64", "u64", "f64")
REDUCTIONS = ("sum", "prod", "min", "max", "avg")
PROTOCOLS = ("LL", "LL128", "Simple")  # in NCCL's order
BUILD, VERSION = sys.argv[1:3]


def tree_alone() -> str:
    # 2.22.3 doesn't know the longer form and silently runs Ring.
    return "Tree" if VERSION == "2.22.3" else "allreduce:tree"


def all_operations(ranks: int, counts, **more) -> list:
    rooted = {"broadcast": 1, "reduce": 1}
    return [
        operation(op, count, ranks, root=rooted.get(op, 0), **more) for op in OPERATIONS for count in counts
    ]


class Ranks(unittest.TestCase):
    def job(self, hosts: int, gpus: int, algorithm: str = "", protocol: str = "", **more) -> Job:
        environment = more.pop("environment", {})
        if algorithm:
            environment = {**environment, "NCCL_ALGO": algorithm, "NCCL_PROTO": protocol}
        return Job(BUILD, VERSION, hosts, gpus, environment, **more)

    def assert_right(self, outcome) -> None:
        problem = outcome.problem()
        self.assertEqual(problem, "", problem)

    def assert_ran(self, outcome, algorithm: str, protocol: str) -> None:
        """NCCL logs its choice, by name or by number."""
        number = {"Tree": 0, "Ring": 1}[algorithm]
        pattern = f"Algo ({algorithm}|{number}) proto ({protocol}|{PROTOCOLS.index(protocol)})\\b"
        self.assertTrue(re.search(pattern, outcome.logs[0], re.IGNORECASE), f"{pattern} is not in the log")


class RightResults(Ranks):
    def check_ring(self, hosts: int, gpus: int, protocol: str, counts) -> None:
        ranks = hosts * gpus
        with self.subTest(algorithm="Ring", protocol=protocol):
            in_place = [
                operation(op, 5000, ranks, in_place=True)
                for op in OPERATIONS
                if op not in ("send_recv_ring", "all_to_all")
            ]
            outcome = self.job(hosts, gpus, "Ring", protocol).run(all_operations(ranks, counts, iterations=2) + in_place)
            self.assert_right(outcome)
            self.assert_ran(outcome, "Ring", protocol)

    def check_tree(self, hosts: int, gpus: int, protocol: str, counts) -> None:
        with self.subTest(algorithm="Tree", protocol=protocol):
            operations = [operation("all_reduce", count, hosts * gpus, iterations=2) for count in counts]
            outcome = self.job(hosts, gpus, tree_alone(), protocol).run(operations)
            self.assert_right(outcome)
            self.assert_ran(outcome, "Tree", protocol)

    def test_two_hosts(self):
        for protocol in PROTOCOLS:
            self.check_ring(2, 1, protocol, (1, 7, 20011, 300007))
            self.check_tree(2, 1, protocol, (1, 7, 20011, 300007))

    def test_ll128_over_copies_that_store_out_of_order(self):
        """Often enough to meet the operating system's copy that stores a line's flag before its data."""
        self.assert_right(self.job(2, 1, "Ring", "LL128").run([operation("all_reduce", 300007, 2, iterations=150)]))

    def test_two_hosts_with_two_gpus_each(self):
        self.check_ring(2, 2, "Simple", (1, 20011))
        self.check_ring(2, 2, "LL", (1, 20011))
        self.check_tree(2, 2, "LL128", (1, 20011))

    def test_every_type_with_every_reduction(self):
        operations = [operation("all_reduce", 777, 3, type, reduction) for type in TYPES for reduction in REDUCTIONS]
        for protocol in ("LL", "Simple"):
            with self.subTest(protocol=protocol):
                self.assert_right(self.job(3, 1, "Ring", protocol).run(operations))

    def test_what_nccl_chooses_by_itself(self):
        self.assert_right(self.job(3, 1).run(all_operations(3, (3, 5000, 200000))))

    def test_newer_gpus(self):
        self.assert_right(self.job(2, 1, gpu={"compute_capability": "9.0"}).run(all_operations(2, (20011,))))


class LoudFailures(Ranks):
    def test_a_broken_reduction_is_noticed(self):
        outcome = self.job(2, 1, defects=["wrong_reduction"]).run(all_operations(2, (5000,)))
        self.assertEqual(outcome.exit_codes, [1, 1])
        wrong = {operation["op"]: operation["wrong"] for operation in outcome.results[1]["operations"]}
        for op in ("all_reduce", "reduce_scatter", "reduce"):
            self.assertGreater(wrong[op], 0, op)
        for op in ("all_gather", "broadcast", "send_recv_ring", "all_to_all"):
            self.assertEqual(wrong[op], 0, op)

    def test_an_algorithm_that_is_not_emulated_ends_the_run_with_its_name(self):
        if VERSION == "2.22.3":  # has no PAT; the next it could be made to choose needs special hardware
            return
        environment = {"NCCL_ALGO": "allgather:pat", "NCCL_PAT_ENABLE": "1"}
        outcome = self.job(2, 1, environment=environment).run([operation("all_gather", 20011, 2)], time_limit_s=20)
        self.assertNotIn(0, outcome.exit_codes)
        self.assertIn("not emulated: algorithm 6", "".join(outcome.logs))

    def test_a_killed_rank_ends_the_others_in_seconds(self):
        begin = []

        def kill_one(processes):
            time.sleep(1)  # into the operation, which connects first
            begin.append(time.monotonic())
            processes[1].kill()

        # Far more iterations than there is time for.
        endless = operation("all_reduce", 200000, 3, iterations=100000)
        outcome = self.job(3, 1).run([endless], time_limit_s=60, meddle=kill_one)
        self.assertLess(time.monotonic() - begin[0], 20)
        for rank in (0, 2):
            self.assertEqual(outcome.exit_codes[rank], 1)
            self.assertIsNotNone(outcome.results[rank]["error"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
