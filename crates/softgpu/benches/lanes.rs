//! Lane-instructions per second on one core, and the cost of a block that sleeps. Time is that of this thread,
//! so that a busy machine does not change the figures much.
//!
//! `cargo bench -p softgpu --bench lanes`

use std::sync::Arc;
use std::time::Instant;

use model::{Dim3, Nanos};
use softgpu::lower;
use softgpu::memory::{AddressSpace, ContextId, DevicePointer, Unlimited};
use softgpu::simt::{Block, Clock, Launch, Module, Outcome, Output};

const ROUNDS: u32 = 20_000;

/// A loop of `ROUNDS` over `body`, which is `count` instructions.
fn kernel(setup: &str, body: &str, repeat: usize) -> String {
    let body = body.repeat(repeat);
    format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p)\n{{\n\
         .reg .pred %p<4>;\n.reg .b32 %r<32>;\n.reg .f32 %f<32>;\n.reg .b64 %d<32>;\n.reg .f64 %g<8>;\n\
         .shared .align 4 .b8 tile[4096];\n\
         ld.param.u64 %d1, [p];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %d2, %r1, 4;\nadd.s64 %d1, %d1, %d2;\n\
         mov.u32 %r2, tile;\nmad.lo.s32 %r2, %r1, 4, %r2;\n{setup}\nmov.u32 %r31, 0;\n\
         LOOP:\n{body}\nadd.s32 %r31, %r31, 1;\nsetp.lt.u32 %p1, %r31, {ROUNDS};\n@%p1 bra LOOP;\n\
         st.global.b32 [%d1], %r3;\nst.global.f32 [%d1], %f3;\nst.global.f64 [%d1], %g3;\nret;\n}}\n"
    )
}

struct Real(Instant);

impl Clock for Real {
    fn now(&mut self) -> Nanos {
        self.0.elapsed().into()
    }

    fn wall(&mut self) -> Nanos {
        self.0.elapsed().into()
    }
}

/// Time stands still: what is measured is the executor and not the clock.
struct Still(u64);

impl Clock for Still {
    fn now(&mut self) -> Nanos {
        Nanos(self.0)
    }

    fn wall(&mut self) -> Nanos {
        Nanos(self.0)
    }
}

/// Seconds this thread has run.
fn thread_time() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

fn launch(text: &str, parameters: &[u8], threads: u32) -> (Arc<Launch>, Arc<AddressSpace>) {
    let space =
        Arc::new(AddressSpace::new(1 << 30, Arc::new(Unlimited)).expect("address space can be reserved"));
    let image = lower::compile(text).unwrap_or_else(|error| panic!("{error}"));
    let module = Module::load(Arc::new(image), &space, ContextId(1)).expect("the module has no variables");
    let DevicePointer(buffer) = space.allocate(ContextId(1), 1 << 20).expect("a megabyte is free");
    let mut bytes = buffer.to_le_bytes().to_vec();
    if !parameters.is_empty() {
        bytes = parameters.to_vec();
    }
    let launch = Launch {
        kernel: module.kernel("k").expect("the module has a kernel k"),
        grid: Dim3::ONE,
        block: Dim3::new(threads, 1, 1),
        dynamic_shared: 0,
        parameters: bytes.into(),
        grid_workspace: 0,
        grid_id: 0,
        sm_count: 1,
        sms: None,
        stack_limit: 1024,
        output: Arc::new(Output::default()),
    };
    (Arc::new(launch), space)
}

fn lanes(name: &str, setup: &str, body: &str) {
    const REPEAT: usize = 16;
    let per_body = body.matches(';').count();
    let (launch, space) = launch(&kernel(setup, body, REPEAT), &[], 256);
    let mut block = Block::new(&launch, &space);
    let mut clock = Real(Instant::now());
    let mut best = f64::MAX;
    for _ in 0..3 {
        block.start(0, 0);
        let start = thread_time();
        while block.run(&mut clock, 1 << 20) != Outcome::Done {}
        best = best.min(thread_time() - start);
    }
    let instructions = (per_body * REPEAT + 3) as f64 * f64::from(ROUNDS) * 256.0;
    println!("{name:<28} {:>8.2} G lane-instructions/s", instructions / best * 1e-9);
}

fn sleeping() {
    let text = ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u32 n)\n{\n.reg .b32 %r<2>;\n\
                ld.param.u32 %r1, [n];\nnanosleep.u32 %r1;\nret;\n}\n";
    let (launch, space) = launch(text, &1000u32.to_le_bytes(), 32);
    let mut block = Block::new(&launch, &space);
    let mut clock = Still(1);
    let blocks = 2_000_000u64;
    let start = thread_time();
    for index in 0..blocks {
        block.start(index, 0);
        let Outcome::Sleeping { until } = block.run(&mut clock, 1000) else { panic!("the block sleeps") };
        clock.0 = until.0;
        assert_eq!(block.run(&mut clock, 1000), Outcome::Done);
    }
    let each = (thread_time() - start) / blocks as f64;
    println!("{:<28} {:>8.1} ns per block of one warp, start to end", "a block that sleeps", each * 1e9);
}

fn main() {
    lanes("integer add", "mov.u32 %r3, 1;", "add.s32 %r3, %r3, %r1;\n");
    lanes("integer mad", "mov.u32 %r3, 1;", "mad.lo.s32 %r3, %r3, %r1, 7;\n");
    lanes("64-bit add", "mov.u64 %d3, 1;", "add.s64 %d3, %d3, %d2;\n");
    lanes("f32 fma", "mov.f32 %f3, 0f3F800000;", "fma.rn.f32 %f3, %f3, 0f3F800001, 0f3F000000;\n");
    lanes("f32 add", "mov.f32 %f3, 0f3F800000;", "add.f32 %f3, %f3, 0f3F000000;\n");
    lanes("f64 fma", "mov.f64 %g3, 0d3FF0000000000000;", "fma.rn.f64 %g3, %g3, 0d3FF0000000000001, %g3;\n");
    lanes(
        "compare and select",
        "mov.u32 %r3, 1;",
        "setp.lt.s32 %p2, %r3, %r1;\nselp.b32 %r3, %r1, 5, %p2;\n",
    );
    lanes("global load", "", "ld.global.u32 %r3, [%d1];\n");
    lanes("shared load", "", "ld.shared.u32 %r3, [%r2];\n");
    lanes(
        "mixed with loads",
        "mov.f32 %f3, 0f3F800000;",
        "ld.global.f32 %f1, [%d1];\nfma.rn.f32 %f3, %f1, %f3, %f1;\nadd.s32 %r3, %r3, %r1;\n\
         ld.shared.f32 %f2, [%r2];\nadd.f32 %f3, %f3, %f2;\nxor.b32 %r3, %r3, %r31;\n",
    );
    sleeping();
}
