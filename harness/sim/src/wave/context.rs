//! What surrounds a wave while its front end runs.

use super::DispatchState;
use crate::memory::Memory;
use crate::program::{MemoryOp, Program};
use crate::random::Random;

/// What the front end needs besides the wave.
pub(crate) struct WaveContext<'a> {
    pub program: &'a Program,
    pub dispatch: &'a DispatchState,
    pub memory: &'a mut Memory,
    pub random: &'a mut Random,
    /// In how many of 256 cases a line is fetched as soon as its pointer is known.
    pub warm_up: u32,
    /// Rounds that no wave may pass.
    pub last_round: u32,
    /// Blocks left of the budget.
    pub budget: &'a mut u64,
    /// Whether something was stored.
    pub stored: &'a mut bool,
    /// Iterations of all loops after which a loop is left without a word; a fault.
    pub loop_limit: u32,
    /// Whether some results are wrong; a fault.
    pub garbage: bool,
}

impl<'a> WaveContext<'a> {
    /// Those of who looks ahead, on what is left of a budget, and stores nothing.
    pub fn new(
        (program, dispatch): (&'a Program, &'a DispatchState),
        (memory, random): (&'a mut Memory, &'a mut Random),
        (budget, stored): (&'a mut u64, &'a mut bool),
    ) -> WaveContext<'a> {
        WaveContext {
            program,
            dispatch,
            memory,
            random,
            warm_up: 0,
            last_round: 0,
            budget,
            stored,
            loop_limit: u32::MAX,
            garbage: false,
        }
    }

    /// Whether what a load reads can be fetched before it: an atomic load's only where loads go ahead.
    pub(super) fn can_prefetch(&self, memory: u16) -> bool {
        let atomic = self.program.memory.get(usize::from(memory)).is_some_and(MemoryOp::is_atomic);
        !atomic || self.memory.reads_ahead()
    }
}
