# SPDX-License-Identifier: Apache-2.0
"""Archives: round trips, and hostile ones that leave nothing behind."""

import gzip
import io
import os
import random
import tarfile

import pytest
from tvm.support import tar, utils


@pytest.fixture
def files(tmp_path):
    source = tmp_path / "source"
    (source / "folder" / "below").mkdir(parents=True)
    (source / "a.o").write_bytes(b"object")
    (source / "folder" / "below" / "b.o").write_bytes(b"other")
    (source / "run.sh").write_text("#!/bin/sh\n")
    (source / "run.sh").chmod(0o755)
    return [source / "a.o", source / "folder", str(source / "run.sh")]


def pack(path, *members):
    """An archive of (name or TarInfo, content) as a hostile program would write it."""
    with tarfile.open(path, "w") as archive:
        for info, data in members:
            info = tarfile.TarInfo(info) if isinstance(info, str) else info
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def special(name, kind, target="", **fields):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    for field, value in fields.items():
        setattr(info, field, value)
    return info, b""


def symlink(name, target):
    return special(name, tarfile.SYMTYPE, target)


@pytest.mark.parametrize("suffix", tar.SUFFIXES)
def test_round_trip(files, tmp_path, suffix):
    path, out = tmp_path / f"all{suffix}", tmp_path / "out"
    tar.tar(path, files)
    tar.untar(str(path), str(out))
    found = sorted(str(p.relative_to(out)) for p in out.rglob("*") if p.is_file())
    assert found == ["a.o", "folder/below/b.o", "run.sh"]
    assert (out / "folder/below/b.o").read_bytes() == b"other"
    assert os.access(out / "run.sh", os.X_OK) and not os.access(out / "a.o", os.X_OK)
    tar.untar(path, out)  # over what is there


def test_archive_is_independent_of_times(files, tmp_path):
    tar.tar(tmp_path / "one.tar", files)
    os.utime(files[0], (1, 1))
    tar.tar(tmp_path / "two.tar", files)
    assert (tmp_path / "one.tar").read_bytes() == (tmp_path / "two.tar").read_bytes()


def test_files_that_cannot_be_packed_leave_the_old_archive(files, tmp_path):
    path = tmp_path / "x.tar"
    path.write_bytes(b"old")
    with pytest.raises(FileNotFoundError):
        tar.tar(path, [*files, tmp_path / "nothing.o"])
    with pytest.raises(ValueError, match="tar: expected files of different names, got a.o twice"):
        tar.tar(path, [files[0], files[0]])
    with pytest.raises(FileNotFoundError):
        tar.tar(tmp_path / "no" / "x.tar", files)
    assert path.read_bytes() == b"old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["source", "x.tar"]


def test_normalize_file_list(files, tmp_path):
    for name in ("one.tar", "two.tar.gz"):
        tar.tar(tmp_path / name, files)
    given = [str(tmp_path / "one.tar"), "plain.o", str(tmp_path / "two.tar.gz")]
    with utils.tempdir() as temp:
        result = tar.normalize_file_list_by_unpacking_tars(temp, given)
        names = [os.path.basename(f) for f in result]
        assert names == ["a.o", "b.o", "run.sh", "plain.o", "a.o", "b.o", "run.sh"]
        assert len(set(result)) == 7 and all(map(os.path.exists, result[:3]))


def test_links_inside_stay(tmp_path):
    hard = special("copy", tarfile.LNKTYPE, "folder/file")
    path = pack(tmp_path / "x.tar", ("folder/file", b"data"), symlink("l", "folder/file"), hard)
    tar.untar(path, tmp_path / "out")
    assert (tmp_path / "out/l").read_bytes() == (tmp_path / "out/copy").read_bytes() == b"data"
    assert os.readlink(tmp_path / "out/l") == "folder/file"


