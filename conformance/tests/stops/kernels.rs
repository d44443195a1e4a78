//! Which kernels are stopped, and what they are launched with.

use std::sync::{Arc, Mutex, OnceLock};

use guard::Verdict;
use model::Dim3;
use ptx::{Edits, FunctionKind, Item};
use softgpu::lower;
use softgpu::memory::{AddressSpace, ContextId, Unlimited};
use softgpu::simt::Module;

use super::schedule::{Schedule, orders};
use super::subject::{Subject, Words};

const GRID: Dim3 = Dim3 { x: 3, y: 2, z: 2 };
const THREADS: u32 = 64;
/// What kernels are told about the number of their elements, one after the other, until one suits them.
const COUNTS: [u32; 3] = [700, 24, 3];
/// In how many drawn orders a kernel is tried.
const FEW: u64 = 4;
const BUFFER: usize = 64 << 10;
const OWNER: ContextId = ContextId(1);

/// Counts blocks: the first thread of each adds one to its block's word.
const COUNT: &str = "
{
	.reg .pred %tally_p;
	.reg .b32 %tally_r<4>;
	.reg .b64 %tally_d<3>;
	mov.u32 %tally_r1, %tid.x;
	mov.u32 %tally_r2, %tid.y;
	or.b32 %tally_r1, %tally_r1, %tally_r2;
	mov.u32 %tally_r2, %tid.z;
	or.b32 %tally_r1, %tally_r1, %tally_r2;
	setp.ne.u32 %tally_p, %tally_r1, 0;
	@%tally_p bra $tally_done;
	mov.u32 %tally_r1, %ctaid.z;
	mov.u32 %tally_r2, %nctaid.y;
	mov.u32 %tally_r3, %ctaid.y;
	mad.lo.u32 %tally_r1, %tally_r1, %tally_r2, %tally_r3;
	mov.u32 %tally_r2, %nctaid.x;
	mov.u32 %tally_r3, %ctaid.x;
	mad.lo.u32 %tally_r1, %tally_r1, %tally_r2, %tally_r3;
	mul.wide.u32 %tally_d1, %tally_r1, 4;
	ld.param.u64 %tally_d2, [tally_place];
	add.u64 %tally_d1, %tally_d1, %tally_d2;
	red.global.add.u32 [%tally_d1], 1;
$tally_done:
}
";

/// The module with a count in each of its kernels.
fn counting(text: &str) -> String {
    let module = ptx::parse(text).module;
    let mut edits = Edits::new();
    for function in module.functions().filter(|function| function.kind == FunctionKind::Entry) {
        if let Some(body) = &function.body {
            edits.add_parameter(function, ".param .u64 tally_place");
            edits.prologue(body, COUNT);
        }
    }
    edits.apply(&module).expect("the edits are apart from each other")
}

/// The suite's texts of some variants, by name.
fn texts(variants: &[&str]) -> Vec<(String, String)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/kernels/ptx");
    let files = std::fs::read_dir(folder).expect("the suite's kernels are there");
    let mut texts = Vec::new();
    for path in files.map(|file| file.expect("the folder can be read").path()) {
        let name = path.file_stem().expect("a file has a name").to_string_lossy().into_owned();
        if variants.iter().any(|variant| name.ends_with(variant)) {
            texts.push((name, std::fs::read_to_string(&path).expect("PTX is text")));
        }
    }
    texts.sort();
    texts
}

/// How many kernels of the suite, in its newest variant, are guarded.
pub fn guarded_in_suite() -> usize {
    let kernels = texts(&["compute_90.O3"]).into_iter().flat_map(|(name, text)| {
        guard::rewrite_ptx(&text).unwrap_or_else(|error| panic!("{name}: {error}")).kernels
    });
    kernels.filter(|kernel| matches!(kernel.verdict, Verdict::Guard(_))).count()
}

/// All kernels of the suite that can be compared.
pub fn suite(variants: &[&str]) -> Vec<Subject> {
    texts(variants).iter().flat_map(|(name, text)| subjects(name, text)).collect()
}

/// Kernels whose blocks count, wait for each other and meet.
pub fn own() -> Vec<Subject> {
    let subjects = subjects("", include_str!("own.ptx"));
    assert_eq!(subjects.len(), 4, "each of them can be compared");
    subjects
}

