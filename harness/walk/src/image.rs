//! Images: a texel occupies four components of 32 bits or two of 64, for every format.

use arithmetic::{float_from_bits, float_to_bits, mask};
use rspirv::spirv::{ImageOperands, StorageClass};
use spirv_reader::{ImageOperation, ImageQuery, ImageSampling, TexelOperands};

use entry_point::{BufferRobustness, FindingCause, Problem, malformed, unsupported};

use super::compute::flatten_components;
use super::memory::{ImageLayout, MemoryObject};
use super::program::DecodedInstruction;
use super::race_check::MemoryAccessKind;
use super::scalar_kind::ScalarKind;
use super::state::{Interpreter, InvocationCtx};
use super::step::Step;
use super::texels::{TEXEL_BYTES, component_bytes};
use super::value::{ConcretePointer, ConcreteValue, OPAQUE, Taint};
use entry_point::inputs::Sampler;

/// The note for sampled values that are not computed.
const NOT_SAMPLED: &str = "filtered samples are not computed";

/// Returns the size of a mip level.
fn level_size(texels: &ImageLayout, level: u32) -> [u32; 3] {
    let layers = if texels.is_layered || texels.is_cube { texels.axes - 1 } else { 3 };
    let halved = |axis: usize| {
        if axis < layers { (texels.size[axis] >> level.min(31)).max(1) } else { texels.size[axis] }
    };
    std::array::from_fn(halved)
}

/// Returns the first texel of a mip level.
fn level_start(texels: &ImageLayout, level: u32) -> u64 {
    (0..level)
        .map(|level| level_size(texels, level).iter().map(|size| u64::from(*size)).product::<u64>())
        .sum()
}

/// Returns the number of texels of all levels.
pub(super) fn texel_count(texels: &ImageLayout) -> u64 {
    level_start(texels, texels.levels)
}

/// Returns a component of a texel.
fn texel_component(image: &MemoryObject, offset: u64, index: usize) -> (u64, Taint) {
    let format = image.texels.and_then(|texels| texels.format);
    let bytes = format.map_or(4, component_bytes);
    match (bytes, format) {
        // A format of 64 bits has one component.
        (8, Some(format)) if index > 0 => (format.quantize(index, 0).0, 0),
        _ => image.read_scalar(offset + u64::from(bytes) * index as u64, bytes),
    }
}

/// Returns a texel as a vector of `count` components, or as one number.
fn texel_value(mut components: impl Iterator<Item = ConcreteValue>, count: Option<u32>) -> ConcreteValue {
    match count {
        Some(count) => ConcreteValue::from_components(components.take(count as usize)),
        None => components.next().unwrap_or(ConcreteValue::Bits(0, OPAQUE)),
    }
}

/// Returns the weighted sum of a component. `weights` has two positions of each axis, `offset` selects one each.
fn filter_component(
    image: &MemoryObject,
    index: usize,
    weights: &[[(u32, f64); 2]; 3],
    offset: impl Fn([usize; 3]) -> u64,
) -> (u64, Taint) {
    let (mut sum, mut taint) = (0.0, 0);
    for corner in 0..8_usize {
        let sides = [corner & 1, corner >> 1 & 1, corner >> 2];
        let weight: f64 = (0..3).map(|axis| weights[axis][sides[axis]].1).product();
        if weight != 0.0 {
            let (number, of) = texel_component(image, offset(sides), index);
            sum += weight * float_from_bits(number, 32);
            taint |= of;
        }
    }
    (float_to_bits(sum, 32), taint)
}

