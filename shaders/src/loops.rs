//! Loops of kernels, all emitted in one shape: loop-carried values, a test, a body, and the next iteration.

use rspirv::dr::Operand;
use rspirv::spirv::{Op, Word};

use crate::module::Module;

/// A loop under construction. The caller calls, in this order, [`Loop::enter`], [`Loop::goes_on_if`] after
/// the condition, and [`Loop::end`] after the body; then the block after the loop is open.
pub(crate) struct Loop {
    /// The block that tests for another iteration.
    pub test: Word,
    /// The first block of an iteration.
    pub body: Word,
    /// The block that starts the next iteration.
    pub continuing: Word,
    /// The block after the loop.
    pub merge: Word,
    header: Word,
    carried: Vec<CarriedWord>,
}

/// A loop-carried word.
struct CarriedWord {
    first: Word,
    now: Word,
    next: Word,
    /// The increment of each iteration; `None` if the body computes `next`.
    step: Option<Word>,
}

impl Loop {
    /// Creates a loop with new labels.
    pub fn new(module: &mut Module) -> Loop {
        Loop::with_labels(std::array::from_fn(|_| module.id()))
    }

    /// Creates a loop with these labels: of the header, of the test, of the body, of the continue target and
    /// of the merge block.
    pub fn with_labels([header, test, body, continuing, merge]: [Word; 5]) -> Loop {
        Loop { test, body, continuing, merge, header, carried: Vec::new() }
    }

    /// Carries a word; returns its value in this iteration, and the id that the body must define for the next one.
    pub fn carry(&mut self, module: &mut Module, first: Word) -> (Word, Word) {
        let (now, next) = (module.id(), module.id());
        self.carried.push(CarriedWord { first, now, next, step: None });
        (now, next)
    }

    /// Carries a counter that grows by `step` in each iteration.
    pub fn count(&mut self, module: &mut Module, first: Word, step: Word) -> Word {
        let (now, next) = (module.id(), module.id());
        self.count_as((now, next), first, step);
        now
    }

    /// Carries a counter with ids for this iteration and for the next one.
    pub fn count_as(&mut self, (now, next): (Word, Word), first: Word, step: Word) {
        self.carried.push(CarriedWord { first, now, next, step: Some(step) });
    }

    /// Enters the loop from the open block, whose label is `before`.
    pub fn enter(&self, module: &mut Module, before: Word) {
        module.branch(self.header);
        module.begin(self.header);
        let word = module.u32;
        for CarriedWord { first, now, next, .. } in &self.carried {
            let sources = [*first, before, *next, self.continuing].map(Operand::IdRef);
            module.value_as(*now, Op::Phi, word, sources);
        }
        module.loop_merge(self.merge, self.continuing);
        module.branch(self.test);
        module.begin(self.test);
    }

    /// Starts an iteration if the condition holds, else leaves the loop.
    pub fn goes_on_if(&self, module: &mut Module, condition: Word) {
        module.branch_if(condition, self.body, self.merge);
        module.begin(self.body);
    }

    /// Ends the body.
    pub fn end(&self, module: &mut Module) {
        module.branch(self.continuing);
        self.next_turn(module);
    }

    /// Ends the body, and leaves the loop if `done` holds.
    pub fn end_unless(&self, module: &mut Module, done: Word) {
        module.branch_if(done, self.merge, self.continuing);
        self.next_turn(module);
    }

    fn next_turn(&self, module: &mut Module) {
        module.begin(self.continuing);
        let word = module.u32;
        for CarriedWord { now, next, step, .. } in &self.carried {
            if let Some(step) = step {
                module.value_as(*next, Op::IAdd, word, [*now, *step].map(Operand::IdRef));
            }
        }
        module.branch(self.header);
        module.begin(self.merge);
    }
}
