//! The tree as a sequence of places in the text.

use crate::{
    Body, Declarator, Directive, Function, Initialiser, Instruction, Item, Module, Operand, Span, Statement,
    Variable,
};

impl Item {
    pub fn span(&self) -> Span {
        match self {
            Item::Variable(variable) => variable.span,
            Item::Function(function) => function.span,
            Item::Directive(directive) => directive.span,
        }
    }
}

impl Statement {
    pub fn span(&self) -> Span {
        match self {
            Statement::Label { span, .. } => *span,
            Statement::Variable(variable) => variable.span,
            Statement::Instruction(instruction) => instruction.span,
            Statement::Directive(directive) => directive.span,
            Statement::Scope(body) => body.span,
        }
    }
}

impl Operand {
    pub fn span(&self) -> Span {
        match self {
            Operand::Name(span)
            | Operand::Integer { span, .. }
            | Operand::Float { span, .. }
            | Operand::Address { span, .. }
            | Operand::Offset { span, .. }
            | Operand::Vector { span, .. }
            | Operand::List { span, .. }
            | Operand::Not { span, .. }
            | Operand::Negated { span, .. }
            | Operand::Pair { span, .. }
            | Operand::Apply { span, .. } => *span,
        }
    }
}

impl Module {
    /// The smallest pieces of the tree that have a place, in the order of the tree, which is that of the text.
    pub(crate) fn leaves(&self) -> Vec<Span> {
        let mut leaves = Leaves(Vec::new());
        for item in &self.items {
            match item {
                Item::Variable(variable) => leaves.variable(variable),
                Item::Function(function) => leaves.function(function),
                Item::Directive(directive) => leaves.directive(directive),
            }
        }
        leaves.0
    }
}

struct Leaves(Vec<Span>);

impl Leaves {
    fn directive(&mut self, directive: &Directive) {
        self.0.push(directive.name);
        self.0.extend(&directive.arguments);
    }

    fn variable(&mut self, variable: &Variable) {
        // The words of a declaration come in any order; the tree sorts them by meaning.
        let words = self.0.len();
        self.0.extend(&variable.linkage);
        self.0.push(variable.space);
        self.0.extend(variable.vector);
        self.0.push(variable.ty);
        self.0.extend(&variable.attributes);
        self.0[words..].sort_unstable_by_key(|span| span.start);
        for declarator in &variable.declarators {
            self.declarator(declarator);
        }
    }

    fn declarator(&mut self, declarator: &Declarator) {
        self.0.push(declarator.name);
        if let Some(initialiser) = &declarator.initialiser {
            self.initialiser(initialiser);
        }
    }

    fn initialiser(&mut self, initialiser: &Initialiser) {
        match initialiser {
            Initialiser::Value(operand) => self.operand(operand),
            Initialiser::List(list) => {
                for element in list {
                    self.initialiser(element);
                }
            }
        }
    }

    fn function(&mut self, function: &Function) {
        self.0.extend(&function.linkage);
        // Attributes of a function may stand before its name.
        let (early, late): (Vec<_>, Vec<_>) =
            function.directives.iter().partition(|directive| directive.span.start < function.name.start);
        for directive in early {
            self.directive(directive);
        }
        for variable in &function.returns {
            self.variable(variable);
        }
        self.0.push(function.name);
        for variable in &function.parameters {
            self.variable(variable);
        }
        for directive in late {
            self.directive(directive);
        }
        if let Some(body) = &function.body {
            self.body(body);
        }
    }

    fn body(&mut self, body: &Body) {
        for statement in &body.statements {
            match statement {
                Statement::Label { name, .. } => self.0.push(*name),
                Statement::Variable(variable) => self.variable(variable),
                Statement::Instruction(instruction) => self.instruction(instruction),
                Statement::Directive(directive) => self.directive(directive),
                Statement::Scope(body) => self.body(body),
            }
        }
    }

    fn instruction(&mut self, instruction: &Instruction) {
        self.0.extend(instruction.guard.map(|guard| guard.register));
        self.0.push(instruction.opcode);
        self.0.extend(&instruction.modifiers);
        self.operands(&instruction.operands);
    }

    fn operands(&mut self, operands: &[Operand]) {
        for operand in operands {
            self.operand(operand);
        }
    }

    fn operand(&mut self, operand: &Operand) {
        match operand {
            Operand::Name(span) | Operand::Integer { span, .. } | Operand::Float { span, .. } => {
                self.0.push(*span);
            }
            Operand::Address { base, rest, .. } => {
                self.operand(base);
                self.operands(rest);
            }
            Operand::Offset { base, .. } => self.0.push(*base),
            Operand::Vector { elements, .. } | Operand::List { elements, .. } => {
                self.operands(elements);
            }
            Operand::Not { register, .. } | Operand::Negated { register, .. } => {
                self.0.push(*register);
            }
            Operand::Pair { first, second, .. } => self.0.extend([first, second]),
            Operand::Apply { function, argument, .. } => {
                self.0.push(*function);
                self.operand(argument);
            }
        }
    }
}
