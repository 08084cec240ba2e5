//! Builder of a test: assigns names and sets the question.

use litmus::{
    Access, Comparison, Condition, Dialect, Instruction, InstructionKind, Label, Location, LocationId,
    MemoryPlace, Operand, Placement, Question, QuestionKind, Register, RegisterId, RegisterInit, Span,
    StorageClass, Term, Test, Thread, ThreadId, ThreadPlace,
};

/// A test under construction.
#[derive(Clone, Debug)]
pub(super) struct TestBuilder {
    pub(super) test: Test,
}

impl TestBuilder {
    pub(super) fn new(name: &str) -> TestBuilder {
        TestBuilder { test: Test::new(name, Dialect::Vulkan) }
    }

    pub(super) fn add_thread(&mut self, place: Placement) -> ThreadId {
        let number = self.test.threads.len() as u16;
        self.test.threads.push(Thread {
            number: u32::from(number),
            place: ThreadPlace::Device(place),
            registers: Vec::new(),
            labels: Vec::new(),
            instructions: Vec::new(),
            span: Span::default(),
        });
        ThreadId(number)
    }

    /// Returns the location of a name, initially 0.
    pub(super) fn get_or_add_location(&mut self, name: char) -> LocationId {
        let name = name.to_string();
        let existing = self.test.locations.iter().position(|location| location.name == name);
        let index = existing.unwrap_or_else(|| {
            self.test.locations.push(Location::new(name));
            self.test.locations.len() - 1
        });
        LocationId(index as u16)
    }

    pub(super) fn add_register(&mut self, thread: ThreadId) -> RegisterId {
        let Some(column) = self.test.threads.get_mut(usize::from(thread.0)) else { return RegisterId(0) };
        let index = column.registers.len() as u16;
        column.registers.push(Register {
            name: format!("r{index}"),
            init: RegisterInit::Constant(0),
            declared: false,
        });
        RegisterId(index)
    }

    /// Names the one label of a thread.
    pub(super) fn add_label(&mut self, thread: ThreadId) {
        if let Some(column) = self.test.threads.get_mut(usize::from(thread.0)) {
            column.labels.push(Label { name: "LC00".to_owned() });
        }
    }

    pub(super) fn push_instruction(&mut self, thread: ThreadId, kind: InstructionKind) {
        if let Some(column) = self.test.threads.get_mut(usize::from(thread.0)) {
            column.instructions.push(Instruction { kind, span: Span::default() });
        }
    }

    pub(super) fn push_store(
        &mut self,
        thread: ThreadId,
        location: LocationId,
        value: Operand,
        class: StorageClass,
        access: Access,
    ) {
        self.push_instruction(
            thread,
            InstructionKind::store(MemoryPlace::whole_location(location, class), value, access),
        );
    }

    pub(super) fn push_load(
        &mut self,
        thread: ThreadId,
        location: LocationId,
        class: StorageClass,
        access: Access,
    ) -> RegisterId {
        let destination = self.add_register(thread);
        self.push_instruction(
            thread,
            InstructionKind::load(destination, MemoryPlace::whole_location(location, class), access),
        );
        destination
    }

    /// Sets the question whether some execution ends with all these values.
    pub(super) fn set_question(&mut self, expected_values: &[(Term, i64)]) {
        self.test.question = Some(exists_question(expected_values));
    }
}

/// Returns the question if some execution ends with all these values.
pub(super) fn exists_question(expected_values: &[(Term, i64)]) -> Question {
    let equal = |(term, value): &(Term, i64)| Condition::Compare {
        left: term.clone(),
        comparison: Comparison::Equal,
        right: Term::Constant(*value),
    };
    let condition = expected_values
        .iter()
        .map(equal)
        .reduce(|all, one| Condition::And(Box::new(all), Box::new(one)))
        .unwrap_or(Condition::True);
    Question { kind: QuestionKind::Exists, condition, span: Span::default() }
}