fn subjects(file: &str, text: &str) -> Vec<Subject> {
    let text = counting(text);
    let rewritten = guard::rewrite_ptx(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
    let guarded = std::str::from_utf8(&rewritten.image).expect("PTX is text").trim_end_matches('\0');
    let compile = |text: &str| lower::compile(text).map(Arc::new);
    // What is to be linked with something else cannot be compiled, and is refused.
    let (Ok(original), Ok(guarded)) = (compile(&text), compile(guarded)) else {
        let refused = rewritten.kernels.iter().all(|kernel| matches!(kernel.verdict, Verdict::Refuse(_)));
        assert!(refused, "{file} was rewritten to something that cannot be compiled");
        return Vec::new();
    };
    let mut subjects = Vec::new();
    for kernel in &rewritten.kernels {
        let Verdict::Guard(rule) = kernel.verdict else { continue };
        let space = Arc::new(AddressSpace::new(64 << 20, Arc::new(Unlimited)).expect("there is memory"));
        let load = |image| Module::load(Arc::clone(image), &space, OWNER).expect("there is memory");
        let find = |image| load(image).kernel(&kernel.name).expect("it was compiled");
        let arguments = Arguments { space: &space, text: &text, kernel };
        let mut subject = Subject {
            name: format!("{file} {}", kernel.name).trim().to_owned(),
            rule,
            original: find(&original),
            guarded: find(&guarded),
            control_offset: kernel.control_offset,
            grid: GRID,
            block: Dim3::new(THREADS, 1, 1),
            dynamic_shared: 8 << 10,
            parameters: Vec::new(),
            memory: arguments.buffers(),
            words: Words {
                stop: arguments.allocate(8),
                away: arguments.allocate(8),
                marks: arguments.allocate(4096),
                tally: arguments.allocate(4096),
            },
            expected: Vec::new(),
            order_matters: OnceLock::new(),
            turn: Mutex::new(()),
            space: Arc::clone(&space),
        };
        subject.block = subject.original.required_block().unwrap_or(subject.block);
        if COUNTS.iter().any(|&count| suits(&mut subject, &arguments, count)) {
            subjects.push(subject);
        }
    }
    subjects
}

/// Tries the original with a count of elements: it must come to an end and leave the same in memory, whatever the order.
fn suits(subject: &mut Subject, arguments: &Arguments<'_>, count: u32) -> bool {
    subject.parameters = arguments.parameters(count, &subject.memory, subject.words.tally);
    let Some(expected) = subject.run_original(&Schedule::new(Vec::new())) else { return false };
    let same = orders(subject.rule, FEW)
        .iter()
        .all(|schedule| subject.run_original(schedule).as_ref() == Some(&expected));
    subject.expected = expected;
    same
}

struct Arguments<'a> {
    space: &'a Arc<AddressSpace>,
    text: &'a str,
    kernel: &'a guard::Kernel,
}

impl Arguments<'_> {
    fn allocate(&self, bytes: usize) -> u64 {
        self.space.allocate(OWNER, bytes as u64).expect("there is memory").0
    }

    /// Types of the kernel's parameters, without that of the count.
    fn types(&self) -> Vec<String> {
        let module = ptx::parse(self.text).module;
        let function = module.items.iter().find_map(|item| match item {
            Item::Function(function) if module.text(function.name) == self.kernel.name => Some(function),
            _ => None,
        });
        let parameters = &function.expect("the kernel is in its text").parameters;
        let declared = parameters
            .iter()
            .flat_map(|variable| variable.declarators.iter().map(move |one| (variable, one)));
        let types = declared.map(|(variable, one)| match one.dimensions.is_empty() {
            true => module.text(variable.ty).to_owned(),
            false => "array".to_owned(),
        });
        let mut types: Vec<_> = types.collect();
        types.pop();
        types
    }

    /// A buffer for each parameter that may be an address, filled with small numbers: some kernels take them as places.
    fn buffers(&self) -> Vec<(u64, Vec<u8>)> {
        let addresses = self.types().into_iter().filter(|ty| ty == ".u64" || ty == ".b64");
        let words =
            |buffer: u32| (0..BUFFER as u32 / 4).flat_map(move |i| ((i * 7 + buffer) % 61).to_le_bytes());
        addresses.zip(0..).map(|(_, buffer)| (self.allocate(BUFFER), words(buffer).collect())).collect()
    }

    fn parameters(&self, count: u32, buffers: &[(u64, Vec<u8>)], tally: u64) -> Vec<u8> {
        let end = self.kernel.parameters.last().map_or(0, |last| last.offset + last.size);
        let mut bytes = vec![0; end as usize];
        let mut addresses = buffers.iter().map(|(address, _)| *address);
        for (ty, place) in self.types().iter().zip(&self.kernel.parameters) {
            let value: Vec<u8> = match ty.as_str() {
                ".u64" | ".b64" => addresses.next().expect("each has a buffer").to_le_bytes().into(),
                ".f32" => 1.25f32.to_le_bytes().into(),
                ".f64" => 0.75f64.to_le_bytes().into(),
                "array" => vec![0; place.size as usize],
                _ => count.to_le_bytes()[..(place.size as usize).min(4)].into(),
            };
            bytes[place.offset as usize..][..value.len()].copy_from_slice(&value);
        }
        let last = self.kernel.parameters.last().expect("the count is one");
        bytes[last.offset as usize..][..8].copy_from_slice(&tally.to_le_bytes());
        bytes
    }
}
