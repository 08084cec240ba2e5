//! The salts of a receipt: a kernel that is bound to another buffer or image reads another salt.

use rspirv::dr::Operand;
use rspirv::spirv::{MemoryAccess, Op, Word};

use litmus::{Access, ThreadId};

use super::DispatchEmitter;
use crate::contract::{Parameter, WordArithmetic, unit_index};
use crate::kernel::{ImageBinding, SaltedMemory, SaltedPath};
use crate::memory::{AccessTarget, ReferenceMemory, ReferencePath};
use crate::rules::Rule;
use crate::thread::{Registers, ThreadEmitter};

impl DispatchEmitter<'_> {
    /// Returns the path through which the kernel reads the salt of each binding and address; none without
    /// receipts.
    pub(super) fn salted_paths(&self) -> Result<Vec<(SaltedPath, ReferencePath, ReferenceMemory)>, Rule> {
        let mut salted: Vec<(SaltedPath, ReferencePath, ReferenceMemory)> = Vec::new();
        for (path, kind) in self.uses.paths.iter().filter(|_| self.has_receipts()) {
            let apart = self.is_separate(path.location)?;
            let in_buffer = if apart { SaltedMemory::SeparateLocations } else { SaltedMemory::Locations };
            let float = path.element.is_float();
            let memory = match kind {
                ReferenceMemory::Workgroup => continue,
                ReferenceMemory::Buffer | ReferenceMemory::Address => in_buffer,
                ReferenceMemory::Image => SaltedMemory::Image(ImageBinding {
                    shape: self.config.variant.image_form,
                    is_float: float,
                    is_separate: apart,
                }),
            };
            // Paths of one location share its buffer binding.
            let is_known = |(own, known, of): &(SaltedPath, ReferencePath, ReferenceMemory)| match kind {
                ReferenceMemory::Buffer => of == kind && known.location == path.location,
                ReferenceMemory::Address => of == kind && own.memory == memory,
                ReferenceMemory::Image | ReferenceMemory::Workgroup => false,
            };
            if !salted.iter().any(is_known) {
                let (offset, bytes) = (path.offset, path.element.bytes());
                salted.push((SaltedPath { memory, offset, bytes }, *path, *kind));
            }
        }
        Ok(salted)
    }

    /// Reads the salts as words: through each path, those of the instance after the last one.
    pub(super) fn load_salts(&mut self, total: Word) -> Result<Vec<Word>, Rule> {
        let stride = self.parameter(Parameter::Stride);
        let base = self.multiply(total, stride);
        let mut salts = Vec::new();
        for (_, path, kind) in self.salted_paths()? {
            let storage = self.storage_index(path.location)?;
            let number = self.module.constant(storage);
            let unit = unit_index(self, base, number);
            let target = self.unit_target(path, kind, unit)?;
            salts.push(self.load_salt(path, target)?);
        }
        Ok(salts)
    }

    fn load_salt(&mut self, path: ReferencePath, target: AccessTarget) -> Result<Word, Rule> {
        let mut value = match target {
            // A salt is read once, and should not change what caches do for the test.
            AccessTarget::Memory { pointer, alignment } => {
                let aligned = alignment.map_or(MemoryAccess::NONE, |_| MemoryAccess::ALIGNED);
                let bits = Operand::MemoryAccess(MemoryAccess::NONTEMPORAL | aligned);
                let operands = [Operand::IdRef(pointer), bits];
                let alignment = alignment.map(Operand::LiteralBit32);
                let ty = path.spirv_type(&mut self.module);
                self.module.emit_value(Op::Load, ty, operands.into_iter().chain(alignment))
            }
            AccessTarget::Texel { .. } => {
                let (context, registers) = (self.thread_context(&[]), &mut Registers::empty());
                let module = &mut self.module;
                ThreadEmitter { module, context, thread: ThreadId(0), registers }.emit_plain_load(
                    path,
                    target,
                    &Access::Private,
                )?
            }
        };
        if path.is_vector() {
            let ty = path.element.spirv_type(&mut self.module);
            value = self.module.extract(ty, value, 0);
        }
        let bits = 8 * path.element.bytes();
        if path.element.is_float() {
            let integer = self.module.type_int(bits);
            value = self.module.emit_on_ids(Op::Bitcast, integer, &[value]);
        }
        Ok(if bits == 32 { value } else { self.module.emit_word(Op::UConvert, &[value]) })
    }
}
