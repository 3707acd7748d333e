"""The source of nonces, compiled on its own: nonces after a fork past the C library."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

import pytest

from tests.requirements import compiler

# Without pages that the kernel wipes in a child (older kernels, other systems) the number of the process tells.
NONCES_C = """
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "nonces.h"
int main(void) {
    unsigned char nonce[12];
    if (watch_forks() || next_nonce(nonce) != 1) return 1;
    for (int child = 0; child < 4; child++) {
        if (syscall(SYS_fork) == 0) {
            if (next_nonce(nonce) != 1 || write(1, nonce, 12) != 12) _exit(1);
            _exit(0);
        }
        wait(NULL);
    }
    return next_nonce(nonce) != 1 || write(1, nonce, 12) != 12;
}
"""


@pytest.mark.linux
@pytest.mark.skipif(platform.machine() != "x86_64", reason="arm64 has no system call fork")
@pytest.mark.parametrize("switch", ["-DFASTPQ_NO_WIPEONFORK", "-UFASTPQ_NO_WIPEONFORK"])
def test_the_ways_to_notice_a_fork(tmp_path: Path, switch: str) -> None:
    (tmp_path / "nonces.c").write_text(NONCES_C)
    folder = Path(__file__).parents[2] / "fastpq/encryption/c"
    program = tmp_path / "nonces"
    subprocess.run(
        [compiler(), "-D_GNU_SOURCE", switch, f"-I{folder}", "-o", program, tmp_path / "nonces.c", "-lcrypto"], check=True
    )
    drawn = subprocess.run([program], capture_output=True, check=True).stdout
    assert len({drawn[start : start + 12] for start in range(0, 60, 12)}) == 5
