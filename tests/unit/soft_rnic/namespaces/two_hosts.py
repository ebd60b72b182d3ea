"""Two emulated hosts for the tests: network namespaces "a" and "b" joined by a veth pair, each with a NIC and its broker.

Runs as root or in a user namespace of its own (enter_namespaces). Everything ends with this process.
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

ADDRESS = {"a": "10.50.0.1", "b": "10.50.0.2"}
NETDEV = "rail0"
_INSIDE = "SOFT_RNIC_TEST_INSIDE"


def enter_namespaces(user_namespace):
    """Restarts this program in fresh network and mount namespaces, in a user namespace as well where asked or needed."""
    if os.environ.get(_INSIDE):
        return
    os.environ[_INSIDE] = "1"
    user = ["--user", "--map-root-user"] if user_namespace or os.geteuid() != 0 else []
    command = ["unshare", *user, "--mount", "--net", "--"]
    if subprocess.run([*command, "true"], capture_output=True, check=False).returncode != 0:
        sys.exit("This test needs network namespaces: run it as root, or allow user namespaces to ordinary users "
                 "(sysctl kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0).")
    os.execvp("unshare", [*command, sys.executable, *sys.argv])


def need_programs(*names):
    missing = [name for name in names if shutil.which(name) is None]
    if missing:
        sys.exit(f"This test needs {', '.join(missing)}; Debian: apt-get install iproute2 ethtool util-linux tshark")


class TwoHosts:
    """Host "a" lives in the namespace of this process, host "b" in one held open by a child."""

    def __init__(self, rig, mtu=4096, **nic):
        self.rig = rig
        self.folder = tempfile.mkdtemp(prefix="soft_rnic_test.")
        self.children = []
        holder = self._start(["unshare", "--net", "--", "sh", "-c", "echo there; exec sleep 3600"])
        holder.stdout.readline()
        self.holder = holder
        self._network(mtu)
        for host in "ab":
            self._host_file(host, mtu, nic)
        self.brokers = {host: self._broker(host) for host in "ab"}

    def _network(self, mtu):
        size = ["mtu", str(mtu + 104)]
        subprocess.run(["ip", "link", "add", NETDEV, *size, "type", "veth",
                        "peer", "name", NETDEV, *size, "netns", str(self.holder.pid)], check=True)
        for host in "ab":
            for command in (["ip", "link", "set", "lo", "up"],
                            ["ip", "address", "add", ADDRESS[host] + "/24", "dev", NETDEV],
                            ["ip", "link", "set", NETDEV, "up"],
                            # Every packet real from the first link on: no train of packets passes the wire as one.
                            ["ethtool", "-K", NETDEV, "tx-udp-segmentation", "off"]):
                subprocess.run(self.inside(host, command), check=True, capture_output=True)

    def _host_file(self, host, mtu, nic):
        os.makedirs(self.path(host + ".statistics"))
        description = {
            "host": host,
            "nics": [{"name": "mlx5_0", "netdev": NETDEV, "address": ADDRESS[host], "guid": f"0x0200{ord(host):012x}",
                      "mtu": mtu, "gids": [{"gid": "fe80::1"}, {"gid": "::ffff:" + ADDRESS[host]}], **nic}],
            "control": self.path(host + ".control.json"),
            "statistics": self.path(host + ".statistics")}
        with open(self.path(host + ".host.json"), "w", encoding="utf-8") as file:
            json.dump(description, file)

    def _broker(self, host):
        command = [os.path.join(self.rig, "bin", "soft_rnic_broker"), self.path(host + ".host.json")]
        broker = self._start(self.inside(host, command))
        if broker.stdout.readline().strip() != "ready":
            raise RuntimeError(f"the broker of host {host} did not start")
        return broker

    def _start(self, command, environment=None):
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                 text=True, env=environment)
        self.children.append(child)
        return child

    def path(self, name):
        return os.path.join(self.folder, name)

    def new_folder(self):
        return tempfile.mkdtemp(dir=self.folder)

    def inside(self, host, command):
        """The command line that runs `command` in the namespace of `host`."""
        return command if host == "a" else ["nsenter", "--net", "--target", str(self.holder.pid), *command]

    def environment(self, host, name):
        return {**os.environ, "RIG_HOST_FILE": self.path(host + ".host.json"), "RIG_PROCESS": name,
                "LD_LIBRARY_PATH": os.path.join(self.rig, "lib")}

    def start(self, host, command, name="test"):
        """Starts a program on a host; programs without a slash come from the rig's folder if it has them."""
        own = os.path.join(self.rig, "bin", command[0])
        if os.path.exists(own):
            return self._start(self.inside(host, [own, *command[1:]]), self.environment(host, name))
        return self._start(self.inside(host, command), {**self.environment(host, name), **self._sanitizer()})

    def _sanitizer(self):
        """What a foreign program needs to load our libraries when they were built with AddressSanitizer."""
        with open(os.path.join(self.rig, "lib", "libibverbs.so.1"), "rb") as library:
            if b"libasan.so" not in library.read():
                return {}
        runtime = subprocess.run(["g++", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True)
        return {"LD_PRELOAD": os.path.realpath(runtime.stdout.strip()), "ASAN_OPTIONS": "detect_leaks=0"}

    def control(self, host, **faults):
        path = self.path(host + ".control.json")
        with open(path + ".new", "w", encoding="utf-8") as file:
            json.dump({"nics": {"mlx5_0": faults}}, file)
        os.rename(path + ".new", path)

    def statistics(self, host):
        """What all processes of the host sent, one entry a source port and peer."""
        ports = []
        folder = self.path(host + ".statistics")
        for name in os.listdir(folder):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                for nic in json.load(file)["nics"]:
                    ports += nic["ports"]
        return ports

    def close(self):
        subprocess.run(["ip", "link", "delete", NETDEV], check=False, capture_output=True)
        for child in reversed(self.children):
            if child.poll() is None:
                child.send_signal(signal.SIGKILL)
            child.wait()
            child.stdout.close()
            child.stdin.close()
        shutil.rmtree(self.folder)