HOSTILE = {
    "absolute": [("/tmp/escaped", b"x")],
    "above": [("../escaped", b"x")],
    "above, hidden": [("a/../../escaped", b"x")],
    "absolute link": [symlink("l", "/etc")],
    "link above": [symlink("a/l", "../../escaped")],
    "through a link": [symlink("l", "/tmp"), ("l/escaped", b"x")],
    "through a link inside": [symlink("l", "."), ("l/file", b"x")],
    "links that combine": [
        symlink("m", "d/e/l/../.."),
        symlink("d/e/l", "../.."),
    ],
    "hard link above": [special("l", tarfile.LNKTYPE, "../source")],
    "hard link to nothing": [special("l", tarfile.LNKTYPE, "missing")],
    "device": [special("null", tarfile.CHRTYPE, devmajor=1, devminor=3)],
    "pipe": [special("pipe", tarfile.FIFOTYPE)],
    "file and folder": [("a", b"x"), ("a/b", b"x")],
    "link and file": [("a", b"x"), symlink("a", "b")],
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_archives_are_refused(name, tmp_path):
    path = pack(tmp_path / "x.tar", *HOSTILE[name])
    (tmp_path / "out").mkdir()
    with pytest.raises(ValueError, match=r"untar: .*x\.tar: refused: "):
        tar.untar(path, tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []
    with pytest.raises(ValueError):
        tar.untar(path, tmp_path / "new")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out", "x.tar"]
    assert not os.path.exists("/tmp/escaped")


def test_link_that_was_there_leads_nowhere(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out/a").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match="got a link out of it"):
        tar.untar(pack(tmp_path / "x.tar", ("a/b", b"x")), tmp_path / "out")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_bombs(tmp_path):
    path = pack(tmp_path / "x.tar", *((f"f{i}", b"1234") for i in range(10)))
    with pytest.raises(ValueError, match="expected at most 39 bytes when unpacked"):
        tar.untar(path, tmp_path / "out", max_bytes=39)
    with pytest.raises(ValueError, match="expected at most 9 members"):
        tar.untar(path, tmp_path / "out", max_members=9)
    tar.untar(path, tmp_path / "out", max_bytes=40, max_members=10)

    huge = tarfile.TarInfo("zeros")
    huge.size = tar.MAX_BYTES + 1  # announced; a packed file of that many zeros has 4 MB
    with gzip.open(tmp_path / "bomb.tar.gz", "wb") as file:
        file.write(huge.tobuf() + bytes(1 << 20))
    with pytest.raises(ValueError, match="when unpacked"):
        tar.untar(tmp_path / "bomb.tar.gz", tmp_path / "bombed")
    assert not (tmp_path / "bombed").exists()


def test_bomb_in_a_header(tmp_path):
    header = tarfile.TarInfo("long name")
    header.type, header.size = tarfile.GNUTYPE_LONGNAME, 1 << 26
    with gzip.open(tmp_path / "x.tgz", "wb") as file:
        file.write(header.tobuf(tarfile.GNU_FORMAT) + bytes(1 << 26))
    with pytest.raises(ValueError, match="more bytes than its limit"):
        tar.untar(tmp_path / "x.tgz", tmp_path / "out", max_bytes=1000, max_members=10)


@pytest.mark.parametrize("suffix", tar.SUFFIXES)
def test_damaged_archives_never_crash(files, tmp_path, suffix):
    path, out, rng = tmp_path / f"x{suffix}", tmp_path / "out", random.Random(0)
    tar.tar(path, files)
    good = path.read_bytes()
    out.mkdir()
    for data in (b"", b"no archive", good[: len(good) // 3]):
        path.write_bytes(data)
        with pytest.raises(ValueError, match="expected a tar archive"):
            tar.untar(path, out)
        assert list(out.iterdir()) == []
    for i in range(60):
        data = bytearray(good)
        for _ in range(rng.randint(1, 8)):
            data[rng.randrange(min(len(data), 2048))] = rng.randrange(256)
        path.write_bytes(data)
        folder = tmp_path / f"out{i}"
        try:
            tar.untar(path, folder)
        except (ValueError, OSError):
            assert not folder.exists()
        else:
            assert not list(folder.glob(".untar-*"))


def test_missing_archive(tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing.tar"):
        tar.untar(tmp_path / "nothing.tar", tmp_path / "out")
    assert not (tmp_path / "out").exists()
