# Links of the documents lead to files and headings that exist, and so do the
# documents that sources name. Every page of docs is on the map.
# RUN: %python %s %src
#
# RUN: rm -rf %t && mkdir -p %t/docs && touch %t/docs/there.md
# RUN: echo '[a](docs/there.md#no-heading)' > %t/README.md
# RUN: not %python %s %t | FileCheck %s --check-prefix=ANCHOR
# ANCHOR: README.md:1: docs/there.md#no-heading: no such heading
# RUN: echo '[a](docs/nowhere.md)' > %t/README.md
# RUN: not %python %s %t | FileCheck %s --check-prefix=FILE
# FILE: README.md:1: docs/nowhere.md: no such file
# FILE: docs/there.md: not on the map (docs/README.md)
"""Checks links and anchors of Markdown.

    links.py SOURCE
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1]).resolve()
FENCE = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)", re.DOTALL)
NAMED = re.compile(r"\bdocs/[\w/-]+\.md\b")


def without_code(text):
    """The text with fenced blocks and code blanked, its lines where they were."""
    blank = lambda match: re.sub(r"[^\n]", " ", match.group())
    return re.sub(r"`[^`\n]*`", blank, FENCE.sub(blank, text))


def anchors(path):
    """The anchors of a page, as GitHub makes them of headings."""
    found = set()
    for line in FENCE.sub("", path.read_text(encoding="utf-8")).split("\n"):
        heading = re.match(r"#+ +(.*)", line)
        if heading:
            words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading.group(1).strip().lower())
            name = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
            base, number = name, 0
            while name in found:
                number += 1
                name = f"{base}-{number}"
            found.add(name)
    return found


def main():
    wrong = []
    pages = [*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md"))]
    for page in pages:
        text = page.read_text(encoding="utf-8")
        for match in LINK.finditer(without_code(text)):
            target = match.group(1)
            if re.match(r"[a-z]+:", target):
                continue
            place = f"{page.relative_to(ROOT)}:{text.count(chr(10), 0, match.start()) + 1}: {target}"
            name, _, anchor = target.partition("#")
            path = (page.parent / name).resolve() if name else page
            if not path.exists():
                wrong.append(f"{place}: no such file")
            elif anchor and anchor not in anchors(path):
                wrong.append(f"{place}: no such heading")
    for folder in ("include", "lib", "tools", "test", "benchmark", "python", "examples", "docs"):
        for path in sorted((ROOT / folder).rglob("*")):
            # The tests of the documents make up names of pages.
            if path.suffix not in (".h", ".cpp", ".td", ".py", ".def", ".cu", ".md", ".mlir", ".test",
                                   ".cmake") or (folder == "test" and path.parent.name == "Docs"):
                continue
            for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
                for name in NAMED.findall(line):
                    if not (ROOT / name).exists() and not (path.parent / name).exists():
                        wrong.append(f"{path.relative_to(ROOT)}:{number}: {name}: no such file")
    map_ = ROOT / "docs/README.md"
    linked = {(map_.parent / target.partition("#")[0]).resolve()
              for target in LINK.findall(map_.read_text(encoding="utf-8"))} if map_.exists() else set()
    for page in pages:
        if page.parent != ROOT and page != map_ and page not in linked:
            wrong.append(f"{page.relative_to(ROOT)}: not on the map (docs/README.md)")
    for line in wrong:
        print(line)
    return 1 if wrong else 0


sys.exit(main())
