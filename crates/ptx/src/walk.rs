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
            | Operand::Element { span, .. }
            | Operand::Vector { span, .. }
            | Operand::List { span, .. }
            | Operand::Not { span, .. }
            | Operand::Negated { span, .. }
            | Operand::Pair { span, .. }
            | Operand::Apply { span, .. } => *span,
        }
    }
}

/// What a leaf may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Opcodes, modifiers, literals, dotted words.
    Syntax,
    /// A name, declared or used; perhaps with a selector.
    Name,
    /// An argument of a directive, in which there may be names.
    Text,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Leaf {
    pub span: Span,
    pub role: Role,
}

impl Module {
    /// The smallest pieces of the tree that have a place, in the order of the tree, which is that of the text.
    pub(crate) fn leaves(&self) -> Vec<Leaf> {
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

    /// The function of that name: the one with a body, if there is one.
    pub fn function(&self, name: &str) -> Option<&Function> {
        let functions = self.functions().filter(|f| self.text(f.name) == name);
        functions.max_by_key(|function| function.body.is_some())
    }

    /// All functions in source order, declarations included.
    pub fn functions(&self) -> impl Iterator<Item = &Function> {
        self.items.iter().filter_map(|item| match item {
            Item::Function(function) => Some(function),
            _ => None,
        })
    }
}

struct Leaves(Vec<Leaf>);

impl Leaves {
    fn syntax(&mut self, span: Span) {
        let role = Role::Syntax;
        self.0.push(Leaf { span, role });
    }

    fn name(&mut self, span: Span) {
        let role = Role::Name;
        self.0.push(Leaf { span, role });
    }

    fn directive(&mut self, directive: &Directive) {
        self.syntax(directive.name);
        let role = Role::Text;
        let arguments = directive.arguments.iter();
        self.0.extend(arguments.map(|&span| Leaf { span, role }));
    }

    fn variable(&mut self, variable: &Variable) {
        // The words of a declaration come in any order; the tree sorts them by meaning.
        let words = self.0.len();
        let named = [Some(variable.space), variable.vector, Some(variable.ty)];
        let others = variable.linkage.iter().chain(&variable.attributes);
        for span in named.into_iter().flatten().chain(others.copied()) {
            self.syntax(span);
        }
        self.0[words..].sort_by_key(|leaf| leaf.span.start);
        for declarator in &variable.declarators {
            self.declarator(declarator);
        }
    }

    fn declarator(&mut self, declarator: &Declarator) {
        self.name(declarator.name);
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
        // Directives may stand anywhere among the other parts of a header.
        let header = self.0.len();
        for span in &function.linkage {
            self.syntax(*span);
        }
        for variable in function.returns.iter().chain(&function.parameters) {
            self.variable(variable);
        }
        self.name(function.name);
        for directive in &function.directives {
            self.directive(directive);
        }
        self.0[header..].sort_by_key(|leaf| leaf.span.start);
        if let Some(body) = &function.body {
            self.body(body);
        }
    }

    fn body(&mut self, body: &Body) {
        for statement in &body.statements {
            match statement {
                Statement::Label { name, .. } => self.name(*name),
                Statement::Variable(variable) => self.variable(variable),
                Statement::Instruction(instruction) => self.instruction(instruction),
                Statement::Directive(directive) => self.directive(directive),
                Statement::Scope(body) => self.body(body),
            }
        }
    }

    fn instruction(&mut self, instruction: &Instruction) {
        if let Some(guard) = instruction.guard {
            self.name(guard.register);
        }
        self.syntax(instruction.opcode);
        for span in &instruction.modifiers {
            self.syntax(*span);
        }
        self.operands(&instruction.operands);
    }

    fn operands(&mut self, operands: &[Operand]) {
        for operand in operands {
            self.operand(operand);
        }
    }

    fn operand(&mut self, operand: &Operand) {
        match operand {
            Operand::Name(span) => self.name(*span),
            Operand::Integer { span, .. } | Operand::Float { span, .. } => self.syntax(*span),
            Operand::Address { base, rest, .. } => {
                self.operand(base);
                self.operands(rest);
            }
            Operand::Offset { base, .. } | Operand::Element { base, .. } => self.name(*base),
            Operand::Vector { elements, .. } | Operand::List { elements, .. } => {
                self.operands(elements);
            }
            Operand::Not { register, .. } | Operand::Negated { register, .. } => {
                self.name(*register);
            }
            Operand::Pair { first, second, .. } => {
                // The first may be a vector, which has names in it.
                let (span, role) = (*first, Role::Text);
                self.0.push(Leaf { span, role });
                self.name(*second);
            }
            Operand::Apply { function, argument, .. } => {
                self.name(*function);
                self.operand(argument);
            }
        }
    }
}
