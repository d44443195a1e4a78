//! Whether blocks may be waiting for each other.
//!
//! A block that waits asks the same place again and again: it loads, in a loop and in a way that the compiler may not
//! fold, or tries an atomic operation and looks at what came back. Many loops of that kind wait for nobody (a histogram
//! that looks where it landed), but the ordered rule is right for these too. Where a loop is in another function is not
//! followed: there any such access counts.

use std::collections::BTreeMap;

use ptx::{Body, Function, Instruction, Module, Operand, Statement};

/// Whether a function's text may let a block wait for others. Of a `callee` it is not known in what loop it is.
pub fn may_wait(module: &Module, function: &Function, body: &Body, callee: bool) -> bool {
    let mut text = Linear { module, instructions: Vec::new(), labels: BTreeMap::new() };
    text.append(body);
    let in_loop = text.in_loop();
    let clusters =
        function.directives.iter().any(|directive| module.text(directive.name).contains("cluster"));
    let mut instructions = text.instructions.iter().zip(in_loop);
    clusters
        || instructions.any(|(instruction, in_loop)| {
            in_cluster(module, instruction) || (callee || in_loop) && polls(module, instruction)
        })
}

/// A function's instructions in the order of the text, scopes unfolded.
struct Linear<'m> {
    module: &'m Module,
    instructions: Vec<&'m Instruction>,
    /// Labels, and which instruction each stands before: the first of those with one name in several scopes.
    labels: BTreeMap<&'m str, usize>,
}

impl<'m> Linear<'m> {
    fn append(&mut self, body: &'m Body) {
        for statement in &body.statements {
            match statement {
                Statement::Label { name, .. } => {
                    self.labels.entry(self.module.text(*name)).or_insert(self.instructions.len());
                }
                Statement::Instruction(instruction) => self.instructions.push(instruction),
                Statement::Scope(body) => self.append(body),
                Statement::Variable(_) | Statement::Directive(_) => {}
            }
        }
    }

    /// For each instruction, whether it may be gone through again: it lies between a jump back and where that leads. A
    /// jump through a table may go anywhere.
    fn in_loop(&self) -> Vec<bool> {
        let count = self.instructions.len();
        // How many loops begin, less how many have ended, before each instruction.
        let mut change = vec![0i64; count + 1];
        for (place, instruction) in self.instructions.iter().enumerate() {
            let earlier = match self.module.text(instruction.opcode) {
                "bra" => self.target(instruction).filter(|&target| target <= place),
                "brx" => Some(0),
                _ => None,
            };
            let end = if self.module.text(instruction.opcode) == "brx" { count } else { place + 1 };
            if let Some(start) = earlier {
                change[start] += 1;
                change[end] -= 1;
            }
        }
        let mut inside = 0;
        let deepen = |change: &i64| {
            inside += change;
            inside > 0
        };
        change[..count].iter().map(deepen).collect()
    }

    fn target(&self, jump: &Instruction) -> Option<usize> {
        let Some(Operand::Name(name)) = jump.operands.first() else { return None };
        self.labels.get(self.module.text(*name)).copied()
    }
}

/// Whether an instruction is of the kind with which one waits for somebody in another block.
fn polls(module: &Module, instruction: &Instruction) -> bool {
    let has = |words: &[&str]| instruction.modifiers.iter().any(|&span| words.contains(&module.text(span)));
    let own = has(&["shared", "shared::cta", "local", "param"]);
    match module.text(instruction.opcode) {
        "ld" => !own && has(&["volatile", "relaxed", "acquire", "mmio"]),
        "atom" => !own && !discards(module, instruction),
        "nanosleep" | "multimem" => true,
        _ => false,
    }
}

/// Whether what comes back is thrown away by writing it to `_`.
fn discards(module: &Module, instruction: &Instruction) -> bool {
    matches!(instruction.operands.first(), Some(Operand::Name(name)) if module.text(*name) == "_")
}

/// Whether an instruction makes sense only in clusters.
fn in_cluster(module: &Module, instruction: &Instruction) -> bool {
    let words = instruction.modifiers.iter().chain([&instruction.opcode]);
    let mut words =
        words.map(|&span| module.text(span)).chain(instruction.operands.iter().filter_map(|operand| {
            match operand {
                Operand::Name(name) => Some(module.text(*name)),
                _ => None,
            }
        }));
    words.any(|word| {
        word == "mapa" || word == "cluster" || word.contains("::cluster") || word.starts_with("%cluster")
    })
}
