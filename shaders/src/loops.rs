//! Loops of kernels, all emitted in one shape: loop-carried values, a test, a body, and the next iteration.

use rspirv::dr::Operand;
use rspirv::spirv::{Op, Word};

use crate::module::ModuleBuilder;

/// A loop under construction. Call [`LoopBuilder::enter`], then [`LoopBuilder::begin_body_if`] after
/// the condition, and [`LoopBuilder::end_body`] after the body; then the block after the loop is open.
pub(crate) struct LoopBuilder {
    /// The block that tests for another iteration.
    pub condition_block: Word,
    /// The first block of an iteration.
    pub body_block: Word,
    /// The block that starts the next iteration.
    pub continue_target: Word,
    /// The block after the loop.
    pub merge_block: Word,
    header_block: Word,
    carried: Vec<CarriedWord>,
}

/// A loop-carried word.
struct CarriedWord {
    initial: Word,
    current: Word,
    next: Word,
    /// The increment of each iteration; `None` if the body computes `next`.
    step: Option<Word>,
}

impl LoopBuilder {
    /// Creates a loop with new labels.
    pub fn new(module: &mut ModuleBuilder) -> LoopBuilder {
        LoopBuilder::with_labels(std::array::from_fn(|_| module.id()))
    }

    /// Creates a loop with these labels: of the header, of the test, of the body, of the continue target and
    /// of the merge block.
    pub fn with_labels([header, test, body, continuing, merge]: [Word; 5]) -> LoopBuilder {
        LoopBuilder {
            condition_block: test,
            body_block: body,
            continue_target: continuing,
            merge_block: merge,
            header_block: header,
            carried: Vec::new(),
        }
    }

    /// Carries a word; returns its value in this iteration, and the id that the body must define for the next one.
    pub fn carry_word(&mut self, module: &mut ModuleBuilder, first: Word) -> (Word, Word) {
        let (now, next) = (module.id(), module.id());
        self.carried.push(CarriedWord { initial: first, current: now, next, step: None });
        (now, next)
    }

    /// Carries a counter that grows by `step` in each iteration.
    pub fn carry_counter(&mut self, module: &mut ModuleBuilder, first: Word, step: Word) -> Word {
        let (now, next) = (module.id(), module.id());
        self.carry_counter_as(now, next, first, step);
        now
    }

    /// Carries a counter with ids for this iteration and for the next one.
    pub fn carry_counter_as(&mut self, now: Word, next: Word, first: Word, step: Word) {
        self.carried.push(CarriedWord { initial: first, current: now, next, step: Some(step) });
    }

    /// Enters the loop from the open block, whose label is `before`.
    pub fn enter(&self, module: &mut ModuleBuilder, before: Word) {
        module.continue_at(self.header_block);
        let word = module.u32;
        for CarriedWord { initial: first, current: now, next, .. } in &self.carried {
            let sources = [*first, before, *next, self.continue_target].map(Operand::IdRef);
            module.emit_value_as(*now, Op::Phi, word, sources);
        }
        module.loop_merge(self.merge_block, self.continue_target);
        module.continue_at(self.condition_block);
    }

    /// Starts an iteration if the condition holds, else leaves the loop.
    pub fn begin_body_if(&self, module: &mut ModuleBuilder, condition: Word) {
        module.branch_if(condition, self.body_block, self.merge_block);
        module.begin_block(self.body_block);
    }

    pub fn end_body(&self, module: &mut ModuleBuilder) {
        module.branch(self.continue_target);
        self.emit_continue_block(module);
    }

    /// Ends the body, and leaves the loop if `done` holds.
    pub fn end_body_unless(&self, module: &mut ModuleBuilder, done: Word) {
        module.branch_if(done, self.merge_block, self.continue_target);
        self.emit_continue_block(module);
    }

    fn emit_continue_block(&self, module: &mut ModuleBuilder) {
        module.begin_block(self.continue_target);
        let word = module.u32;
        for CarriedWord { current: now, next, step, .. } in &self.carried {
            if let Some(step) = step {
                module.emit_value_as(*next, Op::IAdd, word, [*now, *step].map(Operand::IdRef));
            }
        }
        module.branch(self.header_block);
        module.begin_block(self.merge_block);
    }
}
