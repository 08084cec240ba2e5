//! Lowers image operations: texels are words at coordinates.

use arithmetic::{Instruction, Kind as NumberKind, NumberShape};
use rspirv::spirv::{ImageOperands, Op as SpirvOp};
use spirv_reader::SpirvType;

use super::{LoweredValue, Lowering};
use crate::instruction::{LoadError, LocatedInstruction, malformed_module};
use crate::program::{Application, IMAGE, MemoryOp, MemoryOpKind, NONE, Op, Register};

/// The shape of a texel in memory.
const WORD: NumberShape = NumberShape { kind: NumberKind::Integer, bits: 32, rows: 1, columns: 1 };

/// Returns the shape of a texel in the shader.
fn texel_shape(float: bool) -> NumberShape {
    NumberShape { kind: if float { NumberKind::Float } else { NumberKind::Integer }, rows: 4, ..WORD }
}

/// Returns true if an instruction accesses texels.
pub(super) fn is_image(op: SpirvOp) -> bool {
    matches!(op, SpirvOp::ImageRead | SpirvOp::ImageWrite | SpirvOp::ImageTexelPointer)
}

impl Lowering<'_> {
    /// Emits the addresses of texels that are read at these coordinates.
    pub(super) fn early_texels(&mut self, placed: &LocatedInstruction) -> Result<(), LoadError> {
        let id = placed.result;
        for (variable, to) in self.early_texels.get(&id).cloned().unwrap_or_default() {
            let LoweredValue::Image { reference, dimensions, .. } = self.meaning(placed, variable)? else {
                continue;
            };
            let column = self.late(placed, id)?;
            // A coordinate that is still being loaded is not known early.
            if self.width_of(id) == dimensions && !self.loaded.contains(&column) {
                let row = if dimensions == 2 { column + 1 } else { NONE };
                self.program.ops.push(Op::Texel { to, reference, column, row });
            }
        }
        Ok(())
    }

    /// Lowers a texel read or write, a texel pointer, or a size query.
    pub(super) fn image(&mut self, placed: &LocatedInstruction) -> Result<(), LoadError> {
        let LoweredValue::Image { reference, dimensions, format } =
            self.meaning(placed, placed.operand(0)?)?
        else {
            return Err(malformed_module(placed.word, "an operand that is not an image"));
        };
        if placed.op == SpirvOp::ImageQuerySize {
            let to = self.late(placed, placed.result_id()?)?;
            self.program.ops.push(Op::Size { to, reference, rows: dimensions == 2 });
            return Ok(());
        }
        let coordinates = placed.operand(1)?;
        if self.width_of(coordinates) != dimensions {
            return Err(malformed_module(placed.word, "coordinates of another dimension than the image"));
        }
        let column = self.value(placed, coordinates)?;
        let row = if dimensions == 2 { column + 1 } else { NONE };
        if !self.indices.contains(&(coordinates, reference)) {
            self.indices.push((coordinates, reference));
        }
        let texel = |to: Register| Op::Texel { to, reference, column, row };
        if placed.op == SpirvOp::ImageTexelPointer {
            let to = self.destination(placed, Some(reference))?;
            self.program.ops.push(texel(to));
            return Ok(());
        }
        let address = self.texels.get(&placed.index).copied().unwrap_or(NONE);
        if placed.op == SpirvOp::ImageRead {
            let to = self.late(placed, placed.result_id()?)?;
            let ty = self.module.type_of(placed.result_type_id()?);
            let Some(SpirvType::Vector { element, count: 4 }) = ty else {
                return Err(LoadError::Lacks("OpImageRead of a vector without four components".into()));
            };
            let float = matches!(self.module.type_of(*element), Some(SpirvType::Float { .. }));
            let one = if float { self.fixed.one_as_float } else { self.fixed.one };
            let (scope, visible, private) =
                self.texel_access(placed, 2, reference, ImageOperands::MAKE_TEXEL_VISIBLE)?;
            self.program.ops.push(texel(address));
            let op = MemoryOp {
                kind: MemoryOpKind::PlainLoad,
                reference,
                class: IMAGE,
                bytes: 4,
                scope,
                visible,
                private,
                ..super::memory::NOTHING
            };
            let memory = self.issue(op, address, NONE, NONE, to)?;
            self.program.reads.push((address, memory));
            if let Some(format) = format {
                self.wait_for(to);
                let shape = texel_shape(float);
                self.convert(Instruction::Unpack(format), (to, WORD), (to, shape));
                return Ok(());
            }
            for (component, value) in [self.fixed.zero, self.fixed.zero, one].into_iter().enumerate() {
                self.copy(to + 1 + component as Register, value, 1);
            }
            return Ok(());
        }
        let texels = placed.operand(2)?;
        if self.width_of(texels) != 4 {
            return Err(LoadError::Lacks("OpImageWrite of a vector without four components".into()));
        }
        let value = match format {
            Some(format) => {
                let (from, to) = (self.value(placed, texels)?, self.register());
                let ty = self.types.get(&texels).copied().unwrap_or(0);
                let float =
                    self.module.shapes(ty).first().is_some_and(|shape| shape.kind == NumberKind::Float);
                self.convert(Instruction::Pack(format), (from, texel_shape(float)), (to, WORD));
                to
            }
            None => self.late(placed, texels)?,
        };
        let (scope, available, private) =
            self.texel_access(placed, 3, reference, ImageOperands::MAKE_TEXEL_AVAILABLE)?;
        self.program.ops.push(texel(address));
        let op = MemoryOp {
            kind: MemoryOpKind::PlainStore,
            reference,
            class: IMAGE,
            bytes: 4,
            scope,
            available,
            private,
            ..super::memory::NOTHING
        };
        self.issue(op, address, value, NONE, NONE)?;
        Ok(())
    }

    /// Converts a texel from or to its format.
    fn convert(
        &mut self,
        instruction: Instruction,
        from: (Register, NumberShape),
        to: (Register, NumberShape),
    ) {
        let number = self.program.applications.len() as u32;
        let application = Application { instruction, to: to.0, result: vec![to.1], operands: vec![from] };
        self.program.applications.push(application);
        self.program.ops.push(Op::Apply { number });
    }

    /// Returns the scope, availability or visibility, and privacy of a texel access.
    fn texel_access(
        &self,
        placed: &LocatedInstruction,
        at: usize,
        reference: u16,
        coherent: ImageOperands,
    ) -> Result<(u8, bool, bool), LoadError> {
        let bits = ImageOperands::from_bits_retain(placed.operands.get(at).copied().unwrap_or(0));
        // Texels are as wide as shader numbers, so sign and zero extension have no effect.
        let extended = ImageOperands::SIGN_EXTEND | ImageOperands::ZERO_EXTEND;
        let known = coherent | extended | ImageOperands::NON_PRIVATE_TEXEL | ImageOperands::VOLATILE_TEXEL;
        if !known.contains(bits) {
            return Err(LoadError::Lacks(format!("these image operands of Op{:?}", placed.op)));
        }
        let scope = if bits.contains(coherent) { Some(self.scope(placed, at + 1)?) } else { None };
        Ok(self.coherence(reference, false, scope, bits.contains(ImageOperands::NON_PRIVATE_TEXEL)))
    }
}
