//! Descriptors that are bound to one buffer.

use std::collections::BTreeMap;

use rspirv::spirv::{Decoration, Op};

use crate::module::{HEADER_WORDS, SpirvModule};

impl SpirvModule {
    /// Moves the variables of a descriptor to another one, as if both were bound to the same buffer. Returns false
    /// if the module does not have the first descriptor.
    ///
    /// Variables of one descriptor share memory. The words of the module change too, so that a device binds one
    /// buffer.
    pub fn alias_descriptor(&mut self, from: (u32, u32), to: (u32, u32)) -> bool {
        let ids = self.variables_at(from);
        for id in &ids {
            if let Some(decorations) = self.decorations.get_mut(id) {
                (decorations.set, decorations.binding) = (Some(to.0), Some(to.1));
            }
        }
        let mut at = HEADER_WORDS;
        while let Some(first) = self.words.get(at).copied() {
            let operands = (self.words.get(at + 1).copied(), self.words.get(at + 2).copied());
            if first & 0xffff == Op::Decorate as u32
                && let (Some(target), Some(decoration)) = operands
                && ids.contains(&target)
                && let Some(literal) = self.words.get_mut(at + 3)
            {
                match Decoration::from_u32(decoration) {
                    Some(Decoration::DescriptorSet) => *literal = to.0,
                    Some(Decoration::Binding) => *literal = to.1,
                    _ => {}
                }
            }
            at += ((first >> 16) as usize).max(1);
        }
        self.aliases.extend(ids.first().map(|id| (from, *id)));
        !ids.is_empty()
    }

    /// Returns the descriptors that [`SpirvModule::alias_descriptor`] moved, with the first variable of each.
    pub fn aliases(&self) -> &BTreeMap<(u32, u32), u32> {
        &self.aliases
    }
}
