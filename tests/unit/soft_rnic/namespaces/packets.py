"""Captures packets of a network device into a pcap file, and takes RoCEv2 packets apart and checks their ICRC, independently
of the NIC's own code.

usage: packets.py DEVICE FILE   captures UDP port 4791 until SIGTERM, prints "ready" when it has begun
"""
import select
import signal
import socket
import struct
import sys
import time
import zlib
from typing import NamedTuple

_ETH_P_ALL = 3
_PACKET_OUTGOING = 4
_ROCE_PORT = 4791


class RocePacket(NamedTuple):
    source: str
    destination: str
    tos: int
    ttl: int
    identification: int
    dont_fragment: bool
    source_port: int
    opcode: int
    destination_queue_pair: int
    psn: int
    icrc_right: bool
    udp_payload_size: int


def capture(device, path):
    stopped = []
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
    tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_ALL))
    tap.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 20)
    tap.bind((device, 0))
    tap.setblocking(False)
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65536, 1))
        print("ready", flush=True)
        while True:
            readable, _, _ = select.select([tap], [], [], 0.05)
            if not readable:
                if stopped:
                    return
                continue
            frame = tap.recv(65536)
            if frame[12:14] == b"\x08\x00" and frame[23] == socket.IPPROTO_UDP and frame[36:38] == struct.pack(">H", _ROCE_PORT):
                now = time.time()
                file.write(struct.pack("<IIII", int(now), int(now % 1 * 1e6), len(frame), len(frame)) + frame)


def icrc_right(ip_packet):
    """RoCEv2 annex A17: CRC-32 over eight FF, IP header without TOS, TTL and checksum, UDP header without checksum, BTH
    without its fifth byte, the rest."""
    masked = bytearray(ip_packet[:-4])
    masked[1] = masked[8] = masked[10] = masked[11] = 0xFF
    masked[26] = masked[27] = 0xFF
    masked[28 + 4] = 0xFF
    return zlib.crc32(b"\xff" * 8 + bytes(masked)) == struct.unpack("<I", ip_packet[-4:])[0]


def read(path):
    """The RoCEv2 packets of a capture."""
    with open(path, "rb") as file:
        content = file.read()
    position = 24
    packets = []
    while position < len(content):
        size = struct.unpack_from("<I", content, position + 8)[0]
        frame = content[position + 16:position + 16 + size]
        position += 16 + size
        ip = frame[14:]
        ip = ip[:struct.unpack_from(">H", ip, 2)[0]]
        bth = ip[28:40]
        packets.append(RocePacket(
            source=socket.inet_ntoa(ip[12:16]), destination=socket.inet_ntoa(ip[16:20]), tos=ip[1], ttl=ip[8],
            identification=struct.unpack_from(">H", ip, 4)[0], dont_fragment=ip[6:8] == b"\x40\x00",
            source_port=struct.unpack_from(">H", ip, 20)[0], opcode=bth[0],
            destination_queue_pair=int.from_bytes(bth[5:8], "big"), psn=int.from_bytes(bth[9:12], "big"),
            icrc_right=icrc_right(ip), udp_payload_size=len(ip) - 28))
    return packets


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    capture(sys.argv[1], sys.argv[2])
