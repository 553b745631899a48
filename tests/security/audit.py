"""Looks for known vulnerabilities in the pinned packages: ``make audit``.

pip-audit asks OSV, a public database of advisories, about each line of ``requirements.lock``. If that database cannot
be reached, nothing is known, which is no reason to fail: it is said, and the exit code is 0. With findings it is 1.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

LOCK = Path(__file__).parents[2] / "requirements.lock"
OSV = "https://api.osv.dev/v1/query"
_SECONDS = 300


def audit(lock: Path, url: str) -> tuple[int, str]:
    """Asks about each package of a lock file.

    Args:
        lock: The file, with a line ``name==version`` for each package.
        url: Where the database answers, as OSV does.

    Returns:
        The exit code, and what to say.
    """
    command = [sys.executable, "-m", "pip_audit", "--requirement", str(lock), "--no-deps", "--disable-pip"]
    command += ["--vulnerability-service", "osv", "--osv-url", url, "--format", "json", "--progress-spinner", "off"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return 0, f"NOT AUDITED: {url} has not answered within {_SECONDS} s"
    try:
        asked = json.loads(done.stdout)["dependencies"]
    except ValueError:
        words = [line for line in done.stderr.splitlines() if line.strip()]
        return 0, "\n".join([f"NOT AUDITED: {url} gave no answer that can be used", *words[-3:]])
    skipped = [each["name"] for each in asked if "skip_reason" in each]
    found = [each for each in asked if each.get("vulns")]
    lines = [f"{len(asked) - len(skipped)} packages asked about, {len(found)} with known vulnerabilities"]
    lines += [f"  not asked about: {', '.join(skipped)}"] if skipped else []
    for each in found:
        for vulnerability in each["vulns"]:
            mended = ", ".join(vulnerability["fix_versions"]) or "no version yet"
            lines.append(f"  {each['name']} {each['version']}: {vulnerability['id']}, mended in {mended}")
    return int(bool(found)), "\n".join(lines)


if __name__ == "__main__":
    code, said = audit(LOCK, OSV)
    print(said)
    sys.exit(code)
