//! Function variables in slots: values in place of memory, as by promotion to SSA form.
//!
//! A variable is one if no pointer to it leaves the function. Its loads alias its slots where no store comes between
//! the load and the last read of the result.

use std::collections::BTreeMap;

use rspirv::spirv::StorageClass;
use rustc_hash::FxHashMap;
use spirv_reader::{CompositeOperation, SpirvOperation};

use super::program::{DecodedFunction, DecodedProgram};
use super::scalar_kind::ScalarKind;
use super::slots::Slots;

impl<'m> DecodedProgram<'m> {
    /// Gives slots to the variables of numbers that are only loaded and stored, as a whole or by component.
    ///
    /// No pointer to them leaves the function, so that the slots replace their memory.
    pub(super) fn add_register_variables(
        &mut self,
        function: &spirv_reader::SpirvFunction,
        decoded: &mut DecodedFunction<'m>,
    ) {
        let mut variables: FxHashMap<u32, u32> = FxHashMap::default();
        let mut chains: BTreeMap<u32, (u32, usize)> = BTreeMap::new();
        for one in &function.code {
            let operation = self.module.operation(one);
            let index_of = |indices: &[u32]| match indices {
                [index] => self.specialized.constant_number(*index),
                _ => None,
            };
            match operation {
                SpirvOperation::Variable { initializer: None } => {
                    let found = self.pointee_of(one.ty).filter(|(class, _)| *class == StorageClass::Function);
                    let ty = found.map(|(_, ty)| ty).filter(|ty| self.has_register_layout(*ty));
                    variables.extend(ty.map(|ty| (one.result, ty)));
                }
                SpirvOperation::Load { .. } => {}
                SpirvOperation::Store { value, .. } => {
                    variables.remove(&value);
                    if let Some((variable, _)) = chains.get(&value) {
                        variables.remove(variable);
                    }
                }
                SpirvOperation::AccessChain { base, element: None, indices }
                    if variables.get(&base).is_some_and(|ty| {
                        let count = u64::from(self.slot_count(*ty));
                        index_of(indices).is_some_and(|index| index < count)
                    }) =>
                {
                    let index = index_of(indices).unwrap_or(0);
                    chains.insert(one.result, (base, index as usize));
                }
                _ => {
                    for operand in self.module.operands_of(one) {
                        variables.remove(operand);
                        if let Some((variable, _)) = chains.get(operand) {
                            variables.remove(variable);
                        }
                    }
                }
            }
        }
        for one in &function.code {
            let Some(ty) = variables.get(&one.result) else { continue };
            let slots = Slots::consecutive(decoded.slots, self.slot_count(*ty));
            decoded.slots += slots.as_slice().len() as u32;
            self.register_variables.insert(one.result, slots);
        }
        for (chain, (variable, index)) in chains {
            let slots = self.register_variables.get(&variable).and_then(|slots| slots.component_slot(index));
            self.register_variables.extend(slots.map(|slot| (chain, Slots::consecutive(slot, 0))));
        }
    }

    /// Returns the loads of variables in slots whose results are read only in the same block and before the next store.
    ///
    /// They alias the slots of the variable.
    pub(super) fn uncopied_loads(&self, function: &spirv_reader::SpirvFunction) -> FxHashMap<u32, Slots> {
        let mut found = FxHashMap::default();
        let operations: Vec<_> = function.code.iter().map(|one| self.module.operation(one)).collect();
        let is_bool = |id: &u32| {
            let layout = function.types.get(id).and_then(|ty| self.number_layout(*ty));
            layout.is_some_and(|layout| layout.0 == ScalarKind::Bool)
        };
        // The last instruction that reads an id, also later through a result that stands for it.
        let mut last_reads: FxHashMap<u32, usize> = FxHashMap::default();
        for operation in &operations {
            match operation {
                SpirvOperation::Phi { sources } => {
                    last_reads.extend(sources.iter().map(|[value, _]| (*value, usize::MAX)));
                }
                // A recorded branch names the operands of the comparison.
                SpirvOperation::Store { value, .. } if is_bool(value) => {
                    last_reads.insert(*value, usize::MAX);
                }
                _ => {}
            }
        }
        let mut next_stores: FxHashMap<u32, usize> = FxHashMap::default();
        let mut block_end = 0;
        for (at, (one, operation)) in function.code.iter().zip(&operations).enumerate().rev() {
            if operation.is_terminator() {
                next_stores.clear();
                block_end = at + 1;
            }
            let last_read = last_reads.get(&one.result).copied().unwrap_or(0);
            let (slots, stands_for_operands) = match operation {
                SpirvOperation::Load { pointer, .. } => {
                    if let Some(slots) = self.register_variables.get(pointer) {
                        let next = slots.as_slice().iter().filter_map(|slot| next_stores.get(slot)).min();
                        if last_read < *next.unwrap_or(&block_end) {
                            found.insert(one.result, *slots);
                        }
                    }
                    (None, false)
                }
                SpirvOperation::Store { pointer, .. } => (self.register_variables.get(pointer), false),
                SpirvOperation::AccessChain { .. }
                | SpirvOperation::Copy { .. }
                | SpirvOperation::Bitcast { .. }
                | SpirvOperation::Composite(CompositeOperation::Extract { .. })
                | SpirvOperation::Composite(CompositeOperation::Insert { .. })
                | SpirvOperation::Composite(CompositeOperation::Construct { .. })
                | SpirvOperation::Composite(CompositeOperation::Shuffle { .. }) => (None, true),
                _ => (None, is_bool(&one.result)),
            };
            let stored = slots.into_iter().flat_map(Slots::as_slice);
            next_stores.extend(stored.map(|slot| (*slot, at)));
            for operand in self.module.operands_of(one) {
                let read = if stands_for_operands { last_read.max(at) } else { at };
                let known = last_reads.entry(*operand).or_default();
                *known = read.max(*known);
            }
        }
        found
    }

    /// Returns true for numbers of 32 bits, bools, and short vectors of them.
    fn has_register_layout(&self, ty: u32) -> bool {
        self.number_layout(ty).is_some_and(|(kind, bits, count)| {
            kind != ScalarKind::Address
                && bits == u32::BITS
                && count.is_none_or(|count| count == u32::from(self.slot_count(ty)))
        })
    }
}
