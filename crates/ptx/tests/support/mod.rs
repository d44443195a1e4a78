//! A compact picture of a tree, for snapshots.

use ptx::*;
use std::fmt::Write as _;

pub fn dump(parse: &Parse) -> String {
    let mut dump = Dump { module: &parse.module, text: String::new() };
    for item in &parse.module.items {
        match item {
            Item::Variable(variable) => dump.variable(0, variable),
            Item::Function(function) => dump.function(function),
            Item::Directive(directive) => dump.directive(0, directive),
        }
    }
    for error in &parse.errors {
        let _ = writeln!(dump.text, "error {error}");
    }
    dump.text
}

struct Dump<'m> {
    module: &'m Module,
    text: String,
}

impl Dump<'_> {
    fn line(&mut self, depth: usize, line: &str) {
        let _ = writeln!(self.text, "{:1$}{line}", "", depth * 2);
    }

    /// One line, cut short.
    fn words(&self, span: Span) -> String {
        let words = self.module.text(span).split_whitespace();
        let text = words.collect::<Vec<_>>().join(" ");
        match text.char_indices().nth(60) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text,
        }
    }

    fn spans(&self, spans: &[Span]) -> String {
        let words: Vec<String> = spans.iter().map(|span| self.words(*span)).collect();
        words.join(" ")
    }

    fn directive(&mut self, depth: usize, directive: &Directive) {
        let mut line = format!("directive {}", self.words(directive.name));
        for argument in &directive.arguments {
            let _ = write!(line, " ‹{}›", self.words(*argument));
        }
        self.line(depth, &line);
    }

    fn variable(&mut self, depth: usize, variable: &Variable) {
        let mut line = format!("variable {}", self.words(variable.space));
        for linkage in &variable.linkage {
            let _ = write!(line, " linkage {}", self.words(*linkage));
        }
        if let Some(align) = variable.align {
            let _ = write!(line, " align {align}");
        }
        if let Some(vector) = variable.vector {
            let _ = write!(line, " vector {}", self.words(vector));
        }
        let _ = write!(line, " type {}", self.words(variable.ty));
        if !variable.attributes.is_empty() {
            let _ = write!(line, " attributes {}", self.spans(&variable.attributes));
        }
        self.line(depth, &line);
        for declarator in &variable.declarators {
            let mut line = self.words(declarator.name);
            if let Some(count) = declarator.count {
                let _ = write!(line, " × {count}");
            }
            if !declarator.dimensions.is_empty() {
                let _ = write!(line, " dimensions {:?}", declarator.dimensions);
            }
            if let Some(initialiser) = &declarator.initialiser {
                let _ = write!(line, " = {}", self.initialiser(initialiser));
            }
            self.line(depth + 1, &line);
        }
    }

    fn initialiser(&self, initialiser: &Initialiser) -> String {
        match initialiser {
            Initialiser::Value(operand) => self.operand(operand),
            Initialiser::List(list) => {
                let list: Vec<String> = list.iter().map(|i| self.initialiser(i)).collect();
                format!("{{{}}}", list.join(", "))
            }
        }
    }

    fn function(&mut self, function: &Function) {
        let mut line = format!("{:?} {}", function.kind, self.words(function.name));
        for linkage in &function.linkage {
            let _ = write!(line, " linkage {}", self.words(*linkage));
        }
        self.line(0, &line);
        for (what, variables) in [("returns", &function.returns), ("parameters", &function.parameters)] {
            if !variables.is_empty() {
                self.line(1, what);
            }
            for variable in variables {
                self.variable(2, variable);
            }
        }
        for directive in &function.directives {
            self.directive(1, directive);
        }
        if let Some(body) = &function.body {
            self.body(1, body);
        }
    }

    fn body(&mut self, depth: usize, body: &Body) {
        self.line(depth, "{");
        for statement in &body.statements {
            match statement {
                Statement::Label { name, .. } => {
                    let line = format!("label {}", self.words(*name));
                    self.line(depth, &line);
                }
                Statement::Variable(variable) => self.variable(depth + 1, variable),
                Statement::Instruction(instruction) => {
                    let line = self.instruction(instruction);
                    self.line(depth + 1, &line);
                }
                Statement::Directive(directive) => self.directive(depth + 1, directive),
                Statement::Scope(body) => self.body(depth + 1, body),
            }
        }
        self.line(depth, "}");
    }

    fn instruction(&self, instruction: &Instruction) -> String {
        let mut line = String::new();
        if let Some(guard) = instruction.guard {
            let not = if guard.negated { "not " } else { "" };
            let _ = write!(line, "if {not}{} ", self.words(guard.register));
        }
        line.push_str(&self.words(instruction.opcode));
        if !instruction.modifiers.is_empty() {
            let _ = write!(line, " [{}]", self.spans(&instruction.modifiers));
        }
        for operand in &instruction.operands {
            let _ = write!(line, " ‹{}›", self.operand(operand));
        }
        line
    }

    fn operands(&self, operands: &[Operand]) -> String {
        let operands: Vec<String> = operands.iter().map(|o| self.operand(o)).collect();
        operands.join(", ")
    }

    fn operand(&self, operand: &Operand) -> String {
        match operand {
            Operand::Name(span) => self.words(*span),
            Operand::Integer { value, .. } => value.cast_signed().to_string(),
            Operand::Float { bits, double, .. } => match double {
                true => format!("f64 {}", f64::from_bits(*bits)),
                false => format!("f32 {}", f32::from_bits(*bits as u32)),
            },
            Operand::Address { base, offset, rest, .. } => {
                let mut text = format!("at {}", self.operand(base));
                if *offset != 0 {
                    let _ = write!(text, " {offset:+}");
                }
                if !rest.is_empty() {
                    let _ = write!(text, " with {}", self.operands(rest));
                }
                text
            }
            Operand::Offset { base, offset, .. } => format!("{} {offset:+}", self.words(*base)),
            Operand::Element { base, index, .. } => format!("element {index} of {}", self.words(*base)),
            Operand::Vector { elements, .. } => format!("{{{}}}", self.operands(elements)),
            Operand::List { elements, .. } => format!("({})", self.operands(elements)),
            Operand::Not { register, .. } => format!("not {}", self.words(*register)),
            Operand::Negated { register, .. } => format!("minus {}", self.words(*register)),
            Operand::Pair { first, second, .. } => {
                format!("{} and {}", self.words(*first), self.words(*second))
            }
            Operand::Apply { function, argument, .. } => {
                format!("{}({})", self.words(*function), self.operand(argument))
            }
        }
    }
}
