# REQUIRES: ld.lld
# RUN: %python %s gfx942
# RUN: %python %s gfx950
"""A wait of a release or an acquire that the machine code lacks is an error of the
compiler, which names the function and both instructions. Each is planted here by
inline assembly, which no pass looks into: in a loop (HEAD, TAIL), behind it (END), and
in a function that is called last (CALLED).

    missing-waits.py CHIP
"""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "Inputs"))
import planted

CHIP = sys.argv[1]

BODY = f"""
      %zero = llvm.mlir.constant(0 : i32) : i32
      %one = llvm.mlir.constant(1 : i32) : i32
      llvm.br ^loop(%zero : i32)
    ^loop(%i: i32):
      {planted.plant("HEAD", "%i")}
      {planted.plant("TAIL", "%i")}
      %next = llvm.add %i, %one : i32
      %again = llvm.icmp "slt" %next, %n : i32
      llvm.cond_br %again, ^loop(%next : i32), ^end
    ^end:
      {planted.plant("END")}
"""

WRITE_BACK, INVALIDATE = "buffer_wbl2 sc1", "buffer_inv sc1"
WAIT, LESS = "s_waitcnt vmcnt(0)", "s_waitcnt vmcnt(1)"
ADD, STORE = "global_atomic_add $0, $1, off", "global_store_dword $0, $1, off"
LOAD = "global_load_dword v40, $0, off"
EARLY = "others may see it before what it releases"
STALE = "what it acquires may be invalidated too early"


def compiled(**plants):
    """What the compiler says, and the addresses in it."""
    done = planted.compiled(CHIP, BODY, {place: plants.get(place, [])
                                         for place in ("HEAD", "TAIL", "END", "CALLED")})
    said = done.stderr
    assert (done.returncode == 0) == ("error:" not in said), said
    places = [int(at, 16) for at in re.findall(r"0x([0-9a-f]+)", said)]
    return re.sub(r"0x[0-9a-f]+", "HERE", said), places


def sound(**plants):
    said, _ = compiled(**plants)
    assert not said, said


def faulty(function, what, why, apart=None, **plants):
    """`apart`: bytes from one instruction to the other, where that is known."""
    said, places = compiled(**plants)
    expected = (f"<stdin>:{planted.line_of(function)}:5: error: the code of "
                f"'{function}' lacks a 's_waitcnt vmcnt(0)': the {what} at HERE: {why}\n")
    assert said.startswith(expected), (said, expected)
    assert said.count("error:") == 1, said
    if apart:
        assert places[0] - places[1] == apart, said


def released(what):
    return f"{what} at HERE does not wait for the buffer_wbl2"


# A release: what others may see comes after the write-back. (Its instruction has 8
# bytes, a wait 4.)
faulty("planted", released("store or atomic operation"), EARLY, 8, TAIL=[WRITE_BACK, ADD])
faulty("planted", released("store or atomic operation"), EARLY, 8, END=[WRITE_BACK, STORE])
sound(TAIL=[WRITE_BACK, WAIT, ADD], END=[WRITE_BACK, WAIT, STORE])
# A wait for less than all is none, and neither is one for LDS.
faulty("planted", released("store or atomic operation"), EARLY, 12,
       TAIL=[WRITE_BACK, LESS, ADD])
faulty("planted", released("store or atomic operation"), EARLY, 12,
       TAIL=[WRITE_BACK, "s_waitcnt lgkmcnt(0)", ADD])
# Around a loop, and out of it.
faulty("planted", released("store or atomic operation"), EARLY, HEAD=[ADD], TAIL=[WRITE_BACK])
faulty("planted", released("store or atomic operation"), EARLY, TAIL=[WRITE_BACK], END=[ADD])
sound(HEAD=[WAIT, ADD], TAIL=[WRITE_BACK], END=[WAIT])
# Another wave, a called function or the caller may make what others see.
faulty("planted", released("barrier"), EARLY, 8, END=[WRITE_BACK, "s_barrier"])
faulty("planted", released("call"), EARLY, END=[WRITE_BACK])
faulty("called", released("return"), EARLY, CALLED=[WRITE_BACK])
sound(END=[WRITE_BACK, WAIT, "s_barrier"], CALLED=[WRITE_BACK, WAIT])
# Reads and LDS tell nobody.
sound(END=[WRITE_BACK, LOAD, "ds_write_b32 $1, $1", WAIT])

# An acquire: the number is there before caches are invalidated.
acquired = "buffer_inv at HERE does not wait for the access of memory"
faulty("planted", acquired, STALE, 8, TAIL=[LOAD, INVALIDATE, WAIT])
faulty("planted", acquired, STALE, 12, END=[ADD, LESS, INVALIDATE, WAIT])
faulty("planted", acquired, STALE, HEAD=[INVALIDATE], TAIL=[LOAD], END=[WAIT])
sound(TAIL=[LOAD, WAIT, INVALIDATE, LOAD, WAIT], END=[INVALIDATE, INVALIDATE])
# One of both orders.
faulty("planted", released("buffer_inv"), EARLY, 8, END=[WRITE_BACK, INVALIDATE, WAIT])
sound(END=[WRITE_BACK, WAIT, INVALIDATE])

# Bytes that are no instructions are no fault.
said, _ = compiled(END=[".long 0xffffffff"])
assert "warning: the waits of this kernel's code cannot be checked: " in said, said
