"""Checks a page about a kernel: the HTML, its data, and, where a browser is
found, what its script draws.

    check_page.py PAGE.html [NAME=VALUE...]

NAME=VALUE says what the data has to hold: chip, main (the stage that is shown
first), buffers (names), op=NAME (an operation of that stage that has lines in
all later ones and that the emulator executed), emulated=0 (the kernel was not
run), roofline (measured, modelled or none).
"""

import html.parser
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile


class Page(html.parser.HTMLParser):
    """Elements with their attributes, and whether all of them are closed."""
    void = {"meta", "br", "link", "img", "input", "hr"}

    def __init__(self):
        super().__init__()
        self.elements, self.open, self.text = [], [], {}

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in self.void:
            self.open.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open and self.open[-1][0] == tag, (tag, self.open[-3:])
        self.open.pop()

    def handle_data(self, data):
        if self.open:
            key = self.open[-1][1].get("id") or self.open[-1][0]
            self.text[key] = self.text.get(key, "") + data

    def all(self, tag):
        return [attrs for name, attrs in self.elements if name == tag]


def check_structure(page):
    """Sound for keyboards and screen readers, and without a network."""
    assert not page.open, page.open
    assert page.all("html")[0]["lang"] == "en"
    assert len(page.all("h1")) == 1 and page.all("title")
    for landmark in ("header", "nav", "main", "footer"):
        assert len(page.all(landmark)) == 1, landmark
    assert page.all("nav")[0]["aria-label"]
    ids = [a["id"] for _, a in page.elements if "id" in a]
    assert len(ids) == len(set(ids)), ids
    for section in page.all("section"):
        assert section["aria-labelledby"] in ids, section
    for a in page.all("a"):
        assert a["href"].startswith("#") and a["href"][1:] in ids, a
    for tag, attrs in page.elements:
        assert not attrs.get("src") and tag != "link", (tag, attrs)
    # Headings descend one level at a time.
    levels = [int(t[1]) for t, _ in page.elements if re.fullmatch("h[1-6]", t)]
    for above, below in zip(levels, levels[1:]):
        assert below <= above + 1, levels
    style = page.text["style"]
    assert "prefers-color-scheme: dark" in style
    assert "url(" not in re.sub(r"url\(#\w+\)", "", style) and "@import" not in style
    assert page.all("noscript")


def links(program):
    """Lines of the first shown stage -> stage -> its lines."""
    stages = {s["name"]: s for s in program["stages"]}
    names = [s["name"] for s in program["stages"]]
    main = next(n for n in ("tile", "scheduled", names[0]) if n in stages)
    of_target = {op["line"]: op["from"].get(main, []) if main != "target" else [op["line"]]
                 for op in stages["target"]["ops"]}
    found = {}
    for name in names[names.index(main) + 1:]:
        for op in stages[name]["ops"]:
            lines = stages[name]["text"].splitlines()
            assert op["line"] <= len(lines), (name, op)
            # A line is where the operation is printed.
            assert op["op"].split(".")[-1] in lines[op["line"] - 1] or "=" in lines[op["line"] - 1] \
                or op["op"] in ("builtin.module",), (name, op, lines[op["line"] - 1])
            source = op["from"].get(main, [])
            if name == "asm":
                source = [m for t in op["from"]["target"] for m in of_target.get(t, [])]
            for line in source:
                found.setdefault(line, {}).setdefault(name, set()).add(op["line"])
    return main, found, of_target


