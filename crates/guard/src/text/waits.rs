//! Whether blocks may be waiting for each other.
//!
//! A block that waits asks the same place again and again: it loads, in a loop and in a way that the compiler may not
//! fold, or tries an atomic operation and looks at what came back. Many loops of that kind wait for nobody (a histogram
//! that looks where it landed), but the ordered rule is right for these too. Where a loop is in another function is not
//! followed: there any such access counts.

use ptx::{Body, Function, Instruction, Module, Operand, Statement};

/// Whether a function's text may let a block wait for others. Of a `callee` it is not known in what loop it is.
pub fn may_wait(module: &Module, function: &Function, body: &Body, callee: bool) -> bool {
    let mut text = Linear { module, instructions: Vec::new(), labels: Vec::new() };
    text.append(body);
    let loops = text.loops();
    let in_loop = |place: usize| callee || loops.iter().any(|&(start, end)| (start..=end).contains(&place));
    let clusters =
        function.directives.iter().any(|directive| module.text(directive.name).contains("cluster"));
    let mut instructions = text.instructions.iter().enumerate();
    clusters
        || instructions.any(|(place, instruction)| {
            in_cluster(module, instruction) || polls(module, instruction) && in_loop(place)
        })
}

/// A function's instructions in the order of the text, scopes unfolded.
struct Linear<'m> {
    module: &'m Module,
    instructions: Vec<&'m Instruction>,
    /// Labels, and which instruction each stands before.
    labels: Vec<(&'m str, usize)>,
}

impl<'m> Linear<'m> {
    fn append(&mut self, body: &'m Body) {
        for statement in &body.statements {
            match statement {
                Statement::Label { name, .. } => {
                    self.labels.push((self.module.text(*name), self.instructions.len()));
                }
                Statement::Instruction(instruction) => self.instructions.push(instruction),
                Statement::Scope(body) => self.append(body),
                Statement::Variable(_) | Statement::Directive(_) => {}
            }
        }
    }

    /// From where to where the text may be gone through again: jumps back, with all that lies between. A jump through
    /// a table may go anywhere.
    fn loops(&self) -> Vec<(usize, usize)> {
        let mut loops = Vec::new();
        for (place, instruction) in self.instructions.iter().enumerate() {
            match self.module.text(instruction.opcode) {
                "bra" => {
                    let targets = instruction.operands.iter().filter_map(|operand| match operand {
                        Operand::Name(name) => Some(self.module.text(*name)),
                        _ => None,
                    });
                    for target in targets {
                        let earlier =
                            self.labels.iter().filter(|&&(label, at)| label == target && at <= place);
                        loops.extend(earlier.map(|&(_, at)| (at, place)));
                    }
                }
                "brx" => loops.push((0, self.instructions.len())),
                _ => {}
            }
        }
        loops
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
