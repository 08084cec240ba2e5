//! Memory stress around the threads: the stress invocations, and which code they skip.

use rspirv::spirv::{Op, Word};

use super::DispatchEmitter;
use crate::contract::{Arithmetic, Parameter, Parameters};
use crate::stress::{ParameterBlock, Pressure, StressParameter, StressParameters};

impl DispatchEmitter<'_> {
    /// Returns the words of push constants before an address.
    pub(super) fn words_of_parameters(&self) -> u32 {
        Parameters::WORDS + if self.config.stressed { StressParameters::WORDS } else { 0 }
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

    /// Computes the values for its iterations; there are none `outside` the grid.
    pub(super) fn pressure(&mut self, workgroup: Word, extra: Word, outside: Option<Word>) -> Pressure {
        let block = self.stress_block();
        let [iterations, before] = [StressParameter::Iterations, StressParameter::Before]
            .map(|parameter| block.load(&mut self.module, parameter));
        let mut turns = self.module.word(Op::Select, &[extra, iterations, before]);
        if let Some(outside) = outside {
            let zero = self.module.constant(0);
            turns = self.module.word(Op::Select, &[outside, zero, turns]);
        }
        let scratch = self.scratch_buffer.unwrap_or_default();
        Pressure::new(&mut self.module, scratch, workgroup, turns, block)
    }

    /// The stress parameters follow the other parameters.
    pub(super) fn stress_block(&self) -> ParameterBlock {
        ParameterBlock { variable: self.parameters_block, first: Parameters::WORDS }
    }
}