impl Interpreter<'_> {
    /// Returns the refusal for a value that is not computed and decides something.
    pub(super) fn opaque_value_problem(&self, what: &str) -> Problem {
        let what = what.to_owned();
        if self.notes.contains(NOT_SAMPLED) {
            return Problem::Sampled { what };
        }
        match self.missing_input_location() {
            Some(location) => Problem::MissingStageInput { what, location },
            None => Problem::Opaque { what },
        }
    }

    /// Returns the first input location without a given value, in graphics stages.
    fn missing_input_location(&self) -> Option<u32> {
        let module = self.program.module;
        let inputs = module.variables.iter().filter(|(_, variable)| {
            variable.class == StorageClass::Input && self.setup.stage.has_external_inputs()
        });
        let locations = inputs.filter_map(|(id, _)| module.decorations_of(*id).location);
        locations.filter(|location| !self.setup.stage_inputs.contains_key(location)).min()
    }

    pub(super) fn execute_image(
        &mut self,
        ctx: &mut InvocationCtx<'_>,
        inst: &DecodedInstruction<'_>,
        operation: ImageOperation,
    ) -> Step<ConcreteValue> {
        match operation {
            ImageOperation::ImageOf { sampled } => self.value_of_id(ctx, sampled),
            ImageOperation::Combine { image, sampler } => {
                Ok(match (self.value_of_id(ctx, image)?, self.value_of_id(ctx, sampler)?) {
                    (ConcreteValue::Image(object, _), ConcreteValue::Sampler(sampler)) => {
                        ConcreteValue::Image(object, Some(sampler))
                    }
                    (image, _) => image,
                })
            }
            ImageOperation::Read { image, coordinate, operands }
            | ImageOperation::Fetch { image, coordinate, operands } => {
                self.read_texel(ctx, inst, [image, coordinate], &operands)
            }
            ImageOperation::Write { image, coordinate, texel, operands } => {
                self.write_texel(ctx, [image, coordinate, texel], &operands)?;
                Ok(ConcreteValue::NoBits(0))
            }
            ImageOperation::TexelPointer { image, coordinate } => {
                self.texel_pointer(ctx, inst, [image, coordinate])
            }
            ImageOperation::Query { query, image } => self.query_image(ctx, inst, query, image),
            ImageOperation::Sample { sampling, image, coordinate, operands } => {
                let sampled = self.sample_texel(ctx, inst, sampling, [image, coordinate], &operands)?;
                if sampled.is_none() {
                    self.notes.insert(NOT_SAMPLED.to_owned());
                }
                Ok(sampled.map_or_else(|| self.program.filled_value(inst.raw.ty, OPAQUE), Ok)?)
            }
        }
    }

    /// Returns the answer to a query of an image.
    fn query_image(
        &mut self,
        ctx: &mut InvocationCtx<'_>,
        inst: &DecodedInstruction<'_>,
        query: ImageQuery,
        image: u32,
    ) -> Step<ConcreteValue> {
        let level = match query {
            ImageQuery::SizeOfLevel { level } => self.bits_of_id(ctx, level)?,
            ImageQuery::Size => (0, 0),
            ImageQuery::Levels => {
                return Ok(ConcreteValue::Bits(u64::from(self.image_layout(ctx, image)?.levels), 0));
            }
            ImageQuery::Samples => return Ok(ConcreteValue::Bits(1, 0)),
        };
        let texels = self.image_layout(ctx, image)?;
        let assumed = match self.value_of_id(ctx, image)? {
            ConcreteValue::Image(object, _) => {
                self.object_mut(ctx, object).map_or(0, |image| image.length_taint)
            }
            _ => 0,
        };
        let size = level_size(&texels, level.0 as u32);
        let part = |size: &u32| ConcreteValue::Bits(u64::from(*size), level.1 | assumed);
        let count = self.program.number_layout(inst.raw.ty).and_then(|of| of.2);
        Ok(texel_value(size.iter().map(part), count))
    }

    fn image_layout(&mut self, ctx: &mut InvocationCtx<'_>, image: u32) -> Step<ImageLayout> {
        let ConcreteValue::Image(object, _) = self.value_of_id(ctx, image)? else {
            return Err(malformed("an image expected").into());
        };
        let texels = self.note_assumed_size(ctx, object);
        Ok(texels.ok_or_else(|| malformed("an image expected"))?)
    }

    /// Returns the layout of an image, and notes a default size. Chosen sizes are listed with the other inputs.
    fn note_assumed_size(&mut self, ctx: &mut InvocationCtx<'_>, object: u32) -> Option<ImageLayout> {
        let image = self.object_mut(ctx, object)?;
        let texels = image.texels?;
        if texels.is_default {
            let (name, [x, y, z]) = (image.name.clone(), texels.size);
            self.notes.insert(format!("image `{name}` is not given: {x}x{y}x{z} of zeros assumed"));
        }
        Some(texels)
    }

    /// Returns the texel of an access with the taint of its coordinate; `None` out of bounds.
    fn texel_address(
        &mut self,
        ctx: &mut InvocationCtx<'_>,
        coordinate: u32,
        object: u32,
        level: u32,
        offset: Option<u32>,
    ) -> Step<(Option<u64>, Taint)> {
        let Some(texels) = self.note_assumed_size(ctx, object) else {
            return Err(malformed("no such image").into());
        };
        let (mut coordinates, mut offsets) = (Vec::new(), Vec::new());
        flatten_components(&self.value_of_id(ctx, coordinate)?, &mut coordinates);
        if let Some(offset) = offset {
            flatten_components(&self.value_of_id(ctx, offset)?, &mut offsets);
        }
        for (one, component_offset) in coordinates.iter_mut().zip(offsets) {
            *one = (
                u64::from((one.0 as u32).wrapping_add(component_offset.0 as u32)),
                one.1 | component_offset.1,
            );
        }
        let taint = coordinates.iter().fold(0, |all, one| all | one.1);
        self.note_inputs(ctx, taint);
        let size = level_size(&texels, level);
        let mut index = 0_u64;
        for (axis, size) in size.iter().enumerate().rev() {
            let coordinate = coordinates.get(axis).map_or(0, |one| one.0);
            if coordinate >= u64::from(*size) {
                let position = [0, 1, 2].map(|axis: usize| coordinates.get(axis).map_or(0, |one| one.0));
                self.note_exceeded_image(ctx, object, position, taint);
                return Ok((None, taint));
            }
            index = index * u64::from(*size) + coordinate;
        }
        let inside = level < texels.levels;
        Ok((inside.then(|| (level_start(&texels, level) + index) * TEXEL_BYTES), taint))
    }

    /// Returns the level and the access kind of the image operands.
    fn image_access(
        &mut self,
        ctx: &mut InvocationCtx<'_>,
        operands: &TexelOperands,
        object: u32,
        writes: bool,
    ) -> Step<(u32, MemoryAccessKind)> {
        if operands.mask.intersects(ImageOperands::GRAD | ImageOperands::CONST_OFFSETS) {
            return Err(unsupported("image operands other than levels and samples").into());
        }
        let level = match operands.lod {
            Some(id) => match self.value_of_id(ctx, id)? {
                ConcreteValue::Bits(level, taint) => {
                    self.check_control_dependence(ctx, taint, "an image level")?;
                    level as u32
                }
                _ => return Err(malformed("a level that is not a number").into()),
            },
            None => 0,
        };
        let coherent = self.object_mut(ctx, object).is_some_and(|object| object.coherent);
        let kind = self.plain_access_kind(litmus::StorageClass::Image, coherent, writes, operands.memory)?;
        Ok((level, kind))
    }

    /// Samples an image at an explicit level with a known sampler; `None` if it is not computed.
    fn sample_texel(
        &mut self,
        ctx: &mut InvocationCtx<'_>,
        inst: &DecodedInstruction<'_>,
        sampling: ImageSampling,
        [image, coordinate]: [u32; 2],
        operands: &TexelOperands,
    ) -> Step<Option<ConcreteValue>> {
        let ConcreteValue::Image(object, Some(sampler)) = self.value_of_id(ctx, image)? else {
            return Ok(None);
        };
        let component = match sampling {
            ImageSampling::Gather { component } => Some(component),
            ImageSampling::ExplicitLod => None,
            ImageSampling::Other => return Ok(None),
        };
        let gathers = component.is_some();
        let Some(texels) = self.note_assumed_size(ctx, object) else { return Ok(None) };
        let (lod, offset) = (operands.lod, operands.offset);
        let extended = ImageOperands::SIGN_EXTEND | ImageOperands::ZERO_EXTEND;
        let known = ImageOperands::LOD | ImageOperands::CONST_OFFSET | extended;
        if texels.is_cube || !known.contains(operands.mask) || lod.is_none() && !gathers {
            return Ok(None);
        }
        let (mut at, mut by) = (Vec::new(), Vec::new());
        flatten_components(&self.value_of_id(ctx, coordinate)?, &mut at);
        let mut taint = 0;
        if let Some(offset) = offset {
            flatten_components(&self.value_of_id(ctx, offset)?, &mut by);
        }
        let mut level = 0;
        if let Some(lod) = lod {
            let ConcreteValue::Bits(lod, of) = self.value_of_id(ctx, lod)? else { return Ok(None) };
            // The nearest level ("Image Level(s) Selection").
            level = (float_from_bits(lod, 32) + 0.5).ceil().max(1.0) as u32 - 1;
            level = level.min(texels.levels - 1);
            taint |= of;
        }
        let size = level_size(&texels, level);
        let filtered = texels.axes - usize::from(texels.is_layered);
        let mut weights = [[(0, 1.0), (0, 0.0)]; 3];
        for (axis, axis_weights) in weights.iter_mut().enumerate().take(texels.axes) {
            let Some((coordinate, of)) = at.get(axis) else { return Ok(None) };
            taint |= of;
            let coordinate = float_from_bits(*coordinate, 32);
            let offset = by.get(axis).map_or(0, |offset| i64::from(offset.0 as u32 as i32));
            *axis_weights = if axis < filtered {
                let four = Sampler { is_linear: sampler.is_linear || gathers, ..sampler };
                four.texel_weights(coordinate, offset, size[axis])
            } else {
                let layer = coordinate.round_ties_even().clamp(0.0, f64::from(size[axis] - 1));
                [(layer as u32, 1.0), (0, 0.0)]
            };
        }
        let start = level_start(&texels, level);
        let place = |sides: [usize; 3]| {
            let [x, y, z] = std::array::from_fn(|axis| u64::from(weights[axis][sides[axis]].0));
            (start + (z * u64::from(size[1]) + y) * u64::from(size[0]) + x) * TEXEL_BYTES
        };
        let shape = self.program.number_layout(inst.raw.ty);
        let (kind, width, count) = shape.ok_or_else(|| malformed("a texel that is not a number"))?;
        let gathered = component.map(|component| self.bits_of_id(ctx, component)).transpose()?;
        let gathered = gathered.map_or(0, |(component, _)| component as usize & 3);
        let Some(image) = self.object_mut(ctx, object) else { return Ok(None) };
        let mut parts = Vec::new();
        for index in 0..4 {
            let (number, of) = if gathers {
                // Counterclockwise from the lower left texel ("Texel Gathering").
                let [x, y] = [[0, 1], [1, 1], [1, 0], [0, 0]][index];
                texel_component(image, place([x, y, 0]), gathered)
            } else if sampler.is_linear && kind == ScalarKind::Float {
                filter_component(image, index, &weights, place)
            } else {
                texel_component(image, place([0; 3]), index)
            };
            let number = if kind == ScalarKind::Float {
                float_to_bits(float_from_bits(number, 32), width)
            } else {
                number
            };
            parts.push(ConcreteValue::Bits(number, of | taint));
        }
        self.notes.insert("samplers use the nearest mip level".to_owned());
        if sampler.is_linear && !gathers {
            self.notes.insert("linear filters use exact weights".to_owned());
        }
        Ok(Some(texel_value(parts.into_iter(), count)))
    }

    fn read_texel(
        &mut self,
        ctx: &mut InvocationCtx<'_>,
        inst: &DecodedInstruction<'_>,
        [image, coordinate]: [u32; 2],
        operands: &TexelOperands,
    ) -> Step<ConcreteValue> {
        let ConcreteValue::Image(object, _) = self.value_of_id(ctx, image)? else {
            return Ok(self.program.filled_value(inst.raw.ty, OPAQUE)?);
        };
        let (level, manner) = self.image_access(ctx, operands, object, false)?;
        let (place, taint) = self.texel_address(ctx, coordinate, object, level, operands.offset)?;
        let shape = self.program.number_layout(inst.raw.ty);
        let (kind, bits, count) = shape.ok_or_else(|| malformed("a texel that is not a number"))?;
        let Some(offset) = place else {
            self.notes.insert("texels beyond an image are read as zero".to_owned());
            return Ok(self.program.filled_value(inst.raw.ty, taint)?);
        };
        let mut class = None;
        let mut parts = Vec::new();
        if let Some(shared) = self.object_mut(ctx, object) {
            class = shared.class;
            for index in 0..4 {
                let (number, of) = texel_component(shared, offset, index as usize);
                let number = match (kind, bits) {
                    (ScalarKind::Float, 16 | 64) => float_to_bits(float_from_bits(number, 32), bits),
                    _ => number & mask(bits),
                };
                parts.push(ConcreteValue::Bits(number, of | taint));
            }
        }
        if let Some(class) = class {
            let pointer = ConcretePointer { offset, ..ConcretePointer::at_object_start(object, 0) };
            self.check_access(ctx, &pointer, TEXEL_BYTES as u32, class, manner, true);
        }
        Ok(texel_value(parts.into_iter(), count))
    }

    fn write_texel(
        &mut self,
        ctx: &mut InvocationCtx<'_>,
        [image, coordinate, texel]: [u32; 3],
        operands: &TexelOperands,
    ) -> Step<()> {
        let ConcreteValue::Image(object, _) = self.value_of_id(ctx, image)? else {
            return Err(malformed("an image expected").into());
        };
        let (level, manner) = self.image_access(ctx, operands, object, true)?;
        let (place, taint) = self.texel_address(ctx, coordinate, object, level, operands.offset)?;
        self.check_control_dependence(ctx, taint, "a coordinate of an image")?;
        // An out-of-bounds write has no effect.
        let Some(offset) = place else { return Ok(()) };
        if self.is_probing() {
            self.changes += 1;
            return Ok(());
        }
        let value = self.value_of_id(ctx, texel)?;
        let of = self.program.number_layout(self.program.type_of(texel));
        let (kind, bits) = of.map_or((ScalarKind::Integer, 32), |of| (of.0, of.1));
        let mut parts = Vec::new();
        flatten_components(&value, &mut parts);
        let taint = parts.iter().fold(0, |all, part| all | part.1);
        self.observe_undefined(taint);
        self.observe_unwritten(ctx, taint);
        let (mut class, mut changed) = (None, false);
        if let Some(shared) = self.object_mut(ctx, object) {
            class = shared.class;
            let format = shared.texels.and_then(|texels| texels.format);
            let bytes = format.map_or(4, component_bytes);
            for (index, (number, taint)) in
                parts.iter().enumerate().take(TEXEL_BYTES as usize / bytes as usize)
            {
                let number = match (kind, bits) {
                    (ScalarKind::Float, 16 | 64) => float_to_bits(float_from_bits(*number, bits), 32),
                    _ => *number,
                };
                // Without a format the rounding is unknown.
                let (kept, known) = format.map_or((number, false), |format| format.quantize(index, number));
                let of = if known { 0 } else { OPAQUE };
                let at = offset + u64::from(bytes) * index as u64;
                changed |= !shared.store_plain(at, bytes, kept, taint | of);
            }
        }
        self.changes += 1;
        if let Some(class) = class {
            let pointer = ConcretePointer { offset, ..ConcretePointer::at_object_start(object, 0) };
            self.repeated_store = (!changed).then_some(OPAQUE);
            self.check_access(ctx, &pointer, TEXEL_BYTES as u32, class, manner, false);
            self.repeated_store = None;
        }
        Ok(())
    }

    fn texel_pointer(
        &mut self,
        ctx: &mut InvocationCtx<'_>,
        inst: &DecodedInstruction<'_>,
        [image, coordinate]: [u32; 2],
    ) -> Step<ConcreteValue> {
        let pointer = self.pointer_of_id(ctx, image)?;
        let Some((_, ty)) = self.program.pointee_of(inst.raw.ty) else {
            return Err(malformed("a texel pointer that is not a pointer").into());
        };
        let (place, taint) = self.texel_address(ctx, coordinate, pointer.object, 0, None)?;
        let is_undefined = |image: &mut MemoryObject| {
            image.has_known_length && image.robustness == BufferRobustness::Disabled
        };
        if place.is_none() && self.object_mut(ctx, pointer.object).is_some_and(is_undefined) {
            self.report_here(ctx, FindingCause::BeyondEnd, "an atomic beyond the end of an image".to_owned());
        }
        let offset = place.unwrap_or(u64::MAX / 2);
        Ok(ConcreteValue::Pointer(ConcretePointer {
            offset,
            taint,
            ..ConcretePointer::at_object_start(pointer.object, ty)
        }))
    }
}
