# Each op of the dialect is of one group, a file has ops of one group, and what one
# vendor alone has is included by nobody but the whole dialect.
#
# RUN: %python %s %src
# It notices an op in another group's file, and who includes a vendor's ops.
# RUN: rm -rf %t && mkdir -p %t/include && cp -r %src/include/kvbuffer %t/include/
# RUN: sed -i 's/KVBuffer_OpOf<KVBuffer_Teams, "team"/KVBuffer_OpOf<KVBuffer_Work, "team"/' %t/include/kvbuffer/Dialect/KVBuffer/IR/KVBufferTeamOps.td
# RUN: sed -i '1i include "kvbuffer/Dialect/KVBuffer/IR/KVBufferNVIDIAOps.td"' %t/include/kvbuffer/Dialect/KVBuffer/IR/KVBufferRingOps.td
# RUN: not %python %s %t | FileCheck %s
# CHECK-DAG: KVBufferTeamOps.td has ops of Teams, Work: expected one group
# CHECK-DAG: KVBufferRingOps.td includes KVBufferNVIDIAOps.td: only KVBuffer.td does
"""Checks the groups of ops.

    groups.py SOURCE
"""

import pathlib
import re
import sys

FOLDER = pathlib.Path(sys.argv[1]) / "include/kvbuffer/Dialect/KVBuffer/IR"
VENDORS = {"KVBufferAMDOps.td", "KVBufferNVIDIAOps.td"}
groups = set(re.findall(r"def KVBuffer_(\w+) : KVBuffer_Group<",
                        (FOLDER / "KVBufferOpBase.td").read_text()))
found, used = not groups, set()
for path in sorted(FOLDER.glob("*.td")):
    text = re.sub(r"//[^\n]*", "", path.read_text())
    named = set(re.findall(r"KVBuffer_OpOf<KVBuffer_(\w+),", text))
    used |= named
    if len(named) > 1:
        print(f"{path.name} has ops of {', '.join(sorted(named))}: expected one group")
        found = True
    for name in set(re.findall(r'include "[^"]*/(\w+\.td)"', text)) & VENDORS:
        if path.name != "KVBuffer.td":
            print(f"{path.name} includes {name}: only KVBuffer.td does")
            found = True
for name in sorted(groups ^ used):
    print(f"{name} is a group without ops" if name in groups
          else f"{name} is no group of KVBufferOpBase.td")
    found = True
sys.exit(found)
