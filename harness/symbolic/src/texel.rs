//! Texels of storage images as memory cells: reads, writes, and pointers for atomics.
//!
//! A texel of one 32-bit integer is a cell at its position in rows and slices. Other formats, coordinates that
//! depend on read values without a known set, accesses outside the image and given contents are refused by name;
//! the grid walk executes them.

use std::rc::Rc;

use rspirv::spirv::{ImageFormat, ImageOperands};
use spirv_reader::{ImageOperation, MemoryOperands, SpirvInstruction, TexelOperands};

use crate::context::LiftContext;
use crate::executor::{Executor, Step};
use crate::state::PathState;
use crate::value::{SymbolicPointer, SymbolicValue};
use entry_point::inputs::{ImageInput, TexelInput, default_image};
use entry_point::layout::{STORAGE_IMAGE, is_storage_image};
use entry_point::{Problem, malformed, unknown_instruction, unsupported};

const TEXEL_BYTES: u64 = 4;
/// Dimensions of an image type: one, two and three axes, and texel buffers.
const AXES_BY_DIMENSION: [(u32, usize); 4] = [(0, 1), (1, 2), (2, 3), (5, 1)];

/// An image type whose texels are cells.
#[derive(Clone, Copy, Debug)]
struct TexelType {
    component: u32,
    dimension: u32,
    axes: usize,
}

impl LiftContext<'_> {
    /// Returns a note for each storage image without a given size.
    pub(crate) fn assumed_image_notes(&self) -> Vec<String> {
        let module = self.module();
        let images = module.variables.iter().filter(|(_, variable)| is_storage_image(module, variable.ty));
        let mut images: Vec<(u32, u32)> = images.map(|(id, variable)| (*id, variable.ty)).collect();
        images.sort_unstable();
        let note = |(id, ty): (u32, u32)| {
            let at = module.descriptor_of(id)?;
            let texel = self.texel_type(ty).ok().filter(|_| !self.images.contains_key(&at))?;
            let [x, y, z] = default_image(texel.dimension, false).size;
            let name = module.display_name(id);
            Some(format!("image `{name}` is not given: {x}x{y}x{z} of zeros assumed"))
        };
        images.into_iter().filter_map(note).collect()
    }

    fn texel_type(&self, ty: u32) -> Result<TexelType, Problem> {
        let handle = self.module().handle_operands.get(&ty).map(Vec::as_slice).unwrap_or_default();
        let [component, dimension, _, arrayed, samples, sampled, format, ..] = *handle else {
            return Err(malformed("an image expected"));
        };
        let axes = AXES_BY_DIMENSION.iter().find(|(known, _)| *known == dimension).map(|(_, axes)| *axes);
        let axes = axes.filter(|_| arrayed == 0 && samples == 0 && sampled == STORAGE_IMAGE);
        let axes = axes.ok_or_else(|| unsupported("images of several layers or samples"))?;
        match ImageFormat::from_u32(format) {
            Some(ImageFormat::R32ui | ImageFormat::R32i) => Ok(TexelType { component, dimension, axes }),
            Some(format) => Err(unsupported(format!("texels of the format {format:?}"))),
            None => Err(malformed(format!("{format} is not an image format"))),
        }
    }

    /// Returns the size of an image, which is zero everywhere.
    fn image_size(&self, variable: u32, dimension: u32) -> Result<[u32; 3], Problem> {
        let given = self.module().descriptor_of(variable).and_then(|at| self.images.get(&at));
        if given.is_some_and(|image| image.texels != TexelInput::default()) {
            return Err(unsupported("an image with given contents"));
        }
        let ImageInput { size, .. } = given.cloned().unwrap_or_else(|| default_image(dimension, false));
        Ok(size)
    }
}

fn memory_operands(operands: &TexelOperands) -> Result<MemoryOperands, Problem> {
    if !operands.has_only(ImageOperands::NONE) {
        return Err(unsupported("a texel of a mip level, a sample or an offset"));
    }
    Ok(operands.memory)
}

