"""Writing a mended file back: whole or not at all, and only over what was read."""

import contextlib
import os
import stat
from typing import BinaryIO

_HAS_NAMELESS = hasattr(os, "O_TMPFILE") and os.path.isdir("/proc/self/fd")


class WriteError(Exception):
    """A file that was not written, and why in a few words; it is as it was."""


def write(path: str, data: bytes, expected: bytes) -> None:
    """Put ``data`` in the place of a file that still holds ``expected``.

    A link stays a link (its target is written), permissions stay, and who reads the file meanwhile
    sees either the old or the new content.

    Raises:
        WriteError: the file changed meanwhile, is read-only, or its folder cannot be written to.
    """
    if data == expected:
        return
    target = os.path.realpath(path)
    try:
        status = os.stat(target)
        # Replacing needs no right to the file itself, so a read-only file has to be respected here.
        if not os.access(target, os.W_OK):
            raise WriteError("cannot be written: the file is read-only")
        _rename_into_place(target, data, status, expected)
    except OSError as error:
        raise WriteError(f"cannot be written: {(error.strerror or str(error)).lower()}") from error


def put(path: str, data: bytes) -> None:
    """Make a file of ``data``, or put it in the place of the file that is there; folders above it are made.

    What is no regular file (a pipe, ``/dev/stdout``) is written to as it is.

    Raises:
        WriteError: it cannot be written; a file that was there is as it was.
    """
    target = os.path.realpath(path)
    try:
        if os.path.exists(target) and not os.path.isfile(target):
            with open(target, "wb") as stream:
                stream.write(data)
            return
        os.makedirs(os.path.dirname(target), exist_ok=True)
        is_there = os.path.exists(target)
        if is_there and not os.access(target, os.W_OK):
            raise WriteError("cannot be written: the file is read-only")
        _rename_into_place(target, data, os.stat(target) if is_there else None)
    except OSError as error:
        raise WriteError(f"cannot be written: {(error.strerror or str(error)).lower()}") from error


def _rename_into_place(target: str, data: bytes, status: os.stat_result | None, expected: bytes | None = None) -> None:
    """Put a file of ``data`` in the place of another, of which ``status`` tells the owner and the permissions.

    With ``expected``, only if that is what the file still holds.
    """
    folder, name = os.path.split(target)
    temporary = os.path.join(folder, f".{name[:64]}.{os.urandom(4).hex()}.tmp")
    try:
        _make(folder, temporary, data)
        os.chmod(temporary, _mode_of_new_file() if status is None else stat.S_IMODE(status.st_mode))
        if status is not None:
            _give_to_owner(temporary, status)
        if expected is not None and not _holds(target, expected):
            raise WriteError("not written: the file was changed meanwhile")
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def _make(folder: str, path: str, data: bytes) -> None:
    """Make a file, where the system can do that under no name until it is complete: then nothing is left behind,
    however the process ends.
    """
    if _HAS_NAMELESS:
        with contextlib.suppress(OSError), open(os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o600), "wb") as file:
            _fill(file, data)
            _give_name(file.fileno(), folder, os.path.basename(path))
            return
    binary = getattr(os, "O_BINARY", 0)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | binary, 0o600), "wb") as file:
        _fill(file, data)


def _fill(file: BinaryIO, data: bytes) -> None:
    file.write(data)
    file.flush()
    os.fsync(file.fileno())


def _give_name(descriptor: int, folder: str, name: str) -> None:
    opened = os.open(folder, os.O_PATH)
    try:
        # Only given a folder `os.link` asks the system to follow the link that `/proc` has for the descriptor.
        os.link(f"/proc/self/fd/{descriptor}", name, dst_dir_fd=opened, follow_symlinks=True)
    finally:
        os.close(opened)


def _holds(path: str, expected: bytes) -> bool:
    with open(path, "rb") as file:
        return file.read() == expected


def _mode_of_new_file() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _give_to_owner(temporary: str, status: os.stat_result) -> None:
    made = os.stat(temporary)
    if not hasattr(os, "chown") or (made.st_uid, made.st_gid) == (status.st_uid, status.st_gid):
        return
    # Only root may give files away; for all others the file is theirs or their group's anyway.
    with contextlib.suppress(PermissionError):
        os.chown(temporary, status.st_uid, status.st_gid)
        # Changing the owner clears the set-user-id bits.
        os.chmod(temporary, stat.S_IMODE(status.st_mode))
