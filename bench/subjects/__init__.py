# SPDX-License-Identifier: Apache-2.0
"""Who computes: a file each with `prepare(name, inputs)`, which gives a Timed, or None for a kernel
that the subject does not have. They run in workers, in the environment of the subject."""
