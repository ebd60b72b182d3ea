#!/usr/bin/env python3
"""Turns a list of exported names (verbs/symbols.txt, mlx5/symbols.txt) into a linker version script and the answers of the
names that are not implemented.

usage: generate_exports.py SYMBOLS VERSION_SCRIPT STUBS_SOURCE
"""
import sys

KINDS = ("ours", "status", "pointer")


def read(path):
    """The nodes in file order, each with its (kind, name) pairs."""
    nodes = {}
    current = None
    for number, line in enumerate(open(path, encoding="utf-8"), 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        if len(words) != 2 or words[0] not in KINDS + ("node",):
            sys.exit(f"{path}:{number}: expected 'node NAME' or one of {', '.join(KINDS)} and a name")
        if words[0] == "node":
            current = nodes.setdefault(words[1], [])
        elif current is None:
            sys.exit(f"{path}:{number}: a name before the first node")
        else:
            current.append((words[0], words[1]))
    return nodes


def version_script(nodes):
    text = ""
    previous = ""
    for index, (node, names) in enumerate(nodes.items()):
        exported = "".join(f"    {name};\n" for _, name in names)
        text += node + " {\n" + (f"  global:\n{exported}" if exported else "")
        text += ("  local:\n    *;\n" if index == 0 else "") + "}" + previous + ";\n"
        previous = " " + node
    return text


def stubs(nodes):
    text = "#include <cerrno>\n"
    for names in nodes.values():
        for kind, name in names:
            if kind == "status":
                text += f'extern "C" int {name}() {{ return errno = EOPNOTSUPP; }}\n'
            elif kind == "pointer":
                text += f'extern "C" void* {name}() {{ errno = EOPNOTSUPP; return nullptr; }}\n'
    return text


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    nodes = read(sys.argv[1])
    with open(sys.argv[2], "w", encoding="utf-8") as script:
        script.write(version_script(nodes))
    with open(sys.argv[3], "w", encoding="utf-8") as source:
        source.write(stubs(nodes))


main()
