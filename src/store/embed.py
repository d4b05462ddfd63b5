"""Turn the migration files into one C table: embed.py OUT FILE..."""

import pathlib
import re
import sys


def literal(text: str) -> str:
    lines = []
    for line in text.splitlines():
        if line.strip().startswith("--"):
            continue
        escaped = line.replace("\\", "\\\\").replace('"', '\\"')
        lines.append(f'\t\t"{escaped}\\n"')
    return "\n".join(lines)


def main() -> None:
    out = ['#include "store/private.h"', "", "const struct migration migrations[] = {"]
    for name in sorted(sys.argv[2:]):
        path = pathlib.Path(name)
        number = int(re.match(r"(\d{4})_", path.name).group(1))
        out += [f'\t{{{number}, "{path.name}",', literal(path.read_text()) + "},"]
    out += ["};", "", "const size_t migration_count = sizeof(migrations) / sizeof(migrations[0]);"]
    pathlib.Path(sys.argv[1]).write_text("\n".join(out) + "\n")


main()
