# SPDX-License-Identifier: Apache-2.0
"""Packing files into tar archives, and unpacking archives nobody has to trust."""

import bz2
import gzip
import lzma
import os
import shutil
import tarfile
import tempfile
import zlib
from pathlib import Path

SUFFIXES = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
MAX_BYTES, MAX_MEMBERS = 4 << 30, 100_000

_OPENERS = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\0": lzma.open}
_DAMAGED = (
    *(tarfile.TarError, EOFError, RecursionError, UnicodeError),
    *(zlib.error, lzma.LZMAError, gzip.BadGzipFile),
)


def tar(output, files):
    """Packs files, and folders with what they hold, at the root of an archive.

    Their times and owners are left out. The suffix of `output` says how it is compressed (.tar.gz,
    .tgz, .tar.bz2, .tar.xz; else it is not).
    """
    output = Path(output)
    files = [Path(f) for f in ([files] if isinstance(files, str | os.PathLike) else files)]
    names = [f.name for f in files]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"tar: expected files of different names, got {', '.join(twice)} twice")
    mode = {".gz": "w:gz", ".tgz": "w:gz", ".bz2": "w:bz2", ".xz": "w:xz"}.get(output.suffix, "w")
    partial = output.with_name(f".{output.name}.{os.getpid()}")
    try:
        with tarfile.open(partial, mode) as archive:
            for path in files:
                archive.add(path, path.name, filter=_anonymous)
        os.replace(partial, output)
    finally:
        partial.unlink(missing_ok=True)


def _anonymous(info):
    info.mtime = info.uid = info.gid = 0
    info.uname = info.gname = ""
    return info


def untar(tar_file, directory, *, max_bytes=MAX_BYTES, max_members=MAX_MEMBERS):
    """Unpacks an archive into a folder, all of it or nothing.

    Raises ValueError for what is no archive, for one that would write outside the folder (absolute
    names, `..`, links), holds devices, or unpacks to more than the limits.
    """
    directory = Path(directory)
    directory.parent.mkdir(parents=True, exist_ok=True)
    try:
        directory.mkdir()
        created = True
    except FileExistsError:
        created = False
    try:
        with tempfile.TemporaryDirectory(prefix=".untar-", dir=directory) as staging:
            _Unpacking(tar_file, staging, max_bytes, max_members).run()
            _move(Path(staging), directory)
    except BaseException:
        if created:
            shutil.rmtree(directory, ignore_errors=True)
        raise


class _Limited:
    """The bytes of an archive, up to a limit: headers can be as large as files."""

    def __init__(self, file, limit):
        self.file, self.limit, self.tell, self.close = file, limit, file.tell, file.close

    def read(self, size=-1):
        left = self.limit - self.file.tell()
        if not 0 <= size <= left:
            if len(data := self.file.read(left)) == left and self.file.read(1):
                raise _Refused("more bytes than its limit")
            return data
        return self.file.read(size)

    def seek(self, offset, whence=0):
        if whence == 0 and offset > self.limit:
            raise _Refused("more bytes than its limit")
        return self.file.seek(offset, whence)


class _Refused(Exception):
    """Why an archive is not unpacked."""


