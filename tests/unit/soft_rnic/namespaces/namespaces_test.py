#!/usr/bin/env python3
"""The software NIC between two network namespaces: what is on the wire, several processes on one NIC, loss and cuts,
programs that Debian ships.

usage: namespaces_test.py RIG_FOLDER [--user-namespace] [unittest options]
"""
import json
import os
import signal
import subprocess
import sys
import time
import unittest

import packets
from two_hosts import ADDRESS, NETDEV, TwoHosts, enter_namespaces, need_programs

RIG = None
LIMIT_S = 60


def finish(test, *processes):
    """Waits for programs that must succeed; returns what they printed."""
    outputs = [process.communicate(timeout=LIMIT_S)[0] for process in processes]
    for process, output in zip(processes, outputs):
        test.assertEqual(process.returncode, 0, f"{process.args}\n" + "\n".join(outputs))
    return outputs


class HostsTest(unittest.TestCase):
    NIC = {}

    def setUp(self):
        self.hosts = TwoHosts(RIG, **self.NIC)
        self.addCleanup(self.hosts.close)

    def exchange(self, *options, name="exchange"):
        """A server on host b and a client on host a."""
        folder = self.hosts.new_folder()
        command = ["soft_rnic_exchange", "{role}", "--exchange", folder, *options]
        return [self.hosts.start(host, [word.format(role=role) for word in command], name)
                for host, role in (("b", "server"), ("a", "client"))]


class WireTest(HostsTest):
    """Packets as a capture on the veth pair shows them."""

    def capture_exchange(self, client_options, server_options):
        path = self.hosts.path("wire.pcap")
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "packets.py")
        tap = self.hosts.start("b", [sys.executable, script, NETDEV, path])
        self.assertEqual(tap.stdout.readline().strip(), "ready")
        folder = self.hosts.new_folder()
        server = self.hosts.start("b", ["soft_rnic_exchange", "server", "--exchange", folder, *server_options])
        client = self.hosts.start("a", ["soft_rnic_exchange", "client", "--exchange", folder, *client_options])
        finish(self, client, server)
        time.sleep(0.3)
        tap.send_signal(signal.SIGTERM)
        finish(self, tap)
        return path

    def test_every_packet_is_well_formed_and_its_icrc_right(self):
        path = self.capture_exchange(["--rounds", "3"], [])
        seen = packets.read(path)
        self.assertGreater(len(seen), 500)
        self.assertEqual([packet for packet in seen if not packet.icrc_right], [])
        self.assertEqual([packet for packet in seen if not packet.dont_fragment], [])
        self.assertLessEqual(max(packet.udp_payload_size for packet in seen), 12 + 16 + 4 + 4096 + 4)
        # Every kind of packet that this NIC sends: SEND, WRITE and READ in all their forms, acknowledgements, atomics.
        self.assertEqual({packet.opcode for packet in seen}, set(range(19)) | {20})

        def count(display_filter):
            # Without the guess that payload of a SEND is RPC over RDMA: ours is a test pattern.
            command = ["tshark", "-n", "-r", path, "--disable-protocol", "rpcordma", "-Y", display_filter,
                       "-T", "fields", "-e", "frame.number"]
            result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=LIMIT_S)
            return len(result.stdout.split())

        self.assertEqual(count("infiniband.bth"), len(seen), "tshark must take every packet for RoCE")
        self.assertEqual(count("_ws.malformed"), 0)

    def test_source_port_tos_and_ttl_come_from_each_ends_own_address_handle(self):
        path = self.capture_exchange(["--flow-label", "17", "--traffic-class", "104"],
                                     ["--flow-label", "819", "--traffic-class", "32"])
        for packet in packets.read(path):
            here = packet.source == ADDRESS["a"]
            self.assertEqual(packet.source_port, 0xC000 + 17 if here else 49971, packet)
            self.assertEqual(packet.tos, 104 if here else 32, packet)
            self.assertEqual(packet.ttl, 64, packet)

    def test_without_label_the_port_follows_the_queue_pair_numbers(self):
        seen = packets.read(self.capture_exchange([], []))
        numbers = {packet.source: packet.destination_queue_pair for packet in seen}
        mixed = numbers[ADDRESS["a"]] * numbers[ADDRESS["b"]]
        mixed ^= mixed >> 20
        mixed ^= mixed >> 40
        label = mixed & 0xFFFFF
        expected = (label & 0x3FFF) ^ (label >> 14) | 0xC000
        self.assertEqual({packet.source_port for packet in seen}, {expected})

    def test_statistics_agree_with_the_wire(self):
        seen = packets.read(self.capture_exchange(["--flow-label", "5"], ["--flow-label", "6"]))
        for host in "ab":
            sent = [packet for packet in seen if packet.source == ADDRESS[host]]
            ports = self.hosts.statistics(host)
            self.assertEqual(sum(port["packets"] for port in ports), len(sent))
            self.assertEqual(sum(port["bytes"] for port in ports), sum(packet.udp_payload_size for packet in sent))


