"""Writing a mended file back: whole or not at all, and only over what was read."""

import contextlib
import os
import stat
import tempfile


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
        _replace(target, data, expected)
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
        folder, name = os.path.split(target)
        os.makedirs(folder, exist_ok=True)
        if os.path.exists(target) and not os.access(target, os.W_OK):
            raise WriteError("cannot be written: the file is read-only")
        _rename_into_place(target, folder, name, data)
    except OSError as error:
        raise WriteError(f"cannot be written: {(error.strerror or str(error)).lower()}") from error


def _rename_into_place(target: str, folder: str, name: str, data: bytes) -> None:
    descriptor, temporary = tempfile.mkstemp(dir=folder, prefix=f".{name[:64]}.", suffix=".tmp")
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, _mode_of(target))
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def _mode_of(path: str) -> int:
    """The permissions of a file, or those that a new one gets."""
    with contextlib.suppress(FileNotFoundError):
        return stat.S_IMODE(os.stat(path).st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _replace(target: str, data: bytes, expected: bytes) -> None:
    status = os.stat(target)
    # Replacing needs no right to the file itself, so a read-only file has to be respected here.
    if not os.access(target, os.W_OK):
        raise WriteError("cannot be written: the file is read-only")
    folder, name = os.path.split(target)
    descriptor, temporary = tempfile.mkstemp(dir=folder, prefix=f".{name[:64]}.", suffix=".tmp")
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, stat.S_IMODE(status.st_mode))
        _give_to_owner(temporary, status)
        with open(target, "rb") as file:
            if file.read() != expected:
                raise WriteError("not written: the file was changed meanwhile")
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def _give_to_owner(temporary: str, status: os.stat_result) -> None:
    made = os.stat(temporary)
    if not hasattr(os, "chown") or (made.st_uid, made.st_gid) == (status.st_uid, status.st_gid):
        return
    # Only root may give files away; for all others the file is theirs or their group's anyway.
    with contextlib.suppress(PermissionError):
        os.chown(temporary, status.st_uid, status.st_gid)
        # Changing the owner clears the set-user-id bits.
        os.chmod(temporary, stat.S_IMODE(status.st_mode))