class _Unpacking:
    def __init__(self, tar_file, folder, max_bytes, max_members):
        self.tar_file, self.folder = tar_file, os.path.realpath(folder)
        self.max_bytes, self.max_members = max_bytes, max_members

    def run(self):
        with open(self.tar_file, "rb") as file:
            magic = file.read(6)
        opener = next((o for m, o in _OPENERS.items() if magic.startswith(m)), open)
        try:
            with opener(self.tar_file, "rb") as file:
                # Each member has a header, and is filled up to whole blocks.
                limit = self.max_bytes + 4 * tarfile.BLOCKSIZE * (self.max_members + 20)
                with tarfile.open(fileobj=_Limited(file, limit), mode="r:") as archive:
                    self._unpack(archive)
        except _Refused as reason:
            raise ValueError(f"untar: {self.tar_file}: refused: {reason}") from None
        except _DAMAGED as error:
            raise ValueError(f"untar: {self.tar_file}: expected a tar archive: {error}") from error

    def _unpack(self, archive):
        size, links = 0, []
        for count, member in enumerate(archive, 1):
            size += member.size
            if member.size < 0:
                raise _Refused(f"{member.name} has a negative size")
            if count > self.max_members:
                raise _Refused(f"expected at most {self.max_members} members")
            if size > self.max_bytes:
                raise _Refused(f"expected at most {self.max_bytes} bytes when unpacked")
            path = self._inside(member.name)
            try:
                os.makedirs(path if member.isdir() else os.path.dirname(path), exist_ok=True)
                if member.issym() or member.islnk():
                    links.append((member, path))  # at the end: nothing is written through one
                elif member.isfile():
                    with open(path, "wb") as file:
                        shutil.copyfileobj(archive.extractfile(member), file)
                    os.chmod(path, (member.mode & 0o755) | 0o600)
                elif not member.isdir():
                    raise _Refused(f"{member.name} is neither a file, a folder nor a link")
            except (FileExistsError, NotADirectoryError, IsADirectoryError):
                raise _Refused(f"{member.name} is both a file and a folder") from None
        # tarfile takes a damaged header for the end.
        archive.fileobj.seek(archive.offset)
        if archive.fileobj.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
            raise tarfile.ReadError(f"damaged at byte {archive.offset}")
        for member, path in links:
            self._link(member, path)
        # Once all are there: one link may change what another means.
        for member, path in links:
            if not self._holds(os.path.realpath(path)):
                raise _Refused(f"{member.name} links to {member.linkname}, outside of it")

    def _inside(self, name):
        path = os.path.normpath(os.path.join(self.folder, name))
        if os.path.isabs(name) or ".." in name.split("/") or not self._holds(path):
            raise _Refused(f"{name!r} leads out of the folder")
        return path

    def _holds(self, path):
        return os.path.commonpath([path, self.folder]) == self.folder

    def _link(self, member, path):
        if os.path.lexists(path):
            raise _Refused(f"{member.name} is there twice")
        if member.issym():
            os.symlink(member.linkname, path)
            return
        target = self._inside(member.linkname)
        if not os.path.isfile(target) or os.path.islink(target):
            raise _Refused(f"{member.name} is a link to {member.linkname}, which is no file in it")
        os.link(target, path)


def _move(staging, directory):
    """Merges what was unpacked into the folder, through no link that was there."""
    home = os.path.realpath(directory)
    for root, folders, files in os.walk(staging):
        to = directory / Path(root).relative_to(staging)
        if os.path.commonpath([os.path.realpath(to), home]) != home:
            raise ValueError(f"untar: {to}: expected a folder in {directory}, got a link out of it")
        to.mkdir(exist_ok=True)
        links = [name for name in folders if os.path.islink(os.path.join(root, name))]
        for name in files + links:
            os.replace(os.path.join(root, name), to / name)


def normalize_file_list_by_unpacking_tars(temp, file_list):
    """The files with each archive (by its suffix) replaced by what it holds.

    Archives are unpacked into folders of their own in `temp`, a TempDirectory.
    """
    files = []
    for path in file_list:
        if not str(path).endswith(SUFFIXES):
            files.append(path)
            continue
        folder = tempfile.mkdtemp(prefix="tar-", dir=temp.path)
        untar(path, folder)
        files += sorted(str(f) for f in Path(folder).rglob("*") if f.is_file())
    return files


def link_inputs(temp, files):
    """What a compiler gets of such a list: headers are for the sources beside them."""
    files = [files] if isinstance(files, str | os.PathLike) else files
    files = normalize_file_list_by_unpacking_tars(temp, [os.fspath(f) for f in files])
    return [f for f in files if not f.endswith((".h", ".hpp"))]


tar.output_format = "tar"
