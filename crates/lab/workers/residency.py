"""How many blocks of a kernel an SM holds at once, by the limits of compute capability 9.0."""

THREADS, WARPS, BLOCKS = 2048, 64, 32
REGISTERS, REGISTER_UNIT = 65536, 256
SHARED, SHARED_UNIT, SHARED_RESERVED = 228 * 1024, 128, 1024
QUARTERS = 4


def per_sm(threads, registers, shared):
    """Of blocks of so many threads, registers to a thread, and bytes of shared memory; never none: the kernel ran."""
    warps = -(-threads // 32)
    limits = [BLOCKS, WARPS // warps]
    if registers:
        unit = -(-registers * 32 // REGISTER_UNIT) * REGISTER_UNIT
        # Each quarter of an SM has registers of its own, and a warp lives in one of them.
        limits.append(REGISTERS // QUARTERS // unit * QUARTERS // warps)
    limits.append(SHARED // (-(-shared // SHARED_UNIT) * SHARED_UNIT + SHARED_RESERVED))
    return max(1, min(limits))


def waves(blocks, resident, sms):
    return max(1, -(-blocks // (resident * sms)))
