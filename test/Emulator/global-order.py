# RUN: %python %s %bin/kvbuf-emu-test %t.mlir
"""What one block writes and another reads needs a release and an acquire.

Blocks store a part each, count themselves in, and the last one adds all parts
up (or one of them waits for the others). Right in every order of the blocks;
with anything of that dropped it is a race, and the message names both sides.
"""
import json
import subprocess
import sys

tool, path = sys.argv[1:3]
GRID = 4


class Vendor:
    def __init__(self, name, kernel, lanes, tid, cta, barrier, device, block, membar, asm):
        self.name, self.kernel, self.lanes, self.tid, self.cta = name, kernel, lanes, tid, cta
        self.barrier, self.device, self.block, self.membar, self.asm = barrier, device, block, membar, asm

    def run(self, body, parts="zero", seed=1, **values):
        """Two warps a block; %p0 the parts, %p1 the count, %p2 the sums."""
        threads = 2 * self.lanes
        values = {"RELEASE": "", "ACQUIRE": "", "LOAD": "", "LAST": GRID - 1} | values
        for key, value in values.items():
            body = body.replace(key, str(value))
        text = f"""module {{
  llvm.mlir.global internal @said() {{addr_space = 3 : i32}} : i32
  llvm.mlir.global internal @stage() {{addr_space = 3 : i32, alignment = 128 : i64}} : !llvm.array<{threads} x i32>
  llvm.func @kernel(%p0: !llvm.ptr<1>, %p1: !llvm.ptr<1>, %p2: !llvm.ptr<1>) attributes {{{self.kernel}}} {{
    %t = {self.tid}
    %b = {self.cta}
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    %grid = llvm.mlir.constant({GRID} : i32) : i32
    %threads = llvm.mlir.constant({threads} : i32) : i32
    %goal = llvm.mlir.constant({values["LAST"]} : i32) : i32
    %said = llvm.mlir.addressof @said : !llvm.ptr<3>
    %first = llvm.icmp "eq" %t, %c0 : i32
    %row = llvm.mul %b, %threads : i32
    %at = llvm.add %row, %t : i32
    %mine = llvm.getelementptr %p0[%at] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %value = llvm.add %b, %c1 : i32
{body}
  }}
}}
"""
        text = text.replace("BARRIER", self.barrier).replace("DEVICE", f'syncscope("{self.device}")')
        text = text.replace("BLOCK", f'syncscope("{self.block}")')
        with open(path, "w") as f:
            f.write(text)
        self.lines = text.splitlines()
        command = [tool, path, f"--grid={GRID}", f"--block={threads}", "--options=" + json.dumps({"seed": seed}),
                   f"--arg=buf:i32:{GRID * threads}:{parts}:parts", "--arg=buf:i32:1:zero:count",
                   f"--arg=buf:i32:{threads}:zero:sums", "--print=2"]
        done = subprocess.run(command, capture_output=True, text=True)
        self.sums = [int(x) for x in done.stdout.split()[1:]]
        return done

    def passes(self, body, **values):
        for seed in (1, 2):
            done = self.run(body, parts="uninit", seed=seed, **values)
            assert done.returncode == 0, (self.name, values, done.stderr)
            assert self.sums == [sum(range(1, GRID + 1))] * len(self.sums), (self.name, values, self.sums)

    def fails(self, body, *messages, **values):
        """In every order, with an error at one op and a note at the other."""
        for seed in (1, 2):
            done = self.run(body, seed=seed, **values)
            assert done.returncode == 1, (self.name, values, "passes")
            assert any(m in done.stderr for m in messages), (self.name, values, messages, done.stderr)
            error, note = done.stderr.splitlines()[:2]
            assert "error: 'llvm." in error and "note: 'llvm." in note, done.stderr
            for line in (error, note):
                op = line.split("'")[1]
                assert op in self.lines[int(line.split(":")[1]) - 1], line


