# SPDX-License-Identifier: Apache-2.0
"""A session on this machine."""

import numpy as np
import pytest
import tvm
from tvm import relax, rpc


def test_a_model_is_uploaded_and_run(tmp_path):
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((4,), "float32"))
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit(relax.op.add(x, x)))
    tvm.compile(bb.get(), "llvm").export_library(tmp_path / "model.so")

    session = rpc.LocalSession()
    session.upload(tmp_path / "model.so")
    assert session.listdir() == "model.so"
    vm = relax.VirtualMachine(session.load_module("model.so"), session.cpu())
    np.testing.assert_array_equal(vm["main"](np.ones(4, "float32")).numpy(), 2)
    assert session.device("cpu", 0) == session.cpu() == tvm.cpu()


def test_files():
    session = rpc.LocalSession()
    session.upload(b"abc", target="folder/a.txt")
    assert session.download("folder/a.txt") == b"abc"
    session.remove("folder/a.txt")
    assert session.listdir("folder") == ""
    with pytest.raises(ValueError, match="inside of the session"):
        session.download("../secret")
    with pytest.raises(ValueError, match="expected `target`"):
        session.upload(b"abc")
    with pytest.raises(FileNotFoundError):
        session.load_module("gone.so")


def test_functions():
    assert rpc.LocalSession().get_function("runtime.LoadModule") is not None
