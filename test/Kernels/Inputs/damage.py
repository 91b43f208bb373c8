"""Damaged copies of an artifact: damage.py IN.kvbuf OUT_PREFIX"""

import sys

data = open(sys.argv[1], "rb").read()
middle = len(data) // 2
copies = {
    "flipped": data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1:],
    "short": data[:-100],
    "long": data + b"x",
    "version": data[:7] + b"\2" + data[8:],
}
for name, content in copies.items():
    with open(f"{sys.argv[2]}.{name}.kvbuf", "wb") as file:
        file.write(content)
