"""Parses each playlist named on the command line with m3u8 and openm3u8, strictly.

Both catch what hls-parser does not: malformed numbers and dates.
"""

import sys

import m3u8
import openm3u8


def complaints(text):
    for package in (m3u8, openm3u8):
        try:
            package.parser.parse(text, strict=True)
        except Exception as error:  # whatever it is, the playlist was not understood
            yield f"{package.__name__}: {error!r}"


failed = False
for file in sys.argv[1:]:
    with open(file, encoding="utf-8") as playlist:
        for complaint in complaints(playlist.read()):
            print(f"{file}: {complaint}")
            failed = True
sys.exit(failed)
