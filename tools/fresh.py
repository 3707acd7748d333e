"""README's two commands on a fresh machine: a clone of HEAD in a minimal Debian or Ubuntu, made by mmdebstrap in build/fresh.

The machine has Python, gcc, git and certificates. For root, README's commands install all other packages themselves. For a user
without root, exactly the packages named in README are installed first.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "fresh"
PACKAGES = ("ca-certificates", "python3", "gcc", "git")
RETRIES = '--aptopt=Acquire::Retries "5"'     # of a download; the new machine's apt-get retries as often
USERS = {"root": "/root", "guest": "/home/guest"}
LOG_LINES = 10      # of mmdebstrap, shown when it fails
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
PIP_CONFIGURATION = Path("/etc/pip.conf")
# Variables for access to package registries; all other variables of this machine's environment are dropped.
PASSED_ON = re.compile(r"(https?|no)_proxy|PIP_(INDEX_URL|TRUSTED_HOST|DEFAULT_TIMEOUT)", re.IGNORECASE)
# Shell script run in its own namespaces: mounts end with the command; arguments: user, folder, command.
ENTER = """
set -e
mount -t proc proc proc
mount --rbind /dev dev
exec chroot --userspec="$1:$1" . /bin/sh -c 'cd "$0" && eval "$1"' "$2" "$3"
"""
SHELL_BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NAMED_PACKAGES = re.compile(r"`((?:[\w.+-]+ )*python3-dev(?: [\w.+-]+)*)`")


class FreshError(Exception):
    """No fresh machine can be made on this machine."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of a command: exit code, and time in seconds."""

    user: str
    command: str
    code: int
    seconds: float


class Machine:
    """A minimal Debian in a folder, entered with namespaces of its own; removed by ``close``."""

    def __init__(self, suite: str, mirror: str | None) -> None:
        self.folder = FOLDER / suite
        remove(self.folder)
        FOLDER.mkdir(parents=True, exist_ok=True)
        say(f"mmdebstrap {suite}: {' '.join(PACKAGES)}")
        log_path = FOLDER / "mmdebstrap.log"
        with log_path.open("w") as log:
            command = ["mmdebstrap", "--variant=apt", f"--include={','.join(PACKAGES)}", RETRIES, suite, str(self.folder)]
            command += [mirror] if mirror else []
            done = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, check=False)
        if done.returncode:
            last_lines = "\n".join(log_path.read_text().splitlines()[-LOG_LINES:])
            raise FreshError(f"mmdebstrap failed with {done.returncode}:\n{last_lines}")
        for path in (CERTIFICATES, PIP_CONFIGURATION, Path("/etc/resolv.conf"), Path("/etc/hosts")):
            if path.exists():
                shutil.copy(path, self.folder / path.relative_to("/"))

    def run(self, user: str, command: str, folder: str = "/") -> int:
        """Run a shell command as a user, with the output of this process; returns the exit code."""
        environment = {name: value for name, value in os.environ.items() if PASSED_ON.fullmatch(name)}
        environment |= {"HOME": USERS[user], "USER": user, "LANG": "C.UTF-8", "PIP_CERT": str(CERTIFICATES)}
        environment["PATH"] = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
        entered = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", ENTER, "enter"]
        entered += [user, folder, command]
        return subprocess.run(entered, cwd=self.folder, env=environment, stdin=subprocess.DEVNULL, check=False).returncode

    def must(self, user: str, command: str) -> None:
        if self.run(user, command):
            raise FreshError(f"as {user}: {command} failed")

    def close(self) -> None:
        remove(self.folder)


def remove(folder: Path) -> None:
    """Remove a machine's folder; its mounts have ended with the namespaces of the commands."""
    if folder.exists():
        shutil.rmtree(folder)


def readme(text: str) -> tuple[list[str], str]:
    """Commands in README's text, and the packages named in README for a user without root.

    Raises:
        FreshError: README names other commands, or no packages.
    """
    named = NAMED_PACKAGES.search(text)
    commands = [line.split("#")[0].strip() for block in SHELL_BLOCK.findall(text) for line in block.splitlines()]
    commands = [command for command in commands if command in ("tools/demo", "tools/test")]
    if named is None or commands != ["tools/demo", "tools/test"]:
        raise FreshError("README.md does not name the two commands, or the packages with python3-dev")
    return commands, named[1]


def try_out(machine: Machine, user: str, commands: Sequence[str], packages: str) -> list[Outcome]:
    """Clone HEAD as a user and run the commands there, up to the first failure."""
    if user != "root":
        machine.must("root", f"useradd --create-home {user}")
        machine.must("root", "apt-get update -q >/dev/null")
        machine.must("root", f"apt-get install -q -y --no-install-recommends {packages} >/dev/null")
    folder = f"{USERS[user]}/fastpq"
    inside = machine.folder / folder.lstrip("/")
    # git refuses a tree owned by another user without safe.directory
    clone = ["git", "-c", "safe.directory=*", "clone", "-q", "--no-local", str(ROOT), str(inside)]
    if subprocess.run(clone, check=False).returncode:
        raise FreshError(f"{ROOT} cannot be cloned")
    machine.must("root", f"chown -R {user}:{user} {USERS[user]}")
    outcomes = []
    for command in commands:
        say(f"{user}: {command}")
        started = time.monotonic()
        code = machine.run(user, command, folder)
        outcomes.append(Outcome(user, command, code, time.monotonic() - started))
        if code:
            break
    return outcomes


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tools/fresh", description=__doc__)
    parser.add_argument("--suite", default="bookworm", help="release of Debian or Ubuntu (default: %(default)s)")
    parser.add_argument("--mirror", help="where its packages are (default: mmdebstrap's)")
    parser.add_argument("--user", choices=USERS, action="append", help="who runs the commands (default: root, then guest)")
    parser.add_argument("--command", action="append", help="a command instead of README's; may be repeated")
    parser.add_argument("--keep", action="store_true", help="leave the machine in build/fresh")
    options = parser.parse_args(arguments)
    if os.geteuid() != 0 or shutil.which("mmdebstrap") is None:
        parser.error("root and mmdebstrap are needed (Debian: apt-get install mmdebstrap)")
    try:
        commands, packages = readme((ROOT / "README.md").read_text())
    except FreshError as error:
        parser.error(str(error))
    outcomes: list[Outcome] = []
    unmade = False
    for user in options.user or USERS:
        try:
            outcomes += on_machine(user, options, commands, packages)
        except FreshError as error:
            say(f"{user}: {error}")
            unmade = True
    for outcome in outcomes:
        passed = "passed" if outcome.code == 0 else f"failed with {outcome.code}"
        say(f"{outcome.user:6} {outcome.command:20} {passed} in {outcome.seconds:.0f} s")
    return int(unmade or any(outcome.code for outcome in outcomes))


def on_machine(user: str, options: argparse.Namespace, commands: Sequence[str], packages: str) -> list[Outcome]:
    """Make a machine, try the commands there, and remove the machine, unless --keep is given."""
    machine = Machine(options.suite, options.mirror)
    try:
        return try_out(machine, user, options.command or commands, packages)
    finally:
        if not options.keep:
            machine.close()


def say(message: str) -> None:
    print(f"fresh: {message}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
