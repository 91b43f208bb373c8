# RUN: %python %s %S %bin/kvbuf-emu-test %t.mlir
"""Passes through the banks of LDS, against counts by hand.

A wave's access goes in groups of lanes that together move at most one width of
LDS: 64 banks on gfx950, 32 on gfx942. With 16 bytes a lane the groups are lanes
that follow each other, or lanes 0-3, 12-15, 20-27 of each half and then its
other lanes (a group of 16 on gfx950, halves of it on gfx942); what counts is the
worse of the two.
"""
import json
import sys

sys.path.insert(0, sys.argv[1] + "/Inputs")
from amd_wave import Wave, load_words

wave = Wave(sys.argv[2], sys.argv[3], ['--options={"uninitialized":false}'])
LDS = 32768


def passes(chip, access, address):
    """(passes, without conflicts) of an access by lane l at address(l)."""
    table = "buf:i32:64:list=" + "/".join(str(address(lane)) for lane in range(64))
    body = load_words(0, 1) + """
    %at = llvm.getelementptr %sh[%w0_0] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
    """ + access
    done = wave.start(body, [table], chip, ["--report"], LDS)
    assert done.returncode == 0, done.stderr
    kernel = json.loads(done.stdout[done.stdout.index("{"):])["kernels"][0]
    line, = (line for line in kernel["memory"] if "passes" in line)
    assert line["bank_conflicts"] == line["passes"] - line["ideal_passes"] == kernel["bank_conflicts"]
    return line["passes"], line["ideal_passes"]


def read(bytes):
    return f"%x = llvm.load %at {{alignment = {bytes} : i64}} : !llvm.ptr<3> -> vector<{bytes // 4}xi32>"


def check(access, address, gfx942, gfx950):
    for chip, want in (("gfx942", gfx942), ("gfx950", gfx950)):
        if want:
            got = passes(chip, access, address)
            assert got == want, (chip, access, got, want)


# One lane behind the other: as many passes as widths of LDS.
check(read(4), lambda l: 4 * l, (2, 2), (1, 1))
check(read(8), lambda l: 8 * l, (4, 4), (2, 2))
check(read(16), lambda l: 16 * l, (8, 8), (4, 4))
# All lanes one word: a broadcast. Every other word: two lanes a bank.
check(read(4), lambda l: 64, (2, 2), (1, 1))
check(read(4), lambda l: 8 * l, (4, 2), (2, 1))
# A column of a row-major tile of 256 bytes a row: every lane the same banks.
check(read(16), lambda l: 256 * (l % 32) + 16 * (l // 32), (64, 8), (64, 4))

# K by rows of 64 bytes, lane l row l % 32 and 16 bytes l // 32. Rows 2 apart
# (32 banks) or 4 apart (64 banks) share banks: 4 lanes of each group of 8 or
# 16. Swizzled by the row, none do.
check(read(16), lambda l: 64 * (l % 32) + 16 * (l // 32), (32, 8), (16, 4))
check(read(16), lambda l: 64 * (l % 32) + 16 * (l // 32 ^ l % 32 // 2 % 4), (8, 8), None)
check(read(16), lambda l: 64 * (l % 32) + 16 * (l // 32 ^ l % 32 // 4 % 4), None, (4, 4))
# Free for lanes that follow each other, but lanes 12 to 15 meet 24 to 27, and
# lanes 4 to 7 meet 16 to 19.
check(read(16), lambda l: 256 * (l // 16) + 16 * ((l + 4 * (l // 16)) % 16), None, (8, 4))

# V by transposed reads: each 16 lanes 4 keys of 32 bytes. In tiles of 8 keys of
# 64 bytes the halves of a wave lie next to each other; in rows of 256 bytes the
# keys of a patch share banks.
tr16 = "%x = rocdl.ds.read.tr16.b64 %at : !llvm.ptr<3> -> vector<4xbf16>"
check(tr16, lambda l: 256 * (l // 32) + 64 * (l % 16 // 4) + 32 * (l // 16 % 2) + 8 * (l % 4), None, (2, 2))
check(tr16, lambda l: 256 * (4 * (l // 32) + l % 16 // 4) + 32 * (l // 16 % 2) + 8 * (l % 4), None, (8, 2))

# A copy writes one lane behind the other.
check("rocdl.global.load.lds %p0, %sh, 4, 0, 0\n    rocdl.s.waitcnt 3952", lambda l: 0, (2, 2), (1, 1))
check("rocdl.global.load.lds %p0, %sh, 16, 0, 0\n    rocdl.s.waitcnt 3952", lambda l: 0, None, (4, 4))