impl Executor<'_> {
    pub(crate) fn execute_image(
        &mut self,
        state: &mut PathState,
        instruction: &SpirvInstruction,
        operation: ImageOperation,
    ) -> Step<SymbolicValue> {
        match operation {
            ImageOperation::Read { image, coordinate, operands } => {
                let texel = self.texel_pointer(state, [image, coordinate], true)?;
                self.read_texel(state, instruction.ty, texel, &operands)
            }
            ImageOperation::Write { image, coordinate, texel, operands } => {
                let pointer = self.texel_pointer(state, [image, coordinate], false)?;
                let value = self.value_of_id(state, texel)?;
                self.write_texel(state, pointer, &value, &operands)?;
                Ok(SymbolicValue::Opaque)
            }
            ImageOperation::TexelPointer { image, coordinate } => {
                Ok(SymbolicValue::Pointer(self.texel_pointer(state, [image, coordinate], false)?))
            }
            ImageOperation::Fetch { .. }
            | ImageOperation::Sample { .. }
            | ImageOperation::Query { .. }
            | ImageOperation::ImageOf { .. }
            | ImageOperation::Combine { .. } => Err(unknown_instruction(instruction.op).into()),
        }
    }

    /// Returns the pointer to a texel of an image, for a read or another access.
    fn texel_pointer(
        &mut self,
        state: &mut PathState,
        [image, coordinate]: [u32; 2],
        reads: bool,
    ) -> Step<SymbolicPointer> {
        let image = self.pointer_of_id(state, image)?;
        let texel = self.context.texel_type(image.ty)?;
        // The final contents of images are not compared.
        if !reads && self.context.keep_final {
            return Err(unsupported("final contents of images").into());
        }
        let offset = self.texel_offset(state, coordinate, &image, texel)?;
        Ok(SymbolicPointer { offset, ty: texel.component, ..image })
    }

    fn read_texel(
        &mut self,
        state: &mut PathState,
        ty: u32,
        pointer: SymbolicPointer,
        operands: &TexelOperands,
    ) -> Step<SymbolicValue> {
        let value = self.load_value(state, pointer, pointer.ty, memory_operands(operands)?)?;
        if self.specialized().is_scalar(ty)? {
            return Ok(value);
        }
        // The missing components are 0, 0 and 1.
        let missing = [0, 0, 1].map(SymbolicValue::Known);
        let count = self.specialized().part_count(ty)?;
        let parts = std::iter::once(value).chain(missing).take(count).collect();
        Ok(SymbolicValue::Composite(Rc::new(parts)))
    }

    fn write_texel(
        &mut self,
        state: &mut PathState,
        pointer: SymbolicPointer,
        texel: &SymbolicValue,
        operands: &TexelOperands,
    ) -> Step<()> {
        let value = match texel {
            SymbolicValue::Composite(_) | SymbolicValue::Null => self.extract_part(texel, 0)?,
            value => value.clone(),
        };
        self.store_value(state, pointer, &value, memory_operands(operands)?)
    }

    /// Returns the byte offset of the texel at a coordinate.
    fn texel_offset(
        &mut self,
        state: &mut PathState,
        coordinate: u32,
        image: &SymbolicPointer,
        texel: TexelType,
    ) -> Step<u64> {
        let size = self.context.image_size(image.object.variable, texel.dimension)?;
        let coordinates = self.value_of_id(state, coordinate)?;
        let ty = self.type_of_id(state, coordinate)?;
        let is_scalar = self.specialized().is_scalar(ty)?;
        let (mut index, mut row) = (0_u64, 1_u64);
        for (axis, size) in size.iter().take(texel.axes).enumerate() {
            let coordinate =
                if is_scalar { coordinates.clone() } else { self.extract_part(&coordinates, axis)? };
            let coordinate = self.fork_to_known(state, &coordinate, "a texel coordinate")?;
            if coordinate >= u64::from(*size) {
                return Err(unsupported("a texel outside its image").into());
            }
            index += coordinate * row;
            row *= u64::from(*size);
        }
        Ok(index * TEXEL_BYTES)
    }
}