class SharingTest(HostsTest):
    """Several processes of one host on one NIC."""

    def test_processes_share_a_nic(self):
        processes = sum((self.exchange("--rounds", "20") for _ in range(4)), [])
        finish(self, *processes)

    def test_killing_one_process_leaves_the_others_alone(self):
        victims = self.exchange("--rounds", "1000000")
        others = self.exchange("--rounds", "300")
        time.sleep(0.3)
        for victim in victims:
            victim.kill()
        finish(self, *others)
        finish(self, *self.exchange())  # the lent sockets are lent again


class FaultTest(HostsTest):
    def test_two_percent_loss_both_ways_is_repaired(self):
        for host in "ab":
            self.hosts.control(host, drop_ppm=20000)
        finish(self, *self.exchange("--rounds", "10", "--timeout", "14"))
        retransmitted = sum(port["retransmitted"] for port in self.hosts.statistics("a"))
        self.assertGreater(retransmitted, 0)

    def test_delay_changes_nothing_but_time(self):
        self.hosts.control("b", delay_us=1000)
        finish(self, *self.exchange())

    def test_a_short_cut_is_survived(self):
        processes = self.exchange("--rounds", "300", "--timeout", "16")
        time.sleep(0.2)
        self.hosts.control("b", port="down")
        time.sleep(0.2)
        self.hosts.control("b", port="up")
        finish(self, *processes)

    def test_a_long_cut_ends_in_retry_exceeded(self):
        server, client = self.exchange("--rounds", "1000000", "--timeout", "10")
        time.sleep(0.3)
        self.hosts.control("b", port="down")
        output = client.communicate(timeout=LIMIT_S)[0]
        self.assertEqual(client.returncode, 1, output)
        self.assertIn("transport retry counter exceeded", output)
        server.kill()


class CalibrationTest(HostsTest):
    def test_one_queue_pair_fills_a_shaped_link_as_well_as_eight(self):
        for host in "ab":
            shape = ["tc", "qdisc", "replace", "dev", NETDEV, "root", "tbf", "rate", "100mbit", "burst", "16kb",
                     "limit", "16mb"]
            subprocess.run(self.hosts.inside(host, shape), check=True)
        folder = self.hosts.new_folder()
        server, client = [self.hosts.start(host, ["soft_rnic_gate", role, "--exchange", folder, "--threshold", "0.8"])
                          for host, role in (("b", "server"), ("a", "client"))]
        measured = json.loads(finish(self, client, server)[0])
        # Goodput cannot exceed the link less its headers; a window limit of the NIC would show as a ratio far below one.
        self.assertLess(measured["eight_mbps"], 105)
        self.assertGreater(measured["ratio"], 0.8)


class ForeignProgramsTest(HostsTest):
    """Debian's own verbs programs, bound to our libraries at start."""

    def test_ibv_devinfo_describes_the_nic(self):
        output, = finish(self, self.hosts.start("a", ["ibv_devinfo", "-v"]))
        self.assertIn("PORT_ACTIVE", output)
        self.assertIn("::ffff:" + ADDRESS["a"], output)

    def pair(self, *command):
        server = self.hosts.start("b", list(command))
        time.sleep(0.7)
        client = self.hosts.start("a", [*command, ADDRESS["b"]])
        finish(self, client, server)

    def test_ibv_rc_pingpong(self):
        self.pair("ibv_rc_pingpong", "-d", "mlx5_0", "-g", "1", "-c")

    def test_ibv_rc_pingpong_with_events(self):
        self.pair("ibv_rc_pingpong", "-d", "mlx5_0", "-g", "1", "-c", "-e", "-n", "200")

    def test_perftest(self):
        for program in ("ib_write_bw", "ib_read_bw", "ib_send_bw", "ib_atomic_bw"):
            with self.subTest(program):
                self.pair(program, "-d", "mlx5_0", "-x", "1", "-F", "-n", "200")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    need_programs("ip", "tc", "ethtool", "nsenter", "unshare", "tshark", "ibv_devinfo", "ib_write_bw")
    enter_namespaces("--user-namespace" in sys.argv)
    RIG = os.path.abspath(sys.argv[1])
    unittest.main(argv=[sys.argv[0], *[word for word in sys.argv[2:] if word != "--user-namespace"]], verbosity=2)
