//! The source of the prologues that go into machine code, as a kernel that does nothing but count its blocks.
//!
//! What a GPU executes is compiled from this text, so what is tried here is the text itself and not its like.

use std::sync::{Arc, Mutex, OnceLock};

use guard::Rule;
use model::Dim3;
use softgpu::lower;
use softgpu::memory::{AddressSpace, ContextId, Unlimited};
use softgpu::simt::Module;

use super::subject::{Subject, Words};

const SOURCE: &str = include_str!("../../../crates/guard/donors/prologue.ptx");
const OWNER: ContextId = ContextId(1);

/// What a kernel would be here: the first thread adds one to its block's word, whose place is the first parameter.
const KERNEL: &str = "
RUN:
    @!first exit;
    mov.u32 x, %ctaid.x;
    mov.u32 y, %ctaid.y;
    mov.u32 z, %ctaid.z;
    mov.u32 nx, %nctaid.x;
    mov.u32 ny, %nctaid.y;
    mad.lo.u32 i, z, ny, y;
    mad.lo.u32 i, i, nx, x;
    ld.param.u64 at, [pad];
    mad.wide.u32 at, i, 4, at;
    red.global.add.u32 [at], 1;
    exit;
";

/// The donor under both rules.
pub fn both() -> Vec<Subject> {
    let text = SOURCE
        .replace("    nanosleep.u32 54321;\n    exit;\n", KERNEL)
        .replace("    nanosleep.u32 54322;\n    exit;\n", "    bra.uni RUN;\n")
        // This grid is large enough for blocks to stay when they are turned away.
        .replace("setp.lt.u32 p, nx, 4096;", "setp.lt.u32 p, nx, 2;");
    assert_eq!(text.matches("nanosleep.u32").count(), 1, "both ends are found, and one place to stay");
    assert!(text.contains("p, nx, 2;"), "the size of a large grid is found");
    let image = Arc::new(lower::compile(&text).expect("it is PTX"));
    [Rule::Plain, Rule::Ordered].map(|rule| subject(&image, rule)).into()
}

fn subject(image: &Arc<softgpu::isa::Image>, rule: Rule) -> Subject {
    let space = Arc::new(AddressSpace::new(1 << 20, Arc::new(Unlimited)).expect("there is memory"));
    let module = Module::load(Arc::clone(image), &space, OWNER).expect("there is memory");
    let kernel = module.kernel("donor").expect("it is the only one");
    let allocate = |bytes| space.allocate(OWNER, bytes).expect("there is memory").0;
    let words = Words { stop: allocate(8), away: allocate(8), marks: allocate(4096), tally: allocate(4096) };
    Subject {
        name: format!("donor, {rule:?}"),
        rule,
        original: kernel.clone(),
        guarded: kernel,
        control_offset: 8,
        grid: Dim3 { x: 3, y: 2, z: 2 },
        block: Dim3 { x: 8, y: 4, z: 2 },
        dynamic_shared: 0,
        parameters: words.tally.to_le_bytes().into(),
        memory: Vec::new(),
        words,
        expected: Vec::new(),
        order_matters: OnceLock::new(),
        turn: Mutex::new(()),
        space,
    }
}
