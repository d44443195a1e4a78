// Long chains of integer operations, tables in constant memory, text.

__constant__ unsigned crc_table[16] = {
    0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
    0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c, 0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
};

extern "C" __global__ void crc32(const unsigned char *text, int length, unsigned *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned crc = ~0u;
    for (int k = 0; k < length; k++) {
        unsigned char byte = text[i * length + k];
        crc = crc_table[(crc ^ byte) & 15] ^ (crc >> 4);
        crc = crc_table[(crc ^ (byte >> 4)) & 15] ^ (crc >> 4);
    }
    out[i] = ~crc;
}

__constant__ unsigned sha_k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

__device__ unsigned rotate(unsigned x, int by) { return __funnelshift_r(x, x, by); }

// One block of 64 bytes, already padded, per thread.
extern "C" __global__ void sha256(const unsigned *blocks, unsigned *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned w[64];
    for (int t = 0; t < 16; t++)
        w[t] = __byte_perm(blocks[16 * i + t], 0, 0x0123);
    for (int t = 16; t < 64; t++) {
        unsigned s0 = rotate(w[t - 15], 7) ^ rotate(w[t - 15], 18) ^ (w[t - 15] >> 3);
        unsigned s1 = rotate(w[t - 2], 17) ^ rotate(w[t - 2], 19) ^ (w[t - 2] >> 10);
        w[t] = w[t - 16] + s0 + w[t - 7] + s1;
    }
    const unsigned start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                               0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    unsigned s[8];
    for (int k = 0; k < 8; k++)
        s[k] = start[k];
    for (int t = 0; t < 64; t++) {
        unsigned s1 = rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25);
        unsigned t1 = s[7] + s1 + ((s[4] & s[5]) ^ (~s[4] & s[6])) + sha_k[t] + w[t];
        unsigned s0 = rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22);
        unsigned t2 = s0 + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
        for (int k = 7; k > 0; k--)
            s[k] = s[k - 1];
        s[4] += t1;
        s[0] = t1 + t2;
    }
    for (int k = 0; k < 8; k++)
        out[8 * i + k] = start[k] + s[k];
}

extern "C" __global__ void xorshift(const unsigned long long *seeds, unsigned long long *out, int steps, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned long long x = seeds[i];
    for (int k = 0; k < steps; k++) {
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
    }
    out[i] = x * 0x2545f4914f6cdd1dull;
}

// The counter-based generator of most GPU libraries.
extern "C" __global__ void philox(uint4 *out, unsigned key0, unsigned key1, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    uint4 c = make_uint4(i, 0, 42, 7);
    for (int round = 0; round < 10; round++) {
        unsigned high0 = __umulhi(0xd2511f53u, c.x), low0 = 0xd2511f53u * c.x;
        unsigned high1 = __umulhi(0xcd9e8d57u, c.z), low1 = 0xcd9e8d57u * c.z;
        c = make_uint4(high1 ^ c.y ^ key0, low1, high0 ^ c.w ^ key1, low0);
        key0 += 0x9e3779b9u, key1 += 0xbb67ae85u;
    }
    out[i] = c;
}

// Where a word begins, counted and found first.
extern "C" __global__ void find_text(const char *text, int n, const char *word, int length, int *count, int *first)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i + length > n)
        return;
    for (int k = 0; k < length; k++)
        if (text[i + k] != word[k])
            return;
    atomicAdd(count, 1);
    atomicMin(first, i);
}