VENDORS = [
    Vendor("nvidia", "nvvm.kernel", 32, "nvvm.read.ptx.sreg.tid.x : i32", "nvvm.read.ptx.sreg.ctaid.x : i32",
           "nvvm.barrier0", "device", "block", "nvvm.memory.barrier #nvvm.mem_scope<SCOPE>",
           {"release": 'llvm.inline_asm has_side_effects "fence.acq_rel.gpu;", "~{memory}" : () -> ()',
            "acquire": 'llvm.inline_asm has_side_effects "fence.acq_rel.gpu;", "~{memory}" : () -> ()'}),
    Vendor("amd", "rocdl.kernel", 64, "rocdl.workitem.id.x : i32", "rocdl.workgroup.id.x : i32",
           "rocdl.barrier", "agent", "workgroup", None,
           {"release": 'llvm.inline_asm has_side_effects "buffer_wbl2 sc1", "~{memory}" : () -> ()\n'
                       '    rocdl.s.waitcnt 3952',
            "acquire": 'llvm.inline_asm has_side_effects "buffer_inv sc1", "~{memory}" : () -> ()'}),
]

# The block that arrives last adds up.
LAST = """
    llvm.store %value, %mine : i32, !llvm.ptr<1>
    BARRIER
    llvm.cond_br %first, ^arrive, ^meet
  ^arrive:
    RELEASE
    %n = llvm.atomicrmw add %p1, %c1 ORDER : !llvm.ptr<1>, i32
    ACQUIRE
    llvm.store %n, %said : i32, !llvm.ptr<3>
    llvm.br ^meet
  ^meet:
    BARRIER
    %ticket = llvm.load %said : !llvm.ptr<3> -> i32
    %last = llvm.icmp "eq" %ticket, %goal : i32
    llvm.cond_br %last, ^add(%c0, %c0 : i32, i32), ^end
""" + (ADD := """
  ^add(%k: i32, %sum: i32):
    %start = llvm.mul %k, %threads : i32
    %here = llvm.add %start, %t : i32
    %part = llvm.getelementptr %p0[%here] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %x = llvm.load %part LOAD : !llvm.ptr<1> -> i32
    %next = llvm.add %sum, %x : i32
    %k1 = llvm.add %k, %c1 : i32
    %more = llvm.icmp "slt" %k1, %grid : i32
    llvm.cond_br %more, ^add(%k1, %next : i32, i32), ^say
  ^say:
    %o = llvm.getelementptr %p2[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %next, %o : i32, !llvm.ptr<1>
    llvm.br ^end
  ^end:
    llvm.return""")

# Block 0 waits until all have arrived, and adds up.
SPIN = """
    llvm.store %value, %mine : i32, !llvm.ptr<1>
    BARRIER
    llvm.cond_br %first, ^arrive, ^meet
  ^arrive:
    %n = llvm.atomicrmw add %p1, %c1 DEVICE release : !llvm.ptr<1>, i32
    %zero = llvm.icmp "eq" %b, %c0 : i32
    llvm.cond_br %zero, ^wait, ^meet
  ^wait:
    %seen = llvm.load %p1 ORDER : !llvm.ptr<1> -> i32
    %done = llvm.icmp "eq" %seen, %grid : i32
    llvm.cond_br %done, ^go, ^wait
  ^go:
    ACQUIRE
    llvm.br ^meet
  ^meet:
    BARRIER
    %is0 = llvm.icmp "eq" %b, %c0 : i32
    llvm.cond_br %is0, ^add(%c0, %c0 : i32, i32), ^end
""" + ADD

RELEASE, ACQUIRE = "llvm.fence DEVICE release", "llvm.fence DEVICE acquire"
NONE = "global-memory race: read of 4 bytes at offset"
UNRELEASED = "nothing that this warp has acquired releases the write by warp"
UNACQUIRED = "with no acquire: what this block has read atomically releases the write by warp"

