// Grid-wide barriers in a cooperative launch: after each, every block must see what every other wrote before it.

#include <cooperative_groups.h>

namespace cg = cooperative_groups;

extern "C" __global__ void rotate(unsigned *a, unsigned *b, int rounds, unsigned *errors)
{
    cg::grid_group grid = cg::this_grid();
    unsigned n = grid.size(), me = grid.thread_rank();
    a[me] = me;
    grid.sync();
    for (int i = 0; i < rounds; i++) {
        unsigned *from = i % 2 ? b : a, *to = i % 2 ? a : b;
        to[me] = from[(me + 37) % n] + 1;
        grid.sync();
    }
    if (!grid.is_valid())
        atomicAdd(errors, 1u);
}
