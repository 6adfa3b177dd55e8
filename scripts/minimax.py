# SPDX-License-Identifier: Apache-2.0
"""Derives the polynomials of src/expr/math and prints each as a C++ table (needs mpmath).

Each row is fitted by the Remez exchange, which minimises the largest weighted error.
Coefficients are then rounded to the working precision one at a time, lowest power first, and the
others fitted again, so that the rest makes up for the rounding of each.
"""

import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

import mpmath as mp
from mpmath import mpf

mp.mp.dps = 60


@dataclass
class Fit:
    """f(x) on [low, high] as the sum of c[k] * x**k for k below `count`."""

    f: Callable
    low: object
    high: object
    count: int
    weight: Callable = None  # of the error; none: the error relative to f
    fixed: dict = field(default_factory=dict)


def rounded(value, bits):
    """`value` as the nearest float32 (24 bits) or float64 (53 bits)."""
    if bits == 53:
        return mpf(float(value))
    return mpf(struct.unpack("f", struct.pack("f", float(value)))[0])


def evaluate(coefficients, x):
    return mp.polyval(coefficients[::-1], x)


class Samples:
    """f and the weight at Chebyshev nodes, computed once for all exchanges of a fit."""

    def __init__(self, fit, size=700):
        low, high = mpf(fit.low), mpf(fit.high)
        nodes = [mp.cos(mp.pi * (2 * i + 1) / (2 * size)) for i in range(size)]
        self.x = [(low + high) / 2 - (high - low) / 2 * c for c in nodes]
        self.f = [fit.f(x) for x in self.x]
        self.weight = [
            fit.weight(x) if fit.weight else 1 / abs(y) for x, y in zip(self.x, self.f, strict=True)
        ]


def remez(samples, count, fixed):
    """The coefficients where `fixed` ones are given, and the largest weighted error."""
    free = [k for k in range(count) if k not in fixed]
    known = [fixed.get(k, mpf(0)) for k in range(count)]
    rest = [y - evaluate(known, x) for x, y in zip(samples.x, samples.f, strict=True)]
    size, n = len(rest), len(free) + 1
    picked = [int((i + 0.5) * size / n) for i in range(n)]
    best = None
    for _ in range(30):
        matrix, right = mp.matrix(n, n), mp.matrix(n, 1)
        for row, i in enumerate(picked):
            for column, k in enumerate(free):
                matrix[row, column] = samples.x[i] ** k
            matrix[row, n - 1] = (-1) ** row / samples.weight[i]
            right[row] = rest[i]
        solution = mp.lu_solve(matrix, right)
        coefficients = list(known)
        for k, value in zip(free, solution, strict=False):
            coefficients[k] = value
        error = [
            (y - evaluate(coefficients, x)) * w
            for x, y, w in zip(samples.x, samples.f, samples.weight, strict=True)
        ]
        worst = max(abs(e) for e in error)
        if best is None or worst < best[1]:
            best = coefficients, worst
        # One extremum for each run of equal signs; the weakest ends go until n are left.
        runs = []
        for i, e in enumerate(error):
            if not runs or (error[runs[-1]] > 0) != (e > 0):
                runs.append(i)
            elif abs(e) > abs(error[runs[-1]]):
                runs[-1] = i
        while len(runs) > n:
            runs.pop(0 if abs(error[runs[0]]) < abs(error[runs[-1]]) else -1)
        if len(runs) < n or runs == picked:
            break
        picked = runs
    return best


def solve(fit, bits):
    samples = Samples(fit)
    fixed = {k: mpf(v) for k, v in fit.fixed.items()}
    for k in range(fit.count):
        coefficients, worst = remez(samples, fit.count, fixed)
        if k not in fixed:
            fixed[k] = rounded(coefficients[k], bits)
    error = max(
        abs(y - evaluate([fixed[k] for k in range(fit.count)], x)) * w
        for x, y, w in zip(samples.x, samples.f, samples.weight, strict=True)
    )
    return [fixed[k] for k in range(fit.count)], worst, error


def short_hex(value):
    mantissa, exponent = float(value).hex().split("p")
    return f"{mantissa.rstrip('0').rstrip('.')}p{exponent}"


def tail(f, lead, power):
    """(f(x) - lead(x)) / x**power, for the terms after those that are exact."""
    return lambda x: (f(x) - lead(x)) / x**power


def of_square(f):
    """The even function f as one of x * x."""
    return lambda u: f(mp.sqrt(u))


ln2 = mp.log(2)
QUARTER = mp.pi / 4 * mpf("1.0001")
SMALL = mpf(10) ** -9  # stands for 0 where f is a limit there


def exp_tail(count):
    """exp(r) = 1 + r + r^2 q(r)"""
    half = ln2 / 2 * mpf("1.001")
    return Fit(tail(mp.exp, lambda r: 1 + r, 2), -half, half, count, lambda r: r**2 / mp.exp(r))


def erf_small(count, high):
    """erf(x) = x + x p(x^2)"""
    f = of_square(lambda x: mp.erf(x) / x - 1)
    return Fit(f, SMALL, high**2, count, of_square(lambda x: x / mp.erf(x)))