for v in VENDORS:
    # By the atomic operation itself, by fences around it, or by half of each.
    v.passes(LAST, ORDER="DEVICE acq_rel")
    v.passes(LAST, ORDER="acq_rel")
    v.passes(LAST, ORDER="DEVICE seq_cst")
    v.passes(LAST, ORDER="DEVICE monotonic", RELEASE=RELEASE, ACQUIRE=ACQUIRE)
    v.passes(LAST, ORDER="DEVICE acquire", RELEASE=RELEASE)
    v.passes(LAST, ORDER="DEVICE release", ACQUIRE=ACQUIRE)
    v.passes(LAST, ORDER="DEVICE monotonic", RELEASE=v.asm["release"], ACQUIRE=v.asm["acquire"])

    # The release is missing, or it comes after the arrival.
    v.fails(LAST, UNRELEASED, ORDER="DEVICE acquire")
    v.fails(LAST, UNRELEASED, ORDER="DEVICE monotonic", ACQUIRE=ACQUIRE)
    v.fails(LAST, UNRELEASED, ORDER="DEVICE monotonic", ACQUIRE=RELEASE + "\n    " + ACQUIRE)
    # The acquire is missing.
    v.fails(LAST, UNACQUIRED, ORDER="DEVICE release")
    v.fails(LAST, UNACQUIRED, ORDER="DEVICE monotonic", RELEASE=RELEASE)
    # They are for the block alone: a fence, or the operation.
    v.fails(LAST, UNRELEASED, ORDER="DEVICE acquire", RELEASE="llvm.fence BLOCK release")
    v.fails(LAST, UNACQUIRED, ORDER="DEVICE release", ACQUIRE="llvm.fence BLOCK acquire")
    v.fails(LAST, "atomic write of too narrow a scope", ORDER="BLOCK acq_rel")
    if v.membar:
        gpu, cta = (v.membar.replace("SCOPE", s) for s in ("gpu", "cta"))
        v.passes(LAST, ORDER="DEVICE monotonic", RELEASE=gpu, ACQUIRE=gpu)
        v.fails(LAST, UNRELEASED, ORDER="DEVICE monotonic", RELEASE=cta, ACQUIRE=gpu)
    else:
        # What is written back is not there before a wait.
        v.fails(LAST, UNRELEASED, ORDER="DEVICE acquire", RELEASE=v.asm["release"].split("\n")[0])
    # One arrival too few.
    v.fails(LAST, "global-memory race: read of", "global-memory race: write of", ORDER="DEVICE acq_rel",
            LAST=GRID - 2)
    # No atomic operation at all.
    plain = LAST.replace("%n = llvm.atomicrmw add %p1, %c1 ORDER : !llvm.ptr<1>, i32",
                         "%n = llvm.load %p1 : !llvm.ptr<1> -> i32\n    %n1 = llvm.add %n, %c1 : i32\n"
                         "    llvm.store %n1, %p1 : i32, !llvm.ptr<1>")
    v.fails(plain, "of 4 bytes at offset 0 of buffer 'count' (4 bytes): nothing that this warp has acquired releases "
                   "the write by warp 0 of block", RELEASE=RELEASE, ACQUIRE=ACQUIRE)
    # A cache that sees no writes serves the load.
    v.fails(LAST, "invariant load of memory that the kernel writes", ORDER="DEVICE acq_rel", LOAD="invariant")

    # The copy engine stores: its own wait has to say that it has, and not only
    # that it has read what it stores.
    if v.membar:
        bulk = LAST.replace("    llvm.store %value, %mine : i32, !llvm.ptr<1>\n    BARRIER\n", """
    %stage = llvm.mlir.addressof @stage : !llvm.ptr<3>
    %place = llvm.getelementptr %stage[%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    llvm.store %value, %place : i32, !llvm.ptr<3>
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
    BARRIER
    %bytes = llvm.mlir.constant(256 : i32) : i32
""").replace("    RELEASE\n", """
    nvvm.cp.async.bulk.global.shared.cta %mine, %stage, %bytes : !llvm.ptr<1>, !llvm.ptr<3>
    nvvm.cp.async.bulk.commit.group
    nvvm.cp.async.bulk.wait_group 0 READ
""")
        v.passes(bulk, ORDER="DEVICE acq_rel", READ="")
        for seed in (1, 2):
            done = v.run(bulk, seed=seed, ORDER="DEVICE acq_rel", READ="{read}")
            assert done.returncode == 1 and "which is on its way: no 'nvvm.cp.async.bulk.wait_group' for more than " \
                "its source" in done.stderr, done.stderr

    # Waiting.
    v.passes(SPIN, ORDER="atomic DEVICE acquire {alignment = 4 : i64}")
    v.passes(SPIN, ORDER="atomic DEVICE monotonic {alignment = 4 : i64}", ACQUIRE=ACQUIRE)
    v.fails(SPIN, UNACQUIRED, ORDER="atomic DEVICE monotonic {alignment = 4 : i64}")
    # Unless block 0 comes last anyway, the count is read and written at once.
    v.fails(SPIN, "of buffer 'count' (4 bytes): nothing that this warp has acquired releases the", UNACQUIRED, ORDER="")
