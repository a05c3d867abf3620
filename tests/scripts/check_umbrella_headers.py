"""layers/layers.hpp and its like include every header of their folder."""
from sources import INCLUDE, finish, root

offenders = []
seen = 0
for folder in ["layers", "optimizers", "metrics", "datasets"]:
    headers = {path.name for path in (root() / folder).glob("*.hpp")} - {f"{folder}.hpp"}
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
