"""Tests of tests/rig/stock_nccl that need no network: reading apt's sources, slimming an archive, messages and exit codes."""

import io
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
STOCK_NCCL = pathlib.Path(__file__).resolve().parents[2] / "rig" / "stock_nccl"
sys.path.insert(0, str(STOCK_NCCL))

import apt_sources  # noqa: E402
import slim_archive  # noqa: E402


class AptSources(unittest.TestCase):
    def mirrors(self, **files):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "sources.list.d").mkdir()
            for name, text in files.items():
                path = root / "sources.list" if name == "main" else root / "sources.list.d" / name.replace("_", ".")
                path.write_text(text)
            return apt_sources.debian_mirrors(root)

    def test_one_line_form(self):
        text = "# deb http://commented/debian bookworm main\n"
        text += "deb [arch=amd64 signed-by=/a/b.gpg] http://one.example/debian bookworm main contrib # note\n"
        text += "deb-src http://source.example/debian bookworm main\n"
        self.assertEqual(self.mirrors(main=text), ["http://one.example/debian"])

    def test_deb822_form_with_several_uris_and_continued_fields(self):
        text = "Types: deb deb-src\n# a comment\nURIs: http://a.example/debian\n http://b.example/debian\n"
        text += "Suites: trixie trixie-updates\nComponents: main\n\nTypes: deb\nURIs: http://off.example/debian\n"
        text += "Suites: trixie\nComponents: main\nEnabled: no\n"
        self.assertEqual(self.mirrors(x_sources=text), ["http://a.example/debian", "http://b.example/debian"])

    def test_mirror_list_of_cloud_images_is_passed_on(self):
        text = "Types: deb\nURIs: mirror+file:///etc/apt/mirrors/debian.list\nSuites: bookworm\nComponents: main\n"
        self.assertEqual(self.mirrors(x_sources=text), ["mirror+file:///etc/apt/mirrors/debian.list"])

    def test_other_archives_are_left_out(self):
        text = "deb http://ubuntu.example/ubuntu jammy main\ndeb http://vendor.example/apt nodistro main\n"
        text += "deb http://debian.example/debian-security bookworm-security main\ncdrom\n"
        text += "deb cdrom:[Debian]/ bookworm main\ndeb http://vendor.example/deb bookworm vendor\n"
        self.assertEqual(self.mirrors(main=text), [])

    def test_debian_itself_comes_before_a_vendor_with_debian_suites(self):
        text = "deb http://vendor.example/tools bookworm main\ndeb http://mirror.example/debian/ bookworm main\n"
        self.assertEqual(self.mirrors(main=text)[0], "http://mirror.example/debian/")


class SlimArchive(unittest.TestCase):
    def test_device_code_goes_and_everything_else_stays(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            assembly = '.section .nv_fatbin,"a"\n.fill 5000\n.data\n.globl kept_{0}\nkept_{0}: .quad 42\n'
            for number in ("one", "two"):
                (folder / number).mkdir()
                source = folder / f"{number}.s"
                source.write_text(assembly.format(number))
                # The same member name twice, as in NCCL's archive.
                subprocess.run(["as", "-o", folder / number / "same.o", source], check=True)
            fat = folder / "fat.a"
            subprocess.run(["ar", "qcs", fat, folder / "one" / "same.o", folder / "two" / "same.o"], check=True)
            slim_archive.slim(fat, folder / "slim.a", folder / "work")
            symbols = subprocess.run(["nm", folder / "slim.a"], check=True, stdout=subprocess.PIPE, text=True).stdout
            self.assertIn("kept_one", symbols)
            self.assertIn("kept_two", symbols)
            self.assertLess((folder / "slim.a").stat().st_size, 5000)
            with open(folder / "slim.a", "rb") as archive:
                contents = list(slim_archive.objects(archive))
            self.assertEqual(len(contents), 2)
            for content in contents:
                self.assertIn(slim_archive.PLACEHOLDER, content)

    def test_damaged_archives_are_refused(self):
        for content in (b"", b"no archive", b"!<arch>\n" + b"x" * 60, b"!<arch>\ncut"):
            with self.assertRaises(ValueError):
                list(slim_archive.members(io.BytesIO(content)))


class Command(unittest.TestCase):
    def fetch(self, *arguments, **environment):
        with tempfile.TemporaryDirectory() as cache:
            plain = {key: value for key, value in os.environ.items() if not key.startswith("WEFT_")}
            return subprocess.run(
                [STOCK_NCCL / "fetch", *arguments],
                env={**plain, "XDG_CACHE_HOME": cache, **environment},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )

    def test_an_argument_is_wrong_usage(self):
        done = self.fetch("--force")
        self.assertEqual(done.returncode, 2)
        self.assertIn('"--force"', done.stderr)

    def test_a_folder_without_the_packages_is_named_with_what_is_missing(self):
        with tempfile.TemporaryDirectory() as folder:
            done = self.fetch(WEFT_NCCL_DEBS=folder)
            self.assertEqual(done.returncode, 2)
            self.assertIn(folder, done.stderr)
            self.assertIn("libnccl-dev_2.22.3-1-1_amd64.deb", done.stderr)
            self.assertIn("libnccl-dev_2.29.7-1-1_amd64.deb", done.stderr)

    def test_a_wrong_file_is_refused_by_its_digest(self):
        with tempfile.TemporaryDirectory() as folder:
            for version in ("2.22.3-1-1", "2.29.7-1-1"):
                (pathlib.Path(folder) / f"libnccl-dev_{version}_amd64.deb").write_bytes(b"not a package")
            done = self.fetch(WEFT_NCCL_DEBS=folder)
            self.assertEqual(done.returncode, 2)
            self.assertIn("SHA-256", done.stderr)

    def test_an_unreachable_mirror_ends_with_three_and_the_remedies(self):
        done = self.fetch(WEFT_DEBIAN_MIRROR="http://127.0.0.1:9/debian")
        self.assertEqual(done.returncode, 3)
        self.assertIn("http://127.0.0.1:9/debian", done.stderr)
        self.assertIn("WEFT_NCCL_DEBS", done.stderr)


if __name__ == "__main__":
    unittest.main()
