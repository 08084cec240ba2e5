//! Lowers image operations: texels are words at coordinates.

use arithmetic::{Instruction, NumberKind, NumberShape, TexelFormat};
use rspirv::spirv::ImageOperands;
use spirv_reader::{SpirvType, TexelOperands};
use vocabulary::StorageClass;

use super::memory::NO_EFFECT;
use super::{LoweredValue, Lowering};
use crate::instruction::{LoadError, malformed_module};
use crate::program::{MemoryOp, MemoryOpKind, NONE, NumberInstruction, Op, Register};

/// The shape of a texel in memory.
const TEXEL_WORD: NumberShape = NumberShape { kind: NumberKind::Integer, bits: 32, rows: 1, columns: 1 };

fn texel_shape(float: bool) -> NumberShape {
    NumberShape { kind: if float { NumberKind::Float } else { NumberKind::Integer }, rows: 4, ..TEXEL_WORD }
}

impl Lowering<'_> {
    /// Emits the addresses of texels that are read at these coordinates.
    pub(super) fn emit_early_texels(&mut self) -> Result<(), LoadError> {
        let id = self.current.result;
        for (variable, to) in self.early_texels.get(&id).cloned().unwrap_or_default() {
            let LoweredValue::Image { reference, dimensions, .. } = self.lowered_value(variable)? else {
                continue;
            };
            let column = self.pending_register(id)?;
            // A coordinate that is still being loaded is not known early.
            if self.width_of(id) == dimensions && !self.loaded_registers.contains(&column) {
                let row = if dimensions == 2 { column + 1 } else { NONE };
                self.program.ops.push(Op::Texel { to, reference, column, row });
            }
        }
        Ok(())
    }

    /// Returns the reference, the dimensions and the format of an image.
    fn image_of(&self, image: u32) -> Result<(u16, u32, Option<TexelFormat>), LoadError> {
        match self.lowered_value(image)? {
            LoweredValue::Image { reference, dimensions, format } => Ok((reference, dimensions, format)),
            _ => Err(malformed_module(self.current.word, "an operand that is not an image")),
        }
    }

    pub(super) fn lower_image_size(&mut self, image: u32) -> Result<(), LoadError> {
        let (reference, dimensions, _) = self.image_of(image)?;
        let to = self.pending_register(self.current.result_id()?)?;
        self.program.ops.push(Op::ImageSize { to, reference, rows: dimensions == 2 });
        Ok(())
    }

    /// Returns the computation of the address of a texel in a register.
    fn texel_address(
        &mut self,
        reference: u16,
        dimensions: u32,
        coordinate: u32,
    ) -> Result<impl Fn(Register) -> Op + use<>, LoadError> {
        if self.width_of(coordinate) != dimensions {
            return Err(malformed_module(
                self.current.word,
                "coordinates of another dimension than the image",
            ));
        }
        let column = self.awaited_register(coordinate)?;
        let row = if dimensions == 2 { column + 1 } else { NONE };
        if !self.indices.contains(&(coordinate, reference)) {
            self.indices.push((coordinate, reference));
        }
        Ok(move |to| Op::Texel { to, reference, column, row })
    }

    pub(super) fn lower_texel_pointer(&mut self, image: u32, coordinate: u32) -> Result<(), LoadError> {
        let (reference, dimensions, _) = self.image_of(image)?;
        let texel = self.texel_address(reference, dimensions, coordinate)?;
        let to = self.destination(Some(reference))?;
        self.program.ops.push(texel(to));
        Ok(())
    }

    pub(super) fn lower_texel_read(
        &mut self,
        [image, coordinate]: [u32; 2],
        operands: &TexelOperands,
    ) -> Result<(), LoadError> {
        let (reference, dimensions, format) = self.image_of(image)?;
        let texel = self.texel_address(reference, dimensions, coordinate)?;
        let address = self.texel_addresses.get(&self.current.index).copied().unwrap_or(NONE);
        let to = self.pending_register(self.current.result_id()?)?;
        let ty = self.module.type_of(self.current.result_type_id()?);
        let Some(SpirvType::Vector { element, count: 4 }) = ty else {
            return Err(self.current.unsupported_error(" of a vector without four components"));
        };
        let float = matches!(self.module.type_of(*element), Some(SpirvType::Float { .. }));
        let one = if float { self.fixed.one_as_float } else { self.fixed.one };
        let (scope, visible, private) = self.texel_access(reference, operands.memory.visible, operands)?;
        self.program.ops.push(texel(address));
        let access = MemoryOp {
            kind: MemoryOpKind::PlainLoad,
            reference,
            class: StorageClass::Image,
            bytes: 4,
            ..NO_EFFECT
        };
        let memory =
            self.emit_memory_op(MemoryOp { scope, visible, private, ..access }, address, NONE, NONE, to)?;
        self.program.load_pointers.push((address, memory));
        if let Some(format) = format {
            self.wait_for(to);
            self.emit_texel_conversion(
                Instruction::Unpack(format),
                (to, TEXEL_WORD),
                (to, texel_shape(float)),
            );
            return Ok(());
        }
        for (component, value) in [self.fixed.zero, self.fixed.zero, one].into_iter().enumerate() {
            self.emit_copies(to + 1 + component as Register, value, 1);
        }
        Ok(())
    }

    pub(super) fn lower_texel_write(
        &mut self,
        [image, coordinate, texel]: [u32; 3],
        operands: &TexelOperands,
    ) -> Result<(), LoadError> {
        let (reference, dimensions, format) = self.image_of(image)?;
        let address = self.texel_address(reference, dimensions, coordinate)?;
        let to = self.texel_addresses.get(&self.current.index).copied().unwrap_or(NONE);
        if self.width_of(texel) != 4 {
            return Err(self.current.unsupported_error(" of a vector without four components"));
        }
        let value = match format {
            Some(format) => {
                let (from, to) = (self.awaited_register(texel)?, self.new_register());
                let ty = self.types.get(&texel).copied().unwrap_or(0);
                let float = self
                    .module
                    .number_shapes(ty)
                    .first()
                    .is_some_and(|shape| shape.kind == NumberKind::Float);
                self.emit_texel_conversion(
                    Instruction::Pack(format),
                    (from, texel_shape(float)),
                    (to, TEXEL_WORD),
                );
                to
            }
            None => self.pending_register(texel)?,
        };
        let (scope, available, private) =
            self.texel_access(reference, operands.memory.available, operands)?;
        self.program.ops.push(address(to));
        let access = MemoryOp {
            kind: MemoryOpKind::PlainStore,
            reference,
            class: StorageClass::Image,
            bytes: 4,
            ..NO_EFFECT
        };
        self.emit_memory_op(MemoryOp { scope, available, private, ..access }, to, value, NONE, NONE)?;
        Ok(())
    }

    /// Converts a texel from or to its format.
    fn emit_texel_conversion(
        &mut self,
        instruction: Instruction,
        from: (Register, NumberShape),
        to: (Register, NumberShape),
    ) {
        let number = self.program.number_instructions.len() as u32;
        let application =
            NumberInstruction { instruction, to: to.0, result: vec![to.1], operands: vec![from] };
        self.program.number_instructions.push(application);
        self.program.ops.push(Op::Apply { number });
    }

    /// Returns the scope, availability or visibility, and privacy of a texel access; `scope_id` is the scope of
    /// its availability or visibility operation.
    fn texel_access(
        &self,
        reference: u16,
        scope_id: Option<u32>,
        operands: &TexelOperands,
    ) -> Result<(u8, bool, bool), LoadError> {
        // Texels are as wide as shader numbers, so sign and zero extension have no effect.
        if !operands.has_only(ImageOperands::NONE) {
            return Err(LoadError::Unsupported(format!("these image operands of Op{:?}", self.current.op)));
        }
        let scope = scope_id.map(|scope| self.scope_level(scope)).transpose()?;
        Ok(self.coherence(reference, false, scope, operands.memory.non_private))
    }
}
