//! Memory stress around the threads: the stress invocations, and which code they skip.

use rspirv::spirv::{Op, Word};

use super::DispatchEmitter;
use crate::contract::{Parameter, Parameters, WordArithmetic};
use crate::stress::{ParameterBlock, StressLoop, StressParameter, StressParameters};

impl DispatchEmitter<'_> {
    /// Returns the words of push constants before an address.
    pub(super) fn parameter_words(&self) -> u32 {
        Parameters::WORDS + if self.config.has_stress { StressParameters::WORDS } else { 0 }
    }

    /// Returns the role of an invocation; the number of threads if it runs none.
    pub(super) fn role_or_none(&mut self, role: Word, is_stress: Option<Word>) -> Word {
        let Some(extra) = is_stress else { return role };
        let none = self.module.constant(self.layout.roles.len() as u32);
        self.module.emit_word(Op::Select, &[extra, none, role])
    }

    /// Returns the failed polls that an invocation may make; 0 if it runs no thread.
    pub(super) fn max_polls(&mut self, is_stress: Option<Word>) -> Word {
        let spin = self.parameter(Parameter::Spin);
        let Some(extra) = is_stress else { return spin };
        let zero = self.module.constant(0);
        self.module.emit_word(Op::Select, &[extra, zero, spin])
    }

    /// Computes the values for its iterations; there are none `outside` the grid.
    pub(super) fn stress_loop(
        &mut self,
        workgroup: Word,
        is_stress: Word,
        outside: Option<Word>,
    ) -> StressLoop {
        let block = self.stress_block();
        let [iterations, before] = [StressParameter::Iterations, StressParameter::Before]
            .map(|parameter| block.load(&mut self.module, parameter));
        let mut iterations_of_role = self.module.emit_word(Op::Select, &[is_stress, iterations, before]);
        if let Some(outside) = outside {
            let zero = self.module.constant(0);
            iterations_of_role = self.module.emit_word(Op::Select, &[outside, zero, iterations_of_role]);
        }
        let scratch = self.scratch_buffer.unwrap_or_default();
        StressLoop::new(&mut self.module, scratch, workgroup, iterations_of_role, block)
    }

    /// The stress parameters follow the other parameters.
    pub(super) fn stress_block(&self) -> ParameterBlock {
        ParameterBlock { variable: self.parameters_block, first: Parameters::WORDS }
    }
}