def erfc_exponent(count, low, high):
    """erf(x) = 1 - 2^q(x - low)"""
    return Fit(
        lambda u: mp.log(mp.erfc(u + low), 2), 0, high - low, count, lambda u: mp.erfc(u + low)
    )


def exp2(count):
    """2^r"""
    return Fit(lambda x: mp.power(2, x), -0.5005, 0.5005, count)


def log_tail(count):
    """log(1 + f) = f - f^2 / 2 + f^3 q(f)"""
    third = mpf(1) / 3 + mpf(2) ** -20
    f = tail(mp.log1p, lambda f: f - f * f / 2, 3)
    return Fit(f, -third, third, count, lambda f: abs(f**3 / mp.log1p(f)))


def log_quotient(count):
    """log((1 + s) / (1 - s)) = 2 s + s u p(u), u = s^2"""
    f = of_square(lambda s: (2 * mp.atanh(s) / s - 2) / s**2)
    return Fit(f, SMALL, mpf("0.0401"), count, of_square(lambda s: s**3 / (2 * mp.atanh(s))))


def pow_quotient(count):
    """log((1 + s) / (1 - s)) = 2 s + 2/3 s^3 + s^5 p(s^2)"""
    f = of_square(lambda s: (2 * mp.atanh(s) - 2 * s - 2 * s**3 / 3) / s**5)
    return Fit(
        f, mpf(10) ** -6, mpf("0.0401"), count, of_square(lambda s: s**5 / (2 * mp.atanh(s)))
    )


def sin_tail(count):
    """sin(r) = r + r^3 p(r^2)"""
    f = of_square(lambda r: (mp.sin(r) / r - 1) / r**2)
    return Fit(f, SMALL, QUARTER**2, count, of_square(lambda r: r**3 / mp.sin(r)))


def cos_tail(count):
    """cos(r) = 1 - r^2 / 2 + r^4 p(r^2)"""
    f = of_square(lambda r: (mp.cos(r) - 1 + r * r / 2) / r**4)
    return Fit(f, mpf(10) ** -6, QUARTER**2, count, of_square(lambda r: r**4 / mp.cos(r)))


def sinh_tail(count):
    """sinh(x) = x + x^3 p(x^2)"""
    f = of_square(lambda x: (mp.sinh(x) / x - 1) / x**2)
    return Fit(f, SMALL, 1, count, of_square(lambda x: x**3 / mp.sinh(x)))


def tan_tail(count):
    """tan(r) = r + r^3 p(r^2)"""
    f = of_square(lambda r: (mp.tan(r) / r - 1) / r**2)
    return Fit(f, SMALL, QUARTER**2, count, of_square(lambda r: r**3 / mp.tan(r)))


def asin_tail(count):
    """asin(x) = x + x^3 p(x^2)"""
    f = of_square(lambda x: (mp.asin(x) / x - 1) / x**2)
    return Fit(f, SMALL, mpf(0.5625) ** 2, count, of_square(lambda x: x**3 / mp.asin(x)))


def atan_tail(count):
    """atan(x) = x + x^3 p(x^2)"""
    f = of_square(lambda x: (mp.atan(x) / x - 1) / x**2)
    return Fit(f, SMALL, 1, count, of_square(lambda x: x**3 / mp.atan(x)))


def table():
    return {
        "exp32": (24, exp_tail(5)),
        "exp64": (53, exp_tail(11)),
        "erf32": (24, erf_small(7, 1.01)),
        "erf64": (53, erf_small(15, 1)),
        "erfc32": (24, erfc_exponent(7, 1, 4)),
        "erfc64": (53, erfc_exponent(20, 1, 6)),
        "exp2_32": (24, exp2(6)),
        "exp2_64": (53, exp2(13)),
        "log32": (24, log_tail(8)),
        "log64": (53, log_quotient(8)),
        "sin32": (24, sin_tail(3)),
        "sin64": (53, sin_tail(7)),
        "cos32": (24, cos_tail(3)),
        "cos64": (53, cos_tail(6)),
        "sinh32": (24, sinh_tail(4)),
        "sinh64": (53, sinh_tail(8)),
        "tan32": (24, tan_tail(6)),
        "tan64": (53, tan_tail(17)),
        "asin32": (24, asin_tail(6)),
        "asin64": (53, asin_tail(15)),
        "atan32": (24, atan_tail(9)),
        "atan64": (53, atan_tail(20)),
        "pow_log32": (53, log_tail(12)),
        "pow_log64": (53, pow_quotient(9)),
    }


def main(names):
    for name, (bits, fit) in table().items():
        if names and name not in names:
            continue
        coefficients, best, error = solve(fit, bits)
        print(
            f"// error 2^{float(mp.log(error, 2)):.1f} (unrounded 2^{float(mp.log(best, 2)):.1f})"
        )
        body = ", ".join(short_hex(c) for c in coefficients)
        print(f"constexpr double k_{name}[] = {{{body}}};", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
