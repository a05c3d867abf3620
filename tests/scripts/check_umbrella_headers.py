"""layers/layers.hpp and its like include every header below their folder, but the internal ones and those of
libraries apart."""
from public_headers import is_internal
from sources import INCLUDE, LIBRARY, finish, root

offenders = []
seen = 0
for folder in LIBRARY[1:]:
    headers = {path.relative_to(root() / folder).as_posix()
               for path in (root() / folder).rglob("*.hpp")} - {f"{folder}.hpp"}
    headers = {name for name in headers
               if not is_internal(f"{folder}/{name}") and not name.startswith(("files/", "arrow/"))}
    umbrella = root() / folder / f"{folder}.hpp"
    included = set()
    if umbrella.is_file():
        for line in umbrella.read_text(encoding="utf-8").splitlines():
            match = INCLUDE.match(line)
            if match:
                included.add(match.group(1))
    seen += 1
    for name in sorted(headers):
        if f"tessera/{folder}/{name}" not in included:
            offenders.append(f"{folder}/{folder}.hpp: #include <tessera/{folder}/{name}> is missing")
finish(offenders, "an umbrella header names every header of its folder", seen)