def check_data(data, expected):
    program = data["program"]
    if "chip" in expected:
        assert program["chip"] == expected["chip"], program["chip"]
    main, found, of_target = links(program)
    if "main" in expected:
        assert main == expected["main"], main
    text = next(s for s in program["stages"] if s["name"] == main)["text"].splitlines()
    kernels = data.get("emulator", {}).get("kernels", [])
    executed = {}
    for kernel in kernels:
        for op in kernel["operations"]:
            line = int(re.match(r"kvbuf-target:(\d+):", op["location"])[1])
            for at in of_target.get(line, []):
                executed[at] = executed.get(at, 0) + op["warp"]
    later = [s["name"] for s in program["stages"]]
    later = later[later.index(main) + 1:]
    for wanted in expected.get("op", "").split(","):
        lines = [i + 1 for i, l in enumerate(text) if wanted and wanted in l]
        assert not wanted or lines, f"no {wanted} in the {main} stage"
        for line in lines:
            for stage in later:
                assert found.get(line, {}).get(stage), \
                    f"line {line}, {text[line - 1].strip()}: nothing in {stage}"
            if expected.get("emulated") != "0":
                assert executed.get(line), f"line {line} was never executed"
    buffers = [b for k in program["kernels"] for b in k["lds"]]
    if "buffers" in expected:
        assert ",".join(b["name"] for b in buffers) == expected["buffers"], \
            [b["name"] for b in buffers]
    for b in buffers:
        places = sorted(v for row in b["vectors"] for v in row)
        # Every vector of a slot once.
        assert places == list(range(len(places))), b["name"]
        assert (len(places) * b["vector_bytes"]
                == b["rows"] * b["cols"] * b["element_bytes"])
    for k in program["kernels"]:
        assert k["registers"], k["name"]
        assert all(n >= 0 for _, n in k["registers"])
    if expected.get("emulated") == "0":
        assert not kernels
        return
    for kernel in kernels:
        trace = kernel["trace"]
        assert trace["events"] and not kernel["errors"]
        for e in trace["events"]:
            assert 0 <= e["begin"] <= e["end"] <= trace["length"]
            assert e["warp"] < trace["warps"]
        kinds = {e["kind"] for e in trace["events"]}
        assert "product" in kinds or "mma" not in expected.get("op", ""), kinds
        # Each buffer is written and read by somebody.
        for b in next(k["lds"] for k in program["kernels"] if k["name"] == kernel["entry"]):
            unit = trace["unit_bytes"]
            assert b["vector_bytes"] % unit == 0
            first, last = (n // unit for n in (
                b["offset"], b["offset"] + b["slots"] * b["slot_bytes"]))
            for store in (True, False):
                assert any(s["store"] == store and any(first <= u < last for u in s["units"])
                           for s in trace["shared"]), (b["name"], store)


def browser():
    for name in (os.environ.get("KVBUF_BROWSER", ""), "chromium", "chromium-browser",
                 "google-chrome"):
        if name and shutil.which(name):
            return shutil.which(name)
    return None


def check_drawing(path, expected):
    """What the script makes of the data, with an operation chosen."""
    chromium = browser()
    if not chromium:
        print("no browser was found: the drawing is not checked")
        return
    text = open(path).read()
    click = ("<script>addEventListener('error', e => document.title = 'ERROR ' + e.message);"
             "</script>")
    choose = "<script>document.querySelector('#mainstage button').click();</script>"
    text = text.replace("<body>", "<body>" + click).replace("</body>", choose + "</body>")
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "page.html")
        open(file, "w").write(text)
        dom = subprocess.run([chromium, "--headless", "--no-sandbox", "--disable-gpu",
                              f"--user-data-dir={folder}/user", "--virtual-time-budget=5000",
                              "--dump-dom", "file://" + file], check=True, timeout=120,
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.decode()
    page = Page()
    page.feed(dom)
    assert not page.text["title"].startswith("ERROR"), page.text["title"]
    pressed = [b for b in page.all("button") if b.get("aria-pressed") == "true"]
    assert len(pressed) == 1, pressed
    for svg in page.all("svg"):
        assert svg["role"] == "img"
        ids = {a.get("id") for _, a in page.elements}
        assert set(svg["aria-labelledby"].split()) <= ids, svg
    for th in page.all("th"):
        assert th["scope"] in ("row", "col"), th
    assert len(page.all("caption")) == len(page.all("table"))
    pictures = len([b for b in expected.get("buffers", "").split(",") if b]) + 1
    assert len(page.all("svg")) >= pictures, len(page.all("svg"))
    print("drawn")


def main():
    expected = dict(pair.split("=", 1) for pair in sys.argv[2:])
    page = Page()
    page.feed(open(sys.argv[1], encoding="utf-8").read())
    page.close()
    check_structure(page)
    data = json.loads(page.text["data"])
    check_data(data, expected)
    if shutil.which("node"):
        subprocess.run(["node", "--check", "-"], check=True, input=page.text["script"].encode())
    check_drawing(sys.argv[1], expected)
    print("page is sound")


main()
