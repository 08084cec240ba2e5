//! Memory stress around the threads: the stress invocations, and which code they skip.

use rspirv::spirv::{Op, Word};

use super::Emitter;
use crate::contract::{Arithmetic, Parameter, Parameters};
use crate::stress::{Block, Pressure, StressParameter, StressParameters};

impl Emitter<'_> {
    /// Returns the words of push constants before an address.
    pub(super) fn words_of_parameters(&self) -> u32 {
        Parameters::WORDS + if self.config.stressed { StressParameters::WORDS } else { 0 }
    }

    /// Returns the index of a workgroup among those of the test, and with memory stress whether it runs no
    /// thread.
    pub(super) fn workgroup_number(&mut self, workgroup: Word) -> (Word, Option<Word>) {
        if !self.config.stressed {
            return (workgroup, None);
        }
        let groups = self.parameter(Parameter::Groups);
        let of_group = if self.parallel { 1 } else { self.layout.classes.len() as u32 };
        let classes = self.module.constant(of_group);
        let playing = self.module.word(Op::IMul, &[classes, groups]);
        let block = self.stress_block();
        let [more, multiplier, offset] = [
            StressParameter::Workgroups,
            StressParameter::WorkgroupMultiplier,
            StressParameter::WorkgroupOffset,
        ]
        .map(|parameter| block.load(&mut self.module, parameter));
        let all = self.module.word(Op::IAdd, &[playing, more]);
        let scaled = self.module.word(Op::IMul, &[workgroup, multiplier]);
        let shifted = self.module.word(Op::IAdd, &[scaled, offset]);
        let number = self.module.word(Op::UMod, &[shifted, all]);
        (number, Some(self.module.truth(Op::UGreaterThanEqual, &[number, playing])))
    }

    /// Returns the role of an invocation; the number of threads if it runs none.
    pub(super) fn role_or_none(&mut self, role: Word, extra: Option<Word>) -> Word {
        let Some(extra) = extra else { return role };
        let none = self.module.constant(self.layout.roles.len() as u32);
        self.module.word(Op::Select, &[extra, none, role])
    }

    /// Returns the failed polls that an invocation may make; 0 if it runs no thread.
    pub(super) fn patience(&mut self, extra: Option<Word>) -> Word {
        let spin = self.parameter(Parameter::Spin);
        let Some(extra) = extra else { return spin };
        let zero = self.module.constant(0);
        self.module.word(Op::Select, &[extra, zero, spin])
    }

    /// Computes the values for its turns.
    pub(super) fn pressure(&mut self, workgroup: Word, extra: Word) -> Pressure {
        let block = self.stress_block();
        let [iterations, before] = [StressParameter::Iterations, StressParameter::Before]
            .map(|parameter| block.load(&mut self.module, parameter));
        let turns = self.module.word(Op::Select, &[extra, iterations, before]);
        let scratch = self.scratch_buffer.unwrap_or_default();
        Pressure::new(&mut self.module, scratch, workgroup, turns, block)
    }

    /// The stress parameters follow the other parameters.
    pub(super) fn stress_block(&self) -> Block {
        Block { variable: self.parameters_block, first: Parameters::WORDS }
    }
}
