"""Which Debian mirrors this machine's own apt uses: one-line and deb822 source files, as sources.list(5) describes them."""

import pathlib
from typing import Iterator, List, NamedTuple

# Suites by which a source shows that it is Debian itself. Updates and security suites live beside these, on the same or on
# special mirrors; they are not wanted here.
DEBIAN_SUITES = frozenset(
    "oldoldstable oldstable stable testing unstable sid buster bullseye bookworm trixie forky duke".split()
)


class Source(NamedTuple):
    uri: str
    suites: List[str]
    components: List[str]


def parse_one_line(text: str) -> Iterator[Source]:
    """The form `deb [option=value …] URI suite component…`."""
    for line in text.splitlines():
        words = line.split("#", 1)[0].split()
        if not words or words[0] != "deb":
            continue
        words = words[1:]
        if words and words[0].startswith("["):
            while words and not words[0].endswith("]"):
                words = words[1:]
            words = words[1:]
        if len(words) >= 2:
            yield Source(words[0], [words[1]], words[2:])


def parse_deb822(text: str) -> Iterator[Source]:
    """Stanzas of `Field: value` lines, separated by empty lines; a line that begins with a blank goes on with the last."""
    for stanza in _stanzas(text):
        if "deb" not in stanza.get("types", "").split():
            continue
        if stanza.get("enabled", "yes").lower() in ("no", "false", "0"):
            continue
        for uri in stanza.get("uris", "").split():
            yield Source(uri, stanza.get("suites", "").split(), stanza.get("components", "").split())


def _stanzas(text: str):
    fields, last = {}, None
    for line in text.splitlines() + [""]:
        if line.startswith("#"):
            continue
        if not line.strip():
            if fields:
                yield fields
            fields, last = {}, None
        elif line[0].isspace() and last:
            fields[last] += " " + line.strip()
        elif ":" in line:
            name, value = line.split(":", 1)
            last = name.strip().lower()
            fields[last] = value.strip()


def debian_mirrors(folder: pathlib.Path) -> List[str]:
    """The URIs of Debian itself in an /etc/apt folder, the likeliest first, each once.

    Other vendors' archives use Debian's suite names too, so there may be several; the caller tries them in turn.
    """
    sources = []
    for path in [folder / "sources.list", *sorted((folder / "sources.list.d").glob("*"))]:
        if not path.is_file():
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        if path.suffix == ".list":
            sources.extend(parse_one_line(text))
        elif path.suffix == ".sources":
            sources.extend(parse_deb822(text))
    uris = [
        source.uri
        for source in sources
        if DEBIAN_SUITES.intersection(source.suites)
        and "main" in source.components
        and not source.uri.startswith("cdrom:")
    ]
    uris.sort(key=lambda uri: not uri.rstrip("/").endswith("/debian"))
    return list(dict.fromkeys(uris))
