//! Loops of kernels, in the one shape in which all are emitted: what is carried, a test, a body, what comes next.

use rspirv::dr::Operand;
use rspirv::spirv::{Op, Word};

use crate::module::Module;

/// A loop under construction. The code around it calls, in this order, [`Loop::enter`], [`Loop::goes_on_if`] behind what
/// decides that, and [`Loop::end`] behind the body; then the block behind the loop is open.
pub(crate) struct Loop {
    /// The block that decides whether there is another turn.
    pub test: Word,
    /// The first block of a turn.
    pub body: Word,
    /// The block from which the next turn begins.
    pub continuing: Word,
    /// The block behind the loop.
    pub merge: Word,
    header: Word,
    carried: Vec<Carried>,
}

/// A word that goes from one turn to the next.
struct Carried {
    first: Word,
    now: Word,
    next: Word,
    /// What is added in each turn; none where the body computes `next`.
    step: Option<Word>,
}

impl Loop {
    /// A loop with fresh labels.
    pub fn new(module: &mut Module) -> Loop {
        Loop::with_labels(std::array::from_fn(|_| module.id()))
    }

    /// A loop with these labels: of what is carried, of the test, of the body, of what comes next, of what is behind it.
    pub fn with_labels([header, test, body, continuing, merge]: [Word; 5]) -> Loop {
        Loop { test, body, continuing, merge, header, carried: Vec::new() }
    }

    /// Carries a word: what it is in this turn, and the id that it is to get for the next one.
    pub fn carry(&mut self, module: &mut Module, first: Word) -> (Word, Word) {
        let (now, next) = (module.id(), module.id());
        self.carried.push(Carried { first, now, next, step: None });
        (now, next)
    }

    /// Carries a number that grows by `step` in each turn.
    pub fn count(&mut self, module: &mut Module, first: Word, step: Word) -> Word {
        let (now, next) = (module.id(), module.id());
        self.count_as((now, next), first, step);
        now
    }

    /// The same, with ids for this turn and for the next one.
    pub fn count_as(&mut self, (now, next): (Word, Word), first: Word, step: Word) {
        self.carried.push(Carried { first, now, next, step: Some(step) });
    }

    /// Enters it from the open block, whose label is `before`.
    pub fn enter(&self, module: &mut Module, before: Word) {
        module.branch(self.header);
        module.begin(self.header);
        let word = module.u32;
        for Carried { first, now, next, .. } in &self.carried {
            let sources = [*first, before, *next, self.continuing].map(Operand::IdRef);
            module.value_as(*now, Op::Phi, word, sources);
        }
        module.loop_merge(self.merge, self.continuing);
        module.branch(self.test);
        module.begin(self.test);
    }

    /// Begins a turn where the condition holds, and leaves the loop elsewhere.
    pub fn goes_on_if(&self, module: &mut Module, condition: Word) {
        module.branch_if(condition, self.body, self.merge);
        module.begin(self.body);
    }

    /// Ends the body.
    pub fn end(&self, module: &mut Module) {
        module.branch(self.continuing);
        self.next_turn(module);
    }

    /// Ends the body, and leaves the loop where `done` holds.
    pub fn end_unless(&self, module: &mut Module, done: Word) {
        module.branch_if(done, self.merge, self.continuing);
        self.next_turn(module);
    }

    fn next_turn(&self, module: &mut Module) {
        module.begin(self.continuing);
        let word = module.u32;
        for Carried { now, next, step, .. } in &self.carried {
            if let Some(step) = step {
                module.value_as(*next, Op::IAdd, word, [*now, *step].map(Operand::IdRef));
            }
        }
        module.branch(self.header);
        module.begin(self.merge);
    }
}
