"""Turn a file into a C text: embed.py OUT NAME FILE. NAME is its bytes, NAME_bytes how many."""

import pathlib
import sys

out, name, path = sys.argv[1:]
text = pathlib.Path(path).read_text(encoding="utf-8")
lines = [line.replace("\\", "\\\\").replace('"', '\\"').replace("?", "\\?") for line in text.splitlines()]
body = "\n".join(f'\t"{line}\\n"' for line in lines)
pathlib.Path(out).write_text(f"""#include <stddef.h>

extern const char {name}[];
extern const size_t {name}_bytes;
const char {name}[] =
{body};
const size_t {name}_bytes = sizeof({name}) - 1;
""", encoding="utf-8")
