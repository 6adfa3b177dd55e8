# SPDX-License-Identifier: Apache-2.0
"""Fourier transforms, larger images, convolutions whose taps are moved."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tvm import topi

from .checking import check, values


def of(function, *arrays, **options):
    return function(*(torch.from_numpy(np.ascontiguousarray(a)) for a in arrays), **options).numpy()


@pytest.mark.parametrize("n", [1, 8, 13])
def test_dft(n):
    re, im = values(3, n), values(3, n, seed=1)
    there, back = np.fft.fft(re + 1j * im), np.fft.ifft(re + 1j * im)
    check(lambda r, i: topi.dft(r, i, 0), [re, im], [there.real, there.imag], rtol=1e-4, atol=1e-4)
    check(lambda r, i: topi.dft(r, i, 1), [re, im], [back.real, back.imag], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("normalized", [False, True])
def test_stft(normalized):
    x, window = values(2, 50), np.hanning(8).astype("float32")
    expected = torch.stft(
        torch.from_numpy(x), 8, 3, 8, torch.from_numpy(window), False, normalized=normalized,
        return_complex=True,
    ).numpy()
    expected = np.stack([expected.real, expected.imag], -1)
    build = lambda x, w: topi.stft(x, 8, 3, 8, w, int(normalized), 1, expected.shape)
    check(build, [x, window], expected, rtol=1e-4, atol=1e-4)


def test_upsampling():
    x = values(2, 3, 4, 5)
    check(lambda t: topi.nn.upsampling(t, 2, 3), [x], x.repeat(2, 2).repeat(3, 3))
    expected = of(F.interpolate, x, scale_factor=2.0, mode="bilinear", align_corners=True)
    build = lambda t: topi.nn.upsampling(t, 2, 2, "NCHW", "bilinear", True)
    check(build, [x], expected, rtol=1e-4, atol=1e-4)
    y = values(1, 2, 3, 4, 5)
    expected = of(F.interpolate, y, scale_factor=2.0, mode="trilinear", align_corners=False)
    check(lambda t: topi.nn.upsampling3d(t, 2, 2, 2, "NCDHW", "trilinear"), [y], expected, rtol=1e-4, atol=1e-4)


def test_deformable_convolution():
    x, w = values(1, 4, 7, 8), values(6, 4, 3, 3, seed=1)
    still = np.zeros((1, 18, 7, 8), "float32")
    build = lambda x, o, w: topi.nn.deformable_conv2d_nchw(x, o, w, 1, 1, 1, 1, 1, "float32")
    check(build, [x, still, w], of(F.conv2d, x, w, padding=1), rtol=1e-4, atol=1e-4)
    # All taps half a pixel to the right and one down: a convolution of the image between pixels.
    moved = still.reshape(1, 9, 2, 7, 8).copy()
    moved[:, :, 0], moved[:, :, 1] = 1, 0.5
    wide = np.pad(x, [(0, 0), (0, 0), (1, 2), (1, 2)])
    between = (wide[..., :-1] + wide[..., 1:])[:, :, 1:] / 2
    expected = of(F.conv2d, between, w)[:, :, :7, :8]
    check(build, [x, moved.reshape(still.shape), w], expected, rtol=1e-4, atol=1e-4)
    last = lambda t: t.transpose(0, 2, 3, 1).copy()
    build = lambda x, o, w: topi.nn.deformable_conv2d_nhwc(x, o, w, 1, 1, 1, 1, 1, "float32")
    arrays = [last(x), last(moved.reshape(still.shape)), w.transpose(2, 3, 1, 0).copy()]
    check(build, arrays, last(expected), rtol=1e-4, atol=1e-4)
