//! The card: how much room it has, and what each thing costs on it.

use model::Nanos;

#[derive(Clone, Debug, PartialEq)]
pub struct Card {
    pub sms: u32,
    pub costs: Costs,
}

/// What things cost. Spans are means; where a card scatters, `scatter` says by how much.
#[derive(Clone, Debug, PartialEq)]
pub struct Costs {
    /// The host's part of a launch.
    pub launch_call: Nanos,
    /// From the end of the call to the first instruction, on an idle GPU.
    pub launch_to_start: Nanos,
    /// From a launch call of a latency tenant until blocks of others see the stop flag.
    pub flag: Nanos,
    /// How long a thousand blocks take that find the flag set, or find that they ran already; they leave one after the other.
    pub turned_away: Nanos,
    /// From the decision that somebody may go on to its first instruction, shared domain.
    pub resume: Nanos,
    /// How much longer guarded kernels take, as a factor.
    pub guard: f64,
    /// Saving a context that is left.
    pub switch_off: Nanos,
    /// Loading the context that comes.
    pub switch_on: Nanos,
    /// By how much a switch differs from one to the next, as a share.
    pub scatter: f64,
    /// The slice of a context for which nobody asked anything else.
    pub slice: Nanos,
    /// The slice of a best-effort tenant in the isolated domain.
    pub best_effort_slice: Nanos,
    /// Taking a process off the GPU by disabling its channels, and letting it on again: how turns of the token end and begin.
    pub lever_off: Nanos,
    pub lever_on: Nanos,
    /// How much longer a latency tenant's kernels take under MPS with nobody beside them, as a factor.
    pub mps: f64,
    /// How much longer they take while blocks of others run on the same card, as a factor: caches and memory are shared.
    pub beside: f64,
    /// How much longer they take while work of others is confined to some of the SMs, as a factor: these they have to themselves, but
    /// memory they share.
    pub confined: f64,
    /// How long a kernel of a latency tenant waits for room, with priorities: as a share of the blocks that are running.
    pub priority_wait: f64,
    /// The same without priorities, as a share of the kernel that is running.
    pub fifo_wait: f64,
}

impl Card {
    /// One H200, as measured; `docs/benchmarks/isolated.md` and `guard.md` have the tables.
    pub fn h200() -> Card {
        Card {
            sms: 132,
            costs: Costs {
                // 3.7 µs for the call.
                launch_call: Nanos(3_700),
                // 8.8 µs from the call to the observed completion of an empty kernel, the call itself included.
                launch_to_start: Nanos(4_000),
                // A flag write is visible after 4 µs on a fresh stream; through a mapping, after rest, 10 to 12 µs.
                flag: Nanos(8_000),
                // Two million in 1.15 ms.
                turned_away: Nanos(570),
                // The owner sees it on the board and launches again: a call, and what is on the way before the first block.
                resume: Nanos(12_000),
                // GPT-2 large 0.96, ResNet-50 0.88 of the throughput without a guard; large kernels 1.01.
                guard: 1.04,
                // 147 to 192 µs from the last instruction of one context to the first of the other, 152 to 182 back.
                switch_off: Nanos(95_000),
                switch_on: Nanos(85_000),
                // p99 over p50 of the same table.
                scatter: 0.10,
                // What the driver gives a compute channel group.
                slice: Nanos(2_048_000),
                best_effort_slice: Nanos(1_000),
                // DISABLE_CHANNELS 587 µs under work, 216 µs to enable.
                lever_off: Nanos(587_000),
                lever_on: Nanos(216_000),
                // A request of graph-BERT takes 1.11 ms under MPS with nobody at work, 1.03 without.
                mps: 1.07,
                // Not measured apart from waiting; one in twenty is what memory-bound kernels lose to a neighbour's traffic.
                beside: 1.05,
                // BERT beside GPT-2 on 78 and 50% of the SMs 1.36 and 1.41 times as long as alone, ResNet-50 beside Whisper on half of
                // them 1.35, on 78% 1.71. Beside blocks that only count, on half of them, it is 1.00.
                confined: 1.38,
                // Ten kernels beside blocks of 100 µs take 700 to 730 µs more, beside blocks of 1 ms 4,700 to 7,000.
                priority_wait: 0.65,
                // Ten kernels beside grids of 20 ms take 177 ms; 165 beside GPT-2 (56 µs a kernel) 7.8 ms.
                fifo_wait: 0.88,
            },
        }
    }
}
