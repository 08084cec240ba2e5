//! The context of a wave while its front end runs.

use super::DispatchState;
use crate::memory::Memory;
use crate::program::{MemoryOp, Program};
use crate::random::Random;

/// The state that the front end needs in addition to the wave.
pub(crate) struct WaveContext<'a> {
    pub program: &'a Program,
    pub dispatch: &'a DispatchState,
    pub memory: &'a mut Memory,
    pub random: &'a mut Random,
    /// The rate, of 256, of prefetches as soon as a pointer is known.
    pub prefetch_rate: u32,
    /// The last round that waves may run.
    pub last_round: u32,
    /// Blocks left of the budget.
    pub budget: &'a mut u64,
    /// Set to true by any store.
    pub stored: &'a mut bool,
    /// The number of loop iterations after which a loop silently ends; for a fault.
    pub loop_limit: u32,
    /// True if some results are wrong; for a fault.
    pub corrupts_results: bool,
}

impl<'a> WaveContext<'a> {
    /// Creates a context for a look-ahead, which stores nothing.
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
            prefetch_rate: 0,
            last_round: 0,
            budget,
            stored,
            loop_limit: u32::MAX,
            corrupts_results: false,
        }
    }

    /// Returns true if a load's value can be prefetched; for an atomic load only if atomics are read ahead.
    pub(super) fn can_prefetch(&self, memory: u16) -> bool {
        let atomic = self.program.memory.get(usize::from(memory)).is_some_and(MemoryOp::is_atomic);
        !atomic || self.memory.reads_ahead()
    }
}
