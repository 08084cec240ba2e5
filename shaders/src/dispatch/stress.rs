//! Memory stress around the threads: who makes it, and what its workgroups do without.

use rspirv::spirv::{Op, StorageClass, Word};

use super::{Emitter, Parameter, WORDS_OF_PARAMETERS};
use crate::module::Module;
use crate::stress::{Pressure, position};

impl Emitter<'_> {
    /// Words of push constants before an address.
    pub(super) fn words_of_parameters(&self) -> u32 {
        if self.config.stressed { position::END } else { WORDS_OF_PARAMETERS }
    }

    /// The number by which a workgroup plays, and with memory stress whether it plays no thread.
    pub(super) fn workgroup_number(&mut self, workgroup: Word) -> (Word, Option<Word>) {
        if !self.config.stressed {
            return (workgroup, None);
        }
        let groups = self.parameter(Parameter::Groups);
        let classes = self.module.constant(self.layout.classes.len() as u32);
        let playing = self.module.word(Op::IMul, &[classes, groups]);
        let [more, multiplier, offset] =
            [position::WORKGROUPS, position::WORKGROUP_MULTIPLIER, position::WORKGROUP_OFFSET]
                .map(|position| load(&mut self.module, self.parameters_block, position));
        let all = self.module.word(Op::IAdd, &[playing, more]);
        let scaled = self.module.word(Op::IMul, &[workgroup, multiplier]);
        let shifted = self.module.word(Op::IAdd, &[scaled, offset]);
        let number = self.module.word(Op::UMod, &[shifted, all]);
        (number, Some(self.module.truth(Op::UGreaterThanEqual, &[number, playing])))
    }

    /// The role of an invocation; the number of threads where it plays none.
    pub(super) fn role_or_none(&mut self, role: Word, extra: Option<Word>) -> Word {
        let Some(extra) = extra else { return role };
        let none = self.module.constant(self.layout.roles.len() as u32);
        self.module.word(Op::Select, &[extra, none, role])
    }

    /// How long it waits for others: not at all where it plays no thread.
    pub(super) fn patience(&mut self, extra: Option<Word>) -> Word {
        let spin = self.parameter(Parameter::Spin);
        let Some(extra) = extra else { return spin };
        let zero = self.module.constant(0);
        self.module.word(Op::Select, &[extra, zero, spin])
    }

    /// What its turns need.
    pub(super) fn pressure(&mut self, workgroup: Word, extra: Word) -> Pressure {
        let block = self.parameters_block;
        let [iterations, before] =
            [position::ITERATIONS, position::BEFORE].map(|position| load(&mut self.module, block, position));
        let turns = self.module.word(Op::Select, &[extra, iterations, before]);
        let scratch = self.scratch_buffer.unwrap_or_default();
        let mut parameter = |module: &mut Module, position| load(module, block, position);
        Pressure::new(&mut self.module, scratch, workgroup, turns, &mut parameter)
    }
}

fn load(module: &mut Module, block: Word, position: u32) -> Word {
    let member = module.constant(position);
    let ty = module.pointer(StorageClass::PushConstant, module.u32);
    let pointer = module.on_ids(Op::AccessChain, ty, &[block, member]);
    module.word(Op::Load, &[pointer])
}
