//! Lowers workgroup memory: variable layout and initialization.

use spirv_reader::SpirvType;
use vocabulary::StorageClass;

use super::memory::NO_EFFECT;
use super::{LoweredValue, Lowering};
use crate::fault::Fault;
use crate::instruction::LoadError;
use crate::program::{MemoryOp, MemoryOpKind, NONE, Op, Reference, ReferencePlace, WORKGROUP};

impl Lowering<'_> {
    /// Adds a variable in workgroup memory.
    pub(super) fn add_workgroup_variable(&mut self, id: u32, ty: u32) -> LoweredValue {
        let (first, words) = (self.program.workgroup_words, self.module.bytes_of(ty).div_ceil(4));
        self.program.workgroup_words = first.saturating_add(words);
        let reference =
            self.add_reference(id, ReferencePlace::Workgroup(first, words), StorageClass::Workgroup);
        if !matches!(self.module.type_of(ty), Some(SpirvType::Integer { .. } | SpirvType::Float { .. })) {
            return LoweredValue::MemoryVariable { reference, ty };
        }
        let address = self.new_register();
        let bytes = self.module.bytes_of(ty);
        self.program.ops.push(Op::Address {
            to: address,
            reference,
            index: NONE,
            scale: 0,
            offset: 0,
            bytes,
        });
        LoweredValue::Pointer { reference, address }
    }

    /// Zero-initializes a workgroup variable. With a fault, each invocation zeroes it and no barrier follows.
    pub(super) fn zero_initialize(&mut self, variable: &LoweredValue, fault: Fault) -> Result<(), LoadError> {
        let (LoweredValue::MemoryVariable { reference, .. } | LoweredValue::Pointer { reference, .. }) =
            *variable
        else {
            return Ok(());
        };
        let Some(Reference {
            place: ReferencePlace::Workgroup(_, words), is_zero_initialized: zeroed, ..
        }) = self.program.references.get_mut(usize::from(reference))
        else {
            return Ok(());
        };
        *zeroed = fault != Fault::WorkgroupMemoryZeroedLate;
        if *zeroed {
            return Ok(());
        }
        for word in 0..*words {
            let to = self.new_register();
            self.program.ops.push(Op::Address {
                to,
                reference,
                index: NONE,
                scale: 0,
                offset: 4 * word,
                bytes: 4,
            });
            let store = MemoryOp {
                kind: MemoryOpKind::PlainStore,
                reference,
                class: StorageClass::Workgroup,
                scope: WORKGROUP,
                available: true,
                ..NO_EFFECT
            };
            self.emit_memory_op(store, to, self.fixed.zero, NONE, NONE)?;
        }
        Ok(())
    }

    /// Adds a workgroup memory block: all blocks alias at offset 0 and share one reference.
    pub(super) fn add_workgroup_block(&mut self, id: u32, words: u32) -> u16 {
        self.program.workgroup_words = self.program.workgroup_words.max(words);
        let known =
            self.program.references.iter_mut().enumerate().find_map(
                |(number, reference)| match &mut reference.place {
                    ReferencePlace::Workgroup(_, all) => {
                        *all = words.max(*all);
                        Some(number as u16)
                    }
                    _ => None,
                },
            );
        known.unwrap_or_else(|| {
            self.add_reference(id, ReferencePlace::Workgroup(0, words), StorageClass::Workgroup)
        })
    }
}
